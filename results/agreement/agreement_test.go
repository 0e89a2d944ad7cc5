package agreement

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/verdict"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

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

var plan = Plan{Start: Pair{"start-model", "start-real"}, Storm: Pair{"storm-model", "storm-real"}, Seeds: []uint64{1, 2, 3, 4, 5, 6}}

// behaviour is what the kubelets of one side are like. Times are seconds.
type behaviour struct {
	ready, mirror, failed float64
	// loop is the time that a rejection and its replacement take.
	loop float64
}

var usual = behaviour{ready: 0.3, mirror: 0.03, failed: 0.06, loop: 0.25}

func at(seconds float64) *time.Duration { return new(time.Duration(seconds * float64(time.Second))) }

// runOf is a run with nodes of both sides: each of the start groups and a few of the storm groups, by their behaviour with some variation.
func runOf(seed uint64, each int, modelled, ofReal behaviour) *results.Run {
	draws := rand.New(rand.NewPCG(seed, 0))
	run := &results.Run{
		Header: trace.Header{
			Schema: trace.Schema, Experiment: "by-hand", Arm: "ungated", Seed: seed, Engine: "live", Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Versions: map[string]string{"kubernetes": "v1.37.2"}, Machine: trace.Machine{OS: "linux", Arch: "amd64", CPUs: 2},
		},
		End: trace.EndSettled, Wall: 3 * time.Minute, KubeletEvidence: true,
	}
	about := func(x float64) float64 { return x * (0.8 + 0.4*draws.Float64()) }
	reject := func(n *results.Node, bound, failed float64) {
		run.Pods = append(run.Pods, &results.Pod{
			Name: fmt.Sprintf("default/pod-%d", len(run.Pods)), UID: fmt.Sprint(len(run.Pods)), Role: results.RoleWorkload, Node: n.Name, NodeUID: n.UID,
			Created: at(bound), Bound: at(bound), Ended: at(failed), State: results.StateFailed,
			Rejection: &results.Rejection{At: *at(bound), Reason: "OutOfcpu", SeenByKubelet: true, SeenByAPI: true},
		})
	}
	mirror := func(n *results.Node, pod string, created float64) {
		run.Pods = append(run.Pods, &results.Pod{Name: pod + "-" + n.Name, UID: pod + n.Name, Role: results.RoleMirror, Node: n.Name, NodeUID: n.UID, Created: at(created)})
		n.MirrorsVisible = at(created)
	}
	for side, b := range []behaviour{modelled, ofReal} {
		for i := range each {
			registered := float64(i)
			n := newNode(plan.Start.group(side), i, registered, registered+about(b.ready))
			mirror(n, "kube-system/proxy", registered+about(b.mirror))
			reject(n, n.Ready.Seconds(), registered+9.9)
			run.Nodes = append(run.Nodes, n)
		}
		for i := range 3 {
			n := newNode(plan.Storm.group(side), i, 60, 60+about(b.ready))
			for bound := 75.0; bound < 120; bound += about(b.loop) {
				reject(n, bound, bound+about(b.failed))
			}
			mirror(n, "kube-system/agent", 130)
			run.Nodes = append(run.Nodes, n)
		}
	}
	return run
}

func newNode(group string, i int, registered, ready float64) *results.Node {
	name := fmt.Sprintf("%s-%d", group, i)
	return &results.Node{Name: name, UID: name + "-uid", Group: group, Registered: *at(registered), Ready: at(ready)}
}

func sequence(runs ...*results.Run) iter.Seq2[*results.Run, error] {
	return func(yield func(*results.Run, error) bool) {
		for _, run := range runs {
			if !yield(run, nil) {
				return
			}
		}
	}
}

func six(modelled, ofReal behaviour) []*results.Run {
	var runs []*results.Run
	for _, seed := range plan.Seeds {
		runs = append(runs, runOf(seed, 20, modelled, ofReal))
	}
	return runs
}

func measure(t *testing.T, runs ...*results.Run) *Timing {
	t.Helper()
	timing, err := Measure(sequence(runs...), plan)
	if err != nil {
		t.Fatal(err)
	}
	return timing
}

