package runner

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // for legacyscheme
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // for legacyscheme
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // for legacyscheme
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/control"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/workload"
)

// Check asks the real components' own code about what the experiment gives them: the kubelet about static pods, kube-scheduler about its
// configuration, the API server about workloads. Its error is an *experiments.BadInput.
func Check(e *experiments.Experiment) error {
	c := &check{}
	c.cluster(&e.Spec.Cluster)
	for _, arm := range e.Spec.Arms {
		if own := e.ClusterOf(arm); own != &e.Spec.Cluster {
			c.cluster(own)
		}
	}
	if len(c.problems) > 0 {
		return &experiments.BadInput{Problems: c.problems}
	}
	return nil
}

func (c *check) cluster(cluster *sim.Cluster) {
	if _, err := control.LoadSchedulerConfiguration(cluster.ControlPlane.Scheduler.Config); err != nil {
		c.add(err.Error(), "spec.controlPlane.scheduler.config")
	}
	flags := apiserver.NewServerRunOptions().Flags()
	own := cluster.ControlPlane.APIServerFlags
	for _, name := range slices.Sorted(maps.Keys(own)) {
		c.add(misused(flags, name, own[name]), "spec.controlPlane.apiServerFlags[%s]", name)
	}
	for g := range cluster.NodeGroups {
		group := &cluster.NodeGroups[g]
		for i := range group.StaticPods {
			c.add(misjudged(&group.StaticPods[i]), "spec.nodeGroups[%d].staticPods[%d]", g, i)
		}
		for i := range group.Actions {
			if put := group.Actions[i].PutStaticPod; put != nil {
				c.add(misjudged(put), "spec.nodeGroups[%d].actions[%d].putStaticPod", g, i)
			}
		}
	}
	for i := range cluster.Workloads {
		for _, problem := range refused(cluster.Workloads[i]) {
			c.add(problem, "spec.workloads[%d]", i)
		}
	}
}

// check gathers problems.
type check struct{ problems []experiments.Problem }

func (c *check) add(message, field string, args ...any) {
	problem := experiments.Problem{Field: fmt.Sprintf(field, args...), Message: message}
	if message != "" && !slices.Contains(c.problems, problem) { // arms have most of their clusters in common
		c.problems = append(c.problems, problem)
	}
}

// misused says what kube-apiserver has against a flag; empty when it takes it.
func misused(sets cliflag.NamedFlagSets, name, value string) string {
	for _, set := range sets.FlagSets {
		if set.Lookup(name) == nil {
			continue
		}
		if err := set.Set(name, value); err != nil {
			return fmt.Sprintf("kube-apiserver refuses this flag: %v", err)
		}
		return ""
	}
	return "kube-apiserver of this version has no such flag"
}

// misjudged says where the experiment and a kubelet differ about a manifest; empty when they agree.
func misjudged(p *sim.StaticPod) string {
	err := kubelet.ValidateManifest(p.Content())
	switch {
	case err != nil && !p.Invalid:
		return fmt.Sprintf("a kubelet refuses this manifest: %v; correct it, or set invalid: true if that is the point", err)
	case err == nil && p.Invalid:
		return "a kubelet accepts this manifest: leave out invalid: true, or make it one that a kubelet refuses"
	}
	return ""
}

// refused lists what the API server's own validation has against a workload's object.
func refused(w sim.Workload) []string {
	one := int32(1)
	if w.Fill != "" || w.Kind() == "Pod" { // one is like all
		w.Fill, w.Replicas = "", &one
	}
	objects, err := workload.Objects(w)
	if err != nil {
		return []string{err.Error()}
	}
	errs, err := validate(objects[0])
	if err != nil {
		return []string{err.Error()}
	}
	messages := make([]string, len(errs))
	for i, e := range errs {
		messages[i] = "the API server refuses its manifest: " + e.Error()
	}
	return messages
}

// validate runs Kubernetes' defaulting and validation of a new object.
func validate(obj runtime.Object) (field.ErrorList, error) {
	legacyscheme.Scheme.Default(obj)
	options := corevalidation.PodValidationOptions{}
	switch obj.(type) {
	case *appsv1.Deployment:
		return converted(obj, func(o *apps.Deployment) field.ErrorList { return appsvalidation.ValidateDeployment(o, options) })
	case *appsv1.ReplicaSet:
		return converted(obj, func(o *apps.ReplicaSet) field.ErrorList { return appsvalidation.ValidateReplicaSet(o, options) })
	case *appsv1.DaemonSet:
		return converted(obj, func(o *apps.DaemonSet) field.ErrorList { return appsvalidation.ValidateDaemonSet(o, options) })
	case *batchv1.Job:
		return converted(obj, validateJob)
	case *corev1.Pod:
		return converted(obj, func(o *core.Pod) field.ErrorList { return corevalidation.ValidatePodCreate(o, options) })
	}
	return nil, fmt.Errorf("a %T makes no pods", obj)
}

// validateJob stands in for the selector that the API server generates before it validates.
func validateJob(job *batch.Job) field.ErrorList {
	if job.Spec.Selector == nil {
		job.Spec.Selector = &metav1.LabelSelector{MatchLabels: job.Spec.Template.Labels}
	}
	return batchvalidation.ValidateJobSpec(&job.Spec, nil, field.NewPath("spec"), corevalidation.PodValidationOptions{})
}

func converted[Internal any](obj runtime.Object, check func(*Internal) field.ErrorList) (field.ErrorList, error) {
	internal := new(Internal)
	if err := legacyscheme.Scheme.Convert(obj, internal, nil); err != nil {
		return nil, fmt.Errorf("convert %T: %w", obj, err)
	}
	return check(internal), nil
}
