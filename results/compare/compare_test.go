package compare

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/perf/benchfmt"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// summaryOf are runs of traces of package results' tests, one a seed; edit changes the trace of each.
func summaryOf(t *testing.T, seeds int, edit func(seed int, trace []byte) []byte, names ...string) *results.Summary {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("..", "testdata", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for seed := range seeds {
			trace := bytes.Replace(data, []byte(`"seed":1,`), []byte(`"seed":`+string(rune('1'+seed))+`,`), 1)
			trace = bytes.Replace(trace, []byte("2026-01-02"), []byte(map[string]string{"ungated": "2026-01-01", "gated": "2026-01-02"}[name]), 1)
			path := filepath.Join(dir, name, "seed-"+string(rune('1'+seed)), results.TraceFile)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, edit(seed, trace), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder, err := results.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := folder.Summary()
	if err != nil {
		t.Fatal(err)
	}
	return summary
}

func same(_ int, trace []byte) []byte { return trace }

// later has the last mirror pods come one second later, with every seed, and on another version of Kubernetes.
func later(_ int, trace []byte) []byte {
	trace = bytes.ReplaceAll(trace, []byte(`"t":12000000000,"kind":"PodCreated"`), []byte(`"t":12050000000,"kind":"PodCreated"`))
	return bytes.Replace(trace, []byte("v1.37.2"), []byte("v1.38.0"), 1)
}

func compare(t *testing.T, a, b *results.Summary) *Result {
	t.Helper()
	r, err := Summaries("before", "after", a, b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run go test with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs from what was written (-file +now):\n%s", path, diff)
	}
}

func TestTable(t *testing.T) {
	for name, r := range map[string]*Result{
		"pairs.txt":    compare(t, summaryOf(t, 6, same, "ungated", "gated"), summaryOf(t, 6, later, "ungated", "gated")),
		"too-few.txt":  compare(t, summaryOf(t, 2, same, "ungated", "gated"), summaryOf(t, 2, later, "ungated")),
		"one-each.txt": compare(t, summaryOf(t, 1, same, "ungated"), summaryOf(t, 1, later, "ungated")),
	} {
		var out bytes.Buffer
		if err := r.Table(&out); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.Bytes())
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > Width {
				t.Errorf("%s: longer than %d columns: %q", name, Width, line)
			}
		}
	}
}

func TestPairsAreFoundBySeed(t *testing.T) {
	r := compare(t, summaryOf(t, 6, same, "ungated"), summaryOf(t, 6, later, "ungated"))
	for _, m := range r.Arms[0].Metrics {
		switch m.Name {
		case results.MetricExposure:
			if m.Comparison.Shown() { // the median node's exposure is the same: 6 s of n1 and n2
				t.Errorf("exposure: %+v", m.Comparison)
			}
		case results.MetricLastMirror:
			if !m.Comparison.Shown() || *m.Comparison.P != 2.0/64 || *m.Comparison.Difference.Value < 0.0499 {
				t.Errorf("last mirror, 0.05 s later in six of six pairs: %+v", m.Comparison)
			}
		}
	}
	if unpaired := compare(t, summaryOf(t, 1, same, "ungated"), summaryOf(t, 1, later, "ungated")); unpaired.Arms[0].Pairs != 1 {
		t.Errorf("one pair: got %d", unpaired.Arms[0].Pairs)
	}
}

// byHand is an arm of a run a seed with these figures; +Inf stands for a lower bound.
func byHand(machine trace.Machine, figures ...results.Figure) *results.Summary {
	arm := results.Arm{Name: "ungated", Figures: figures}
	for seed := range figures[0].Runs {
		arm.Runs = append(arm.Runs, results.RunInfo{Seed: uint64(seed), Machine: machine, Conclusive: true})
	}
	return &results.Summary{Experiment: "by-hand", Arms: []results.Arm{arm}}
}

func figure(name, key, unit string, values ...float64) results.Figure {
	f := results.Figure{Metric: results.Metric{Name: name, Key: key, Unit: unit}}
	for _, v := range values {
		o := &results.Observation{Value: v}
		if math.IsInf(v, 1) {
			o = &results.Observation{Value: 60, Censored: true}
		}
		f.Runs = append(f.Runs, o)
	}
	return f
}

