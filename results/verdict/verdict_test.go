package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// golden compares got with a file in testdata, or writes it with -update.
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

func at(values ...float64) []*results.Observation {
	observations := make([]*results.Observation, len(values))
	for i, v := range values {
		observations[i] = &results.Observation{Value: v}
	}
	return observations
}

func atLeast(value float64) *results.Observation {
	return &results.Observation{Value: value, Censored: true}
}

// race is a summary of two arms and three seeds as an experiment gives it that goes well: 17 new nodes, the race in one arm and not in the other.
func race() *results.Summary {
	s := &results.Summary{Version: results.SummaryVersion, Experiment: "race"}
	for _, name := range []string{"ungated", "gated"} {
		arm := results.Arm{Name: name}
		for seed := range uint64(3) {
			arm.Runs = append(arm.Runs, results.RunInfo{
				Seed: seed + 1, Labels: map[string]string{"mirrorDelay": "90s"}, Engine: "live", Versions: map[string]string{"kubernetes": "v1.37.2"},
				Machine: trace.Machine{OS: "linux", Arch: "amd64", CPUs: 2}, End: trace.EndSettled, Conclusive: true, Settled: true, KubeletEvidence: true,
			})
		}
		s.Arms = append(s.Arms, arm)
	}
	for i := range s.Arms {
		set(s, i, results.MetricNewNodes, "", at(17, 17, 17)...)
		set(s, i, results.MetricPodsCreated, "", at(80, 81, 82)...)
		set(s, i, results.MetricNotSeenByKubelet, "", at(0, 0, 0)...)
		set(s, i, results.MetricWall, "", at(110.5, 112, 109)...)
	}
	set(s, ungated, results.MetricNewNodesWithRejection, "", at(17, 17, 16)...)
	set(s, gated, results.MetricNewNodesWithRejection, "", at(0, 0, 0)...)
	set(s, ungated, results.MetricRejectedPodsByCause, "hidden-static-pod", at(1577, 1402, 990)...)
	set(s, gated, results.MetricRejectedPodsByCause, "hidden-static-pod", at(0, 0, 0)...)
	set(s, gated, results.MetricHold, "", at(81.6, 79.25, 88.1)...)
	hold := s.Arms[gated].Figure(results.MetricHold, "")
	hold.Nodes = [][]*results.Observation{at(81.6, 89.7), append(at(79.25, 60), nil), at(88.1)}
	return s
}

// The indices of the arms of race.
const (
	ungated = iota
	gated
)

// set gives an arm a figure, in the place of one that it has.
func set(s *results.Summary, arm int, name, key string, runs ...*results.Observation) {
	a := &s.Arms[arm]
	if f := a.Figure(name, key); f != nil {
		f.Runs = runs
		return
	}
	a.Figures = append(a.Figures, results.Figure{Metric: results.Metric{Name: name, Key: key}, Runs: runs})
}

// plan expects the runs of race.
func plan(thresholds ...Threshold) Plan {
	return Plan{
		Arms: []Arm{{Name: "ungated"}, {Name: "gated", Gated: true}}, Seeds: []uint64{1, 2, 3}, Engine: "live", Labels: map[string]string{"mirrorDelay": "90s"},
		Thresholds: thresholds,
	}
}

func threshold(arm, metric string, s Statistic, o Operator, value float64) Threshold {
	return Threshold{Arm: arm, Metric: metric, Statistic: s, Operator: o, Value: &value}
}

// noRejection is met by race.
func noRejection() Threshold {
	return threshold("gated", results.MetricNewNodesWithRejection, Max, LessOrEqual, 0)
}

