package sim

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// The sizes up to which Kubernetes itself is supported (https://kubernetes.io/docs/setup/best-practices/cluster-large/). Beyond them a number
// in an experiment is taken for a mistake.
const (
	// MaxNodes is the largest supported number of nodes.
	MaxNodes = 5000
	// MaxPods is the largest supported number of pods.
	MaxPods = 150000
)

// Validate reports everything that is wrong with a cluster that has its defaults (SetDefaults); path is where it stands. Manifests are decoded
// strictly, but what only the API server or a kubelet can tell is left to them.
func (c *Cluster) Validate(path *field.Path) field.ErrorList {
	v := &validator{cluster: c}
	v.controlPlane(&c.ControlPlane, path.Child("controlPlane"))
	v.kubelet(&c.Kubelet, nil, path.Child("kubelet"))
	v.nodeGroups(path.Child("nodeGroups"))
	v.priorityClasses(path.Child("priorityClasses"))
	v.workloads(path.Child("workloads"))
	v.gate(&c.Gate, path.Child("gate"))
	v.apiFaults(path.Child("apiFaults"))
	if c.Autoscaler != nil {
		v.autoscaler(c.Autoscaler, path.Child("autoscaler"))
	}
	return v.errs
}

// validator collects what is wrong.
type validator struct {
	cluster *Cluster
	errs    field.ErrorList
}

func (v *validator) add(errs ...*field.Error) { v.errs = append(v.errs, errs...) }

