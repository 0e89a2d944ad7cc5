package results

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

func TestFindings(t *testing.T) {
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
			"(median/p90/max). 5 pods were rejected on them; 5 of these would have fitted"},
		"the gate": {gated(t).analyze("gated"), "2 nodes joined with static pods, and none could be scheduled onto before its mirror pods were there (at most 77.6 % at 95 %"},
		"the gap was open and nothing fell in": {analyzeBytes(t, joined("recorded").at(1).taints("n1").taints("n2").at(3).mirror("n1", proxy).mirror("n2", proxy).
			at(9).end(trace.EndStopped).bytes()), "for 2/2/2 s (median/p90/max). No pod was rejected on them."},
	} {
		if got := tt.run.Findings().Answer; !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want it to say %q", name, got, tt.want)
		}
	}
}

func TestMirrorDelays(t *testing.T) {
	f := ungated(t).analyze("ungated").Findings()
	check(t, "static pods", len(f.Mirrors), 1)
	check(t, "name", f.Mirrors[0].StaticPod, "kube-system/kube-proxy")
	check(t, "n", f.Mirrors[0].N, 2)
	check(t, "registered at 2, mirror at 9", *f.Mirrors[0].Median, 7)
	check(t, "registered at 2, mirror at 12", *f.Mirrors[0].Max, 10)
	check(t, "nodes without", f.Mirrors[0].Without, 0)

	var out bytes.Buffer
	if err := f.WriteDelays(&out, "a\ncluster"); err != nil {
		t.Fatal(err)
	}
	golden(t, "mirror-delays.csv", out.Bytes())
	out.Reset()
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
	check(t, "conclusive", run.Conclusive(), true)
	check(t, "settled", run.Settled(), false)
	check(t, "exposure of the initial node", *run.node(t, "n0-uid").Exposure, Span{})
}
