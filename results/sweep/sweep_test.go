package sweep

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// open is a figure that is a lower bound; missing is one that was not measured.
type (
	open    float64
	missing struct{}
)

// figure makes the figure of a metric from what each run says: a number, an open one, or nothing.
func figure(name string, runs ...any) results.Figure {
	f := results.Figure{Metric: metric(name)}
	var complete []float64
	for _, run := range runs {
		switch x := run.(type) {
		case float64:
			complete = append(complete, x)
			f.Runs = append(f.Runs, &results.Observation{Value: x})
		case open:
			f.OverSeeds.Censored++
			f.Runs = append(f.Runs, &results.Observation{Value: float64(x), Censored: true})
		case missing:
			f.Runs = append(f.Runs, nil)
		}
	}
	f.OverSeeds.Description = results.Describe(complete)
	if len(complete) > 0 {
		f.OverSeeds.Estimates = &results.Estimates{Median: stats.Quantile(complete, 0.5)}
	}
	return f
}

// arm makes an arm of that many settled runs.
func arm(name string, runs int, figures ...results.Figure) results.Arm {
	a := results.Arm{Name: name, Figures: figures}
	for i := range runs {
		a.Runs = append(a.Runs, results.RunInfo{Seed: uint64(i) + 1, Engine: "live", End: "settled", Conclusive: true, Settled: true})
	}
	return a
}

var plan = Plan{
	Name: "delay-nodes", Description: "What a sweep is.\nAnd <how> long it takes.",
	Parameters: []Parameter{{"mirrorDelay", []string{"1s", "20s"}}, {"nodes", []string{"5", "9", "17"}}},
	Arms:       []string{"ungated", "gated"}, Seeds: []uint64{1, 2, 3},
	Show: []string{
		results.MetricNewNodesWithRejection, results.MetricRejectedPods, results.MetricClosedFormObserved, results.MetricExposure,
		results.MetricHoldBeyondReady, results.MetricStormRatePerNode,
	},
}

// twoParameters has what can become of a case: complete, one with a lower bound, one that has fewer runs, one without any.
func twoParameters() *Sweep {
	gated := func(hold ...any) results.Arm {
		return arm("gated", 3, figure(results.MetricNewNodesWithRejection, 0.0, 0.0, 0.0), figure(results.MetricRejectedPods, 0.0, 0.0, 0.0),
			figure(results.MetricExposure, 0.0, 0.0, 0.0), figure(results.MetricHoldBeyondReady, hold...))
	}
	ungated := func(nodes, rejected float64, exposure ...any) results.Arm {
		return arm("ungated", 3, figure(results.MetricNewNodesWithRejection, nodes, nodes, nodes),
			figure(results.MetricRejectedPods, rejected, rejected+120, rejected+7), figure(results.MetricClosedFormObserved, nodes, nodes, nodes),
			figure(results.MetricExposure, exposure...), figure(results.MetricStormRatePerNode, 3.25, missing{}, 3.5))
	}
	few := arm("ungated", 1, figure(results.MetricNewNodesWithRejection, 14.0), figure(results.MetricRejectedPods, 3456.0))
	few.Runs[0].Settled, few.Runs[0].End, few.Runs[0].Engine = false, "time-limit", "cluster"
	var cases []Case
	for i, arms := range [][]results.Arm{
		{ungated(2, 30, 0.81, 0.92, 0.85), gated(3.1, 3.4, 3.3)},
		{ungated(6, 90, 0.8, 0.9, 0.9), gated(3.1, open(60), 3.3)},
		{ungated(14, 200, 0.8, 0.9, 0.9), gated(3.1, 3.4, 3.3)},
		{ungated(2, 600, 19.8, 20.1, 20.3), gated(22.1, 23.4, 22.3)},
		{few},
		nil,
	} {
		labels := []string{plan.Parameters[0].Values[i/3], plan.Parameters[1].Values[i%3]}
		var summary *results.Summary
		if arms != nil {
			summary = &results.Summary{Arms: arms}
		}
		cases = append(cases, plan.NewCase(labels, "cases/mirrorDelay="+labels[0]+",nodes="+labels[1], summary))
	}
	return New(plan, cases...)
}

// oneParameter is a sweep over one parameter, threeParameters one over three with long names.
func oneParameter() *Sweep {
	p := Plan{Name: "arrival", Parameters: []Parameter{{"arrival", []string{"at once", "random, 4 s apart"}}}, Arms: []string{"ungated"}, Seeds: []uint64{1},
		Show: []string{results.MetricRejectedPods, results.MetricHoldBeyondReady}}
	return New(p,
		p.NewCase([]string{"at once"}, "cases/a", &results.Summary{Arms: []results.Arm{arm("ungated", 1, figure(results.MetricRejectedPods, 3.0))}}),
		p.NewCase([]string{"random, 4 s apart"}, "cases/b", &results.Summary{Arms: []results.Arm{arm("ungated", 1, figure(results.MetricRejectedPods, 4.0))}}))
}

