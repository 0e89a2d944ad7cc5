package results

import (
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

// TestPlanningOfTheGate: n1 and n2 are Ready at 3 s and held until 10 and 14.5 s; without their proxy they have 3,700 millicores.
func TestPlanningOfTheGate(t *testing.T) {
	run := gated(t).analyze("gated")
	check(t, "failed", run.value(t, MetricFailed), 0)
	check(t, "extra", run.value(t, MetricExtraPods), 0)
	check(t, "held", run.value(t, MetricHeldNodes), 18.5)
	check(t, "idle", run.value(t, MetricIdle), 18.5*3700)
	check(t, "overcommit", run.value(t, MetricOvercommit), 0)
	check(t, "unused on n1 and n2, which are Ready", run.value(t, MetricUnusedAtEnd), 8000-600-3000)
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
	var points []Point
	for i := range 100_000 {
		points = append(points, Point{At: float64(i), Value: float64(i % 7)})
	}
	points[55_555].Value, points[77_777].Value = 1000, -1000
	kept := thin(points)
	if len(kept) > maxPoints || kept[0] != points[0] || kept[len(kept)-1] != points[99_999] {
		t.Fatalf("kept %d points from %v to %v", len(kept), kept[0], kept[len(kept)-1])
	}
	var high, low, disorder bool
	for i, p := range kept {
		high, low = high || p.Value == 1000, low || p.Value == -1000
		disorder = disorder || i > 0 && p.At <= kept[i-1].At
	}
	check(t, "the highest is kept", high, true)
	check(t, "the lowest is kept", low, true)
	check(t, "out of order", disorder, false)
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