// TestWhatIsNotPlain: lower bounds, zeros, what only one side has, few pairs that differ, and differences of many digits.
func TestWhatIsNotPlain(t *testing.T) {
	open := math.Inf(1)
	a := byHand(trace.Machine{OS: "linux", Arch: "amd64", CPUs: 2},
		figure(results.MetricHold, "", "s", 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5),
		figure(results.MetricExposure, "", "s", 5, 5, 5, 5, 5, 5, 5, 5),
		figure(results.MetricSchedulerUse, "", "s", 1, 2, 3, 4, 5, 6, 7, 8),
		figure(results.MetricRejectedPods, "", "pods", 0, 0, 0, 0, 0, 0, 0, 0),
		figure(results.MetricRejectedPodsByReason, "OutOfmemory", "pods", 1, 2, 3, 4, 5, 6, 7, 8),
		figure(results.MetricFailed, "", "pods", 3, 3, 3, 3, 3, 3, 3, 3),
		figure(results.MetricIdle, "", "mCPU·s", 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2),
		figure(results.MetricExtraPods, "", "pods", 0, 0, 0, 0, 0, 0, 0, 0))
	b := byHand(trace.Machine{OS: "linux", Arch: "arm64", CPUs: 4},
		figure(results.MetricHold, "", "s", 6.1, 6.7, 7.3, 7.8, 8.1, 8.7, open, open),
		figure(results.MetricExposure, "", "s", 5, 5, 5, 5, 5, 5, 5, open),
		figure(results.MetricSchedulerUse, "", "s", 2, 1, 4, 3, 6, 5, 8, 7),
		figure(results.MetricRejectedPods, "", "pods", 4, 5, 6, 7, 8, 9, 10, 11),
		figure(results.MetricRejectedPodsByCause, "hidden-static-pod", "pods", 1, 2, 3, 4, 5, 6, 7, 8),
		figure(results.MetricFailed, "", "pods", 3, 3, 3, 3, 3, 3, 4, 5),
		figure(results.MetricIdle, "", "mCPU·s", 5000, 6000, 7000, 8000, 9000, 10000, 11000, 12000),
		figure(results.MetricExtraPods, "", "pods", 0, 0, 0, 0, 0, 0, 0, 0))
	var out bytes.Buffer
	if err := compare(t, a, b).Table(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "not-plain.txt", out.Bytes())
}

// TestInconclusiveRunsTakeNoPart: a pair of which one run was interrupted is none.
func TestInconclusiveRunsTakeNoPart(t *testing.T) {
	a := byHand(trace.Machine{}, figure(results.MetricHold, "", "s", 1, 2, 3, 4, 5, 6, 7))
	b := byHand(trace.Machine{}, figure(results.MetricHold, "", "s", 2, 3.1, 4.2, 5.3, 6.4, 7.5, 0))
	b.Arms[0].Runs[6].Conclusive = false
	arm := compare(t, a, b).Arms[0]
	if m := arm.Metrics[0]; arm.Pairs != 6 || arm.RunsA != 7 || arm.RunsB != 6 || m.B.N != 6 || m.Comparison.Difference.N != 6 || *m.Comparison.P != 2.0/64 {
		t.Errorf("got %+v", arm)
	}
	for i := range b.Arms[0].Runs {
		b.Arms[0].Runs[i].Conclusive = false
	}
	r := compare(t, a, b)
	if r.Arms[0].Metrics[0].Comparison != nil {
		t.Errorf("nothing is left to compare, got %+v", r.Arms[0])
	}
	var out bytes.Buffer
	if err := r.Table(&out); err != nil || !strings.Contains(out.String(), "not compared: one side has no run that may be judged") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestRefuses(t *testing.T) {
	a := summaryOf(t, 1, same, "ungated")
	other := summaryOf(t, 1, func(_ int, trace []byte) []byte { return bytes.Replace(trace, []byte("by-hand"), []byte("another"), 1) }, "ungated")
	if _, err := Summaries("a", "b", a, other); !errors.As(err, new(*results.InputError)) || !strings.Contains(err.Error(), `"by-hand" and "another"`) {
		t.Errorf("another experiment: got %v", err)
	}
	if _, err := Summaries("a", "b", a, summaryOf(t, 1, same, "gated")); !errors.As(err, new(*results.InputError)) {
		t.Errorf("no arm in common: got %v", err)
	}
}

// TestBenchmarkFormat: what reads benchmarks reads it, and finds the figures.
func TestBenchmarkFormat(t *testing.T) {
	var out bytes.Buffer
	if err := WriteBenchmark(&out, summaryOf(t, 3, same, "ungated", "gated")); err != nil {
		t.Fatal(err)
	}
	golden(t, "benchmark.txt", out.Bytes())
	reader := benchfmt.NewReader(&out, "benchmark.txt")
	runs := map[string]int{}
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			runs[string(r.Name)]++
			if v, ok := r.Value(results.MetricRejectedPods); !ok || (v == 5) != strings.Contains(string(r.Name), "arm=ungated") {
				t.Errorf("%s: rejected pods %v %v", r.Name, v, ok)
			}
			if got := r.GetConfig("kubernetes"); got != "v1.37.2" {
				t.Errorf("kubernetes: %q", got)
			}
		case *benchfmt.SyntaxError:
			t.Error(r)
		}
	}
	if runs["Mirrorgap/arm=ungated"] != 3 || runs["Mirrorgap/arm=gated"] != 3 {
		t.Errorf("read %v", runs)
	}
}

// TestBenchmarkConfiguration is that of each run, where they differ.
func TestBenchmarkConfiguration(t *testing.T) {
	s := byHand(trace.Machine{}, figure(results.MetricHold, "", "s", 5, 6, math.Inf(1), 1))
	s.Arms[0].Name = "two words"
	for i, version := range []string{"v1.37.2", "v1.38.0", "v1.38.0", "v1.38.0"} {
		s.Arms[0].Runs[i].Versions = map[string]string{"kubernetes": version}
	}
	s.Arms[0].Runs[3].Conclusive = false
	var out bytes.Buffer
	if err := WriteBenchmark(&out, s); err != nil {
		t.Fatal(err)
	}
	want := `experiment: by-hand
kubernetes: v1.37.2

BenchmarkMirrorgap/arm=two_words 1 5 holdSeconds

kubernetes: v1.38.0

BenchmarkMirrorgap/arm=two_words 1 6 holdSeconds
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("a run with a lower bound only has no line, nor has one that was cut short (-want +got):\n%s", diff)
	}
}
