package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"

	readinessv1alpha1 "github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// generateKinds are the kinds of Generate.
var generateKinds = []string{"ReplicaSet", "Deployment", "Job", "DaemonSet", "Pod"}

// systemPriorityClasses are those that every API server creates (pkg/apis/scheduling/v1/helpers.go).
var systemPriorityClasses = []string{"system-node-critical", "system-cluster-critical"}

const (
	// systemPriorityClassPrefix begins the names that Kubernetes keeps for its own (pkg/apis/scheduling/types.go).
	systemPriorityClassPrefix = "system-"
	// highestPriority is the highest value of a PriorityClass that is not one of Kubernetes' own (likewise).
	highestPriority = 1_000_000_000
)

func (v *validator) priorityClasses(path *field.Path) {
	names := sets.New[string]()
	for i, class := range v.cluster.PriorityClasses {
		path := path.Index(i)
		switch name := class.Name; {
		case name == "":
			v.add(field.Required(path.Child("name"), "give it a name"))
		case names.Has(name):
			v.add(field.Duplicate(path.Child("name"), name))
		case strings.HasPrefix(name, systemPriorityClassPrefix):
			v.invalid(path.Child("name"), name, "must not begin with %s: Kubernetes keeps such names for its own", systemPriorityClassPrefix)
		default:
			v.check(path.Child("name"), name, validation.IsDNS1123Subdomain(name))
		}
		names.Insert(class.Name)
		if class.Value > highestPriority {
			v.invalid(path.Child("value"), class.Value, "must be at most %d: Kubernetes keeps higher ones for its own", highestPriority)
		}
	}
}

func (v *validator) workloads(path *field.Path) {
	names := sets.New[string]()
	for i := range v.cluster.Workloads {
		w := &v.cluster.Workloads[i]
		v.name(w.Name, names, path.Index(i).Child("name"))
		v.workload(w, path.Index(i))
	}
}

func (v *validator) workload(w *Workload, path *field.Path) {
	v.notNegative(w.After.Duration, path.Child("after"))
	if w.Phase != WorkloadBefore && w.Phase != WorkloadDuring {
		v.add(field.NotSupported(path.Child("phase"), w.Phase, []WorkloadPhase{WorkloadBefore, WorkloadDuring}))
	}
	v.groups(w, path.Child("groups"))
	if !v.template(w, path) {
		return // what follows depends on what kind of pods there are
	}
	v.replicas(w, path)
	v.pinTo(w, path.Child("pinTo"))
	v.references(w, path)
}

func (v *validator) groups(w *Workload, path *field.Path) {
	var known []string
	for _, g := range v.cluster.NodeGroups {
		known = append(known, g.Name)
	}
	for i, name := range w.Groups {
		v.known(name, known, "there is no such node group", path.Index(i))
		if slices.Contains(w.Groups[:i], name) {
			v.add(field.Duplicate(path.Index(i), name))
		}
	}
}

// template validates where the pods come from, and tells whether they are known.
func (v *validator) template(w *Workload, path *field.Path) bool {
	switch {
	case w.Generate != nil && len(w.Manifest) > 0:
		v.add(field.Forbidden(path.Child("generate"), "set only one of manifest, file and generate"))
		return false
	case w.Generate != nil:
		return v.generate(w.Generate, path.Child("generate"))
	case len(w.Manifest) == 0:
		v.add(field.Required(path, "set one of manifest, file and generate"))
		return false
	}
	path = path.Child("manifest")
	object, err := w.Object()
	if err != nil {
		v.invalid(path, w.Name, "%v", err)
		return false
	}
	if object.GetName() == "" {
		v.add(field.Required(path.Child("metadata", "name"), "give the object a name"))
	}
	return true
}

func (v *validator) generate(g *Generate, path *field.Path) bool {
	if !slices.Contains(generateKinds, g.Kind) {
		v.add(field.NotSupported(path.Child("kind"), g.Kind, generateKinds))
		return false
	}
	v.resources(g.Requests, path.Child("requests"))
	for i, t := range g.Tolerations {
		v.toleration(t, path.Child("tolerations").Index(i))
	}
	return true
}

