package recorder

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// step is an event of a watch and what has to be recorded of it.
type step struct {
	watch watch.EventType
	obj   runtime.Object
	want  []trace.Event
}

func play(t *testing.T, observe func(watch.EventType, runtime.Object), recorded *[]trace.Event, steps []step) {
	t.Helper()
	for i, s := range steps {
		*recorded = nil
		observe(s.watch, s.obj)
		for _, e := range *recorded {
			if e.Source != trace.SourceAPI {
				t.Errorf("step %d: %s comes from %q", i, e.Kind, e.Source)
			}
		}
		if diff := cmp.Diff(s.want, *recorded, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Source" }, cmp.Ignore())); diff != "" {
			t.Errorf("step %d, %s: (-want +recorded)\n%s", i, s.watch, diff)
		}
	}
}

// node makes a node at a version; edit may be nil.
func node(version int, edit func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "pool-0", UID: "u0", ResourceVersion: strconv.Itoa(version), Labels: map[string]string{sim.LabelGroup: "pool"}},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3920m")},
		},
	}
	if edit != nil {
		edit(n)
	}
	return n
}

func setCondition(n *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, LastHeartbeatTime: metav1.Now()})
}

func TestNodes(t *testing.T) {
	const gate = "readiness.example.com/StaticPodsMirrored"
	pending := corev1.Taint{Key: "readiness.k8s.io/StaticPodsMirrored", Value: "pending", Effect: corev1.TaintEffectNoSchedule}
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	tracePending, traceNotReady := trace.Taint{Key: pending.Key, Value: "pending", Effect: "NoSchedule"}, trace.Taint{Key: notReady.Key, Effect: "NoSchedule"}
	at := func(kind trace.Kind, version uint64) trace.Event {
		return trace.Event{Kind: kind, Node: "pool-0", NodeUID: "u0", RV: version}
	}
	with := func(e trace.Event, edit func(*trace.Event)) trace.Event { edit(&e); return e }

	var recorded []trace.Event
	states := newNodeStates(trace.RecorderFunc(func(e trace.Event) { recorded = append(recorded, e) }))
	play(t, states.observe, &recorded, []step{
		{watch.Added, node(1, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{pending, notReady}
			setCondition(n, corev1.NodeReady, corev1.ConditionFalse)
		}), []trace.Event{with(at(trace.NodeRegistered, 1), func(e *trace.Event) {
			e.Taints = []trace.Taint{tracePending, traceNotReady}
			e.NodeInfo = &trace.NodeInfo{
				Group: "pool", Allocatable: trace.Resources{"cpu": 3920}, Capacity: trace.Resources{"cpu": 4000, "memory": 16 << 30},
			}
		})}},
		{watch.Modified, node(2, func(n *corev1.Node) { // Ready, and nothing else
			n.Spec.Taints = []corev1.Taint{pending, notReady}
			setCondition(n, corev1.NodeReady, corev1.ConditionTrue)
		}), []trace.Event{at(trace.NodeReady, 2)}},
		{watch.Modified, node(3, func(n *corev1.Node) { // a heartbeat and a label: nothing that a trace is about
			n.Spec.Taints = []corev1.Taint{pending, notReady}
			setCondition(n, corev1.NodeReady, corev1.ConditionTrue)
			setCondition(n, corev1.NodeDiskPressure, corev1.ConditionTrue)
			n.Labels["zone"] = "z"
		}), nil},
		{watch.Modified, node(4, func(n *corev1.Node) { // one of two taints goes
			n.Spec.Taints = []corev1.Taint{pending}
			setCondition(n, corev1.NodeReady, corev1.ConditionTrue)
		}), []trace.Event{with(at(trace.NodeTaints, 4), func(e *trace.Event) { e.Taints = []trace.Taint{tracePending} })}},
		{watch.Modified, node(5, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{pending}
			setCondition(n, corev1.NodeReady, corev1.ConditionTrue)
			setCondition(n, gate, corev1.ConditionTrue)
		}), []trace.Event{with(at(trace.NodeCondition, 5), func(e *trace.Event) { e.Condition, e.Status = gate, "True" })}},
		{watch.Modified, node(6, func(n *corev1.Node) { // the last taint goes while the node ceases to be Ready
			setCondition(n, corev1.NodeReady, corev1.ConditionUnknown)
			setCondition(n, gate, corev1.ConditionTrue)
		}), []trace.Event{at(trace.NodeNotReady, 6), at(trace.NodeTaints, 6)}},
		{watch.Modified, node(7, func(n *corev1.Node) { // Unknown → False is no change: the node was not Ready and is not
			setCondition(n, corev1.NodeReady, corev1.ConditionFalse)
			setCondition(n, gate, corev1.ConditionFalse)
		}), []trace.Event{with(at(trace.NodeCondition, 7), func(e *trace.Event) { e.Condition, e.Status = gate, "False" })}},
		{watch.Deleted, node(8, nil), []trace.Event{at(trace.NodeDeleted, 8)}},
		{watch.Added, node(9, func(n *corev1.Node) { // one of the same name returns; it is Ready before it is first seen
			n.UID = "u1"
			n.Labels[sim.LabelInitial] = "true"
			setCondition(n, corev1.NodeReady, corev1.ConditionTrue)
		}), []trace.Event{
			{Kind: trace.NodeRegistered, Node: "pool-0", NodeUID: "u1", RV: 9, NodeInfo: &trace.NodeInfo{
				Group: "pool", Initial: true, Allocatable: trace.Resources{"cpu": 3920}, Capacity: trace.Resources{"cpu": 4000, "memory": 16 << 30},
			}},
			{Kind: trace.NodeReady, Node: "pool-0", NodeUID: "u1", RV: 9},
		}},
		{watch.Modified, &corev1.Pod{}, nil},
	})
}

