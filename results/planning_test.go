package results

import (
	"cmp"
	"slices"
	"testing"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// TestPlanningOfTheRace: by hand, of the script in ungated. n1 is placed 300 millicores beyond its 4,000 from 3.1 to 3.6 and three times for 0.3 s.
func TestPlanningOfTheRace(t *testing.T) {
	run := ungated(t).analyze("ungated")
	check(t, "failed", run.value(t, MetricFailed), 5)
	check(t, "created beyond the ten that were there at once", run.value(t, MetricExtraPods), 5)
	check(t, "peak hidden: a proxy on two nodes", run.value(t, MetricPeakHidden), 600)
	check(t, "peak overcommit", run.value(t, MetricPeakOvercommit), 300)
	check(t, "overcommit 300 m for 1.4 s", run.value(t, MetricOvercommit), 420)
	check(t, "nodes in use", run.value(t, MetricNodesUsed), 3)
	check(t, "one pod waits, three fit on a node", run.value(t, MetricNodesNeeded), 4)
	check(t, "held", run.observation(t, MetricHeldNodes), nil)

	start := metric(t, run, MetricPodStart).over([]*Digest{run.Digest()}).OverPods
	check(t, "pods that ran", start.N, 9)
	check(t, "waiting", start.Censored, 1)
	check(t, "median, w4 to w9 from 1 to 3.1 s", *start.Median, 2.1)
}

// TestPlanningOfTheGate: n1 and n2 are Ready at 3 s and held until 14.5 and 10 s; without their proxy they have 3,700 millicores. The pod watch has three
// pods of 1,000 on n1 from 14.4 s on, and the trace ends at 20 s. n0 never says that it is Ready.
func TestPlanningOfTheGate(t *testing.T) {
	run := gated(t).analyze("gated")
	check(t, "failed", run.value(t, MetricFailed), 0)
	check(t, "extra", run.value(t, MetricExtraPods), 0)
	check(t, "held", run.value(t, MetricHeldNodes), 18.5)
	check(t, "idle", run.value(t, MetricIdle), 18.5*3700-300)
	check(t, "overcommit", run.value(t, MetricOvercommit), 0)
	check(t, "unused on n1 and n2, which are Ready", run.value(t, MetricUnusedAtEnd), 8000-600-3000)
	check(t, "unused since they were Ready", run.value(t, MetricUnused), 11.4*3700+5.6*700+17*3700)
	check(t, "nodes needed where nothing waits", run.value(t, MetricNodesNeeded), 2)
}

func TestHeldForEverCostsAtLeastThat(t *testing.T) {
	b := newScript(t, "gated", gate)
	b.phase(trace.PhaseScaleUp).register("n1", false, held).at(1).ready("n1")
	run := analyzeBytes(t, b.at(60).end(trace.EndTimeLimit).bytes())
	held := run.observation(t, MetricHeldNodes)
	if held == nil || !held.Censored || held.Value != 59 {
		t.Errorf("got %+v, want at least 59 node-seconds", held)
	}
}

func (r *Run) series(t *testing.T, name string) []Point {
	t.Helper()
	for _, s := range r.Series {
		if s.Name == name {
			return s.Points
		}
	}
	t.Fatalf("no series %s", name)
	return nil
}

// valueAt is what a step function is worth at an instant.
func valueAt(points []Point, at float64) float64 {
	value := 0.0
	for _, p := range points {
		if p.At <= at {
			value = p.Value
		}
	}
	return value
}

func TestSeries(t *testing.T) {
	run := ungated(t).analyze("ungated")
	for _, tt := range []struct {
		name string
		at   float64
		want float64
	}{
		{SeriesRejected, 3.1, 0}, {SeriesRejected, 3.2, 1}, {SeriesRejected, 19, 5},
		{SeriesRunning, 1.5, 3}, {SeriesRunning, 3.2, 8}, {SeriesRunning, 19, 9},
		{SeriesExposed, 3, 2}, {SeriesExposed, 9, 1}, {SeriesExposed, 12, 0},
		{SeriesSeen, 3.1, 9300}, {SeriesPlaced, 3.1, 9900}, {SeriesSeen, 19, 9900}, {SeriesPlaced, 19, 9900},
		{SeriesAllocatable, 1, 4000}, {SeriesAllocatable, 2, 12000},
	} {
		if got := valueAt(run.series(t, tt.name), tt.at); got != tt.want {
			t.Errorf("%s at %v s: got %v, want %v", tt.name, tt.at, got, tt.want)
		}
	}
	held := gated(t).analyze("gated").series(t, SeriesHeld)
	for at, want := range map[float64]float64{2: 2, 9.9: 2, 10: 1, 14.5: 0} {
		check(t, "held", valueAt(held, at), want)
	}
}

// TestSeriesIsBounded, and keeps its extremes.
func TestSeriesIsBounded(t *testing.T) {
	const n = 100_000
	var all []level
	for i := range n {
		all = append(all, level{s(float64(i)), int64(i % 7)})
	}
	all[55_555].value, all[77_777].value = 1000, -1000
	kept := slices.Collect(thin(slices.Values(all), s(n)))
	if len(kept) >= maxPoints || kept[0] != all[0] || kept[len(kept)-1] != all[n-1] {
		t.Fatalf("kept %d points from %v to %v", len(kept), kept[0], kept[len(kept)-1])
	}
	check(t, "the highest is kept", slices.Contains(kept, all[55_555]), true)
	check(t, "the lowest is kept", slices.Contains(kept, all[77_777]), true)
	check(t, "in order, each once", slices.IsSortedFunc(kept, func(a, b level) int { return cmp.Compare(a.at, b.at+1) }), true)
	check(t, "a short one is kept whole", len(slices.Collect(thin(slices.Values(all[:maxPoints-1]), s(n)))), maxPoints-1)
}

// TestUsageFollowsANodeThatReturns: what was on a node does not count while there is no Node, and a bare pod is nobody's extra.
func TestUsageFollowsANodeThatReturns(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.phase(trace.PhaseScaleUp).register("n1", false).static("n1", proxy).mirror("n1", proxy)
	b.api(trace.Event{Kind: trace.PodCreated, Pod: "default/bare", UID: "bare", PodInfo: &trace.PodInfo{Requests: web, Workload: "bare"}})
	b.at(1).bind("n1", "bare").at(2).api(trace.Event{Kind: trace.NodeDeleted, Node: "n1", NodeUID: "n1-uid"})
	b.at(5).api(trace.Event{Kind: trace.NodeRegistered, Node: "n1", NodeUID: "again", NodeInfo: &trace.NodeInfo{Allocatable: four}})
	run := analyzeBytes(t, b.at(9).end(trace.EndSettled).bytes())
	seen := run.series(t, SeriesSeen)
	for at, want := range map[float64]float64{1: 1300, 2: 0, 4: 0, 5: 1300} {
		check(t, "seen", valueAt(seen, at), want)
	}
	check(t, "no controller", run.observation(t, MetricExtraPods), nil)
}

// TestFreeOnANode: a check pod on a held node is not idle cpu, and a node that has more than it can run has nothing unused, but not less.
func TestFreeOnANode(t *testing.T) {
	b := newScript(t, "gated", gate)
	b.phase(trace.PhaseScaleUp).static("n1", proxy).register("n1", false, held).at(1).ready("n1")
	b.api(trace.Event{Kind: trace.PodCreated, Pod: "kube-system/check", UID: "check", Node: "n1",
		PodInfo: &trace.PodInfo{Requests: trace.Resources{"cpu": 700}, Check: true, Pinned: true}})
	b.at(11).taints("n1").pod("a", trace.Resources{"cpu": 5000}).bind("n1", "a").at(21).end(trace.EndTimeLimit)
	run := analyzeBytes(t, b.bytes())
	check(t, "idle for ten seconds beside proxy and check", run.value(t, MetricIdle), 10*3000)
	check(t, "unused", run.value(t, MetricUnused), 10*3000)
	check(t, "unused at the end", run.value(t, MetricUnusedAtEnd), 0)
	check(t, "overcommit for ten seconds", run.value(t, MetricOvercommit), 10*2000)
}

// TestNothingIsSaidAboutHiddenPodsThatNobodySaw: the API alone tells of static pods by their mirrors.
func TestNothingIsSaidAboutHiddenPodsThatNobodySaw(t *testing.T) {
	b := newScript(t, "ungated", nil)
	b.register("n1", false).pod("a", web).at(1).bind("n1", "a").at(9).end(trace.EndSettled)
	run := analyzeBytes(t, b.bytes())
	for _, name := range []string{MetricPeakHidden, MetricPeakOvercommit, MetricOvercommit, MetricUnused} {
		check(t, name, run.observation(t, name), nil)
	}
}