// references validates what the pods refer to by name: without its PriorityClass no pod can be created, without its scheduler none is ever bound.
func (v *validator) references(w *Workload, path *field.Path) {
	pod, err := w.Pod()
	if err != nil {
		return // reported by template
	}
	if w.Generate != nil {
		path = path.Child("generate")
	} else if path = path.Child("manifest", "spec"); w.Kind() != "Pod" {
		path = path.Child("template", "spec")
	}
	if name := pod.Spec.PriorityClassName; name != "" {
		v.known(name, v.cluster.priorityClassNames(), "there is no such PriorityClass", path.Child("priorityClassName"))
	}
	if w.PinTo == "" && pod.Spec.NodeName == "" {
		scheduler := cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
		v.known(scheduler, v.cluster.ControlPlane.schedulerNames(), "there is no such scheduler", path.Child("schedulerName"))
	}
}

// priorityClassNames are the PriorityClasses that there are at some time.
func (c *Cluster) priorityClassNames() []string {
	names := slices.Clone(systemPriorityClasses)
	for _, class := range c.PriorityClasses {
		names = append(names, class.Name)
	}
	for _, fault := range c.APIFaults {
		if class := fault.MissingPriorityClass; class != nil {
			names = append(names, class.Name)
		}
	}
	return names
}

func (p *ControlPlane) schedulerNames() []string {
	return append(p.Scheduler.profiles(), p.OtherSchedulers...)
}

// profiles are the names of kube-scheduler's profiles. One without a name is default-scheduler, as is the only one of an empty configuration
// (pkg/scheduler/apis/config/v1/defaults.go).
func (s *Scheduler) profiles() []string {
	var config schedulerv1.KubeSchedulerConfiguration
	if err := json.Unmarshal(s.Config, &config); err != nil || len(config.Profiles) == 0 {
		return []string{corev1.DefaultSchedulerName}
	}
	names := make([]string, len(config.Profiles))
	for i := range names {
		names[i] = ptr.Deref(config.Profiles[i].SchedulerName, corev1.DefaultSchedulerName)
	}
	return names
}

func (v *validator) toleration(t corev1.Toleration, path *field.Path) {
	if t.Key != "" {
		v.check(path.Child("key"), t.Key, validation.IsQualifiedName(t.Key))
	} else if t.Operator != corev1.TolerationOpExists {
		v.invalid(path.Child("operator"), t.Operator, "must be Exists when key is empty")
	}
	if t.Effect != "" && !taintEffects.Has(t.Effect) {
		v.add(field.NotSupported(path.Child("effect"), t.Effect, sets.List(taintEffects)))
	}
}

func (v *validator) replicas(w *Workload, path *field.Path) {
	daemonSet := w.Kind() == "DaemonSet"
	switch {
	case w.Replicas != nil && w.Fill != "":
		v.add(field.Forbidden(path.Child("fill"), "set only one of replicas and fill"))
	case daemonSet && w.Replicas != nil:
		v.add(field.Forbidden(path.Child("replicas"), "a DaemonSet has one pod a node"))
	case daemonSet && w.Fill != "":
		v.add(field.Forbidden(path.Child("fill"), "a DaemonSet has one pod a node"))
	case w.Replicas != nil && (*w.Replicas < 0 || *w.Replicas > MaxPods):
		v.invalid(path.Child("replicas"), *w.Replicas, "must be from 0 to %d", MaxPods)
	case w.Fill != "":
		v.fill(w, path.Child("fill"))
	case w.Replicas == nil && w.Generate != nil && !daemonSet:
		v.add(field.Required(path.Child("replicas"), "set replicas or fill: how many pods shall be generated?"))
	}
}

// fill checks that Fill gives a number.
func (v *validator) fill(w *Workload, path *field.Path) {
	if fills := []Fill{FillAllocatable, FillFree}; !slices.Contains(fills, w.Fill) {
		v.add(field.NotSupported(path, w.Fill, fills))
		return
	}
	pod, err := w.Pod()
	if err != nil {
		v.invalid(path, w.Fill, "%v", err)
		return
	}
	var asks bool
	for name, x := range podAmounts(pod) {
		if x < 0 {
			return // reported where it stands
		}
		asks = asks || x > 0 && name != string(corev1.ResourcePods)
	}
	if !asks {
		v.invalid(path, w.Fill, "the pods request nothing, so any number of them fits: give them requests, or set replicas")
		return
	}
	if len(v.errs) > 0 {
		return // a number derived from what is wrong is not worth an error of its own
	}
	if _, err := v.cluster.FillReplicas(w, false); err != nil {
		v.invalid(path, w.Fill, "%v", err)
	}
}

