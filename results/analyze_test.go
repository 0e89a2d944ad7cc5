package results

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// ungated is a scale-up from one node to three. Six pods wait; the two new nodes seem to have room for four each and have it for three.
// n1 is filled at once and then again and again; n2 has room left when all pods are placed.
func ungated(t *testing.T) *script {
	b := newScript(t, "ungated", nil)
	b.phase(trace.PhaseInitial).static("n0", proxy).register("n0", true, notReady)
	b.at(0.1).mirror("n0", proxy)
	b.at(0.5).taints("n0")
	b.at(1).phase(trace.PhaseWorkload)
	for _, name := range []string{"w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10"} {
		b.pod(name, web)
	}
	b.at(1.2).bind("n0", "w1", "w2", "w3").at(1.5).run("n0", "w1", "w2", "w3")
	b.at(1.6).pods(trace.PodUnschedulable, "", "w4", "w5", "w6", "w7", "w8", "w9", "w10")
	b.at(2).phase(trace.PhaseScaleUp)
	b.static("n1", proxy).static("n2", proxy).register("n1", false, infra, notReady).register("n2", false, infra, notReady)
	b.at(3).taints("n1", infra).taints("n2", infra)
	b.at(3.1).bind("n1", "w4", "w5", "w6", "w7").bind("n2", "w8", "w9").run("n1", "w4", "w5", "w6").run("n2", "w8", "w9")
	b.at(3.2).cpu("n1", "w7") // shown at 3.3
	b.bind("n1", "w10")       // an original pod, but into the room that w7 gave back
	b.at(3.4).pod("w7-2", web).bind("n2", "w7-2").run("n2", "w7-2")
	b.at(3.5).cpu("n1", "w10")
	for i, name := range []string{"w10-2", "w10-3", "w10-4"} {
		b.at(4+float64(i)).pod(name, web).bind("n1", name).at(4.2+float64(i)).cpu("n1", name)
	}
	b.at(9).mirror("n2", proxy).at(12).mirror("n1", proxy)
	b.at(12.1).pod("w10-5", web).at(12.2).pods(trace.PodUnschedulable, "", "w10-5")
	return b.at(20).end(trace.EndSettled)
}

func TestUngatedStorm(t *testing.T) {
	run := ungated(t).analyze("ungated")

	check(t, "conclusive", run.Conclusive(), true)
	check(t, "initial nodes", run.value(t, MetricInitialNodes), 1)
	check(t, "new nodes", run.value(t, MetricNewNodes), 2)
	check(t, "pods created", run.value(t, MetricPodsCreated), 15)
	check(t, "rejected", run.value(t, MetricRejectedPods), 5)
	check(t, "rejected OutOfcpu", run.value(t, MetricRejectedPodsByReason, "OutOfcpu"), 5)
	check(t, "caused by hidden static pods", run.value(t, MetricRejectedPodsByCause, string(CauseHiddenStaticPod)), 5)
	check(t, "new nodes with a rejection", run.value(t, MetricNewNodesWithRejection), 1)
	check(t, "initial nodes with a rejection", run.value(t, MetricInitialNodesWithRejection), 0)

	n1, n2 := run.node(t, "n1-uid"), run.node(t, "n2-uid")
	want := FirstWave{Bound: 4, Rejected: 1, HiddenRejected: 1, ClosedForm: &ClosedForm{Bound: 4, Admitted: 3}}
	if diff := cmp.Diff(want, n1.FirstWave); diff != "" {
		t.Errorf("first wave of n1 (-want +got):\n%s", diff)
	}
	check(t, "w7 is of the first wave", run.rejection(t, "w7").FirstWave, true)
	check(t, "w10 is of the first wave", run.rejection(t, "w10").FirstWave, false)
	check(t, "first wave of n2, with what replaces a pod of n1", n2.FirstWave.Bound, 3)
	check(t, "closed form of n2", n2.FirstWave.NotApplicable, "3 pods were bound where 4 fit")

	// 5 rejections from 3.2 to 6.2 s, one of the first wave; n1 was exposed from 3 to 12 s, n2 from 3 to 9 s
	check(t, "storm span", run.value(t, MetricStormSpan), 3)
	check(t, "storm rate", run.value(t, MetricStormRate), 4./3)
	check(t, "storm rate per exposed node", run.value(t, MetricStormRatePerNode), 4./15)
	check(t, "exposure of n1", *n1.Exposure, Span{Duration: s(9)})
	check(t, "exposure of n2", *n2.Exposure, Span{Duration: s(6)})
	check(t, "exposure of n0", *run.node(t, "n0-uid").Exposure, Span{})
	check(t, "hold", n1.Hold, nil)

	check(t, "all Running after the scale-up began", run.value(t, MetricRunningAfterScaleUp), 1.4)
	check(t, "all Running after the workload began", run.value(t, MetricRunningAfterWorkload), 2.4)
	check(t, "Running", run.value(t, MetricRunningAtEnd), 9)
	check(t, "unschedulable", run.value(t, MetricUnschedulableAtEnd), 1)
	check(t, "failed", run.value(t, MetricFailedAtEnd), 5)
	check(t, "last mirror", run.value(t, MetricLastMirror), 10)
	check(t, "wall beyond the last mirror", run.value(t, MetricWallBeyondLastMirror), 8)
}