func (v *validator) invalid(path *field.Path, value any, format string, args ...any) {
	v.add(field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

// check runs one of apimachinery's checks of a string.
func (v *validator) check(path *field.Path, value string, problems []string) {
	for _, problem := range problems {
		v.add(field.Invalid(path, value, problem))
	}
}

// delay validates an optional delay.
func (v *validator) delay(d *random.Delay, path *field.Path) {
	if d != nil {
		v.add(d.Validate(path)...)
	}
}

func (v *validator) notNegative(d time.Duration, path *field.Path) {
	if d < 0 || d > random.Longest {
		v.invalid(path, d.String(), "must be from 0s to %v", random.Longest)
	}
}

func (v *validator) positive(d time.Duration, path *field.Path) {
	if d <= 0 || d > random.Longest {
		v.invalid(path, d.String(), "must be more than 0s, and at most %v", random.Longest)
	}
}

func (v *validator) controlPlane(p *ControlPlane, path *field.Path) {
	v.client(p.Scheduler.Client, path.Child("scheduler"))
	v.client(p.ControllerManager, path.Child("controllerManager"))
	v.client(p.ReadinessController.Client, path.Child("readinessController"))
	v.restarts(p.ReadinessController.Restarts, path.Child("readinessController", "restarts"))
	v.notNegative(p.Scheduler.PodWatchLag.Duration, path.Child("scheduler", "podWatchLag"))
	if raw := p.Scheduler.Config; len(raw) > 0 {
		if head, err := typeOf(raw); err != nil || head.Kind != "KubeSchedulerConfiguration" {
			v.invalid(path.Child("scheduler", "config"), head.Kind, "must be a KubeSchedulerConfiguration")
		}
	}
	names := sets.New(p.Scheduler.profiles()...)
	for i, name := range p.OtherSchedulers {
		v.name(name, names, path.Child("otherSchedulers").Index(i))
	}
	for _, name := range slices.Sorted(maps.Keys(p.APIServerFlags)) {
		switch path := path.Child("apiServerFlags").Key(name); {
		case name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, "= \t"):
			v.invalid(path, name, "must be the name of a flag without dashes, such as max-requests-inflight")
		case ownedFlag.MatchString(name):
			v.add(field.Forbidden(path, "is the engine's own: it decides where kube-apiserver listens, stores and whom it trusts"))
		}
	}
}

// restarts validates outages: one after another.
func (v *validator) restarts(restarts []Restart, path *field.Path) {
	var up time.Duration
	for i, r := range restarts {
		v.notNegative(r.At.Duration, path.Index(i).Child("at"))
		v.notNegative(r.Down.Duration, path.Index(i).Child("down"))
		if r.At.Duration < up {
			v.invalid(path.Index(i).Child("at"), r.At.Duration.String(), "begins before the outage before it is over, at %v", up)
		}
		up = r.At.Duration + r.Down.Duration
	}
}

// ownedFlag matches the flags of kube-apiserver that the engine needs for itself, above all to stay on this machine.
var ownedFlag = regexp.MustCompile(
	`^(etcd-.*|.*bind-address|.*secure-port|advertise-address|external-hostname|endpoint-reconciler-type|cert-dir|tls-.*|.*client-ca-file|` +
		`authorization-mode|service-account-.*|kubelet-preferred-address-types|egress-selector-config-file|token-auth-file|anonymous-auth)$`)

func (v *validator) client(c Client, path *field.Path) {
	if math.IsNaN(float64(c.QPS)) || math.IsInf(float64(c.QPS), 0) {
		v.invalid(path.Child("qps"), c.QPS, "must be a finite number; negative for no throttle")
	}
	if c.Burst < 0 {
		v.invalid(path.Child("burst"), c.Burst, "must not be negative")
	}
}

// kubelet leaves out what was inherited, since it was validated where it stands.
func (v *validator) kubelet(k, inherited *Kubelet, path *field.Path) {
	if inherited == nil {
		inherited = new(Kubelet)
	}
	for _, f := range []struct {
		name           string
		own, inherited *random.Delay
	}{
		{"readyDelay", k.ReadyDelay, inherited.ReadyDelay},
		{"mirrorDelay", k.MirrorDelay, inherited.MirrorDelay},
		{"mirrorRetry", k.MirrorRetry, inherited.MirrorRetry},
		{"mirrorResync", k.MirrorResync, inherited.MirrorResync},
		{"statusDelay", k.StatusDelay, inherited.StatusDelay},
		{"podSourceDelay", k.PodSourceDelay, inherited.PodSourceDelay},
	} {
		if f.own != f.inherited {
			v.delay(f.own, path.Child(f.name))
		}
	}
	if !slices.Contains([]Implementation{KubeletModel, KubeletReal}, k.Implementation) {
		v.add(field.NotSupported(path.Child("implementation"), k.Implementation, []Implementation{KubeletModel, KubeletReal}))
	}
	if k.APIUnreachable != inherited.APIUnreachable && k.APIUnreachable != nil {
		v.notNegative(k.APIUnreachable.Duration, path.Child("apiUnreachable"))
	}
	if k.StatusTick != inherited.StatusTick && k.StatusTick != nil {
		v.positive(k.StatusTick.Duration, path.Child("statusTick"))
	}
	if k.Housekeeping != inherited.Housekeeping && k.Housekeeping != nil {
		v.notNegative(k.Housekeeping.Duration, path.Child("housekeeping"))
	}
}

func (v *validator) nodeGroups(path *field.Path) {
	groups := v.cluster.NodeGroups
	if len(groups) == 0 {
		v.add(field.Required(path, "give at least one node group"))
		return
	}
	names := sets.New[string]()
	var nodes int
	for i := range groups {
		v.name(groups[i].Name, names, path.Index(i).Child("name"))
		v.nodeGroup(&groups[i], path.Index(i))
		nodes += max(groups[i].FinalSize(), 0)
	}
	if nodes == 0 {
		v.invalid(path, 0, "the experiment has no nodes: set initial or scaleUp.to of a node group")
	}
	if nodes > MaxNodes {
		v.invalid(path, nodes, "the experiment has %d nodes; Kubernetes supports at most %d", nodes, MaxNodes)
	}
}

// name validates a DNS label that must not be among those before it.
func (v *validator) name(name string, seen sets.Set[string], path *field.Path) {
	switch {
	case name == "":
		v.add(field.Required(path, "give it a name"))
	case seen.Has(name):
		v.add(field.Duplicate(path, name))
	default:
		v.check(path, name, validation.IsDNS1123Label(name))
	}
	seen.Insert(name)
}

func (v *validator) nodeGroup(g *NodeGroup, path *field.Path) {
	if last := g.NodeName(max(g.FinalSize()-1, 0)); len(last) > validation.DNS1123LabelMaxLength {
		v.invalid(path.Child("name"), g.Name, "is too long: node %s does not fit into the label kubernetes.io/hostname (63 characters)", last)
	}
	v.machine(g, path)
	v.labels(g.Labels, path.Child("labels"))
	v.taints(g.Taints, path.Child("taints"))
	if g.Initial < 0 {
		v.invalid(path.Child("initial"), g.Initial, "must not be negative")
	}
	if g.ScaleUp != nil {
		v.scaleUp(g, path.Child("scaleUp"))
	}
	v.staticPods(g, path.Child("staticPods"))
	if g.Kubelet != nil {
		v.kubelet(g.Kubelet, &v.cluster.Kubelet, path.Child("kubelet"))
		v.realKubelet(g, path)
	}
	for i := range g.Actions {
		v.action(g, &g.Actions[i], path.Child("actions").Index(i))
	}
}

// maxRealKubelets bounds the processes: one takes about 120 MB, of which 20 MB are its own, and a quarter of a second of one core to start.
const maxRealKubelets = 200

// realKubelet validates what a group with real kubelets cannot have.
func (v *validator) realKubelet(g *NodeGroup, path *field.Path) {
	if g.Kubelet.Implementation != KubeletReal {
		return
	}
	if n := g.FinalSize(); n > maxRealKubelets {
		v.invalid(path, n, "has %d nodes with real kubelets, each a process; at most %d", n, maxRealKubelets)
	}
	if cpu := g.Capacity[corev1.ResourceCPU]; cpu.MilliValue()%1000 != 0 {
		v.invalid(path.Child("capacity").Key("cpu"), cpu.String(), "must be a whole number, since a real kubelet counts cores: set allocatable to what is left of them")
	}
}

func (v *validator) machine(g *NodeGroup, path *field.Path) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, ok := g.Capacity[name]; !ok {
			v.add(field.Required(path.Child("capacity").Key(string(name)), "how much of it does a node have?"))
		}
	}
	v.resources(g.Capacity, path.Child("capacity"))
	own := maps.Clone(g.Allocatable) // what it does not have from Capacity
	maps.DeleteFunc(own, func(name corev1.ResourceName, q resource.Quantity) bool { return q.Cmp(g.Capacity[name]) == 0 })
	v.resources(own, path.Child("allocatable"))
	for _, name := range slices.Sorted(maps.Keys(own)) {
		allocatable, capacity := own[name], g.Capacity[name]
		if allocatable.Cmp(capacity) > 0 {
			v.invalid(path.Child("allocatable").Key(string(name)), allocatable.String(), "must not be more than the capacity, %s", capacity.String())
		}
	}
}