func mustJudge(t *testing.T, s *results.Summary, p Plan) *Verdict {
	t.Helper()
	v, err := Judge(s, p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNothingPassesByDefault(t *testing.T) {
	if (&Verdict{}).Outcome != Inconclusive || (&Check{}).Holds() || conclude(true, nil) != Inconclusive {
		t.Error("a zero value has passed")
	}
	empty := race()
	for i := range empty.Arms {
		empty.Arms[i].Figures = nil
	}
	for _, name := range metricNames() {
		for _, o := range Operators() {
			th := threshold("gated", name, Max, o, 0)
			switch name {
			case results.MetricRejectedPodsByCause, results.MetricRejectedPodsByReason:
				continue // a summary that does not have the key says that there was none
			}
			p := plan(th)
			p.Assumptions = Assumptions{RaceIn: &[]string{}, MinNewNodes: new(0), MinPods: new(0)}
			v := mustJudge(t, empty, p)
			if v.Outcome != Inconclusive || !strings.Contains(v.Thresholds[0].Message, "not measured in 3 of 3 runs") {
				t.Errorf("%s %s: %v: %s", name, o, v.Outcome, v.Thresholds[0].Message)
			}
		}
	}
}

// TestSummaryFromItsJSON: it does not have the values of nodes, and a threshold over these must not pass for that.
func TestSummaryFromItsJSON(t *testing.T) {
	data, err := json.Marshal(race())
	if err != nil {
		t.Fatal(err)
	}
	var s results.Summary
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	holds := threshold("gated", results.MetricHold, Max, Less, 1000)
	holds.Over = OverNodes
	v := mustJudge(t, &s, plan(noRejection(), holds))
	if v.Thresholds[0].Outcome != Passed || v.Thresholds[1].Outcome != Inconclusive {
		t.Errorf("%v, %v", v.Thresholds[0].Outcome, v.Thresholds[1].Outcome)
	}
}

// TestOutcomesAsText: every outcome survives the JSON form, and nothing else is one.
func TestOutcomesAsText(t *testing.T) {
	for _, o := range []Outcome{Inconclusive, Passed, Failed} {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var again Outcome
		if err := json.Unmarshal(data, &again); err != nil || again != o {
			t.Errorf("%v is written as %s and read as %v (%v)", o, data, again, err)
		}
	}
	for _, text := range []string{`"PASSED"`, `""`, `1`, `"Outcome(7)"`} {
		var o Outcome
		if err := json.Unmarshal([]byte(text), &o); err == nil {
			t.Errorf("%s is taken for %v", text, o)
		}
	}
}

// TestJudgeGolden: what a person reads.
func TestJudgeGolden(t *testing.T) {
	named := noRejection()
	named.Name, named.Why = "no new node rejects pods", "a pod was bound before the static pods of its node were visible to the scheduler"
	holds := threshold("gated", results.MetricHold, P90, LessOrEqual, 90)
	holds.Over = OverNodes
	few := threshold("gated", results.MetricRejectedPodsByCause, Total, Less, 1)
	few.Key, few.When = "hidden-static-pod", map[string]string{"seed": "[23]", "mirrorDelay": "9*"}
	cases := map[string]struct {
		change     func(*results.Summary)
		thresholds []Threshold
		want       Outcome
	}{
		"passed": {func(*results.Summary) {}, []Threshold{named, holds, few}, Passed},
		"failed": {func(s *results.Summary) {
			set(s, gated, results.MetricNewNodesWithRejection, "", at(0, 2, 0)...)
			set(s, gated, results.MetricRejectedPodsByCause, "hidden-static-pod", at(0, 4, 3)...)
		}, []Threshold{named, holds, few}, Failed},
		"no-race": {func(s *results.Summary) {
			set(s, ungated, results.MetricRejectedPodsByCause, "hidden-static-pod", at(1577, 0, 990)...)
		}, []Threshold{named, holds, few}, Inconclusive},
		"interrupted": {func(s *results.Summary) {
			r := &s.Arms[gated].Runs[1]
			r.End, r.Conclusive, r.Settled, r.EndMessage = trace.EndInterrupted, false, false, "context canceled"
			s.Arms[gated].Runs = s.Arms[gated].Runs[:2]
		}, []Threshold{named, holds, few}, Inconclusive},
		"censored": {func(s *results.Summary) {
			hold := s.Arms[gated].Figure(results.MetricHold, "")
			hold.Runs[2] = atLeast(30)
			hold.Nodes[2] = []*results.Observation{atLeast(30), atLeast(88)}
		}, []Threshold{named, holds, threshold("gated", results.MetricHold, Max, LessOrEqual, 81), threshold("gated", results.MetricHold, Max, Less, 90),
			threshold("gated", results.MetricHold, Max, Greater, 60)}, Failed},
		"not-measured": {func(s *results.Summary) {
			s.Arms[gated].Figure(results.MetricHold, "").Runs[1] = nil
			s.Arms[gated].Figure(results.MetricHold, "").Nodes[1] = nil
		}, []Threshold{named, holds, threshold("gated", results.MetricHold, Max, Less, 10)}, Inconclusive},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := race()
			c.change(s)
			v := mustJudge(t, s, plan(c.thresholds...))
			if v.Outcome != c.want {
				t.Errorf("got %v, want %v", v.Outcome, c.want)
			}
			var out bytes.Buffer
			if err := v.Table(&out, results.TableWidth); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", out.Bytes())
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > results.TableWidth {
					t.Errorf("line of %d characters: %q", n, line)
				}
			}
			checkJUnit(t, v, s)
		})
	}
}

