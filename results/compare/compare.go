package compare

import (
	"fmt"
	"slices"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
)

// Version is the version of Result's JSON form. The number changes when a field changes its meaning or goes; new fields may come at any time.
const Version = "mirrorgap.comparison/v1"

// Result is how the runs of B differ from those of A.
type Result struct {
	// Version is the constant Version.
	Version    string `json:"version"`
	Experiment string `json:"experiment"`
	// A and B name the two sides.
	A string `json:"a"`
	B string `json:"b"`
	// Differ says in what, besides the results, the sides differ: versions, machine, engine, fields of the experiment.
	Differ []string `json:"differ,omitempty"`
	// Arms are those that both sides have, in A's order. Others are in Warnings.
	Arms     []Arm           `json:"arms"`
	Warnings []stats.Warning `json:"warnings,omitempty"`
}

// Arm compares an arm.
type Arm struct {
	Name string `json:"name"`
	// Pairs is the number of seeds that both sides have. From two on, runs are compared in pairs of equal seeds, else as two samples.
	Pairs int `json:"pairs"`
	// Metrics are those that a run of either side has a value of that is not 0.
	Metrics []Metric `json:"metrics"`
}

// Metric compares a metric: the runs' own figures, those that are complete.
type Metric struct {
	results.Metric
	// A and B describe the runs' figures of both sides.
	A results.Description `json:"a"`
	B results.Description `json:"b"`
	// Comparison is of B with A; nil if a side has no complete figure.
	Comparison *stats.Comparison `json:"comparison,omitempty"`
}

// Codes of warnings.
const (
	// WarnArmMissing: only one side has the arm.
	WarnArmMissing = "arm-missing"
	// WarnMachine: the machines differ, and with them all metrics that depend on their speed.
	WarnMachine = "machines-differ"
)

// Summaries compares b with a, of which names say what to call them. It fails, with a *results.InputError, if they are of different experiments or have no
// arm in common.
func Summaries(nameA, nameB string, a, b *results.Summary) (*Result, error) {
	if a.Experiment != b.Experiment {
		return nil, &results.InputError{Err: fmt.Errorf("compare %s and %s: they are of different experiments, %q and %q: nothing follows from their difference",
			nameA, nameB, a.Experiment, b.Experiment)}
	}
	r := &Result{Version: Version, Experiment: a.Experiment, A: nameA, B: nameB}
	for i := range a.Arms {
		other := armOf(b, a.Arms[i].Name)
		if other == nil {
			r.missing(a.Arms[i].Name, nameB)
			continue
		}
		r.Arms = append(r.Arms, compareArms(&a.Arms[i], other))
	}
	for i := range b.Arms {
		if armOf(a, b.Arms[i].Name) == nil {
			r.missing(b.Arms[i].Name, nameA)
		}
	}
	if len(r.Arms) == 0 {
		return nil, &results.InputError{Err: fmt.Errorf("compare %s and %s: they have no arm in common", nameA, nameB)}
	}
	r.conditions(a, b)
	return r, nil
}

func armOf(s *results.Summary, name string) *results.Arm {
	for i := range s.Arms {
		if s.Arms[i].Name == name {
			return &s.Arms[i]
		}
	}
	return nil
}

func (r *Result) missing(arm, side string) {
	r.Warnings = append(r.Warnings, stats.Warning{Code: WarnArmMissing, Message: fmt.Sprintf("arm %s is not in %s, and not compared", arm, side)})
}

// conditions notes what else differs, as the first runs have it, and what the summaries themselves warn of.
func (r *Result) conditions(a, b *results.Summary) {
	x, y := &a.Arms[0].Runs[0], &b.Arms[0].Runs[0]
	if x.Engine != y.Engine {
		r.Differ = append(r.Differ, fmt.Sprintf("engine: %s → %s", x.Engine, y.Engine))
	}
	var names []string
	for name := range x.Versions {
		names = append(names, name)
	}
	for name := range y.Versions {
		if _, both := x.Versions[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if x.Versions[name] != y.Versions[name] {
			r.Differ = append(r.Differ, fmt.Sprintf("%s: %s → %s", name, orNone(x.Versions[name]), orNone(y.Versions[name])))
		}
	}
	if x.Machine != y.Machine {
		r.Differ = append(r.Differ, fmt.Sprintf("machine: %+v → %+v", x.Machine, y.Machine))
		r.Warnings = append(r.Warnings, stats.Warning{Code: WarnMachine,
			Message: "the machines differ: metrics marked † depend on their speed, and differ for that alone"})
	}
	for _, side := range []struct {
		name    string
		summary *results.Summary
	}{{r.A, a}, {r.B, b}} {
		for _, w := range side.summary.Warnings {
			if w.Code != results.WarnOneRun { // the comparison says what it cannot show
				r.Warnings = append(r.Warnings, stats.Warning{Code: w.Code, Message: side.name + ": " + w.Message})
			}
		}
	}
}

func orNone(version string) string {
	if version == "" {
		return "none"
	}
	return version
}

func compareArms(a, b *results.Arm) Arm {
	arm := Arm{Name: a.Name, Pairs: len(pairedRuns(a, b))}
	for i := range a.Figures {
		f := &a.Figures[i]
		if other := b.Figure(f.Name, f.Key); other != nil {
			arm.add(a, b, f, other)
		}
	}
	for i := range b.Figures { // what happened in b only
		if f := &b.Figures[i]; a.Figure(f.Name, f.Key) == nil {
			arm.add(a, b, &results.Figure{Metric: f.Metric, Runs: zeros(len(a.Runs))}, f)
		}
	}
	return arm
}

// zeros are the figures of a reason or a cause that no run has.
func zeros(n int) []*results.Observation {
	none := make([]*results.Observation, n)
	for i := range none {
		none[i] = &results.Observation{}
	}
	return none
}

func (arm *Arm) add(a, b *results.Arm, x, y *results.Figure) {
	left, right := complete(x.Runs), complete(y.Runs)
	if !slices.ContainsFunc(append(slices.Clone(left), right...), func(v float64) bool { return v != 0 }) {
		return
	}
	m := Metric{Metric: x.Metric, A: results.Describe(left), B: results.Describe(right)}
	switch {
	case len(left) == 0 || len(right) == 0:
	case arm.Pairs > 1:
		var own, theirs []float64
		for _, pair := range pairedRuns(a, b) {
			if u, v := x.Runs[pair[0]], y.Runs[pair[1]]; whole(u) && whole(v) {
				own, theirs = append(own, u.Value), append(theirs, v.Value)
			}
		}
		m.Comparison = new(stats.ComparePaired(own, theirs))
	default:
		m.Comparison = new(stats.CompareUnpaired(left, right))
	}
	arm.Metrics = append(arm.Metrics, m)
}

// pairedRuns are the indices of the runs of equal seeds.
func pairedRuns(a, b *results.Arm) [][2]int {
	var pairs [][2]int
	for i, run := range a.Runs {
		if j := slices.IndexFunc(b.Runs, func(r results.RunInfo) bool { return r.Seed == run.Seed }); j >= 0 {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	return pairs
}

func whole(o *results.Observation) bool { return o != nil && !o.Censored }

func complete(runs []*results.Observation) []float64 {
	var values []float64
	for _, o := range runs {
		if whole(o) {
			values = append(values, o.Value)
		}
	}
	return values
}
