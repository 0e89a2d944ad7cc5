package results

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// TestOnlyItsOwnMirrorClosesAGap: one of an earlier manifest does not; one of an earlier Node of that name is adopted by the kubelet.
func TestOnlyItsOwnMirrorClosesAGap(t *testing.T) {
	for _, tt := range []struct {
		name, hash, owner string
		want              Span
	}{
		{"its own", "n1-hash", "n1-uid", Span{Duration: s(5)}},
		{"of an earlier manifest", "older-hash", "n1-uid", Span{Duration: s(9), Censored: true}},
		{"of an earlier node", "n1-hash", "older-uid", Span{Duration: s(5)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newScript(t, "ungated", nil)
			b.static("n1", proxy).register("n1", false).at(5).staleMirror("n1", tt.hash, tt.owner, proxy).at(9).end(trace.EndSettled)
			check(t, "exposure", *analyzeBytes(t, b.bytes()).node(t, "n1-uid").Exposure, tt.want)
		})
	}
}

// TestReturnedNodeAdoptsItsMirror: while the mirror of the earlier Node is still there, the scheduler sees what the static pod takes.
func TestReturnedNodeAdoptsItsMirror(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.static("n1", proxy).register("n1", false).at(3).mirror("n1", proxy).at(5).kubelet(trace.Event{Kind: trace.KubeletStopped, Node: "n1"})
	b.api(trace.Event{Kind: trace.NodeDeleted, Node: "n1", NodeUID: "n1-uid"})
	b.at(8).static("n1", proxy).api(trace.Event{Kind: trace.NodeRegistered, Node: "n1", NodeUID: "again", NodeInfo: &trace.NodeInfo{Allocatable: four}})
	run := analyzeBytes(t, b.at(20).end(trace.EndSettled).bytes())
	check(t, "exposure at first", *run.node(t, "n1-uid").Exposure, Span{Duration: s(3)})
	check(t, "exposure after the return", *run.node(t, "again").Exposure, Span{})
	check(t, "mirrors visible after the return", *run.node(t, "again").MirrorsVisible, s(8))
}

