package report

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
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/mirrorgap/mirrorgap/results"
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
				if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" {
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

func page(t *testing.T, r *Report) []byte {
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
		text := visible(t, page(t, r))
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
	text := visible(t, page(t, build(t, open(t, dir), Source{})))
	if strings.Contains(text, "Modelled:") || !strings.Contains(text, "Recorded from a cluster") {
		t.Errorf("the page of a recorded cluster says\n%s", text)
	}
	if text := visible(t, page(t, build(t, folderOf(t, "ungated"), Source{}))); !strings.Contains(text, "Modelled:") {
		t.Error("the page of a simulation does not say what is modelled")
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
	r := build(t, open(t, dir), Source{Experiment: hostile, Description: hostile, ControlPlane: hostile})
	visible(t, page(t, r))
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
		nodes[i] = &results.Node{}
	}
	nodes[1234].Rejected = 9
	nodes[4321].Hold = &results.Hold{Total: results.Span{Duration: time.Hour}}
	chosen := choose(nodes)
	if len(chosen) > maxRows || len(chosen) < maxRows-2 {
		t.Errorf("chose %d", len(chosen))
	}
	for _, must := range []int{0, 1234, 4321} {
		if !has(chosen, nodes[must]) {
			t.Errorf("node %d is not among them", must)
		}
	}
	if all := choose(nodes[:maxRows]); len(all) != maxRows {
		t.Errorf("chose %d of %d", len(all), maxRows)
	}
}

func has(nodes []*results.Node, one *results.Node) bool {
	for _, n := range nodes {
		if n == one {
			return true
		}
	}
	return false
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