// TestEachAssumption: each one alone makes the verdict inconclusive and says why, and keeps a threshold from passing, but not from failing.
func TestEachAssumption(t *testing.T) {
	missed := threshold("ungated", results.MetricPodsCreated, Max, Less, 1)
	for _, tt := range []struct {
		name   string
		change func(*results.Summary, *Plan)
		want   string
	}{
		{"a run is missing", func(s *results.Summary, _ *Plan) { s.Arms[gated].Runs = s.Arms[gated].Runs[:2] },
			"every expected run is there: got 5 of 6 runs: no gated, seed 3, want 2 arms x 3 seeds"},
		{"an arm is missing", func(_ *results.Summary, p *Plan) { p.Arms = append(p.Arms, Arm{Name: "third", Gated: true}) },
			"got 6 of 9 runs: no third, seed 1; third, seed 2; third, seed 3, want 3 arms x 3 seeds"},
		{"a run did not settle", func(s *results.Summary, _ *Plan) {
			r := &s.Arms[ungated].Runs[1]
			r.End, r.Settled, r.EndMessage = trace.EndTimeLimit, false, "the time\nis \x1b[31mup"
		}, "every run settled: got time-limit (the time is \ufffd[31mup) in ungated, seed 2, want settled"},
		{"a component died", func(s *results.Summary, _ *Plan) {
			r := &s.Arms[gated].Runs[2]
			r.Conclusive, r.Died = false, []results.Death{{Component: "etcd", Message: "exit status 2", At: 12.3}}
		}, "no component died: got etcd after 12 s (exit status 2) in gated, seed 3, want none"},
		{"too few new nodes", func(s *results.Summary, _ *Plan) { set(s, gated, results.MetricNewNodes, "", at(17, 0, 17)...) },
			"enough new nodes in every run: got 0 in gated, seed 2, want >= 1"},
		{"new nodes not counted", func(s *results.Summary, _ *Plan) { set(s, gated, results.MetricNewNodes, "", nil, nil, nil) },
			"got 0 in gated, seed 1; 0 in gated, seed 2; 0 in gated, seed 3, want >= 1"},
		{"too few pods", func(_ *results.Summary, p *Plan) { p.Assumptions.MinPods = new(81) },
			"enough workload pods in every run: got 80 in ungated, seed 1; 80 in gated, seed 1, want >= 81"},
		{"the race did not show", func(s *results.Summary, _ *Plan) {
			set(s, ungated, results.MetricRejectedPodsByCause, "hidden-static-pod", at(1577, 0, 990)...)
		}, "the race shows in every run of ungated: got 0 pods in ungated, seed 2, want >= 1 pod rejected for a hidden static pod"},
		{"no rejection at all", func(s *results.Summary, _ *Plan) {
			for i := range s.Arms {
				s.Arms[i].Figures = slices.DeleteFunc(s.Arms[i].Figures, func(f results.Figure) bool { return f.Name == results.MetricRejectedPodsByCause })
			}
		}, "got 0 pods in ungated, seed 1; 0 pods in ungated, seed 2; 0 pods in ungated, seed 3"},
		{"kubelets and API differ", func(s *results.Summary, _ *Plan) { set(s, gated, results.MetricNotSeenByKubelet, "", at(0, 0, 2)...) },
			"kubelets and API agree about rejections: got 2 pods in gated, seed 3, want 0 pods rejected by the API's word alone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := race(), plan(noRejection(), missed)
			tt.change(s, &p)
			v := mustJudge(t, s, p)
			var messages []string
			for _, c := range v.Assumptions {
				if !c.Holds() {
					messages = append(messages, c.Message)
				}
			}
			if len(messages) != 1 || !strings.Contains(messages[0], tt.want) {
				t.Errorf("what does not hold: %q, want %q", messages, tt.want)
			}
			if v.Outcome != Inconclusive || v.Thresholds[0].Outcome != Inconclusive || v.Thresholds[1].Outcome != Failed {
				t.Errorf("verdict %v of thresholds %v and %v", v.Outcome, v.Thresholds[0].Outcome, v.Thresholds[1].Outcome)
			}
		})
	}
}