// gated is the same scale-up behind the gate. n2 reports its condition before its mirror is visible, which must not be hidden.
func gated(t *testing.T) *script {
	b := newScript(t, "gated", gate)
	b.phase(trace.PhaseInitial).static("n0", proxy).register("n0", true, held, notReady)
	b.at(0.1).mirror("n0", proxy).at(0.5).taints("n0", held).at(0.8).condition("n0").at(0.9).taints("n0")
	b.at(1).phase(trace.PhaseWorkload)
	for _, name := range []string{"w1", "w2", "w3", "w4", "w5", "w6"} {
		b.pod(name, web)
	}
	b.at(1.2).bind("n0", "w1", "w2", "w3").at(1.5).run("n0", "w1", "w2", "w3")
	b.at(2).phase(trace.PhaseScaleUp)
	b.static("n1", proxy).static("n2", proxy).register("n1", false, held, notReady).register("n2", false, held, notReady)
	b.at(3).ready("n1").taints("n1", held).ready("n2").taints("n2", held)
	b.at(8).condition("n2").at(9).mirror("n2", proxy).at(10).taints("n2")
	b.at(12).mirror("n1", proxy).at(14).condition("n1")
	b.at(14.4).bind("n1", "w4", "w5", "w6") // the pod watch may be ahead of the node watch
	b.at(14.5).taints("n1").at(15).run("n1", "w4", "w5", "w6")
	return b.at(20).end(trace.EndSettled)
}

func TestGated(t *testing.T) {
	run := gated(t).analyze("gated")

	check(t, "rejected", run.value(t, MetricRejectedPods), 0)
	check(t, "new nodes with a rejection", run.value(t, MetricNewNodesWithRejection), 0)
	n1, n2 := run.node(t, "n1-uid"), run.node(t, "n2-uid")
	check(t, "exposure of n1", *n1.Exposure, Span{})
	want := &Hold{
		Total: Span{Duration: s(12.5)}, BeyondReady: &Span{Duration: s(11.5)},
		Mirrors: &Span{Duration: s(10)}, Checker: &Span{Duration: s(2)}, Controller: &Span{Duration: s(0.5)},
		Scheduler: &Span{}, OutOfOrder: true,
		Idle: new(11.5*3700 - 0.1*3000), // the last tenth of a second its pods were bound, as the pod watch has it
	}
	if diff := cmp.Diff(want, n1.Hold); diff != "" {
		t.Errorf("hold of n1 (-want +got):\n%s", diff)
	}
	want = &Hold{
		Total: Span{Duration: s(8)}, BeyondReady: &Span{Duration: s(7)},
		Mirrors: &Span{Duration: s(7)}, Checker: &Span{}, Controller: &Span{Duration: s(1)}, OutOfOrder: true,
		Idle: new(7 * 3700.0),
	}
	if diff := cmp.Diff(want, n2.Hold); diff != "" {
		t.Errorf("hold of n2 (-want +got):\n%s", diff)
	}
	wantWave := FirstWave{Bound: 3, ClosedForm: &ClosedForm{Bound: 3, Admitted: 3}}
	if diff := cmp.Diff(wantWave, n1.FirstWave); diff != "" {
		t.Errorf("first wave of n1 (-want +got):\n%s", diff)
	}
	check(t, "storm rate without a rejection", run.observation(t, MetricStormRate), nil)
}

