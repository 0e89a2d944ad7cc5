package results

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// seeded is a run of the script under another seed.
func seeded(t *testing.T, b *script, seed uint64) *Run {
	t.Helper()
	b.header.Seed = seed
	return analyzeBytes(t, b.bytes())
}

// stormless is an ungated run in which the mirrors came at once.
func stormless(t *testing.T) *script {
	b := newScript(t, "ungated", nil)
	b.phase(trace.PhaseScaleUp).static("n1", proxy).register("n1", false, notReady).mirror("n1", proxy)
	return b.at(1).taints("n1").at(2).end(trace.EndSettled)
}

func TestSummarizeOverSeeds(t *testing.T) {
	summary := summarize(t, seeded(t, stormless(t), 7), seeded(t, ungated(t), 3), seeded(t, gated(t), 3))
	check(t, "arms", len(summary.Arms), 2)
	arm := &summary.Arms[0]
	check(t, "first arm", arm.Name, "ungated")
	check(t, "first seed", arm.Runs[0].Seed, 3)

	rejected := arm.Figure(MetricRejectedPods, "")
	check(t, "runs", rejected.OverSeeds.N, 2)
	check(t, "mean over seeds", *rejected.OverSeeds.Mean, 2.5)
	check(t, "nodes of both runs", rejected.OverNodes.N, 3)
	check(t, "first run", rejected.Runs[0].Value, 5)
	check(t, "a reason that the second run does not have", arm.Figure(MetricRejectedPodsByReason, "OutOfcpu").Runs[1].Value, 0)
	check(t, "a reason that no gated run has", summary.Arms[1].Figure(MetricRejectedPodsByReason, "OutOfcpu").Runs[0].Value, 0)
	check(t, "a rate that one run does not have", arm.Figure(MetricStormRate, "").OverSeeds.N, 1)
	check(t, "median exposure, n1 6 s and n2 9 s", arm.Figure(MetricExposure, "").Runs[0].Value, 6)
	check(t, "no such metric", arm.Figure("noSuchMetric", ""), nil)
}

func TestSummarizeRefuses(t *testing.T) {
	other := newScript(t, "ungated", nil)
	other.header.Experiment = "another"
	for _, tt := range []struct {
		name string
		runs []*Digest
		want string
	}{
		{"nothing", nil, "there is none"},
		{"two experiments", []*Digest{seeded(t, stormless(t), 1).Digest(), seeded(t, other.end(trace.EndSettled), 2).Digest()}, `"by-hand" and "another"`},
		{"one run twice", []*Digest{seeded(t, stormless(t), 1).Digest(), seeded(t, ungated(t), 1).Digest()}, `arm "ungated" has two runs of seed 1`},
	} {
		if _, err := Summarize(tt.runs); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

func TestTable(t *testing.T) {
	interrupted := newScript(t, "a treatment with quite a long name-that-does-not-break-anywhere", gate)
	interrupted.static("n1", proxy).register("n1", false, held)
	interrupted.pod("w1", web)
	interrupted.at(3).add(trace.SourceRun, trace.Event{Kind: trace.ComponentDied, Reason: "kube-apiserver", Message: "exit status 2"})
	interrupted.at(4).end(trace.EndInterrupted)
	limit := newScript(t, "ungated", nil)
	limit.phase(trace.PhaseScaleUp).static("n1", proxy).register("n1", false, notReady).at(1).taints("n1").at(60).end(trace.EndTimeLimit)

	failed := newScript(t, "gated", gate).register("n1", true, held).at(3)
	failed.add(trace.SourceRun, trace.Event{Kind: trace.RunEnded, Reason: trace.EndError, Message: "create workload web: it is invalid"})

	for _, tt := range []struct {
		name    string
		summary *Summary
	}{
		{"failed", summarize(t, seeded(t, failed, 1), seeded(t, failed, 2))},
		{"failed-one-arm", summarize(t, seeded(t, failed, 1), seeded(t, ungated(t), 1))},
		{"two-arms", twoArms(t)},
		{"seeds", summarize(t, seeded(t, ungated(t), 1), seeded(t, stormless(t), 2), seeded(t, limit, 3), seeded(t, gated(t), 1))},
		{"inconclusive", summarize(t, seeded(t, interrupted, 1), seeded(t, gated(t), 1), seeded(t, ungated(t), 1))},
	} {
		for _, width := range []int{80, 60} {
			t.Run(fmt.Sprintf("%s-%d", tt.name, width), func(t *testing.T) {
				var out bytes.Buffer
				if err := Table(&out, tt.summary, width); err != nil {
					t.Fatal(err)
				}
				golden(t, fmt.Sprintf("table-%s-%d.txt", tt.name, width), out.Bytes())
				for line := range strings.Lines(out.String()) {
					if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
						t.Errorf("line of %d characters: %q", n, line)
					}
				}
			})
		}
	}
}

func TestDuration(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0 s", 0.1: "0.100 s", 0.0999: "100 ms", 0.01534: "15 ms", 0.0015: "1.5 ms", 0.000123: "0.12 ms", 78.91: "78.9 s", 113: "113 s",
	} {
		check(t, fmt.Sprint(x), duration(x), want)
	}
	check(t, "one unit", duration3(0.0067, 0.0276, 0.0775), "6.7/28/78 ms")
	check(t, "two units", duration3(0.0067, 0.0276, 0.775), "6.7 ms/28 ms/0.775 s")
	check(t, "zeros", duration3(0, 0, 1.5), "0/0/1.50 s")
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 3: "3", 1402: "1,402", -1402: "-1,402", 123456.7: "123,457", 74.23: "74.2", 1.3064: "1.31", 0.01234: "0.0123", 999.6: "1,000",
	} {
		check(t, fmt.Sprint(x), number(x), want)
	}
}
