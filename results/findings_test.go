package results

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

func TestAnswer(t *testing.T) {
	joined := func(arm string) *script {
		b := newScript(t, arm, nil)
		return b.phase(trace.PhaseScaleUp).register("n1", false, notReady).register("n2", false, notReady)
	}
	for name, tt := range map[string]struct {
		run  *Run
		want string
	}{
		"nobody joined": {analyzeBytes(t, newScript(t, "recorded", nil).register("n0", true).at(9).end(trace.EndStopped).bytes()), "No node joined: nothing can be said"},
		"no mirror pod was seen": {analyzeBytes(t, joined("recorded").at(9).end(trace.EndStopped).bytes()),
			"no mirror pod was seen on any: either none runs a static pod, or their mirror pods had not come yet"},
		"the race": {ungated(t).analyze("ungated"), "2 of 2 nodes that joined with static pods could be scheduled onto before their mirror pods were there, for 6/9/9 s " +
			"(median/p90/max). 5 pods were rejected on the new nodes (OutOfcpu 5); all of these would have fitted but for static pods"},
		"the gate": {gated(t).analyze("gated"), "2 nodes joined with static pods, and none could be scheduled onto before its mirror pods were there " +
			"(at most 77.6 % at 95 %, if nodes are independent). No pod was rejected on the new nodes."},
		"the gap was open and nothing fell in": {analyzeBytes(t, joined("recorded").at(1).taints("n1").taints("n2").at(3).mirror("n1", proxy).mirror("n2", proxy).
			at(9).end(trace.EndStopped).bytes()), "for 2/2/2 s (median/p90/max). No pod was rejected on the new nodes: the gap was open, and nothing fell into it."},
		"never put to the test": {analyzeBytes(t, joined("recorded").at(3).mirror("n1", proxy).mirror("n2", proxy).at(9).end(trace.EndStopped).bytes()),
			"2 nodes joined with static pods, and none became schedulable: nothing can be said about the race."},
		"one of them was not put to the test": {analyzeBytes(t, joined("recorded").at(3).mirror("n1", proxy).mirror("n2", proxy).at(4).taints("n1").
			at(9).end(trace.EndStopped).bytes()), "1 node joined with static pods, and none could be scheduled onto before its mirror pods were there. 1 more never became schedulable. No"},
		"one of them without a mirror pod": {analyzeBytes(t, joined("recorded").at(3).mirror("n1", proxy).at(4).taints("n1").taints("n2").at(9).end(trace.EndStopped).bytes()),
			"before its mirror pods were there. 1 more joined without a mirror pod: without a static pod, or before its mirror pod came."},
		"too short": {analyzeBytes(t, joined("recorded").at(3).taints("n1").taints("n2").at(3.2).mirror("n1", proxy).at(5).mirror("n2", proxy).at(9).end(trace.EndStopped).bytes()),
			"for 0.200/2/2 s (median/p90/max). For 1 of these it was less than 1 s, which is too short"},
		"a watch was broken": {analyzeBytes(t, joined("recorded").at(1).add(trace.SourceRun, trace.Event{Kind: trace.WatchBroken, Reason: "pods"}).at(3).add(trace.SourceRun, trace.Event{Kind: trace.WatchResumed, Reason: "pods"}).at(9).end(trace.EndStopped).bytes()),
			"A watch was broken for up to 2 s: times may be wrong by as much."},
		"cut short": {analyzeBytes(t, joined("recorded").at(9).end(trace.EndError).bytes()), "The trace ended as error: what is not in it may have happened all the same."},
	} {
		if got := tt.run.Findings().Answer; !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want it to say %q", name, got, tt.want)
		}
	}
}