// TestInFlightIsTheRace: a mirror pod that was on its way hides its static pod too.
func TestInFlightIsTheRace(t *testing.T) {
	s := race()
	set(s, ungated, results.MetricRejectedPodsByCause, "hidden-static-pod", at(5, 0, 5)...)
	set(s, ungated, results.MetricRejectedPodsByCause, "mirror-in-flight", at(0, 1, 0)...)
	if v := mustJudge(t, s, plan(noRejection())); v.Outcome != Passed {
		t.Errorf("got %v: %+v", v.Outcome, v.Assumptions)
	}
}

// TestWaivedAssumptionsAreSaid: what is not checked is not said to hold.
func TestWaivedAssumptionsAreSaid(t *testing.T) {
	s, p := race(), plan(noRejection())
	for i := range s.Arms {
		set(s, i, results.MetricNotSeenByKubelet, "", nil, nil, nil)
	}
	p.Assumptions.RaceIn = &[]string{}
	v := mustJudge(t, s, p)
	var waived []string
	for _, c := range v.Assumptions {
		if c.Waived != "" {
			waived = append(waived, c.Message)
			if c.Outcome == Passed {
				t.Errorf("%s has passed", c.Name)
			}
		}
	}
	want := []string{
		"the race shows: not checked, assumptions.raceIn is empty",
		"kubelets and API agree about rejections: not checked, the traces have no events of kubelets",
	}
	if diff := cmp.Diff(want, waived); diff != "" || v.Outcome != Passed {
		t.Errorf("verdict %v; waived (-want +got):\n%s", v.Outcome, diff)
	}
}

func TestDefaultsOfRaceIn(t *testing.T) {
	for _, tt := range []struct {
		arms []Arm
		want []string
	}{
		{[]Arm{{Name: "a"}, {Name: "b", Gated: true}, {Name: "c"}}, []string{"a", "c"}},
		{[]Arm{{Name: "a"}, {Name: "b"}}, []string{}},
		{[]Arm{{Name: "a", Gated: true}}, []string{}},
	} {
		var a Assumptions
		a.SetDefaults(tt.arms)
		if diff := cmp.Diff(tt.want, *a.RaceIn); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.arms, diff)
		}
	}
}

func TestWhen(t *testing.T) {
	for _, tt := range []struct {
		when map[string]string
		runs int
	}{
		{nil, 3},
		{map[string]string{"seed": "2"}, 1},
		{map[string]string{"seed": "[13]"}, 2},
		{map[string]string{"seed": "*", "engine": "l?ve", "kubernetes": "v1.37.*", "mirrorDelay": "90s"}, 3},
	} {
		th := noRejection()
		th.When = tt.when
		if c := mustJudge(t, race(), plan(th)).Thresholds[0]; c.Runs != tt.runs || c.N != tt.runs {
			t.Errorf("%v selects %d runs with %d figures, want %d", tt.when, c.Runs, c.N, tt.runs)
		}
	}
}

// TestWhenThatMatchesNothing is bad input, unless the run that it means is one that is missing.
func TestWhenThatMatchesNothing(t *testing.T) {
	th := noRejection()
	th.When = map[string]string{"kubernetes": "v1.36.*"}
	_, err := Judge(race(), plan(th))
	if !errors.As(err, new(*results.InputError)) || !strings.Contains(err.Error(), "spec.thresholds[0].when: kubernetes=v1.36.* matches no run of arm gated, which has 3 runs") {
		t.Errorf("got %v", err)
	}
	th.When = map[string]string{"seed": "3"}
	s := race()
	s.Arms[gated].Runs = s.Arms[gated].Runs[:2]
	if c := mustJudge(t, s, plan(th)).Thresholds[0]; c.Outcome != Inconclusive || !strings.Contains(c.Message, "expected ones are missing") {
		t.Errorf("%v: %s", c.Outcome, c.Message)
	}
	s.Arms = s.Arms[:1]
	if c := mustJudge(t, s, plan(th)).Thresholds[0]; c.Outcome != Inconclusive || !strings.Contains(c.Message, "no run of this arm") {
		t.Errorf("%v: %s", c.Outcome, c.Message)
	}
}