func (v *validator) resources(list corev1.ResourceList, path *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		v.check(path.Key(string(name)), string(name), validation.IsQualifiedName(string(name)))
		switch q := list[name]; {
		case q.Sign() < 0:
			v.invalid(path.Key(string(name)), q.String(), "must not be negative")
		case q.Cmp(maxAmount) > 0:
			v.invalid(path.Key(string(name)), q.String(), "is more than any machine has; at most %s", maxAmount.String())
		}
	}
}

func (v *validator) labels(labels map[string]string, path *field.Path) {
	v.add(metav1validation.ValidateLabels(labels, path)...)
	for _, reserved := range []string{LabelGroup, LabelInitial, corev1.LabelHostname} {
		if _, ok := labels[reserved]; ok {
			v.add(field.Forbidden(path.Key(reserved), "is set by the simulated kubelet"))
		}
	}
}

var taintEffects = sets.New(corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)

func (v *validator) taints(taints []corev1.Taint, path *field.Path) {
	rule, err := v.cluster.Gate.DecodeRule()
	seen := sets.New[string]()
	for i, taint := range taints {
		path := path.Index(i)
		v.check(path.Child("key"), taint.Key, validation.IsQualifiedName(taint.Key))
		v.check(path.Child("value"), taint.Value, validation.IsValidLabelValue(taint.Value))
		if !taintEffects.Has(taint.Effect) {
			v.add(field.NotSupported(path.Child("effect"), taint.Effect, sets.List(taintEffects)))
		}
		if id := taint.Key + ":" + string(taint.Effect); seen.Has(id) {
			v.add(field.Duplicate(path, id))
		} else {
			seen.Insert(id)
		}
		if err == nil && taint.Key == rule.Spec.Taint.Key {
			v.add(field.Forbidden(path.Child("key"), "is the taint of the readiness gate: gated arms set it, and ungated ones must not have it"))
		}
	}
}