func (v *validator) pinTo(w *Workload, path *field.Path) {
	if w.PinTo == "" {
		return
	}
	if w.Kind() != "Pod" {
		v.add(field.Forbidden(path, "only a workload of kind Pod can be pinned to a node"))
	}
	if len(w.Groups) > 0 {
		v.add(field.Forbidden(path, "set only one of pinTo and groups"))
	}
	for i := range v.cluster.NodeGroups {
		g := &v.cluster.NodeGroups[i]
		for index := range min(max(g.FinalSize(), 0), MaxNodes) {
			if g.NodeName(index) == w.PinTo {
				return
			}
		}
	}
	v.invalid(path, w.PinTo, "no node of the experiment has this name; nodes are called <group>-<index>, from 0")
}

func (v *validator) gate(g *Gate, path *field.Path) {
	v.rule(g, path.Child("rule"))
	v.check(path.Child("taintValue"), g.TaintValue, validation.IsValidLabelValue(g.TaintValue))
	path = path.Child("check")
	set, err := g.Check.DecodeDaemonSet()
	switch {
	case err != nil:
		v.invalid(path.Child("daemonSet"), "", "%v", err)
	case len(set.Spec.Template.Spec.InitContainers) == 0:
		v.add(field.Required(path.Child("daemonSet", "spec", "template", "spec", "initContainers"), "the check runs as an init container"))
	}
	v.delay(g.Check.StartDelay, path.Child("startDelay"))
	if g.Check.PollInterval != nil {
		v.positive(g.Check.PollInterval.Duration, path.Child("pollInterval"))
	}
	if accepts := []Accept{AcceptOwnMirror, AcceptName}; !slices.Contains(accepts, g.Check.Accept) {
		v.add(field.NotSupported(path.Child("accept"), g.Check.Accept, accepts))
	}
	v.notNegative(g.Check.Settle.Duration, path.Child("settle"))
	for i, name := range g.Check.StaticPods {
		if namespace, pod, ok := strings.Cut(name, "/"); !ok || namespace == "" || pod == "" || strings.Contains(pod, "/") {
			v.invalid(path.Child("staticPods").Index(i), name, "must be namespace/name of a static pod's manifest")
		}
	}
	for i, name := range g.Check.ConfirmSchedulers {
		v.known(name, v.cluster.ControlPlane.schedulerNames(), "there is no such scheduler", path.Child("confirmSchedulers").Index(i))
	}
	if rule, err := g.DecodeRule(); g.Check.Continuous && err == nil && rule.Spec.EnforcementMode != readinessv1alpha1.EnforcementModeContinuous {
		v.invalid(path.Child("continuous"), true, "the rule is %s, and would not look at the condition again: set gate.rule to one that is continuous",
			rule.Spec.EnforcementMode)
	}
}

// rule validates what the simulator itself needs of the rule; the API server and the controller judge the rest.
func (v *validator) rule(g *Gate, path *field.Path) {
	rule, err := g.DecodeRule()
	if err != nil {
		v.invalid(path, "", "%v", err)
		return
	}
	if rule.Name == "" {
		v.add(field.Required(path.Child("metadata", "name"), "give the rule a name"))
	}
	if len(rule.Spec.Conditions) == 0 {
		v.add(field.Required(path.Child("spec", "conditions"), "which node condition releases a node?"))
	}
	taint := path.Child("spec", "taint")
	v.check(taint.Child("key"), rule.Spec.Taint.Key, validation.IsQualifiedName(rule.Spec.Taint.Key))
	if !taintEffects.Has(rule.Spec.Taint.Effect) {
		v.add(field.NotSupported(taint.Child("effect"), rule.Spec.Taint.Effect, sets.List(taintEffects)))
	}
}

func typeOf(manifest json.RawMessage) (metav1.TypeMeta, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(manifest, &head); err != nil {
		return head, fmt.Errorf("decode manifest: %w", err)
	}
	return head, nil
}
