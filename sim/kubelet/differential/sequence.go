package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/sim"
)

// Sequence is a node and what happens on it. Its JSON form is what a regression test keeps.
type Sequence struct {
	// Name tells where the sequence is from: the seed and the index, or the regression.
	Name string `json:"name"`
	Node Node   `json:"node"`
	// Static are the manifests in the static pod folder when the kubelet starts, as pods.
	Static []Pod `json:"static,omitempty"`
	// Early are pods that are bound before the kubelet starts, one a second: a kubelet admits them by their creation time, which is in seconds.
	Early []Pod `json:"early,omitempty"`
	// Steps are what happens after the kubelet's first housekeeping.
	Steps []Step `json:"steps,omitempty"`
}

// Node is a machine.
type Node struct {
	Capacity corev1.ResourceList `json:"capacity"`
	// Allocatable is what of the capacity it does not equal.
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	Labels      map[string]string   `json:"labels,omitempty"`
	// Taints the kubelet registers with.
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// Step is one thing that happens; one of its fields is set. What concerns a pod that does not exist, or does not run any more, does nothing.
type Step struct {
	// Create creates pods that are bound to the node, in this order, and waits for the decisions after the last one.
	Create []Pod `json:"create,omitempty"`
	// Delete deletes a pod whose containers do not stop before its Gone: a terminating neighbour.
	Delete string `json:"delete,omitempty"`
	// Gone lets the containers of a deleted pod stop, and waits until the pod is gone.
	Gone string `json:"gone,omitempty"`
	// Finish has the containers of a pod exit with 0: the pod becomes Succeeded.
	Finish string `json:"finish,omitempty"`
	// PutStatic writes a manifest into the static pod folder, RemoveStatic removes the manifest of a pod.
	PutStatic    *Pod   `json:"putStatic,omitempty"`
	RemoveStatic string `json:"removeStatic,omitempty"`
}

// Pod is what matters of a pod at admission.
type Pod struct {
	Name string `json:"name"`
	// Phase is that of an early pod; empty: Pending.
	Phase      corev1.PodPhase `json:"phase,omitempty"`
	Init       []Container     `json:"init,omitempty"`
	Containers []Container     `json:"containers"`
	// Requests are those of the pod level.
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// Overhead has the pod run with the RuntimeClass of this package, see overhead.
	Overhead bool `json:"overhead,omitempty"`
	// Critical gives it the PriorityClass system-node-critical.
	Critical     bool              `json:"critical,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerates every NoExecute taint.
	Tolerates bool `json:"tolerates,omitempty"`
}

// Container of a pod.
type Container struct {
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// Limited sets limits equal to the requests.
	Limited bool `json:"limited,omitempty"`
	// Sidecar is an init container that is restarted always.
	Sidecar  bool  `json:"sidecar,omitempty"`
	HostPort int32 `json:"hostPort,omitempty"`
}

// object is the pod as somebody would create it in the API, bound to a node.
func (p *Pod) object(namespace, node string) *corev1.Pod {
	object := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace},
		Spec:       corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever, NodeSelector: p.NodeSelector},
	}
	for i, c := range p.Init {
		object.Spec.InitContainers = append(object.Spec.InitContainers, c.object(fmt.Sprintf("init-%d", i)))
	}
	for i, c := range p.Containers {
		object.Spec.Containers = append(object.Spec.Containers, c.object(fmt.Sprintf("main-%d", i)))
	}
	if p.Requests != nil {
		object.Spec.Resources = &corev1.ResourceRequirements{Requests: p.Requests}
	}
	if p.Overhead {
		name := overhead.Name
		object.Spec.RuntimeClassName = &name
	}
	if p.Critical {
		object.Spec.PriorityClassName = "system-node-critical"
	}
	if p.Tolerates {
		object.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	}
	return object
}

// manifest is the pod as a file in the static pod folder.
func (p *Pod) manifest(namespace string) ([]byte, error) {
	object := p.object(namespace, "")
	object.Spec.RestartPolicy = corev1.RestartPolicyAlways
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write manifest of static pod %s: %w", p.Name, err)
	}
	return data, nil
}

// file is the name of the manifest.
func (p *Pod) file() string { return p.Name + ".yaml" }

func (c *Container) object(name string) corev1.Container {
	object := corev1.Container{Name: name, Image: "registry.example.com/app:v1", Resources: corev1.ResourceRequirements{Requests: c.Requests}}
	for resource, amount := range c.Requests {
		if c.Limited || isExtended(resource) { // the API wants limits of extended resources, equal to the requests
			if object.Resources.Limits == nil {
				object.Resources.Limits = corev1.ResourceList{}
			}
			object.Resources.Limits[resource] = amount
		}
	}
	if c.Sidecar {
		always := corev1.ContainerRestartPolicyAlways
		object.RestartPolicy = &always
	}
	if c.HostPort > 0 {
		object.Ports = []corev1.ContainerPort{{ContainerPort: c.HostPort, HostPort: c.HostPort}}
	}
	return object
}

func isExtended(name corev1.ResourceName) bool {
	return name == knownResource || name == unknownResource
}

// leftToChance tells whether the static pods of the start do not all fit: the kubelet takes them in the order of a map, and which of them gets the room is
// left to chance, as is how much of it the others miss.
func (s *Sequence) leftToChance() bool {
	room := sim.Amounts(s.Node.Capacity)
	maps.Copy(room, sim.Amounts(s.Node.Allocatable))
	ports := map[int32]bool{}
	for i := range s.Static {
		p := &s.Static[i]
		room[string(corev1.ResourcePods)]--
		for name, amount := range sim.PodAmounts(p.object("", "")) {
			if _, known := room[name]; known { // the kubelet does not look at what a node does not have
				room[name] -= amount
			}
		}
		for _, c := range p.Containers {
			if c.HostPort > 0 && ports[c.HostPort] {
				return true
			}
			ports[c.HostPort] = true
		}
	}
	return len(s.Static) > 1 && slices.ContainsFunc(slices.Collect(maps.Values(room)), func(left int64) bool { return left < 0 })
}

// Pods is the number of pods of a sequence.
func (s *Sequence) Pods() int { return len(s.all()) }

// all are all pods of the sequence, in the order in which they come.
func (s *Sequence) all() []*Pod {
	var pods []*Pod
	add := func(list []Pod) {
		for i := range list {
			pods = append(pods, &list[i])
		}
	}
	add(s.Static)
	add(s.Early)
	for i := range s.Steps {
		if put := s.Steps[i].PutStatic; put != nil {
			pods = append(pods, put)
		}
		add(s.Steps[i].Create)
	}
	return pods
}

// Feature is something that a sequence exercises.
type Feature string

// The features that random sequences must exercise.
const (
	FeatureStatic          Feature = "static pods at the start"
	FeatureLateStatic      Feature = "static pods that come late"
	FeatureRemovedStatic   Feature = "static pods that are removed"
	FeatureStaticSelector  Feature = "static pods with a node selector"
	FeatureEarly           Feature = "pods bound before the kubelet started"
	FeatureEarlyFinished   Feature = "pods finished before the kubelet started"
	FeatureBurst           Feature = "several pods at once"
	FeatureTerminating     Feature = "terminating pods"
	FeatureGone            Feature = "deleted pods"
	FeatureFinished        Feature = "finished pods"
	FeatureAllocatable     Feature = "allocatable below capacity"
	FeaturePodCount        Feature = "few pods allowed"
	FeatureInit            Feature = "init containers"
	FeatureSidecar         Feature = "sidecars"
	FeatureOverhead        Feature = "overhead"
	FeaturePodLevel        Feature = "pod-level resources"
	FeatureExtended        Feature = "extended resources of the node"
	FeatureUnknownExtended Feature = "extended resources that the node does not have"
	FeatureHostPort        Feature = "host ports"
	FeatureSelector        Feature = "node selectors"
	FeatureTaint           Feature = "NoExecute taints"
	FeatureToleration      Feature = "tolerated NoExecute taints"
	FeatureCritical        Feature = "critical pods"
	FeatureGuaranteed      Feature = "limits"
	FeatureStorage         Feature = "ephemeral storage"
)

// Features lists all features, in the order of the constants.
func Features() []Feature {
	return []Feature{
		FeatureStatic, FeatureLateStatic, FeatureRemovedStatic, FeatureStaticSelector, FeatureEarly, FeatureEarlyFinished, FeatureBurst,
		FeatureTerminating, FeatureGone, FeatureFinished, FeatureAllocatable, FeaturePodCount, FeatureInit, FeatureSidecar, FeatureOverhead,
		FeaturePodLevel, FeatureExtended, FeatureUnknownExtended, FeatureHostPort, FeatureSelector, FeatureTaint, FeatureToleration,
		FeatureCritical, FeatureGuaranteed, FeatureStorage,
	}
}

// Exercises lists the features of a sequence, in the order of the constants.
func (s *Sequence) Exercises() []Feature {
	has := map[Feature]bool{
		FeatureStatic:        len(s.Static) > 0,
		FeatureEarly:         len(s.Early) > 0,
		FeatureEarlyFinished: slices.ContainsFunc(s.Early, func(p Pod) bool { return p.Phase != "" }),
		FeatureAllocatable:   len(s.Node.Allocatable) > 0,
		FeaturePodCount:      s.Node.Capacity.Pods().Value() < manyPods,
		FeatureTaint:         len(s.Node.Taints) > 0,
	}
	for _, step := range s.Steps {
		has[FeatureLateStatic] = has[FeatureLateStatic] || step.PutStatic != nil
		has[FeatureRemovedStatic] = has[FeatureRemovedStatic] || step.RemoveStatic != ""
		has[FeatureBurst] = has[FeatureBurst] || len(step.Create) > 1
		has[FeatureTerminating] = has[FeatureTerminating] || step.Delete != ""
		has[FeatureGone] = has[FeatureGone] || step.Gone != ""
		has[FeatureFinished] = has[FeatureFinished] || step.Finish != ""
	}
	for _, p := range s.all() {
		p.exercise(has)
		has[FeatureToleration] = has[FeatureToleration] || p.Tolerates && len(s.Node.Taints) > 0
	}
	for i := range s.Static {
		has[FeatureStaticSelector] = has[FeatureStaticSelector] || s.Static[i].NodeSelector != nil
	}
	return slices.DeleteFunc(Features(), func(f Feature) bool { return !has[f] })
}

func (p *Pod) exercise(has map[Feature]bool) {
	mark := func(f Feature, is bool) { has[f] = has[f] || is }
	mark(FeatureOverhead, p.Overhead)
	mark(FeaturePodLevel, p.Requests != nil)
	mark(FeatureCritical, p.Critical)
	mark(FeatureSelector, p.NodeSelector != nil)
	for _, c := range p.Init {
		mark(FeatureInit, !c.Sidecar)
		mark(FeatureSidecar, c.Sidecar)
	}
	for _, c := range slices.Concat(p.Init, p.Containers) {
		mark(FeatureHostPort, c.HostPort > 0)
		mark(FeatureGuaranteed, c.Limited)
		for _, resource := range slices.Collect(maps.Keys(c.Requests)) {
			mark(FeatureExtended, resource == knownResource)
			mark(FeatureUnknownExtended, resource == unknownResource)
			mark(FeatureStorage, resource == corev1.ResourceEphemeralStorage)
		}
	}
}