func TestDelays(t *testing.T) {
	f := ungated(t).analyze("ungated").Findings()
	check(t, "static pods", len(f.Delays.Mirrors), 1)
	proxies := f.Delays.Mirrors[0]
	check(t, "name", proxies.StaticPod, "kube-system/kube-proxy")
	check(t, "n", proxies.N, 2)
	check(t, "registered at 2, mirror at 9", *proxies.Median, 7)
	check(t, "registered at 2, mirror at 12", *proxies.Max, 10)
	check(t, "nodes without", proxies.Without, 0)
	check(t, "never Ready", f.Delays.Ready.Censored, 2)

	var out bytes.Buffer
	if err := f.Table(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "findings.txt", out.Bytes())
	out.Reset()
	if err := analyzeFile(t, "testdata/api-only.jsonl").Findings().Table(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "findings-api-only.txt", out.Bytes())
}

// TestWriteDelays: a row a node, a column a static pod, and nothing where nothing was seen.
func TestWriteDelays(t *testing.T) {
	b := newScript(t, "recorded", nil).register("n0", true, notReady).phase(trace.PhaseScaleUp).register("n1", false, notReady).register("n2", false, notReady)
	b.at(1).api(trace.Event{Kind: trace.NodeReady, Node: "n1", NodeUID: "n1-uid"}).taints("n1")
	b.at(1.5).mirror("n0", proxy).mirror("n1", proxy).at(2.25)
	b.api(trace.Event{Kind: trace.PodCreated, Node: "n1", Pod: "monitoring/agent-n1", UID: "agent",
		PodInfo: &trace.PodInfo{Mirror: true, MirrorHash: "agent", OwnerUID: "n1-uid"}})
	run := analyzeBytes(t, b.at(9).end(trace.EndStopped).bytes())
	var out bytes.Buffer
	if err := run.Findings().Delays.WriteCSV(&out, "a\ncluster"); err != nil {
		t.Fatal(err)
	}
	golden(t, "delays.csv", out.Bytes())
	out.Reset()
	if err := run.Findings().Table(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "findings-two-pods.txt", out.Bytes())
}

// TestInterruptions: a broken watch is an interruption until it is resumed, or until the trace ends.
func TestInterruptions(t *testing.T) {
	b := newScript(t, "recorded", nil).at(1).add(trace.SourceRun, trace.Event{Kind: trace.WatchBroken, Reason: "pods"}).at(2).add(trace.SourceRun, trace.Event{Kind: trace.WatchBroken, Reason: "nodes"}).at(4).add(trace.SourceRun, trace.Event{Kind: trace.WatchResumed, Reason: "pods"})
	run := analyzeBytes(t, b.at(9).end(trace.EndStopped).bytes())
	if diff := cmp.Diff([]Interruption{{"pods", Period{s(1), s(4)}}, {"nodes", Period{s(2), s(9)}}}, run.Interruptions); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	check(t, "longest", run.LongestInterruption(), s(7))
	check(t, "warned", warned(summarize(t, run).Warnings, WarnInterrupted), true)
}

// TestExistingPods: how long pods that were there when recording began took to run is not known, and their mirror pods came with their node.
func TestExistingPods(t *testing.T) {
	b := newScript(t, "recorded", nil)
	b.register("n0", true).at(0.01)
	b.api(trace.Event{Kind: trace.PodCreated, Pod: "kube-system/kube-proxy-n0", UID: "m", Node: "n0",
		PodInfo: &trace.PodInfo{Requests: proxy, Owner: "Node/n0", Mirror: true, MirrorHash: "h", OwnerUID: "n0-uid", Existing: true}})
	b.api(trace.Event{Kind: trace.PodCreated, Pod: "default/old", UID: "old", Node: "n0", PodInfo: &trace.PodInfo{Requests: web, Existing: true}})
	b.pods(trace.PodRunning, "n0", "old").phase(trace.PhaseScaleUp)
	run := analyzeBytes(t, b.at(9).end(trace.EndStopped).bytes())
	check(t, "peak hidden", run.value(t, MetricPeakHidden), 0)
	check(t, "start", run.observation(t, MetricPodStart), nil)
	check(t, "pods created", run.value(t, MetricPodsCreated), 0)
	check(t, "conclusive", run.Conclusive(), true)
	check(t, "settled", run.Settled(), false)
	check(t, "exposure of the initial node", *run.node(t, "n0-uid").Exposure, Span{})
}