func TestJudgeRefuses(t *testing.T) {
	unset := noRejection()
	unset.Value = nil
	for _, tt := range []struct {
		name string
		plan Plan
		want string
	}{
		{"no threshold", plan(), "no thresholds to judge by"},
		{"unknown metric", plan(threshold("gated", "newNodesWithRejections", Max, Less, 1)), "thresholds[0].metric: there is no such metric: did you mean newNodesWithRejection?"},
		{"unset value", plan(unset), "thresholds[0].value: write the number"},
		{"nothing", plan(Threshold{}), "thresholds[0].operator: write one of <, <=, ==, >=, >"},
	} {
		_, err := Judge(race(), tt.plan)
		if !errors.As(err, new(*results.InputError)) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an InputError with %q", tt.name, err, tt.want)
		}
	}
}

// TestZeroOfN: what none of n says is a bound, of the number of nodes and of that of runs.
func TestZeroOfN(t *testing.T) {
	c := mustJudge(t, race(), plan(noRejection())).Thresholds[0]
	want := "0 of 51 schedulable new nodes: at most 5.7 %, 0 of 3 runs: at most 63 %, at 95 % confidence if they are independent"
	if !slices.Contains(c.Notes, want) {
		t.Errorf("notes %q, want %q", c.Notes, want)
	}
	if len(c.Rates) != 2 || c.Rates[0].N != 51 || c.Rates[1].N != 3 {
		t.Errorf("rates %+v", c.Rates)
	}
	s := race()
	set(s, gated, results.MetricNeverSchedulable, "", at(0, 17, 17)...)
	if c := mustJudge(t, s, plan(noRejection())).Thresholds[0]; c.Rates[0].N != 17 {
		t.Errorf("nodes that no pod could be bound to are counted: %q", c.Notes)
	}
	set(s, gated, results.MetricNewNodesWithRejection, "", at(0, 1, 0)...)
	if c := mustJudge(t, s, plan(threshold("gated", results.MetricNewNodesWithRejection, Max, LessOrEqual, 1))).Thresholds[0]; len(c.Rates) > 0 {
		t.Errorf("1 of n is said to be none: %q", c.Notes)
	}
}

func TestJSONKeepsTheVerdict(t *testing.T) {
	v := mustJudge(t, race(), plan(noRejection(), threshold("gated", results.MetricHold, Mean, Less, 10)))
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "verdict.json", append(data, '\n'))
	var again Verdict
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*v, again); diff != "" {
		t.Errorf("it changed on the way (-before +after):\n%s", diff)
	}
}

// TestOnTraces judges the runs of real traces: what a folder gives is what Judge wants.
func TestOnTraces(t *testing.T) {
	var digests []*results.Digest
	for _, arm := range []string{"ungated", "gated"} {
		run, err := results.ReadTrace(filepath.Join("..", "testdata", arm+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, run.Digest())
	}
	summary, err := results.Summarize(digests)
	if err != nil {
		t.Fatal(err)
	}
	holds := threshold("gated", results.MetricHold, Max, LessOrEqual, 12)
	holds.Over = OverNodes
	p := plan(noRejection(), holds)
	p.Seeds = []uint64{1}
	v := mustJudge(t, summary, p)
	if c := v.Thresholds[1]; c.Outcome != Failed || c.Got != "12.5 s" || c.N != 2 {
		t.Errorf("hold of n1 is 12.5 s and of n2 8 s: %s", c.Message)
	}
	if v.Outcome != Failed || v.Thresholds[0].Outcome != Passed {
		t.Errorf("%v: %+v", v.Outcome, v)
	}
	checkJUnit(t, v, summary)
}

func TestReadable(t *testing.T) {
	for _, tt := range []struct {
		x, limit float64
		want     string
	}{
		{0, 0, "0"}, {1577, 0, "1577"}, {123456, 1, "123456"}, {81.63549, 90, "81.64"}, {90.00004, 90, "90.00004"}, {89.99996, 90, "89.99996"}, {0.1, 0.1, "0.1"},
		{1e-7, 1, "0.0000001"},
	} {
		if got := readable(tt.x, tt.limit); got != tt.want {
			t.Errorf("%v beside %v: got %s, want %s", tt.x, tt.limit, got, tt.want)
		}
	}
}

func ExampleJudge() {
	v, err := Judge(race(), plan(noRejection()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Outcome, v.Thresholds[0].Message)
	// Output: passed gated: newNodesWithRejection, max over 3 runs: got 0 nodes, want <= 0
}
