package recorder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// kubeletConditions are those that every kubelet reports; of these only Ready is recorded.
var kubeletConditions = []corev1.NodeConditionType{
	corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable,
}

// nodeStates remembers what was recorded of each node, so that only changes are.
type nodeStates struct {
	out  trace.Recorder
	last map[types.UID]nodeState
}

// nodeState is what is recorded of a node when it changes.
type nodeState struct {
	ready  bool
	taints []trace.Taint
	// conditions are those that are not the kubelet's own.
	conditions map[corev1.NodeConditionType]corev1.ConditionStatus
}

func stateOfNode(node *corev1.Node) nodeState {
	s := nodeState{taints: taints(node), conditions: map[corev1.NodeConditionType]corev1.ConditionStatus{}}
	for _, c := range node.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady:
			s.ready = c.Status == corev1.ConditionTrue
		case !slices.Contains(kubeletConditions, c.Type):
			s.conditions[c.Type] = c.Status
		}
	}
	return s
}

func newNodeStates(out trace.Recorder) *nodeStates {
	return &nodeStates{out: out, last: map[types.UID]nodeState{}}
}

// existing records a node that was there when recording began.
func (s *nodeStates) existing(obj runtime.Object) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return
	}
	e := registered(node)
	e.NodeInfo.Initial = true
	s.begin(node, e)
}

// begin records a node that was not known.
func (s *nodeStates) begin(node *corev1.Node, e trace.Event) {
	s.record(node, e)
	s.changes(nodeState{taints: e.Taints}, node)
}

func (s *nodeStates) observe(kind watch.EventType, obj runtime.Object) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return
	}
	before, known := s.last[node.UID]
	if kind == watch.Deleted {
		delete(s.last, node.UID)
		s.record(node, trace.Event{Kind: trace.NodeDeleted})
		return
	}
	if !known {
		s.begin(node, registered(node))
		return
	}
	s.changes(before, node)
}

func registered(node *corev1.Node) trace.Event {
	return trace.Event{Kind: trace.NodeRegistered, Taints: taints(node), NodeInfo: &trace.NodeInfo{
		Group:       node.Labels[sim.LabelGroup],
		Initial:     node.Labels[sim.LabelInitial] == "true",
		Allocatable: sim.Amounts(node.Status.Allocatable),
		Capacity:    sim.Amounts(node.Status.Capacity),
	}}
}

// changes records how a node differs from what was recorded of it, and remembers that.
func (s *nodeStates) changes(before nodeState, node *corev1.Node) {
	is := stateOfNode(node)
	s.last[node.UID] = is
	if is.ready != before.ready {
		kind := trace.NodeNotReady
		if is.ready {
			kind = trace.NodeReady
		}
		s.record(node, trace.Event{Kind: kind})
	}
	if !slices.Equal(is.taints, before.taints) {
		s.record(node, trace.Event{Kind: trace.NodeTaints, Taints: is.taints})
	}
	for _, c := range node.Status.Conditions {
		if status, ours := is.conditions[c.Type]; ours && status != before.conditions[c.Type] {
			s.record(node, trace.Event{Kind: trace.NodeCondition, Condition: string(c.Type), Status: string(status)})
		}
	}
}

func (s *nodeStates) record(node *corev1.Node, e trace.Event) {
	e.Source, e.Node, e.NodeUID, e.RV = trace.SourceAPI, node.Name, string(node.UID), version(node)
	s.out.Record(e)
}

func taints(node *corev1.Node) []trace.Taint {
	var list []trace.Taint
	for _, t := range node.Spec.Taints {
		list = append(list, trace.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return list
}