func (v *validator) scaleUp(g *NodeGroup, path *field.Path) {
	s := g.ScaleUp
	if s.To <= g.Initial {
		v.invalid(path.Child("to"), s.To, "must be more than initial, %d", g.Initial)
	}
	v.notNegative(s.After.Duration, path.Child("after"))
	v.arrival(s, s.To-g.Initial, path.Child("arrival"))
}

func (v *validator) arrival(s *ScaleUp, nodes int, path *field.Path) {
	a := s.Arrival
	var set int
	if a.Evenly != nil {
		set++
		v.notNegative(a.Evenly.Duration, path.Child("evenly"))
	}
	if a.Poisson != nil {
		set++
		v.positive(a.Poisson.Duration, path.Child("poisson"))
	}
	if a.Times != nil {
		set++
		v.times(a.Times, nodes, path.Child("times"))
	}
	if set > 1 {
		v.add(field.Forbidden(path, "set only one of evenly, poisson and times"))
	}
}

func (v *validator) times(times []metav1.Duration, nodes int, path *field.Path) {
	if len(times) != nodes {
		v.invalid(path, len(times), "has %d times for %d new nodes: give one for each", len(times), nodes)
	}
	for i, t := range times {
		v.notNegative(t.Duration, path.Index(i))
		if i > 0 && t.Duration < times[i-1].Duration {
			v.invalid(path.Index(i), t.Duration.String(), "times must be in ascending order")
		}
	}
}

// staticPods validates each manifest, and that a node has room for all of them.
func (v *validator) staticPods(g *NodeGroup, path *field.Path) {
	files, pods := sets.New[string](), sets.New[string]()
	sum := trace.Resources{}
	for i := range g.StaticPods {
		s, path := &g.StaticPods[i], path.Index(i)
		pod := v.staticPod(g, s, path)
		if s.FileName != "" && files.Has(s.FileName) {
			v.add(field.Duplicate(path.Child("fileName"), s.FileName))
		}
		files.Insert(s.FileName)
		if pod == nil {
			continue
		}
		if name := pod.Namespace + "/" + pod.Name; pods.Has(name) {
			v.add(field.Duplicate(path.Child("manifest", "metadata", "name"), pod.Name))
		} else {
			pods.Insert(name)
		}
		sum = plus(sum, podAmounts(pod))
	}
	if len(g.StaticPods) > 1 {
		v.fits(g, sum, "the static pods of a node request", path)
	}
}

// staticPod returns the pod, or nil when there is none to be had.
func (v *validator) staticPod(g *NodeGroup, s *StaticPod, path *field.Path) *corev1.Pod {
	v.delay(s.MirrorDelay, path.Child("mirrorDelay"))
	if s.Source != "" && s.Source != SourceFolder && s.Source != SourceURL {
		v.add(field.NotSupported(path.Child("source"), s.Source, []StaticPodSource{SourceFolder, SourceURL}))
	}
	v.fileName(s.FileName, path.Child("fileName"))
	if len(s.Manifest) == 0 {
		v.add(field.Required(path, "set one of manifest, file and folder"))
		return nil
	}
	if s.Invalid {
		if s.FileName == "" {
			v.add(field.Required(path.Child("fileName"), "an invalid manifest needs a file name, since it may have no name of its own"))
		}
		return nil
	}
	path = path.Child("manifest")
	pod, err := s.Pod()
	if err != nil {
		v.invalid(path, s.FileName, "%v; if the kubelet is meant to refuse it, set invalid: true", err)
		return nil
	}
	v.podSpec(pod, path)
	if namespace := pod.Namespace; namespace != "" {
		v.check(path.Child("metadata", "namespace"), namespace, validation.IsDNS1123Label(namespace))
	}
	if pod.Name == "" {
		v.add(field.Required(path.Child("metadata", "name"), "a static pod needs a name"))
	} else {
		v.check(path.Child("metadata", "name"), pod.Name, validation.IsDNS1123Subdomain(pod.Name))
	}
	v.fits(g, podAmounts(pod), "the static pod requests", path)
	return pod
}

func (v *validator) fileName(name string, path *field.Path) {
	switch {
	case strings.ContainsAny(name, "/\\"):
		v.invalid(path, name, "must be the name of a file, without a folder")
	case strings.HasPrefix(name, "."):
		v.invalid(path, name, "must not begin with a dot: the kubelet skips such files")
	}
}

