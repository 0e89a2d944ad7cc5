package recorder

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// TestExisting: of what was there when recording began it is told that it was; pods that had ended by then are not recorded at all.
func TestExisting(t *testing.T) {
	var recorded []trace.Event
	out := trace.RecorderFunc(func(e trace.Event) { recorded = append(recorded, e) })
	newNodeStates(out).existing(node(1, func(n *corev1.Node) { setCondition(n, corev1.NodeReady, corev1.ConditionTrue) }))
	pods := newPodStates(out, func(*corev1.Pod) bool { return false })
	pods.existing(pod(2, func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = "pool-0", corev1.PodRunning
		scheduledIs(p, corev1.ConditionTrue, "", "")
	}))
	failed := pod(3, func(p *corev1.Pod) {
		p.UID, p.Spec.NodeName, p.Status.Phase, p.Status.Reason = "failed", "pool-0", corev1.PodFailed, "OutOfcpu"
	})
	pods.existing(failed)
	pods.observe(watch.Modified, failed)
	pods.observe(watch.Deleted, failed)

	var kinds []trace.Kind
	for _, e := range recorded {
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff([]trace.Kind{trace.NodeRegistered, trace.NodeReady, trace.PodCreated, trace.PodRunning}, kinds); diff != "" {
		t.Fatalf("-want +recorded\n%s", diff)
	}
	if !recorded[0].NodeInfo.Initial {
		t.Error("the node is not said to have been there")
	}
	if info := recorded[2].PodInfo; !info.Existing || info.Pinned {
		t.Errorf("the pod: got %+v", info)
	}
}
