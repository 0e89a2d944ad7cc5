package results

import (
	"slices"
	"testing"

	"github.com/mirrorgap/mirrorgap/results/stats"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

func warned(warnings []stats.Warning, code string) bool {
	return slices.ContainsFunc(warnings, func(w stats.Warning) bool { return w.Code == code })
}

func TestRateOverAllRuns(t *testing.T) {
	summary := summarize(t, seeded(t, ungated(t), 1), seeded(t, ungated(t), 2), seeded(t, gated(t), 1))
	raced := summary.Arms[0].Figure(MetricNewNodesWithRejection, "").Rate
	check(t, "nodes with a rejection", raced.Count, 2)
	check(t, "of", raced.N, 4)
	check(t, "a caveat", warned(raced.Warnings, WarnIndependent), true)
	none := summary.Arms[1].Figure(MetricNewNodesWithRejection, "").Rate
	check(t, "none of 2, at most", *none.Interval, *stats.Proportion(0, 2).Interval)
	cut := summarize(t, seeded(t, gated(t), 1), seeded(t, newScript(t, "gated", gate), 2)).Arms[0].Figure(MetricNewNodesWithRejection, "").Rate
	check(t, "nothing bounds an arm with a run that was cut short", cut.Interval, nil)
	check(t, "and it says why", warned(cut.Warnings, WarnInconclusive), true)
	check(t, "a metric that is no part of another", summary.Arms[0].Figure(MetricRejectedPods, "").Rate, nil)
}

// TestArmsAreComparedInPairsOfASeed: seed 9 has no partner, seed 8 one that was cut short, and one pair shows nothing.
func TestArmsAreComparedInPairsOfASeed(t *testing.T) {
	var runs []*Run
	for seed := range uint64(6) {
		runs = append(runs, seeded(t, ungated(t), seed), seeded(t, gated(t), seed))
	}
	others := []*Run{seeded(t, ungated(t), 9), seeded(t, ungated(t), 8), seeded(t, newScript(t, "gated", gate), 8)}
	rejected := comparison(t, summarize(t, append(runs, others...)...), MetricRejectedPods)
	check(t, "from", rejected.From, "ungated")
	check(t, "to", rejected.To, "gated")
	check(t, "pairs", rejected.Difference.N, 6)
	check(t, "five fewer", *rejected.Difference.Value, -5)
	check(t, "always fewer", *rejected.Effect, -1)
	check(t, "p = 2 / 2^6", *rejected.P, 2.0/64)

	if pairs := summarize(t, runs[:2]...).Comparisons; len(pairs) > 0 {
		t.Errorf("one pair was compared: %+v", pairs)
	}
}

func comparison(t *testing.T, s *Summary, name string) Comparison {
	t.Helper()
	for _, c := range s.Comparisons {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no comparison of %s", name)
	return Comparison{}
}

// TestCensoredQuantilesComeFromTheSurvivalCurve: the median of the complete values alone would be too low.
func TestCensoredQuantilesComeFromTheSurvivalCurve(t *testing.T) {
	d := distribute([]*Observation{{Value: 5}, {Value: 6}, {Value: 7, Censored: true}, {Value: 8, Censored: true}})
	d.estimate("test", [][]*Observation{{{Value: 5}, {Value: 6}, {Value: 7, Censored: true}, {Value: 8, Censored: true}}})
	check(t, "median of the complete ones", *d.Median, 5)
	check(t, "median of all", *d.Estimates.Median.Value, 6)
	check(t, "p90", d.Estimates.P90.Value, nil)
	check(t, "why", warned(d.Estimates.P90.Warnings, stats.NotReached), true)
}

func TestWarnings(t *testing.T) {
	whole := summarize(t, seeded(t, ungated(t), 1), seeded(t, ungated(t), 2))
	if len(whole.Warnings) > 0 {
		t.Errorf("two whole runs of equal conditions: got %v", whole.Warnings)
	}
	cut := newScript(t, "ungated", nil)
	cut.header.Versions = map[string]string{"kubernetes": "v1.36.0"}
	late := seeded(t, newScript(t, "ungated", nil).at(1).end(trace.EndTimeLimit), 4)
	mixed := summarize(t, seeded(t, ungated(t), 1), seeded(t, cut, 3), late, seeded(t, gated(t), 1))
	for _, code := range []string{WarnInconclusive, WarnNotSettled, WarnDiffer, WarnOneRun} {
		check(t, code, warned(mixed.Warnings, code), true)
	}
}
