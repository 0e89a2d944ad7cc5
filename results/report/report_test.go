package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/agreement"
	"github.com/mirrorgap/mirrorgap/results/plot"
	"github.com/mirrorgap/mirrorgap/results/verdict"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// folderOf is a results folder with traces of package results' tests.
func folderOf(t *testing.T, traces ...string) *results.Folder {
	t.Helper()
	dir := t.TempDir()
	for _, name := range traces {
		data, err := os.ReadFile(filepath.Join("..", "testdata", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name, results.TraceFile), data)
	}
	return open(t, dir)
}

func open(t *testing.T, dir string) *results.Folder {
	t.Helper()
	folder, err := results.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func build(t *testing.T, folder *results.Folder, source Source) *Report {
	t.Helper()
	r, err := Build(folder, source)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// plan asks that the gate closes the race.
func plan() *verdict.Plan {
	return &verdict.Plan{
		Arms: []verdict.Arm{{Name: "ungated"}, {Name: "gated", Gated: true}}, Seeds: []uint64{1}, Engine: "live",
		Thresholds: []verdict.Threshold{{
			Metric: results.MetricNewNodesWithRejection, Arm: "gated", Statistic: verdict.Max, Operator: verdict.LessOrEqual, Value: new(0.0),
		}},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		writeFile(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run go test with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs from what was written (-file +now):\n%s", path, diff)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	r := build(t, folderOf(t, "ungated", "gated"), Source{Experiment: "apiVersion: v1\n", Description: "By hand.", Plan: plan()})
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{MarkdownFile, FiguresFile, SeriesFile, verdict.File, verdict.JUnitFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, data)
	}
	page, err := os.ReadFile(filepath.Join(dir, HTMLFile))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", []byte(visible(t, page)))
	for _, name := range []string{results.SummaryFile, results.TableFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := r.Write(filepath.Join(dir, "gone")); err == nil {
		t.Error("a folder that is not there: got no error")
	}
}

// visible is the text of a page, an element a line; of a plot its title. It also checks that the page loads nothing and runs nothing.
func visible(t *testing.T, page []byte) string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode {
			for _, a := range n.Attr {
				link := n.Data == "a" && a.Val == agreement.Page // which loads nothing until somebody follows it
				if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" && !link {
					t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
				}
			}
			if slices.Contains(n.Attr, html.Attribute{Key: "class", Val: "plot-narrow"}) {
				return // the plot before it, for phones
			}
			switch n.Data {
			case "style":
				return
			case "script", "link", "iframe", "img", "object":
				t.Errorf("the page has a <%s>", n.Data)
			case "svg":
				for _, a := range n.Attr {
					if a.Key == "aria-label" {
						out.WriteString("[plot: " + a.Val + "]\n")
					}
				}
				return
			}
		}
		if text := strings.TrimSpace(n.Data); n.Type == html.TextNode && text != "" {
			out.WriteString(text + "\n")
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return out.String()
}

func pageOf(t *testing.T, r *Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := r.HTML(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestInterruptedIsNeverAResult: a folder of a run that was cut short says so before anything else.
func TestInterruptedIsNeverAResult(t *testing.T) {
	for _, name := range []string{"interrupted", "truncated"} {
		r := build(t, folderOf(t, name), Source{})
		text := visible(t, pageOf(t, r))
		banner, answer := strings.Index(text, "Inconclusive."), strings.Index(text, r.Summary.Sentence())
		if banner < 0 || banner > answer {
			t.Errorf("%s: the page says %q at %d, and its answer at %d", name, "Inconclusive.", banner, answer)
		}
		var markdown bytes.Buffer
		if err := r.Markdown(&markdown); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(markdown.String(), "**Inconclusive") {
			t.Errorf("%s: the text does not say that it is inconclusive", name)
		}
	}
}

// TestARecordedClusterIsNotCalledSimulated, and a simulated one is.
func TestARecordedClusterIsNotCalledSimulated(t *testing.T) {
	data, err := os.ReadFile("../testdata/api-only.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, results.TraceFile), bytes.Replace(data, []byte(`"engine":"live"`), []byte(`"engine":"cluster"`), 1))
	text := visible(t, pageOf(t, build(t, open(t, dir), Source{})))
	if strings.Contains(text, "Modelled:") || !strings.Contains(text, "Recorded from a cluster") {
		t.Errorf("the page of a recorded cluster says\n%s", text)
	}
	if text := visible(t, pageOf(t, build(t, folderOf(t, "ungated"), Source{}))); !strings.Contains(text, "Modelled:") {
		t.Error("the page of a simulation does not say what is modelled")
	}
}

// TestKubelets: a report says whose kubelets ran, and how far a modelled one can be trusted.
func TestKubelets(t *testing.T) {
	trust := "held against the real kubelet"
	for name, c := range map[string]struct {
		source        Source
		says, saysNot []string
	}{
		"all modelled": {Source{ModelGroups: []string{"pool"}}, []string{"Modelled:", trust, agreement.Page, "of modelled kubelets"}, []string{"the kubelets of the node groups"}},
		"all real":     {Source{RealGroups: []string{"pool"}}, []string{"with real kubelets", "the kubelets of the node groups pool"}, []string{"Modelled:", trust, "of modelled kubelets"}},
		"both": {Source{ModelGroups: []string{"m1", "m2"}, RealGroups: []string{"r"}},
			[]string{"with real and with modelled kubelets", "the kubelets of the node groups r", "on nodes of the groups m1, m2", trust}, nil},
	} {
		r := build(t, folderOf(t, "ungated"), c.source)
		var markdown bytes.Buffer
		if err := r.Markdown(&markdown); err != nil {
			t.Fatal(err)
		}
		for what, text := range map[string]string{"page": visible(t, pageOf(t, r)), "text": strings.ReplaceAll(markdown.String(), "Held against", "held against")} {
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("%s: the %s does not say %q", name, what, want)
				}
			}
			for _, unwanted := range c.saysNot {
				if strings.Contains(text, unwanted) {
					t.Errorf("%s: the %s says %q", name, what, unwanted)
				}
			}
		}
	}
}

// TestHostileNames: names of experiments, arms and nodes come from files of others.
func TestHostileNames(t *testing.T) {
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	data, err := os.ReadFile("../testdata/ungated.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"by-hand"`, `"ungated"`, `"n1"`, `"v1.37.2"`} {
		data = bytes.ReplaceAll(data, []byte(name), quoted)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, results.TraceFile), data)
	r := build(t, open(t, dir), Source{Experiment: hostile, Description: hostile, Settings: hostile})
	visible(t, pageOf(t, r))
	var markdown bytes.Buffer
	if err := r.Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	if before, _, _ := strings.Cut(markdown.String(), "~~~yaml"); strings.Contains(before, "<script") || strings.Contains(before, "<img") {
		t.Errorf("the text has markup of others:\n%s", before)
	}
}

// TestChoose: a timeline has at most maxRows rows, evenly chosen, and the extremes are among them.
func TestChoose(t *testing.T) {
	nodes := make([]*results.Node, 5000)
	for i := range nodes {
		nodes[i] = &results.Node{Schedulable: new(time.Second)}
	}
	nodes[1234].Rejected = 9
	nodes[2345].Exposure = &results.Span{Duration: time.Minute}
	nodes[4321].Hold = &results.Hold{Total: results.Span{Duration: time.Hour}}
	nodes[3456].Schedulable = nil
	nodes[4567].Hold = &results.Hold{OutOfOrder: true}
	chosen := choose(nodes)
	if len(chosen) > maxRows || len(chosen) < maxRows-len(extremes) {
		t.Errorf("chose %d", len(chosen))
	}
	for _, must := range []int{0, 1234, 2345, 3456, 4321, 4567} {
		if !slices.Contains(chosen, nodes[must]) {
			t.Errorf("node %d is not among them", must)
		}
	}
	if all := choose(nodes[:maxRows]); len(all) != maxRows {
		t.Errorf("chose %d of %d", len(all), maxRows)
	}
}

// TestMissingRuns: a folder that lacks runs of its experiment is no result, though each run that is there has settled.
func TestMissingRuns(t *testing.T) {
	r := build(t, folderOf(t, "ungated"), Source{Arms: []string{"ungated", "gated"}, Seeds: []uint64{1, 2}})
	doubts := view{r}.Doubts()
	want := []string{"3 of the experiment's 4 runs are not there: ungated, seed 2; gated, seed 1; gated, seed 2."}
	if diff := cmp.Diff(want, doubts); diff != "" {
		t.Error(diff)
	}
	if text := visible(t, pageOf(t, r)); !strings.HasPrefix(text, "inconclusive: ") {
		t.Errorf("the title of the page is %q", text[:40])
	}
	whole := build(t, folderOf(t, "ungated", "gated"), Source{Arms: []string{"ungated", "gated"}, Seeds: []uint64{1}})
	if doubts := (view{whole}).Doubts(); len(doubts) > 0 {
		t.Errorf("a whole folder: %q", doubts)
	}
}

// seeds is a folder with the same trace under several seeds, and that of the last one cut after a number of lines.
func seeds(t *testing.T, name string, n, lines int) *results.Folder {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for seed := range n {
		seeded := bytes.Replace(data, []byte(`"seed":1`), fmt.Appendf(nil, `"seed":%d`, seed+1), 1)
		if seed == n-1 {
			all := bytes.SplitAfter(seeded, []byte("\n"))
			seeded = bytes.Join(all[:min(lines, len(all))], nil)
		}
		writeFile(t, filepath.Join(dir, name, fmt.Sprintf("seed-%d", seed+1), results.TraceFile), seeded)
	}
	return open(t, dir)
}

// TestEnvelope: the band goes from the lowest to the highest of all runs.
func TestEnvelope(t *testing.T) {
	whole := build(t, seeds(t, "ungated", 2, 1000), Source{})
	cut := build(t, seeds(t, "ungated", 2, 40), Source{})
	for name, tt := range map[string]struct {
		report *Report
		low    float64
	}{"equal runs": {whole, 5}, "one that was cut short": {cut, cut.Summary.Arms[0].Figure(results.MetricRejectedPods, "").Runs[1].Value}} {
		c := tt.report.shown[0].curve(0, quantity{results.SeriesRejected, 1, true})
		last := c.Points[len(c.Points)-1]
		if last.Y != 5 || *last.High != 5 || *last.Low != tt.low || c.Last != "5" {
			t.Errorf("%s: ends at %v (%v to %v), labelled %q", name, last.Y, *last.Low, *last.High, c.Last)
		}
	}
}

func TestAt(t *testing.T) {
	steps := []plot.Point{{X: 1, Y: 1}, {X: 2, Y: 2}, {X: 2, Y: 3}, {X: 5, Y: 0}}
	for x, want := range map[float64]float64{1: 1, 1.9: 1, 2: 3, 4: 3, 9: 0} {
		if got, ok := at(steps, x); !ok || got.Y != want {
			t.Errorf("at %v: got %v, %t, want %v", x, got.Y, ok, want)
		}
	}
	if _, ok := at(steps, 0.5); ok {
		t.Error("there is a value before the first step")
	}
}

// TestShareStopsWhereNothingIsKnown: the curve of an arm with open times does not go on to the longest time of another arm.
func TestShareStopsWhereNothingIsKnown(t *testing.T) {
	r := build(t, folderOf(t, "exposed-for-ever"), Source{})
	c, longest, ok := r.share(0, results.MetricExposure)
	last := c.Points[len(c.Points)-1]
	if !ok || len(c.Ticks) == 0 || last.X != longest || last.Y == 1 {
		t.Errorf("got %+v up to %v, %t", c, longest, ok)
	}
	if _, _, ok := r.share(0, results.MetricHold); ok {
		t.Error("an arm without a gate has a curve of holds")
	}
}

func TestFence(t *testing.T) {
	for text, want := range map[string]string{"": "~~~", "a\n~~\n": "~~~", "a\n~~~~ x\n~": "~~~~~"} {
		if got := fence(text); got != want {
			t.Errorf("around %q: got %s, want %s", text, got, want)
		}
	}
}

func TestFiguresReadBack(t *testing.T) {
	var out bytes.Buffer
	if err := build(t, folderOf(t, "ungated", "gated"), Source{}).writeFigures(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row[0] == "gated" && row[1] == results.MetricNewNodesWithRejection && row[5] == "rate" {
			if row[6] != "0" || row[7] != "0" || row[8] != "0.776393202" || row[9] != "2" {
				t.Errorf("0 of 2 new nodes: got %v", row)
			}
			return
		}
	}
	t.Error("no rate of new nodes with a rejection")
}

func TestBuildRefuses(t *testing.T) {
	bad := plan()
	bad.Thresholds[0].Metric = "noSuchMetric"
	if _, err := Build(folderOf(t, "ungated", "gated"), Source{Plan: bad}); err == nil {
		t.Error("a plan with an unknown metric: got no error")
	}
	b := trace.Header{Schema: trace.Schema, Experiment: "other"}
	line, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a", results.TraceFile), append(line, '\n'))
	writeFile(t, filepath.Join(dir, "b", results.TraceFile), append(line, '\n'))
	if _, err := Build(open(t, dir), Source{}); err == nil {
		t.Error("one run twice: got no error")
	}
}