func TestMirrorNeverCameAndTheNodeStayedHeld(t *testing.T) {
	b := newScript(t, "gated", gate)
	b.phase(trace.PhaseScaleUp).static("n1", proxy).register("n1", false, held, notReady)
	b.at(1).taints("n1", held)
	run := b.at(60).end(trace.EndTimeLimit).analyze("held-for-ever")

	n := run.node(t, "n1-uid")
	check(t, "conclusive", run.Conclusive(), true)
	check(t, "settled", run.Settled(), false)
	check(t, "mirrors visible", n.MirrorsVisible, nil)
	check(t, "exposure of a node that never was schedulable", n.Exposure, nil)
	check(t, "never schedulable", run.value(t, MetricNeverSchedulable), 1)
	want := &Hold{Total: Span{Duration: s(60), Censored: true}, Mirrors: &Span{Duration: s(60), Censored: true}}
	if diff := cmp.Diff(want, n.Hold); diff != "" {
		t.Errorf("hold (-want +got):\n%s", diff)
	}
	check(t, "run's hold, of which nothing is complete", *run.observation(t, MetricHold), Observation{Value: 60, Censored: true})
}

func TestMirrorNeverCameAndTheNodeWasExposed(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.phase(trace.PhaseScaleUp).static("n1", proxy).register("n1", false, notReady)
	b.at(1).taints("n1")
	run := b.at(60).end(trace.EndTimeLimit).analyze("exposed-for-ever")

	check(t, "exposure", *run.node(t, "n1-uid").Exposure, Span{Duration: s(59), Censored: true})
	figure := metric(t, run, MetricExposure).over([]*Digest{run.Digest()})
	check(t, "complete", figure.OverNodes.N, 0)
	check(t, "censored", figure.OverNodes.Censored, 1)
}