// TestTolerationsOfEveryPod: not-ready and unreachable with effect NoExecute stay for a while after Ready, but keep no pod away.
func TestTolerationsOfEveryPod(t *testing.T) {
	for _, tt := range []struct {
		taint trace.Taint
		want  time.Duration
	}{
		{trace.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"}, s(1)},
		{trace.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"}, s(1)},
		{trace.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}, s(6)},
		{trace.Taint{Key: "node.kubernetes.io/out-of-service", Effect: "NoExecute"}, s(6)},
		{held, s(6)},
	} {
		t.Run(tt.taint.Key+":"+tt.taint.Effect, func(t *testing.T) {
			b := newScript(t, "gated", gate)
			b.static("n1", proxy).register("n1", false, notReady, tt.taint).at(1).taints("n1", tt.taint).at(6).taints("n1")
			n := analyzeBytes(t, b.at(8).mirror("n1", proxy).at(9).end(trace.EndSettled).bytes()).node(t, "n1-uid")
			check(t, "schedulable", *n.Schedulable, tt.want)
			check(t, "exposure", *n.Exposure, Span{Duration: s(8) - tt.want})
		})
	}
}

// TestNothingIsBoundToANodeBeforeItIsSchedulable: a scheduler's binds show when a node was schedulable, up to the lag between two watches.
func TestNothingIsBoundToANodeBeforeItIsSchedulable(t *testing.T) {
	for _, run := range []*Run{ungated(t).analyze("ungated"), gated(t).analyze("gated")} {
		schedulableBeforeBinds(t, run)
	}
}

func schedulableBeforeBinds(t *testing.T, run *Run) {
	t.Helper()
	for _, p := range run.Pods {
		if p.Role != RoleWorkload || p.Bound == nil {
			continue
		}
		if n := run.node(t, p.NodeUID); n.Schedulable == nil || *n.Schedulable > *p.Bound+InFlightWindow {
			t.Errorf("%s was bound to node %s at %v, which was schedulable at %v", p.Name, n.Name, *p.Bound, n.Schedulable)
		}
	}
}

// TestDeletedMirrorHidesAgain: the scheduler no longer counts a mirror pod that was deleted.
func TestDeletedMirrorHidesAgain(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.static("n1", proxy).register("n1", false).mirror("n1", proxy).pod("w1", web).pod("w2", web).pod("w3", web).pod("w4", web)
	b.at(5).api(trace.Event{Kind: trace.PodDeleted, Node: "n1", Pod: "kube-system/kube-proxy-n1", UID: "mirror-of-n1-hash-n1-uid"})
	b.at(7).bind("n1", "w1", "w2", "w3", "w4").cpu("n1", "w4").at(9).end(trace.EndSettled)
	run := analyzeBytes(t, b.bytes())
	check(t, "cause", run.rejection(t, "w4").Cause, CauseHiddenStaticPod)
	check(t, "closed form", *run.node(t, "n1-uid").FirstWave.ClosedForm, ClosedForm{Bound: 4, Admitted: 3})
}

// TestLargerStaleMirrorHidesNothing: it does not make up for another static pod that has no mirror.
func TestLargerStaleMirrorHidesNothing(t *testing.T) {
	m := newMachine("n1")
	m.mirrors["a"] = []*mirrorPod{{requests: trace.Resources{"cpu": 900}, from: moment{1, 1}, to: endOfTrace}}
	statics := []*staticPod{{pod: "a", requests: trace.Resources{"cpu": 300}}, {pod: "b", requests: trace.Resources{"cpu": 500}}}
	hidden := m.hidden(statics, moment{2, 2}, 0)
	check(t, "cpu", hidden["cpu"], 500)
	check(t, "pods", hidden[podsResource], 1)
}

// TestKubeletCountsWhatNobodyElseSees: a rejection that no static pod explains is laid to other pods, even if the API shows room for it.
func TestKubeletCountsWhatNobodyElseSees(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.register("n1", false).pod("w1", web).at(1).bind("n1", "w1")
	b.reject("n1", "w1", "cpu", 1000, 3500, 4000, "a-pod-that-terminates").at(2).end(trace.EndSettled)
	check(t, "cause", analyzeBytes(t, b.bytes()).rejection(t, "w1").Cause, CauseOtherBoundPods)
}

// TestMirrorsBeforeTheReleaseMakeTheHold: a manifest that comes later is no part of it.
func TestMirrorsBeforeTheReleaseMakeTheHold(t *testing.T) {
	b := newScript(t, "gated", gate)
	b.static("n1", proxy).register("n1", false, held).at(4).mirror("n1", proxy).at(5).condition("n1").at(6).taints("n1")
	b.at(20).kubelet(trace.Event{Kind: trace.StaticPodStarted, Node: "n1", Pod: "kube-system/late-n1", UID: "late"})
	b.at(25).api(trace.Event{Kind: trace.PodCreated, Node: "n1", Pod: "kube-system/late-n1", UID: "late-mirror",
		PodInfo: &trace.PodInfo{Mirror: true, MirrorHash: "late", OwnerUID: "n1-uid"}})
	n := analyzeBytes(t, b.at(30).end(trace.EndSettled).bytes()).node(t, "n1-uid")
	check(t, "mirrors", *n.Hold.Mirrors, Span{Duration: s(4)})
	check(t, "out of order", n.Hold.OutOfOrder, false)
	check(t, "exposure to the late one", *n.Exposure, Span{Duration: s(5)})
}

// TestNodesThatComeOneAfterAnother: what replaces a pod of the first node fills the second, where it is no storm.
func TestNodesThatComeOneAfterAnother(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.static("n1", proxy).register("n1", false)
	for _, name := range []string{"w1", "w2", "w3", "w4", "w5", "w6", "w7"} {
		b.pod(name, web)
	}
	b.at(1).bind("n1", "w1", "w2", "w3", "w4").run("n1", "w1", "w2", "w3").cpu("n1", "w4").pod("w4-2", web)
	b.at(2).bind("n1", "w4-2").cpu("n1", "w4-2").pod("w4-3", web) // into the room that w4 gave back
	b.at(3).mirror("n1", proxy)
	b.at(5).static("n2", proxy).register("n2", false)
	b.at(6).bind("n2", "w4-3", "w5", "w6", "w7").run("n2", "w4-3", "w5", "w6").cpu("n2", "w7")
	run := analyzeBytes(t, b.at(8).mirror("n2", proxy).at(9).end(trace.EndSettled).bytes())
	for _, uid := range []string{"n1-uid", "n2-uid"} {
		want := FirstWave{Bound: 4, Rejected: 1, HiddenRejected: 1, ClosedForm: &ClosedForm{Bound: 4, Admitted: 3}}
		if diff := cmp.Diff(want, run.node(t, uid).FirstWave); diff != "" {
			t.Errorf("first wave of %s (-want +got):\n%s", uid, diff)
		}
	}
	check(t, "first-wave rejections", run.value(t, MetricFirstWaveRejections), 2)
	check(t, "storm rejections", run.value(t, MetricStormRejections), 1)
}

// TestWaveThatGoesOnAfterARejection: binds come one by one, and a kubelet that hides more than one pod's room rejects before the last of them.
func TestWaveThatGoesOnAfterARejection(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.static("n1", trace.Resources{"cpu": 1300}).register("n1", false)
	for _, name := range []string{"w1", "w2", "w3", "w4"} {
		b.pod(name, web)
	}
	b.at(1).bind("n1", "w1", "w2", "w3").run("n1", "w1", "w2").cpu("n1", "w3").bind("n1", "w4").cpu("n1", "w4")
	b.pod("w3-2", web).at(2).bind("n1", "w3-2").cpu("n1", "w3-2")
	n := analyzeBytes(t, b.at(9).end(trace.EndSettled).bytes()).node(t, "n1-uid")
	want := FirstWave{Bound: 4, Rejected: 2, HiddenRejected: 2, ClosedForm: &ClosedForm{Bound: 4, Admitted: 2}}
	if diff := cmp.Diff(want, n.FirstWave); diff != "" {
		t.Errorf("first wave (-want +got):\n%s", diff)
	}
	check(t, "rejected", n.Rejected, 3)
}

// TestInferredStatics: without kubelets, a static pod ends with its node, and one with a new hash begins with its mirror.
func TestInferredStatics(t *testing.T) {
	b := newScript(t, "real", nil)
	b.register("n1", false).at(2).mirror("n1", proxy)
	b.at(10).api(trace.Event{Kind: trace.PodDeleted, Node: "n1", Pod: "kube-system/kube-proxy-n1", UID: "mirror-of-n1-hash-n1-uid"})
	b.at(11).staleMirror("n1", "new-hash", "n1-uid", proxy)
	b.at(20).api(trace.Event{Kind: trace.NodeDeleted, Node: "n1", NodeUID: "n1-uid"})
	b.at(30).api(trace.Event{Kind: trace.NodeRegistered, Node: "n1", NodeUID: "second", NodeInfo: &trace.NodeInfo{Allocatable: four}})
	b.taints("n1", notReady) // of the Node that is gone: late news from another watch
	b.at(33).staleMirror("n1", "third-hash", "second", proxy).at(40).end(trace.EndSettled)
	run := analyzeBytes(t, b.bytes())
	check(t, "exposure of the first", *run.node(t, "n1-uid").Exposure, Span{Duration: s(2)})
	check(t, "exposure of the second", *run.node(t, "second").Exposure, Span{Duration: s(3)})
	check(t, "static pods of the second", run.node(t, "second").StaticPods, 1)
}

// TestHoldOfANodeWithoutStaticPods: the gate holds it all the same, but for no mirror pod.
func TestHoldOfANodeWithoutStaticPods(t *testing.T) {
	b := newScript(t, "gated", gate)
	b.static("n1", proxy).register("n1", false, held).register("n2", false, held).at(3).condition("n2").at(4).taints("n2")
	run := analyzeBytes(t, b.at(9).end(trace.EndSettled).bytes())
	n := run.node(t, "n2-uid")
	want := &Hold{Total: Span{Duration: s(4)}, Checker: &Span{Duration: s(3)}, Controller: &Span{Duration: s(1)}}
	if diff := cmp.Diff(want, n.Hold); diff != "" {
		t.Errorf("hold (-want +got):\n%s", diff)
	}
	check(t, "exposure", n.Exposure, nil)
	check(t, "mirrors visible", n.MirrorsVisible, nil)
	check(t, "nodes that were exposed or not", metric(t, run, MetricExposure).over([]*Digest{run.Digest()}).OverNodes.N, 0)
}

// TestHoldBeyondReady: a node that is not Ready could not be used without the gate either.
func TestHoldBeyondReady(t *testing.T) {
	for _, tt := range []struct {
		name                string
		ready, release, end float64
		want                *Span
	}{
		{"released after Ready", 3, 7, 9, &Span{Duration: s(4)}},
		{"released before Ready", 7, 3, 9, &Span{}},
		{"never Ready", 99, 3, 9, nil},
		{"never released", 3, 99, 9, &Span{Duration: s(6), Censored: true}},
		{"neither", 99, 99, 9, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newScript(t, "gated", gate)
			b.static("n1", proxy).register("n1", false, held)
			for _, at := range []float64{min(tt.ready, tt.release), max(tt.ready, tt.release)} {
				if at == tt.ready && at < tt.end {
					b.at(at).ready("n1")
				}
				if at == tt.release && at < tt.end {
					b.at(at).taints("n1")
				}
			}
			got := analyzeBytes(t, b.at(tt.end).end(trace.EndSettled).bytes()).node(t, "n1-uid").Hold.BeyondReady
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("hold beyond Ready (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLastMirrorIsOfANodeThatHasOne: a node without static pods has its mirrors complete at once, which is no delay.
func TestLastMirrorIsOfANodeThatHasOne(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.static("n1", proxy).register("n1", false).at(5).mirror("n1", proxy).at(8).register("n2", false).at(9).end(trace.EndSettled)
	run := analyzeBytes(t, b.bytes())
	check(t, "last mirror", run.value(t, MetricLastMirror), 5)
	check(t, "exposure of the node without", run.node(t, "n2-uid").Exposure, nil)
}