func threeParameters() *Sweep {
	p := Plan{Name: "three", Arms: []string{"without-a-readiness-gate", "gated"}, Seeds: []uint64{1, 2}, Show: []string{results.MetricRejectedPods, results.MetricExposure},
		Parameters: []Parameter{
			{"a", []string{"1", "2"}}, {"aParameterOfTheLongestNamePossi", []string{"a value of forty characters, no less, yes", "y"}}, {"c", []string{"x/y", "z"}},
		}}
	var cases []Case
	for n, a := range p.Parameters[0].Values {
		for _, b := range p.Parameters[1].Values {
			for i, c := range p.Parameters[2].Values {
				values := []any{float64(n * (1 - i)), float64(i) + 1234567} // with c=z all medians are the same
				cases = append(cases, p.NewCase([]string{a, b, c}, "cases/"+a+b[:1]+c[:1],
					&results.Summary{Arms: []results.Arm{arm("without-a-readiness-gate", 2, figure(results.MetricRejectedPods, values...))}}))
			}
		}
	}
	return New(p, cases...)
}

func TestTable(t *testing.T) {
	for name, s := range map[string]*Sweep{"one": oneParameter(), "two": twoParameters(), "three": threeParameters()} {
		var out bytes.Buffer
		if err := s.Table(&out); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", out.Bytes())
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > results.TableWidth {
				t.Errorf("%s: a line of %d characters: %s", name, n, line)
			}
		}
	}
}

func TestCSV(t *testing.T) {
	var out bytes.Buffer
	if err := twoParameters().CSV(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "two.csv", out.Bytes())
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(lines) < 30 {
		t.Errorf("read back %d lines (%v)", len(lines), err)
	}
}

// TestFinished: the counts on which exit codes depend.
func TestFinished(t *testing.T) {
	finished, planned, notSettled := twoParameters().Finished()
	if finished != 25 || planned != 36 || notSettled != 1 {
		t.Errorf("finished %d of %d, %d not settled", finished, planned, notSettled)
	}
	var codes []string
	for _, w := range twoParameters().Warnings {
		codes = append(codes, w.Code)
	}
	if diff := cmp.Diff([]string{WarnUnfinished, results.WarnNotSettled, results.WarnDiffer}, codes); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestMiddle: a lower bound among the figures makes the median one; absent figures do not count.
func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		runs      []any
		want      *results.Observation
		low, high float64
	}{
		{[]any{missing{}}, nil, 0, 0},
		{[]any{3.0, missing{}, 1.0}, &results.Observation{Value: 1}, 1, 3},
		{[]any{3.0, open(9), 1.0}, &results.Observation{Value: 3, Censored: true}, 1, 9},
	} {
		from := figure(results.MetricHold, c.runs...)
		f := Figure{from.Metric, from.OverSeeds, from.Runs}
		middle, low, high := f.Middle()
		if diff := cmp.Diff(c.want, middle); diff != "" || low != c.low || high != c.high {
			t.Errorf("%v: from %v to %v, median (-want +got):\n%s", c.runs, low, high, diff)
		}
	}
}

// TestPlots: which plots there are, and that each value is in the cell of its case.
func TestPlots(t *testing.T) {
	for _, c := range []struct {
		sweep *Sweep
		want  []string
	}{
		{oneParameter(), []string{"rejectedPods.svg"}},
		{twoParameters(), []string{
			"newNodesWithRejection,ungated.svg", "rejectedPods,ungated.svg", "closedFormObservedRejections,ungated.svg",
			"exposureSeconds,ungated.svg", "holdBeyondReadySeconds,gated.svg",
		}},
		{threeParameters(), []string{"rejectedPods,without-a-readiness-gate,c=x-y.svg"}},
	} {
		plots, err := c.sweep.Plots()
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, p := range plots {
			files = append(files, p.File)
		}
		if diff := cmp.Diff(c.want, files); diff != "" {
			t.Errorf("plots of %s (-want +got):\n%s", c.sweep.Name, diff)
		}
	}
	plots, err := twoParameters().Plots()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"37", "97", "207", "607"} {
		if !strings.Contains(string(plots[1].document), ">"+value+"<") {
			t.Errorf("%s does not show %s", plots[1].Title, value)
		}
	}
}

// TestWrite: all files are there, the JSON reads back, and the page loads nothing and escapes what is not its own.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	s := twoParameters()
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var again Sweep
	if err := json.Unmarshal(read(JSONFile), &again); err != nil {
		t.Fatal(err)
	}
	if again.Name != s.Name || len(again.Cases) != 6 || again.Version != Version || *again.Cases[0].Arms[0].Figure(results.MetricRejectedPods).OverSeeds.Median != 37 {
		t.Errorf("read back: %+v", again.Plan)
	}
	page := string(read(HTMLFile))
	if n := strings.Count(page, "<figure>"); n != 5 {
		t.Errorf("the page has %d figures", n)
	}
	if !strings.Contains(page, "And &lt;how&gt; long") || strings.Contains(page, "src=") || strings.Contains(page, "<script") {
		t.Error("the page does not escape the description, or loads something")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) != 9 || !slices.Contains(names, "rejectedPods,ungated.svg") || !slices.Contains(names, CSVFile) || !slices.Contains(names, TableFile) {
		t.Errorf("files are %q", names)
	}
}
