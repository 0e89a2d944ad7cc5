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
	// Pairs is the number of seeds of which both sides have a run that may be judged. From two on, runs are compared in pairs of equal seeds, else as two samples.
	Pairs int `json:"pairs"`
	// RunsA and RunsB are the numbers of runs that may be judged. Others do not take part, and are in the Warnings.
	RunsA int `json:"runsA"`
	RunsB int `json:"runsB"`
	// Metrics are those of which a run of either side has a figure that is not 0.
	Metrics []Metric `json:"metrics"`
}

// Metric compares a metric: the figures of the runs that may be judged, those that are complete. If others are censored the comparison is of the shorter
// ones only, and A.Censored and B.Censored say so.
type Metric struct {
	results.Metric
	// A and B describe the runs' figures of both sides.
	A results.Distribution `json:"a"`
	B results.Distribution `json:"b"`
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
		r.Differ = append(r.Differ, fmt.Sprintf("machine: %s → %s", orNone(x.Machine.String()), orNone(y.Machine.String())))
		r.Warnings = append(r.Warnings, stats.Warning{Code: WarnMachine,
			Message: "the machines differ: metrics marked † depend on their speed, and may differ for that alone"})
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

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func compareArms(a, b *results.Arm) Arm {
	arm := Arm{Name: a.Name, Pairs: len(pairedRuns(a, b)), RunsA: conclusive(a), RunsB: conclusive(b)}
	for i := range a.Figures {
		f := &a.Figures[i]
		other := b.Figure(f.Name, f.Key)
		if other == nil { // what happened in a only
			other = none(f.Metric, len(b.Runs))
		}
		arm.add(a, b, f, other)
	}
	for i := range b.Figures { // what happened in b only
		if f := &b.Figures[i]; a.Figure(f.Name, f.Key) == nil {
			arm.add(a, b, none(f.Metric, len(a.Runs)), f)
		}
	}
	return arm
}

// none is the figure of a reason or a cause that no run of a side has.
func none(m results.Metric, runs int) *results.Figure {
	f := &results.Figure{Metric: m}
	for range runs {
		f.Runs = append(f.Runs, &results.Observation{})
	}
	return f
}

func (arm *Arm) add(a, b *results.Arm, x, y *results.Figure) {
	left, right := judged(a, x), judged(b, y)
	if !slices.ContainsFunc(slices.Concat(left, right), func(o *results.Observation) bool { return o != nil && o.Value != 0 }) {
		return
	}
	m := Metric{Metric: x.Metric, A: describe(left), B: describe(right)}
	switch {
	case m.A.N == 0 || m.B.N == 0:
	case arm.Pairs > 1:
		var own, theirs []float64
		for _, pair := range pairedRuns(a, b) {
			if u, v := left[pair[0]], right[pair[1]]; whole(u) && whole(v) {
				own, theirs = append(own, u.Value), append(theirs, v.Value)
			}
		}
		m.Comparison = new(stats.ComparePaired(own, theirs))
	default:
		m.Comparison = new(stats.CompareUnpaired(complete(left), complete(right)))
	}
	arm.Metrics = append(arm.Metrics, m)
}

// judged are the figures of the arm's runs; nil of a run that may not be judged.
func judged(arm *results.Arm, f *results.Figure) []*results.Observation {
	runs := slices.Clone(f.Runs)
	for i := range runs {
		if !arm.Runs[i].Conclusive {
			runs[i] = nil
		}
	}
	return runs
}

func conclusive(arm *results.Arm) int {
	n := 0
	for i := range arm.Runs {
		if arm.Runs[i].Conclusive {
			n++
		}
	}
	return n
}

func describe(runs []*results.Observation) results.Distribution {
	d := results.Distribution{Description: results.Describe(complete(runs))}
	for _, o := range runs {
		if o != nil && o.Censored {
			d.Censored++
		}
	}
	return d
}

// pairedRuns are the indices of the runs of equal seeds, where both may be judged.
func pairedRuns(a, b *results.Arm) [][2]int {
	var pairs [][2]int
	for i := range a.Runs {
		j := slices.IndexFunc(b.Runs, func(r results.RunInfo) bool { return r.Seed == a.Runs[i].Seed })
		if j >= 0 && a.Runs[i].Conclusive && b.Runs[j].Conclusive {
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
