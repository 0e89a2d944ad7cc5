package compare

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/perf/benchfmt"

	"github.com/mirrorgap/mirrorgap/results"
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
