package kubelet

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/preemption"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// newAdmission makes the real admission handler with the real preemption.
func (n *node) newAdmission() lifecycle.PodAdmitHandler {
	critical := preemption.NewCriticalPodAdmissionHandler(n.countedPods, n.killPod, n.events)
	noPlugins := func(*schedulerframework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil }
	return lifecycle.NewPredicateAdmitHandler(n.admissionNode, &shortageNoter{AdmissionFailureHandler: critical, node: n}, noPlugins)
}

// shortageNoter notes the resource that a pod did not find, on the way to the real handler. Only the first reason is ever reported.
type shortageNoter struct {
	lifecycle.AdmissionFailureHandler
	node *node
}

// HandleAdmissionFailure implements lifecycle.AdmissionFailureHandler.
func (s *shortageNoter) HandleAdmissionFailure(
	ctx context.Context, pod *corev1.Pod, reasons []lifecycle.PredicateFailureReason, operation lifecycle.Operation,
) ([]lifecycle.PredicateFailureReason, error) {
	if shortage, ok := reasons[0].(*lifecycle.InsufficientResourceError); ok {
		s.node.shortage = shortage
	}
	return s.AdmissionFailureHandler.HandleAdmissionFailure(ctx, pod, reasons, operation)
}

// admissionNode is the node that a pod is admitted to. The handler may write its labels.
func (n *node) admissionNode(context.Context, bool) (*corev1.Node, error) {
	object := *n.current()
	object.Labels = maps.Clone(object.Labels)
	return &object, nil
}

// admit decides about a pod and records the decision.
func (n *node) admit(p *pod) bool {
	others := n.countedPodsBut(p)
	n.shortage = nil
	result := n.admission.Admit(n.ctx, &lifecycle.PodAdmitAttributes{Pod: p.object, OtherPods: others, Operation: lifecycle.AddOperation})
	if !result.Admit {
		n.reject(p, result, others)
		return false
	}
	p.state = admitted
	if p.static != nil {
		n.record(trace.Event{Kind: trace.StaticPodStarted, Pod: p.name(), UID: string(p.object.UID), Requests: sim.PodAmounts(p.object)})
	} else {
		n.record(trace.Event{Kind: trace.PodAdmitted, Pod: p.name(), UID: string(p.object.UID)})
	}
	return true
}

// reject makes a pod Failed for good.
func (n *node) reject(p *pod, result lifecycle.PodAdmitResult, others []*corev1.Pod) {
	p.state = rejected
	n.record(trace.Event{
		Kind: trace.PodRejected, Pod: p.name(), UID: string(p.object.UID),
		Reason: result.Reason, Message: result.Message, Rejection: n.rejection(others),
	})
	n.events.Eventf(p.object, corev1.EventTypeWarning, result.Reason, "%s", result.Message)
	n.setStatus(p, corev1.PodStatus{
		QOSClass: v1qos.GetPodQOS(p.object),
		Phase:    corev1.PodFailed,
		Reason:   result.Reason,
		Message:  "Pod was rejected: " + result.Message,
	})
}

// rejection is what counted when the last pod was rejected.
func (n *node) rejection(others []*corev1.Pod) *trace.Rejection {
	r := &trace.Rejection{}
	var static []*corev1.Pod
	for _, other := range others {
		r.Pods = append(r.Pods, string(other.UID))
		if n.byUID[other.UID].static != nil {
			static = append(static, other)
		}
	}
	if s := n.shortage; s != nil {
		r.Resource, r.Requested, r.Used, r.Capacity = string(s.ResourceName), s.Requested, s.Used, s.Capacity
		r.Static = requested(static, s.ResourceName)
	}
	return r
}

// requested sums up a resource over pods as the admission handler does.
func requested(pods []*corev1.Pod, resource corev1.ResourceName) int64 {
	info := schedulerframework.NewNodeInfo(pods...)
	switch resource {
	case corev1.ResourcePods:
		return int64(len(pods))
	case corev1.ResourceCPU:
		return info.Requested.MilliCPU
	case corev1.ResourceMemory:
		return info.Requested.Memory
	case corev1.ResourceEphemeralStorage:
		return info.Requested.EphemeralStorage
	default:
		return info.Requested.ScalarResources[resource]
	}
}

// countedPods are the pods that count at an admission, as for the real allocation manager: static pods once, mirror pods never, terminating pods
// until they are gone, finished and rejected pods not.
func (n *node) countedPods() []*corev1.Pod { return n.countedPodsBut(nil) }

func (n *node) countedPodsBut(but *pod) []*corev1.Pod {
	counted := make([]*corev1.Pod, 0, len(n.pods))
	for _, p := range n.pods {
		if p.state == admitted && p != but {
			counted = append(counted, p.object)
		}
	}
	return counted
}

// killPod ends a pod that makes room for a critical one. It is an eviction.KillPodFunc.
func (n *node) killPod(object *corev1.Pod, _ bool, _ *int64, explain func(*corev1.PodStatus)) error {
	p := n.byUID[object.UID]
	if p == nil {
		return fmt.Errorf("pod %s/%s is not known", object.Namespace, object.Name)
	}
	p.stopContainers()
	n.recordStaticStop(p)
	p.state = finished
	n.setStatus(p, n.killedStatus(p, explain))
	return nil
}