// pod makes a pod at a version; edit may be nil.
func pod(version int, edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-x", UID: "p0", ResourceVersion: strconv.Itoa(version),
			Labels:          map[string]string{sim.LabelWorkload: "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "r", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			SchedulerName:  corev1.DefaultSchedulerName,
			InitContainers: []corev1.Container{{Resources: requests("300m")}},
			Containers:     []corev1.Container{{Resources: requests("200m")}},
		},
	}
	if edit != nil {
		edit(p)
	}
	return p
}

func requests(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
}

func scheduledIs(p *corev1.Pod, status corev1.ConditionStatus, reason, message string) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status, Reason: reason, Message: message}}
}

func TestPods(t *testing.T) {
	info := &trace.PodInfo{Requests: trace.Resources{"cpu": 300}, Owner: "ReplicaSet/web", Workload: "web"}
	at := func(kind trace.Kind, version uint64, on string) trace.Event {
		return trace.Event{Kind: kind, Pod: "default/web-x", UID: "p0", RV: version, Node: on}
	}
	bind := func(p *corev1.Pod) {
		p.Spec.NodeName = "pool-0"
		scheduledIs(p, corev1.ConditionTrue, "", "")
	}
	with := func(e trace.Event, edit func(*trace.Event)) trace.Event { edit(&e); return e }

	var recorded []trace.Event
	states := newPodStates(trace.RecorderFunc(func(e trace.Event) { recorded = append(recorded, e) }), func(*corev1.Pod) bool { return false })
	play(t, states.observe, &recorded, []step{
		{watch.Added, pod(1, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
			[]trace.Event{with(at(trace.PodCreated, 1, ""), func(e *trace.Event) { e.PodInfo = info })}},
		{watch.Modified, pod(2, func(p *corev1.Pod) {
			scheduledIs(p, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/1 nodes are available")
		}),
			[]trace.Event{with(at(trace.PodUnschedulable, 2, ""), func(e *trace.Event) { e.Message = "0/1 nodes are available" })}},
		{watch.Modified, pod(3, func(p *corev1.Pod) { // the same again, with other words
			scheduledIs(p, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/2 nodes are available")
		}), nil},
		{watch.Modified, pod(4, bind), []trace.Event{at(trace.PodBound, 4, "pool-0")}},
		{watch.Modified, pod(5, func(p *corev1.Pod) { // admitted: a start time, but the phase stays
			bind(p)
			p.Status.Phase, p.Status.StartTime = corev1.PodPending, new(metav1.Now())
		}), nil},
		{watch.Modified, pod(6, func(p *corev1.Pod) { bind(p); p.Status.Phase = corev1.PodRunning }),
			[]trace.Event{at(trace.PodRunning, 6, "pool-0")}},
		{watch.Modified, pod(7, func(p *corev1.Pod) {
			bind(p)
			p.Status.Phase, p.DeletionTimestamp = corev1.PodRunning, new(metav1.NewTime(time.Unix(1, 0)))
		}), []trace.Event{at(trace.PodTerminating, 7, "pool-0")}},
		{watch.Modified, pod(8, func(p *corev1.Pod) {
			bind(p)
			p.Status.Phase, p.DeletionTimestamp = corev1.PodSucceeded, new(metav1.NewTime(time.Unix(1, 0)))
		}), []trace.Event{at(trace.PodSucceeded, 8, "pool-0")}},
		{watch.Deleted, pod(9, bind), []trace.Event{at(trace.PodDeleted, 9, "pool-0")}},
		{watch.Modified, &corev1.Node{}, nil},
	})
}

// TestRejectedPod: reason and message of the kubelet are kept, whatever else changes in the same write.
func TestRejectedPod(t *testing.T) {
	var recorded []trace.Event
	states := newPodStates(trace.RecorderFunc(func(e trace.Event) { recorded = append(recorded, e) }), func(*corev1.Pod) bool { return false })
	states.observe(watch.Added, pod(1, nil))
	play(t, states.observe, &recorded, []step{{watch.Modified, pod(2, func(p *corev1.Pod) {
		p.Spec.NodeName = "pool-0"
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "Pod was rejected: …"}
	}), []trace.Event{
		{Kind: trace.PodBound, Pod: "default/web-x", UID: "p0", Node: "pool-0", RV: 2},
		{Kind: trace.PodFailed, Pod: "default/web-x", UID: "p0", Node: "pool-0", RV: 2, Reason: "OutOfcpu", Message: "Pod was rejected: …"},
	}}})
}

// TestFirstSight is about what a pod is when it is first seen.
func TestFirstSight(t *testing.T) {
	mirror := func(p *corev1.Pod) {
		p.Spec.NodeName, p.Labels = "pool-0", nil
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "h", "kubernetes.io/config.hash": "h"}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "pool-0", UID: "u0", Controller: new(true)}}
	}
	for name, c := range map[string]struct {
		edit func(*corev1.Pod)
		want trace.PodInfo
		then []trace.Kind
	}{
		"mirror pod": {mirror, trace.PodInfo{Mirror: true, MirrorHash: "h", Owner: "Node/pool-0", OwnerUID: "u0"}, nil},
		"pinned by its node name": {func(p *corev1.Pod) { p.Spec.NodeName = "pool-0" },
			trace.PodInfo{Workload: "web", Owner: "ReplicaSet/web", Pinned: true}, nil},
		"bound before it was seen": {func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "pool-0", corev1.PodRunning
			scheduledIs(p, corev1.ConditionTrue, "", "")
		}, trace.PodInfo{Workload: "web", Owner: "ReplicaSet/web"}, []trace.Kind{trace.PodRunning}},
		"unschedulable before it was seen": {func(p *corev1.Pod) { scheduledIs(p, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "") },
			trace.PodInfo{Workload: "web", Owner: "ReplicaSet/web"}, []trace.Kind{trace.PodUnschedulable}},
		"gated by a scheduling gate, which is not unschedulable": {func(p *corev1.Pod) {
			scheduledIs(p, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, "")
		}, trace.PodInfo{Workload: "web", Owner: "ReplicaSet/web"}, nil},
		"bare, of another scheduler, with a priority": {func(p *corev1.Pod) {
			p.OwnerReferences, p.Labels, p.Spec.SchedulerName, p.Spec.Priority = nil, nil, "other", new(int32(7))
		}, trace.PodInfo{Scheduler: "other", Priority: 7}, nil},
		"the mirror-pod check": {func(p *corev1.Pod) { p.Labels = map[string]string{"app": "check"} },
			trace.PodInfo{Owner: "ReplicaSet/web", Check: true}, nil},
		"terminating": {func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) },
			trace.PodInfo{Workload: "web", Owner: "ReplicaSet/web"}, []trace.Kind{trace.PodTerminating}},
	} {
		t.Run(name, func(t *testing.T) {
			var recorded []trace.Event
			states := newPodStates(trace.RecorderFunc(func(e trace.Event) { recorded = append(recorded, e) }),
				func(p *corev1.Pod) bool { return p.Labels["app"] == "check" })
			states.observe(watch.Added, pod(1, c.edit))
			c.want.Requests = trace.Resources{"cpu": 300}
			if diff := cmp.Diff(&c.want, recorded[0].PodInfo); diff != "" || recorded[0].Kind != trace.PodCreated {
				t.Errorf("%s (-want +recorded)\n%s", recorded[0].Kind, diff)
			}
			var then []trace.Kind
			for _, e := range recorded[1:] {
				then = append(then, e.Kind)
			}
			if diff := cmp.Diff(c.then, then); diff != "" {
				t.Errorf("afterwards (-want +recorded)\n%s", diff)
			}
		})
	}
}

// TestPodsOfOneNameAreTold: a mirror that was replaced in one go has the same name and another UID.
func TestPodsOfOneNameAreTold(t *testing.T) {
	var recorded []trace.Event
	states := newPodStates(trace.RecorderFunc(func(e trace.Event) { recorded = append(recorded, e) }), func(*corev1.Pod) bool { return false })
	states.observe(watch.Added, pod(1, nil))
	states.observe(watch.Deleted, pod(2, nil))
	states.observe(watch.Added, pod(3, func(p *corev1.Pod) { p.UID = "p1" }))
	var got []string
	for _, e := range recorded {
		got = append(got, string(e.Kind)+" "+e.UID)
	}
	if diff := cmp.Diff([]string{"PodCreated p0", "PodDeleted p0", "PodCreated p1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]uint64{"18446744073709551615": 1<<64 - 1, "0": 0, "": 0, "opaque": 0} {
		if got := version(&metav1.ObjectMeta{ResourceVersion: text, UID: types.UID("u")}); got != want {
			t.Errorf("resourceVersion %q is recorded as %d, want %d", text, got, want)
		}
	}
}