// podSpec validates what decides about room; the rest is for the kubelet or the API server.
func (v *validator) podSpec(pod *corev1.Pod, path *field.Path) {
	path = path.Child("spec")
	if len(pod.Spec.Containers) == 0 {
		v.add(field.Required(path.Child("containers"), "a pod needs a container"))
	}
	for i, c := range pod.Spec.InitContainers {
		v.resources(c.Resources.Requests, path.Child("initContainers").Index(i).Child("resources", "requests"))
	}
	for i, c := range pod.Spec.Containers {
		v.resources(c.Resources.Requests, path.Child("containers").Index(i).Child("resources", "requests"))
	}
}

// fits reports a resource of which a node has less than what asks for.
func (v *validator) fits(g *NodeGroup, asked trace.Resources, what string, path *field.Path) {
	allocatable := Amounts(g.Allocatable)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		room, known := allocatable[name]
		if known && asked[name] > room {
			v.invalid(path, amount(name, asked[name]), "%s more %s than the node's allocatable, %s: make the node larger, or the requests smaller",
				what, name, amount(name, room))
		}
	}
}

// amount writes a count of a resource as a quantity.
func amount(name string, x int64) string {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(x, resource.DecimalSI).String()
	case corev1.ResourcePods:
		return strconv.FormatInt(x, 10)
	}
	return resource.NewQuantity(x, resource.BinarySI).String()
}

func (v *validator) action(g *NodeGroup, a *Action, path *field.Path) {
	v.notNegative(a.At.Duration, path.Child("at"))
	for i, index := range a.Nodes {
		if index < 0 || index >= g.FinalSize() {
			v.invalid(path.Child("nodes").Index(i), index, "the group has nodes 0 to %d", g.FinalSize()-1)
		}
	}
	var verbs int
	if a.Leave != nil {
		verbs++
		if a.Leave.Return != nil {
			v.notNegative(a.Leave.Return.Duration, path.Child("leave", "return"))
		}
		for i := range a.Leave.StaticPods {
			v.staticPod(g, &a.Leave.StaticPods[i], path.Child("leave", "staticPods").Index(i))
		}
		if len(a.Leave.StaticPods) > 0 && a.Leave.Return == nil {
			v.add(field.Forbidden(path.Child("leave", "staticPods"), "the nodes do not return: set return"))
		}
	}
	if a.Reboot != nil {
		verbs++
		v.notNegative(a.Reboot.Down.Duration, path.Child("reboot", "down"))
	}
	if a.RestartKubelet != nil {
		verbs++
		v.notNegative(a.RestartKubelet.Down.Duration, path.Child("restartKubelet", "down"))
	}
	if a.PutStaticPod != nil {
		verbs++
		v.staticPod(g, a.PutStaticPod, path.Child("putStaticPod"))
		if a.PutStaticPod.Source == SourceURL {
			v.add(field.Forbidden(path.Child("putStaticPod", "source"), "an action writes into the static pod folder: list what a URL serves under staticPods"))
		}
	}
	if a.RemoveStaticPod != "" {
		verbs++
		v.known(a.RemoveStaticPod, g.fileNames(), "no static pod of the group has this file name", path.Child("removeStaticPod"))
	}
	if a.DeleteMirror != "" {
		verbs++
		v.known(a.DeleteMirror, g.staticPodNames(), "no static pod of the group has this name", path.Child("deleteMirror"))
	}
	if a.DeletePod != "" {
		verbs++
		if namespace, name, ok := strings.Cut(a.DeletePod, "/"); !ok || namespace == "" || name == "" {
			v.invalid(path.Child("deletePod"), a.DeletePod, "must be the namespace/name of a pod")
		}
	}
	if verbs != 1 {
		v.invalid(path, fmt.Sprintf("%d verbs", verbs), "set exactly one of leave, reboot, restartKubelet, putStaticPod, removeStaticPod, deleteMirror and deletePod")
	}
}

func (v *validator) apiFaults(path *field.Path) {
	for i := range v.cluster.APIFaults {
		v.apiFault(&v.cluster.APIFaults[i], path.Index(i))
	}
}

