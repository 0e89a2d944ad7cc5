package recorder

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Annotations that the kubelet puts on mirror pods (k8s.io/kubernetes/pkg/kubelet/types/pod_update.go; the API group has the mirror's).
const (
	annotationMirror = corev1.MirrorPodAnnotationKey
	annotationHash   = "kubernetes.io/config.hash"
)

// podStates remembers what was recorded of each pod.
type podStates struct {
	out     trace.Recorder
	isCheck func(*corev1.Pod) bool
	last    map[types.UID]podState
	// ended are those that had ended before recording began. Nothing is recorded of them.
	ended map[types.UID]bool
}

// podState is what is recorded of a pod when it changes. Whole pods of a large cluster would take gigabytes.
type podState struct {
	node                       string
	phase                      corev1.PodPhase
	unschedulable, terminating bool
}

func stateOf(pod *corev1.Pod) podState {
	return podState{pod.Spec.NodeName, pod.Status.Phase, unschedulable(pod), pod.DeletionTimestamp != nil}
}

func newPodStates(out trace.Recorder, isCheck func(*corev1.Pod) bool) *podStates {
	return &podStates{out: out, isCheck: isCheck, last: map[types.UID]podState{}, ended: map[types.UID]bool{}}
}

// existing records a pod that was there when recording began, unless it had ended: when, and on what node, is not known.
func (s *podStates) existing(obj runtime.Object) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		s.ended[pod.UID] = true
		return
	}
	info := s.info(pod)
	info.Existing = true
	s.begin(pod, info)
}

// begin records a pod that was not known.
func (s *podStates) begin(pod *corev1.Pod, info *trace.PodInfo) {
	s.record(pod, trace.Event{Kind: trace.PodCreated, PodInfo: info})
	s.changes(podState{node: pod.Spec.NodeName}, pod)
}

func (s *podStates) observe(kind watch.EventType, obj runtime.Object) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	if s.ended[pod.UID] {
		return
	}
	before, known := s.last[pod.UID]
	if kind == watch.Deleted {
		delete(s.last, pod.UID)
		s.record(pod, trace.Event{Kind: trace.PodDeleted})
		return
	}
	if !known {
		s.begin(pod, s.info(pod))
		return
	}
	s.changes(before, pod)
}

func (s *podStates) info(pod *corev1.Pod) *trace.PodInfo {
	info := &trace.PodInfo{
		Requests: sim.PodAmounts(pod),
		Workload: pod.Labels[sim.LabelWorkload],
		Check:    s.isCheck(pod),
	}
	if _, mirror := pod.Annotations[annotationMirror]; mirror {
		info.Mirror, info.MirrorHash = true, pod.Annotations[annotationHash]
	}
	info.Pinned = pod.Spec.NodeName != "" && !info.Mirror && !bound(pod)
	if owner := metav1.GetControllerOf(pod); owner != nil {
		info.Owner = owner.Kind + "/" + owner.Name
		if owner.Kind == "Node" {
			info.OwnerUID = string(owner.UID)
		}
	}
	if pod.Spec.Priority != nil {
		info.Priority = *pod.Spec.Priority
	}
	if pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		info.Scheduler = pod.Spec.SchedulerName
	}
	return info
}

// bound tells a pod that a scheduler bound before it was first seen from one that was created with a node name: the binding sets the condition.
func bound(pod *corev1.Pod) bool {
	c := scheduled(pod)
	return c != nil && c.Status == corev1.ConditionTrue
}

func scheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c
		}
	}
	return nil
}

func unschedulable(pod *corev1.Pod) bool {
	c := scheduled(pod)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// changes records how a pod differs from what was recorded of it, and remembers that.
func (s *podStates) changes(before podState, pod *corev1.Pod) {
	is := stateOf(pod)
	s.last[pod.UID] = is
	if is.node != before.node {
		s.record(pod, trace.Event{Kind: trace.PodBound})
	}
	if is.unschedulable && !before.unschedulable {
		s.record(pod, trace.Event{Kind: trace.PodUnschedulable, Message: scheduled(pod).Message})
	}
	if is.phase != before.phase {
		switch is.phase {
		case corev1.PodRunning:
			s.record(pod, trace.Event{Kind: trace.PodRunning})
		case corev1.PodSucceeded:
			s.record(pod, trace.Event{Kind: trace.PodSucceeded})
		case corev1.PodFailed:
			s.record(pod, trace.Event{Kind: trace.PodFailed, Reason: pod.Status.Reason, Message: pod.Status.Message})
		}
	}
	if is.terminating && !before.terminating {
		s.record(pod, trace.Event{Kind: trace.PodTerminating})
	}
}

func (s *podStates) record(pod *corev1.Pod, e trace.Event) {
	e.Source, e.Pod, e.UID, e.Node, e.RV = trace.SourceAPI, pod.Namespace+"/"+pod.Name, string(pod.UID), pod.Spec.NodeName, version(pod)
	s.out.Record(e)
}