func metric(t *testing.T, run *Run, name string) Metric {
	t.Helper()
	for _, m := range metricsOf([]*Digest{run.Digest()}) {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no metric %s", name)
	return Metric{}
}

// TestGapsThatComeBack: a cordon stops the exposure, a deleted mirror and a late manifest begin it again, a kubelet that stops ends it.
func TestGapsThatComeBack(t *testing.T) {
	late := func(kind trace.Kind) trace.Event {
		return trace.Event{Kind: kind, Node: "n1", Pod: "kube-system/late-n1", UID: "late-hash", Requests: proxy}
	}
	cordoned := trace.Taint{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}
	b := newScript(t, "ungated", nil)
	b.static("n1", proxy).register("n1", false)
	b.at(2).taints("n1", cordoned).at(3).taints("n1") // exposed 0–2
	b.at(5).mirror("n1", proxy)                       // 3–5
	b.at(10).pods(trace.PodDeleted, "n1", "x").api(trace.Event{Kind: trace.PodDeleted, Node: "n1", Pod: "kube-system/kube-proxy-n1",
		UID: "mirror-of-n1-hash-n1-uid"})
	b.at(14).mirror("n1", proxy) // 10–14; a second mirror pod has another UID on a real cluster
	run := b.at(20).kubelet(late(trace.StaticPodStarted)).at(21).kubelet(late(trace.StaticPodStopped)).at(30).end(trace.EndSettled).
		analyze("gaps-that-come-back")

	n := run.node(t, "n1-uid")
	check(t, "exposure", *n.Exposure, Span{Duration: s(9), Censored: true}) // 20–21, and that mirror never came
	check(t, "static pods", n.StaticPods, 2)
}

func TestPinnedPods(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.static("n1", proxy).register("n1", false).at(0.1).mirror("n1", proxy)
	for _, name := range []string{"p1", "p2", "p3", "p4"} {
		b.api(trace.Event{Kind: trace.PodCreated, Pod: "default/" + name, UID: name, Node: "n1",
			PodInfo: &trace.PodInfo{Requests: web, Workload: "pinned", Pinned: true}})
	}
	run := b.run("n1", "p1", "p2", "p3").at(0.2).cpu("n1", "p4").at(5).end(trace.EndSettled).analyze("pinned")

	check(t, "cause", run.rejection(t, "p4").Cause, CausePinned)
	check(t, "first wave", run.value(t, MetricFirstWaveRejections), 0)
	check(t, "span of a storm of one", run.value(t, MetricStormSpan), 0)
	check(t, "rate of a storm of one", run.observation(t, MetricStormRate), nil)
	check(t, "hidden", run.value(t, MetricFirstWaveHidden), 0)
	check(t, "closed form", run.node(t, "n1-uid").FirstWave.NotApplicable, "no workload pod was bound by a scheduler")
}

// TestOtherResources: a hidden static pod takes memory and a place for a pod, too; a second scheduler overfills a node without any.
func TestOtherResources(t *testing.T) {
	big := trace.Resources{"cpu": 100, "memory": 4_000_000_000}
	b := newScript(t, "ungated", nil)
	b.static("n1", trace.Resources{"cpu": 100, "memory": 500_000_000}).register("n1", false)
	b.static("n2", nil).register("n2", false)
	b.register("n3", false)
	for _, name := range []string{"m1", "m2", "m3", "m4", "q", "r1", "r2", "r3", "r4", "r5"} {
		b.pod(name, big)
	}
	b.at(1).bind("n1", "m1", "m2", "m3", "m4").run("n1", "m1", "m2", "m3")
	b.reject("n1", "m4", "memory", 4_000_000_000, 12_500_000_000, 16_000_000_000, "m1", "m2", "m3")
	b.at(2).bind("n2", "q").reject("n2", "q", "pods", 1, 110, 110)
	b.at(3).bind("n3", "r1", "r2", "r3", "r4", "r5").run("n3", "r1", "r2", "r3", "r4")
	b.reject("n3", "r5", "memory", 4_000_000_000, 16_000_000_000, 16_000_000_000, "r1", "r2", "r3", "r4")
	run := b.at(4).end(trace.EndSettled).analyze("other-resources")

	check(t, "memory", run.rejection(t, "m4").Cause, CauseHiddenStaticPod)
	check(t, "closed form for memory", *run.node(t, "n1-uid").FirstWave.ClosedForm, ClosedForm{Bound: 4, Admitted: 3})
	check(t, "pods", run.rejection(t, "q").Cause, CauseHiddenStaticPod)
	check(t, "second scheduler", run.rejection(t, "r5").Cause, CauseOtherBoundPods)
	check(t, "closed form, overfilled", run.node(t, "n3-uid").FirstWave.NotApplicable, "5 pods were bound where 4 fit")
	check(t, "by reason", run.value(t, MetricRejectedPodsByReason, "OutOfmemory"), 2)
	check(t, "not shown by the API", run.value(t, MetricNotShownByAPI), 3)
}

// TestStaleMirror: a node comes back under its name with a larger static pod, while the mirror of the old one is still there.
func TestStaleMirror(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.phase(trace.PhaseInitial).static("n1", proxy).register("n1", true).mirror("n1", proxy).phase(trace.PhaseScaleUp)
	b.at(10).kubelet(trace.Event{Kind: trace.StaticPodStopped, Node: "n1", Pod: "kube-system/kube-proxy-n1", UID: "n1-hash"}).
		kubelet(trace.Event{Kind: trace.KubeletStopped, Node: "n1"}).
		api(trace.Event{Kind: trace.NodeDeleted, Node: "n1", NodeUID: "n1-uid"})
	b.at(20).kubelet(trace.Event{Kind: trace.StaticPodStarted, Node: "n1", Pod: "kube-system/kube-proxy-n1", UID: "n1-hash2",
		Requests: trace.Resources{"cpu": 1300}})
	b.api(trace.Event{Kind: trace.NodeRegistered, Node: "n1", NodeUID: "second", NodeInfo: &trace.NodeInfo{Allocatable: four, Initial: true}})
	for _, name := range []string{"w1", "w2", "w3", "w4"} {
		b.pod(name, web)
	}
	// the stale mirror shows 300 of 1300: three more seem to fit, two do; a fourth by a second scheduler would not fit in any view
	b.at(21).bind("n1", "w1", "w2", "w3").run("n1", "w1", "w2")
	b.kubelet(trace.Event{Kind: trace.PodRejected, Node: "n1", Pod: "default/w3", UID: "w3", Reason: "OutOfcpu",
		Rejection: &trace.Rejection{Resource: "cpu", Requested: 1000, Used: 3300, Capacity: 4000, Pods: []string{"n1-hash2", "w1", "w2"}}})
	b.bind("n1", "w4").kubelet(trace.Event{Kind: trace.PodRejected, Node: "n1", Pod: "default/w4", UID: "w4", Reason: "OutOfcpu",
		Rejection: &trace.Rejection{Resource: "cpu", Requested: 1000, Used: 4300, Capacity: 4000, Pods: []string{"n1-hash2", "w1", "w2"}}})
	b.at(25).api(trace.Event{Kind: trace.PodDeleted, Node: "n1", Pod: "kube-system/kube-proxy-n1", UID: "mirror-of-n1-hash-n1-uid"})
	run := b.at(26).staleMirror("n1", "n1-hash2", "second", trace.Resources{"cpu": 1300}).at(30).end(trace.EndSettled).analyze("stale-mirror")

	check(t, "hidden beside the stale mirror", run.rejection(t, "w3").Cause, CauseHiddenStaticPod)
	check(t, "more than is hidden", run.rejection(t, "w4").Cause, CauseOtherBoundPods)
	first, second := run.node(t, "n1-uid"), run.node(t, "second")
	check(t, "rejected on the first", first.Rejected, 0)
	check(t, "rejected on the second", second.Rejected, 2)
	check(t, "the first is initial", first.Initial, true)
	check(t, "the second is initial", second.Initial, false)
	check(t, "exposure of the second", *second.Exposure, Span{Duration: s(6)})
	check(t, "first wave", second.FirstWave.NotApplicable, "4 pods were bound where 3 fit")
}

func TestMirrorInFlight(t *testing.T) {
	for _, tt := range []struct {
		name  string
		delay float64
		want  Cause
	}{
		{"bound just after the mirror", 0.3, CauseMirrorInFlight},
		{"bound a second after the mirror", 1.1, CauseOtherBoundPods},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newScript(t, "ungated", nil)
			b.static("n1", proxy).register("n1", false)
			for _, name := range []string{"w1", "w2", "w3", "w4"} {
				b.pod(name, web)
			}
			b.at(1).bind("n1", "w1", "w2", "w3").run("n1", "w1", "w2", "w3").at(2).mirror("n1", proxy)
			b.at(2+tt.delay).bind("n1", "w4").cpu("n1", "w4")
			b.at(9).end(trace.EndSettled)
			run := analyzeBytes(t, b.bytes())
			check(t, "cause", run.rejection(t, "w4").Cause, tt.want)
			check(t, "closed form", run.node(t, "n1-uid").FirstWave.NotApplicable,
				"what the scheduler saw on the node changed while it was bound")
		})
	}
}