func (v *validator) apiFault(f *APIFault, path *field.Path) {
	v.notNegative(f.From.Duration, path.Child("from"))
	if f.Until != nil && f.Until.Duration <= f.From.Duration {
		v.invalid(path.Child("until"), f.Until.Duration.String(), "must be after from, %v", f.From.Duration)
	}
	var kinds int
	if f.RefuseMirrors != nil {
		kinds++
		for i, group := range f.RefuseMirrors.Groups {
			v.known(group, v.groupNames(), "there is no such node group", path.Child("refuseMirrors", "groups").Index(i))
		}
	}
	if f.MissingNamespace != "" {
		kinds++
		v.check(path.Child("missingNamespace"), f.MissingNamespace, validation.IsDNS1123Label(f.MissingNamespace))
		if strings.HasPrefix(f.MissingNamespace, "kube-") || f.MissingNamespace == metav1.NamespaceDefault {
			v.invalid(path.Child("missingNamespace"), f.MissingNamespace, "every cluster has this namespace: name another")
		}
	}
	if c := f.MissingPriorityClass; c != nil {
		kinds++
		v.check(path.Child("missingPriorityClass", "name"), c.Name, validation.IsDNS1123Subdomain(c.Name))
		if strings.HasPrefix(c.Name, "system-") {
			v.invalid(path.Child("missingPriorityClass", "name"), c.Name, "names that begin with system- are Kubernetes' own, and always there")
		}
	}
	if kinds != 1 {
		v.invalid(path, fmt.Sprintf("%d faults", kinds), "set exactly one of refuseMirrors, missingNamespace and missingPriorityClass")
	}
	if f.RefuseMirrors == nil && f.From.Duration != 0 {
		v.add(field.Forbidden(path.Child("from"), "what is missing is so from the beginning"))
	}
}

func (v *validator) autoscaler(a *Autoscaler, path *field.Path) {
	v.known(a.Group, v.groupNames(), "there is no such node group", path.Child("group"))
	for i := range v.cluster.NodeGroups {
		g := &v.cluster.NodeGroups[i]
		if g.Name != a.Group {
			continue
		}
		if g.ScaleUp != nil {
			v.add(field.Forbidden(path.Child("group"), "this group has a scaleUp: leave that out, the autoscaler lets it grow"))
		}
		if a.Max <= g.Initial {
			v.invalid(path.Child("max"), a.Max, "must be more than the group's initial, %d", g.Initial)
		}
	}
	if a.Max > MaxNodes {
		v.invalid(path.Child("max"), a.Max, "Kubernetes supports at most %d nodes", MaxNodes)
	}
	v.positive(a.ScanInterval.Duration, path.Child("scanInterval"))
	v.delay(a.ProvisionDelay, path.Child("provisionDelay"))
}

func (v *validator) groupNames() []string {
	names := make([]string, len(v.cluster.NodeGroups))
	for i := range names {
		names[i] = v.cluster.NodeGroups[i].Name
	}
	return names
}

func (v *validator) known(name string, names []string, problem string, path *field.Path) {
	if !slices.Contains(names, name) {
		v.invalid(path, name, "%s; there are: %s", problem, strings.Join(names, ", "))
	}
}

// EveryStaticPod lists the static pods that nodes of the group have at some time.
func (g *NodeGroup) EveryStaticPod() []*StaticPod {
	var pods []*StaticPod
	for i := range g.StaticPods {
		pods = append(pods, &g.StaticPods[i])
	}
	for i := range g.Actions {
		if put := g.Actions[i].PutStaticPod; put != nil {
			pods = append(pods, put)
		}
		if leave := g.Actions[i].Leave; leave != nil {
			for j := range leave.StaticPods {
				pods = append(pods, &leave.StaticPods[j])
			}
		}
	}
	return pods
}

func (g *NodeGroup) fileNames() []string {
	var names []string
	for _, s := range g.EveryStaticPod() {
		if s.FileName != "" {
			names = append(names, s.FileName)
		}
	}
	return names
}

func (g *NodeGroup) staticPodNames() []string {
	var names []string
	for _, s := range g.EveryStaticPod() {
		if pod, err := s.Pod(); err == nil && pod.Name != "" {
			names = append(names, pod.Name)
		}
	}
	return names
}