func thousand(disagreements int) *Admission {
	return &Admission{Seed: 1, Planned: 1000, Sequences: 1000, Pods: 7200, Disagreements: disagreements,
		Decisions: map[string]int{"admitted": 5000, "rejected": 1100}, Reasons: map[string]int{"OutOfcpu": 900, "OutOfmemory": 200}}
}

func report(timing *Timing, admission *Admission) *Report {
	r := &Report{Command: "mirrorgap validate-model", Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Versions: map[string]string{"kubernetes": "v1.37.2"},
		Machine: trace.Machine{OS: "linux", Arch: "amd64", CPUs: 2}, Timing: timing, Admission: admission}
	r.Judge()
	return r
}

// delay is the measured delay of that name.
func (t *Timing) delay(name string) *Delay {
	for i := range t.Delays {
		if t.Delays[i].Name == name {
			return &t.Delays[i]
		}
	}
	return nil
}

func TestGolden(t *testing.T) {
	slow := usual
	slow.ready, slow.loop = 0.5, 0.4
	few := measure(t, runOf(1, 3, usual, usual))
	for name, r := range map[string]*Report{
		"agree":        report(measure(t, six(usual, usual)...), thousand(0)),
		"differ":       report(measure(t, six(slow, usual)...), thousand(2)),
		"inconclusive": report(few, nil),
	} {
		t.Run(name, func(t *testing.T) {
			if want := map[string]verdict.Outcome{"agree": verdict.Passed, "differ": verdict.Failed}[name]; r.Outcome != want {
				t.Errorf("got %v, want %v", r.Outcome, want)
			}
			var table, markdown bytes.Buffer
			if err := errors.Join(r.Table(&table), r.Markdown(&markdown)); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", table.Bytes())
			golden(t, name+".md", markdown.Bytes())
			for line := range strings.Lines(table.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > results.TableWidth {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

// TestMeasures: the figures are those of the runs.
func TestMeasures(t *testing.T) {
	slow := usual
	slow.ready = 0.5
	timing := measure(t, six(slow, usual)...)
	ready := timing.delay(DelayReady)
	if ready.Model.N != 120 || ready.Real.Nodes != 120 || *ready.Distance.Value < 0.999 || ready.Outcome != verdict.Failed {
		t.Errorf("Ready of 120 nodes that are far apart: got %+v", ready)
	}
	if m := *ready.Model.Median.Value; math.Abs(m-0.5) > 0.02 {
		t.Errorf("the median is %v, want about 0.5", m)
	}
	if d := timing.delay(DelayMirror); d.StaticPod != "kube-system/proxy" || d.Outcome != verdict.Passed || d.Real.N != 120 {
		t.Errorf("mirrors: got %+v", d)
	}
	if d := timing.delay(DelayFailedEarly); d.Model.N != 120 || d.Of != "pod" {
		t.Errorf("early rejections: got %+v", d)
	}
	if d := timing.delay(DelayFailed); d.Model.N < 1000 || d.Model.Nodes != 18 || d.Outcome != verdict.Passed {
		t.Errorf("late rejections: got %+v", d)
	}
	storm := timing.Storm
	if len(storm.Runs) != 6 || storm.Runs[0].Seconds != 60 || math.Abs(storm.Runs[0].Model-0.75*4) > 0.2 || storm.Outcome != verdict.Passed {
		t.Errorf("45 s of 4 rejections per node and second in 60 s: got %+v, the first %+v", storm, storm.Runs[0])
	}
}

// TestWhatIsNotShownIsInconclusive: neither the zero value, nor too little, nor what was cut short, ever agrees.
func TestWhatIsNotShownIsInconclusive(t *testing.T) {
	if zero := (&Report{}); zero.Outcome != verdict.Inconclusive || !strings.HasPrefix(zero.Sentence(), "INCONCLUSIVE") {
		t.Errorf("the zero value is %v", zero.Outcome)
	}
	notReady := six(usual, usual)
	notReady[2].Nodes[0].Ready = nil
	interrupted := six(usual, usual)
	interrupted[5].End = trace.EndInterrupted
	noStorm := six(usual, usual)
	for _, run := range noStorm {
		for _, p := range run.Pods {
			p.Rejection = nil
		}
	}
	short := thousand(0)
	short.Sequences = LeastSequences - 1
	flaky := thousand(1)
	flaky.Flaky = 1
	unfinished := thousand(0)
	unfinished.Sequences = 900
	good := measure(t, six(usual, usual)...)
	for name, r := range map[string]*Report{
		"nothing":             report(nil, nil),
		"no admission test":   report(good, nil),
		"no timing":           report(nil, thousand(0)),
		"few sequences":       report(good, short),
		"sequences missing":   report(good, unfinished),
		"a flaky sequence":    report(good, flaky),
		"a node not Ready":    report(measure(t, notReady...), thousand(0)),
		"a run interrupted":   report(measure(t, interrupted...), thousand(0)),
		"a run missing":       report(measure(t, six(usual, usual)[1:]...), thousand(0)),
		"no rejection":        report(measure(t, noStorm...), thousand(0)),
		"three nodes a group": report(measure(t, runOf(1, 3, usual, usual)), thousand(0)),
	} {
		if r.Outcome != verdict.Inconclusive {
			t.Errorf("%s: %v", name, r.Outcome)
		}
	}
	if r := report(good, thousand(0)); r.Outcome != verdict.Passed {
		t.Errorf("with nothing missing: %v", r.Outcome)
	}
}

// TestDifferences: each part by itself makes the whole differ.
func TestDifferences(t *testing.T) {
	change := func(f func(*behaviour)) *Timing {
		other := usual
		f(&other)
		return measure(t, six(other, usual)...)
	}
	for name, r := range map[string]*Report{
		"admission": report(measure(t, six(usual, usual)...), thousand(1)),
		"Ready":     report(change(func(b *behaviour) { b.ready *= 1.5 }), thousand(0)),
		"mirrors":   report(change(func(b *behaviour) { b.mirror *= 3 }), thousand(0)),
		"Failed":    report(change(func(b *behaviour) { b.failed *= 2 }), thousand(0)),
		"storm":     report(change(func(b *behaviour) { b.loop *= 1.5 }), thousand(0)),
		"no storm":  report(change(func(b *behaviour) { b.loop = 1000 }), thousand(0)),
	} {
		if r.Outcome != verdict.Failed {
			t.Errorf("%s: %v: %s", name, r.Outcome, r.Sentence())
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	r := report(measure(t, six(usual, usual)...), thousand(0))
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	again := &Report{}
	if err := json.Unmarshal(read(JSONFile), again); err != nil || again.Outcome != verdict.Passed || again.Sentence() != r.Sentence() {
		t.Errorf("the JSON form does not come back (%v): %s", err, again.Sentence())
	}
	var first, second bytes.Buffer
	if err := errors.Join(r.Markdown(&first), again.Markdown(&second)); err != nil || first.String() != second.String() {
		t.Errorf("the text of what was read back is another (%v): %s", err, cmp.Diff(first.String(), second.String()))
	}
	if lines := bytes.Count(read(CSVFile), []byte("\n")); lines < 1000 {
		t.Errorf("the CSV has %d lines", lines)
	}
	wellFormed(t, read(HTMLFile))
	if page := string(read(HTMLFile)); strings.Count(page, "<figure>") != len(r.Timing.Delays)+1 || strings.Contains(page, "<script") {
		t.Error("the page has not one figure for each delay and one for the storm, and no script")
	}
	if err := r.Write(filepath.Join(dir, "gone")); err == nil {
		t.Error("a folder that is not there: got no error")
	}
	if err := report(nil, nil).Write(dir); err != nil {
		t.Errorf("a report of nothing can be written, too: %v", err)
	}
}

// wellFormed fails the test unless elements end in the order in which they began.
func wellFormed(t *testing.T, page []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(page))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestErrorsOfRunsArePassedOn(t *testing.T) {
	broken := errors.New("broken")
	_, err := Measure(func(yield func(*results.Run, error) bool) { yield(nil, broken) }, plan)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