func analyzeBytes(t *testing.T, data []byte) *Run {
	t.Helper()
	reader, err := trace.NewReader("bytes", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	run, err := Analyze(reader)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestReasonsThatAreTheirOwnEvidence(t *testing.T) {
	for reason, want := range map[string]Cause{
		"NodeAffinity": CauseNodeAffinity, "NodeName": CauseNodeName, "NodePorts": CauseHostPort, "TaintToleration": CauseTaint,
		"UnexpectedAdmissionError": CauseUnexpectedAdmissionError, "SysctlForbidden": CauseUnknown, "OutOfcpu": CauseUnknown,
	} {
		t.Run(reason, func(t *testing.T) {
			b := newScript(t, "ungated", nil)
			b.register("n1", false).pod("w1", web).bind("n1", "w1")
			b.kubelet(trace.Event{Kind: trace.PodRejected, Node: "n1", Pod: "default/w1", UID: "w1", Reason: reason})
			b.at(1).end(trace.EndSettled)
			check(t, "cause", analyzeBytes(t, b.bytes()).rejection(t, "w1").Cause, want)
		})
	}
}

// TestAPIOnly: a real cluster, recorded through its API. n2's static pods are not known, because no mirror of it appeared.
func TestAPIOnly(t *testing.T) {
	b := newScript(t, "real", nil)
	b.register("n1", false, notReady).register("n2", false, notReady).register("n3", false, notReady)
	b.at(1).taints("n1").taints("n2").taints("n3").mirror("n3", proxy)
	for _, name := range []string{"w1", "w2", "w3", "w4", "v1", "u1", "u2", "u3", "u4", "e1"} {
		b.pod(name, web)
	}
	b.at(2).bind("n1", "w1", "w2", "w3", "w4").pods(trace.PodRunning, "n1", "w1", "w2", "w3").bind("n2", "v1")
	b.bind("n3", "u1", "u2", "u3").at(3).bind("n3", "u4") // a second scheduler, which the API shows to overfill the node
	reason, message := outOf("cpu", 1000, 3300, 4000)
	b.at(3.1).fail("n1", "w4", reason, message).fail("n2", "v1", reason, message).fail("n3", "u4", reason, message)
	b.api(trace.Event{Kind: trace.PodFailed, Pod: "default/e1", UID: "e1", Node: "n1", Reason: "Evicted",
		Message: "The node was low on resource: memory."})
	run := b.at(10).mirror("n1", proxy).at(20).end(trace.EndInterrupted).analyze("api-only")

	check(t, "kubelet evidence", run.KubeletEvidence, false)
	check(t, "rejected", run.value(t, MetricRejectedPods), 3)
	check(t, "hidden", run.rejection(t, "w4").Cause, CauseHiddenStaticPod)
	check(t, "no evidence", run.rejection(t, "v1").Cause, CauseUnknown)
	check(t, "overfilled in the API's own view", run.rejection(t, "u4").Cause, CauseOtherBoundPods)
	check(t, "closed form", *run.node(t, "n1-uid").FirstWave.ClosedForm, ClosedForm{Bound: 4, Admitted: 3})
	check(t, "exposure of n1", *run.node(t, "n1-uid").Exposure, Span{Duration: s(9)})
	check(t, "exposure of n2", run.node(t, "n2-uid").Exposure, nil)
	check(t, "exposure of n3", *run.node(t, "n3-uid").Exposure, Span{})
	check(t, "kubelet's unseen", run.observation(t, MetricNotSeenByKubelet), nil)
	check(t, "conclusive", run.Conclusive(), false)
}

// TestStaticPodThatLost: the reverse race. The kubelet rejects the node's own pod; its mirror's status tells the same once more.
func TestStaticPodThatLost(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.register("n1", false).pod("w1", trace.Resources{"cpu": 4000}).bind("n1", "w1").run("n1", "w1")
	reason, message := outOf("cpu", 300, 4000, 4000)
	b.at(5).kubelet(trace.Event{Kind: trace.PodRejected, Node: "n1", Pod: "kube-system/kube-proxy-n1", UID: "n1-hash", Reason: reason,
		Rejection: &trace.Rejection{Resource: "cpu", Requested: 300, Used: 4000, Capacity: 4000, Pods: []string{"w1"}}})
	b.at(6).mirror("n1", proxy)
	b.api(trace.Event{Kind: trace.PodFailed, Pod: "kube-system/kube-proxy-n1", UID: "mirror-of-n1-hash-n1-uid", Node: "n1", Reason: reason,
		Message: "Pod was rejected: " + message})
	b.at(9).end(trace.EndSettled)
	run := analyzeBytes(t, b.bytes())

	check(t, "rejected", run.value(t, MetricRejectedPods), 1)
	check(t, "cause", run.rejection(t, "n1-hash"), Rejection{
		At: s(5), Reason: "OutOfcpu", Cause: CauseOtherBoundPods, SeenByKubelet: true, SeenByAPI: true,
	})
}

func TestHowRunsEnd(t *testing.T) {
	t.Run("truncated", func(t *testing.T) {
		data := ungated(t).bytes()
		golden(t, "truncated.jsonl", data[:len(data)-200])
		run := analyzeFile(t, filepath.Join("testdata", "truncated.jsonl"))
		check(t, "end", run.End, EndTruncated)
		check(t, "conclusive", run.Conclusive(), false)
		check(t, "rejected until then", run.value(t, MetricRejectedPods), 5)
		check(t, "all Running is a lower bound", run.observation(t, MetricRunningAfterScaleUp).Censored, true)
	})
	t.Run("interrupted", func(t *testing.T) {
		b := newScript(t, "gated", gate)
		b.static("n1", proxy).register("n1", false, held).at(3).end(trace.EndInterrupted)
		run := b.analyze("interrupted")
		check(t, "conclusive", run.Conclusive(), false)
		check(t, "hold", run.node(t, "n1-uid").Hold.Total, Span{Duration: s(3), Censored: true})
	})
	t.Run("a component died", func(t *testing.T) {
		b := newScript(t, "ungated", nil)
		b.at(2).add(trace.SourceRun, trace.Event{Kind: trace.ComponentDied, Reason: "etcd", Message: "exit status 1"}).end(trace.EndSettled)
		run := analyzeBytes(t, b.bytes())
		check(t, "conclusive", run.Conclusive(), false)
		check(t, "died", run.Died[0], Death{Component: "etcd", Message: "exit status 1", At: 2})
	})
	t.Run("the zero Run", func(t *testing.T) {
		check(t, "conclusive", (&Run{}).Conclusive(), false)
	})
}

func TestAnalyzeNamesTheLineThatIsNoEvent(t *testing.T) {
	lines := bytes.SplitAfter(ungated(t).bytes(), []byte("\n"))
	lines[3] = []byte("not json\n")
	reader, err := trace.NewReader("broken.jsonl", bytes.NewReader(bytes.Join(lines, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Analyze(reader); err == nil || !strings.Contains(err.Error(), "broken.jsonl:4:") {
		t.Errorf("got %v, want an error at broken.jsonl:4", err)
	}
}

// measured fails if a figure of the run cannot be true, and shows the run in every way there is.
func measured(t *testing.T, run *Run) {
	t.Helper()
	for _, n := range run.Nodes {
		if n.Exposure != nil && n.Exposure.Duration < 0 {
			t.Errorf("node %s: exposure %v", n.UID, n.Exposure.Duration)
		}
		if h := n.Hold; h != nil {
			sum := time.Duration(0)
			for _, part := range []*Span{h.Mirrors, h.Checker, h.Controller} {
				if part == nil {
					continue
				}
				sum += part.Duration
				if part.Duration < 0 {
					t.Errorf("node %s: a part of the hold is %v", n.UID, part.Duration)
				}
			}
			if after := h.BeyondReady; after != nil && (after.Duration < 0 || after.Duration > h.Total.Duration) {
				t.Errorf("node %s: %v of a hold of %v is after Ready", n.UID, after.Duration, h.Total.Duration)
			}
			if sum > h.Total.Duration {
				t.Errorf("node %s: the parts of a hold of %v add up to %v", n.UID, h.Total.Duration, sum)
			}
		}
		if c := n.FirstWave.ClosedForm; c != nil && (c.Admitted > c.Bound || c.Bound != n.FirstWave.Bound) {
			t.Errorf("node %s: %d in the first wave, closed form %+v", n.UID, n.FirstWave.Bound, *c)
		}
	}
	summary := summarize(t, run)
	if err := Table(io.Discard, summary, 80); err != nil {
		t.Error(err)
	}
	if _, err := json.Marshal(summary); err != nil {
		t.Error(err)
	}
}

// TestLossAndDisorder plays every trace in testdata with events lost, doubled and out of order, and with their details missing.
func TestLossAndDisorder(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces in testdata: %v", err)
	}
	for _, file := range files {
		r := rand.New(rand.NewPCG(1, 2))
		events := eventsOf(t, file)
		for range 200 {
			l := newLedger(trace.Header{Gate: gate})
			now := time.Duration(0)
			for _, e := range disturbed(r, events) {
				now = max(now, e.T)
				e.T = now
				l.enter(e)
			}
			measured(t, l.close())
		}
	}
}

func eventsOf(t *testing.T, path string) []trace.Event {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := trace.NewReader(path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var events []trace.Event
	for {
		e, err := reader.Next()
		if err != nil {
			return events
		}
		events = append(events, e)
	}
}

func disturbed(r *rand.Rand, events []trace.Event) []trace.Event {
	var out []trace.Event
	for _, e := range events {
		switch r.IntN(12) {
		case 0:
			continue
		case 1:
			out = append(out, e)
		case 2:
			e.NodeInfo, e.PodInfo, e.Rejection = nil, nil, nil
		case 3:
			e.Requests, e.Node = nil, ""
		}
		out = append(out, e)
	}
	for range r.IntN(len(out)/2 + 1) {
		i := r.IntN(len(out))
		j := min(len(out)-1, i+r.IntN(5))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// FuzzAnalyze: whatever a trace says, it is measured or refused.
func FuzzAnalyze(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatalf("no traces in testdata: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reader, err := trace.NewReader("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		if run, err := Analyze(reader); err == nil {
			measured(t, run)
		}
	})
}
