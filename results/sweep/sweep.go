package sweep

import (
	"fmt"
	"slices"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
)

// Version is that of the JSON form. The number changes when a field changes its meaning or goes; new fields may come at any time.
const Version = "mirrorgap.sweep/v1"

// WarnUnfinished is the code of the warning that not all runs have been made. The others are package results'.
const WarnUnfinished = "unfinished"

// Plan says what a sweep is to be.
type Plan struct {
	Name        string `json:"sweep"`
	Description string `json:"description,omitempty"`
	// Parameters are what is varied.
	Parameters []Parameter `json:"parameters"`
	// Arms are the arms that every case has, Seeds the seeds that each is run with.
	Arms  []string `json:"arms"`
	Seeds []uint64 `json:"seeds"`
	// Show names the metrics that the table and the plots show.
	Show []string `json:"show"`
}

// Parameter is something that is varied.
type Parameter struct {
	Name string `json:"name"`
	// Values are the labels of its values, in order.
	Values []string `json:"values"`
}

// Sweep is what the runs of a sweep gave.
type Sweep struct {
	// Version is the constant of that name.
	Version string `json:"version"`
	Plan
	// Cases are in the order of the plan: the last parameter varies first.
	Cases []Case `json:"cases"`
	// Warnings say what the figures do not carry.
	Warnings []stats.Warning `json:"warnings,omitempty"`
}

// Case is a point of a sweep.
type Case struct {
	// Labels are those of the parameters' values, in the order of the parameters.
	Labels []string `json:"labels"`
	// Folder is the results folder of the case, relative to that of the sweep.
	Folder string `json:"folder"`
	// Arms has those of the plan, in its order.
	Arms []Arm `json:"arms"`
}

// Arm is an arm of a case.
type Arm struct {
	Name string `json:"name"`
	// Runs are those that are finished, in order of their seeds.
	Runs []results.RunInfo `json:"runs"`
	// Figures has every metric that these runs have; none without a run.
	Figures []Figure `json:"metrics"`
}

// Figure is what the runs of an arm of a case say about a metric.
type Figure struct {
	results.Metric
	// OverSeeds describes the runs' own figures, of those that are complete.
	OverSeeds results.Distribution `json:"overSeeds"`
	// Runs are these figures, in the order of Arm.Runs; null where a run has none.
	Runs []*results.Observation `json:"runs"`
}

// New puts the cases of a sweep together.
func New(plan Plan, cases ...Case) *Sweep {
	s := &Sweep{Version: Version, Plan: plan, Cases: cases}
	s.warn()
	return s
}

// NewCase makes a case of the summary of its finished runs; of none if the summary is nil.
func (p *Plan) NewCase(labels []string, folder string, summary *results.Summary) Case {
	c := Case{Labels: labels, Folder: folder}
	for _, name := range p.Arms {
		arm := Arm{Name: name, Runs: []results.RunInfo{}, Figures: []Figure{}}
		if summary != nil {
			if i := slices.IndexFunc(summary.Arms, func(a results.Arm) bool { return a.Name == name }); i >= 0 {
				arm.take(&summary.Arms[i])
			}
		}
		c.Arms = append(c.Arms, arm)
	}
	return c
}

func (a *Arm) take(from *results.Arm) {
	a.Runs = from.Runs
	for i := range from.Figures {
		f := &from.Figures[i]
		a.Figures = append(a.Figures, Figure{Metric: f.Metric, OverSeeds: f.OverSeeds, Runs: f.Runs})
	}
}

// Figure returns the arm's figure of a metric without key; nil if there is none.
func (a *Arm) Figure(metric string) *Figure {
	for i := range a.Figures {
		if f := &a.Figures[i]; f.Name == metric && f.Key == "" {
			return f
		}
	}
	return nil
}

// Middle is the median of the runs' figures, with every lower bound in the place of what it bounds: if one of them is a lower bound, so is the median.
// It is nil if no run has a figure. Low and High are the least and the largest of them.
func (f *Figure) Middle() (middle *results.Observation, low, high float64) {
	var values []float64
	censored := false
	for _, o := range f.Runs {
		if o != nil {
			values, censored = append(values, o.Value), censored || o.Censored
		}
	}
	if len(values) == 0 {
		return nil, 0, 0
	}
	return &results.Observation{Value: *results.Describe(values).Median, Censored: censored}, slices.Min(values), slices.Max(values)
}

// measured is the number of runs that have a figure.
func (f *Figure) measured() int { return f.OverSeeds.N + f.OverSeeds.Censored }

// arms goes through the arms of all cases.
func (s *Sweep) arms(yield func(*Case, *Arm) bool) {
	for i := range s.Cases {
		for j := range s.Cases[i].Arms {
			if !yield(&s.Cases[i], &s.Cases[i].Arms[j]) {
				return
			}
		}
	}
}

// Finished counts the runs that are finished, Planned those that are to be made. NotSettled counts those of the finished ones that ended by their time
// limit, so that their counts are lower bounds.
func (s *Sweep) Finished() (finished, planned, notSettled int) {
	for _, arm := range s.arms {
		for i := range arm.Runs {
			if finished++; !arm.Runs[i].Settled {
				notSettled++
			}
		}
	}
	return finished, len(s.Cases) * len(s.Arms) * len(s.Seeds), notSettled
}

// warn adds what a reader must know before believing the figures.
func (s *Sweep) warn() {
	add := func(code, format string, args ...any) {
		s.Warnings = append(s.Warnings, stats.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	finished, planned, notSettled := s.Finished()
	if finished < planned {
		add(WarnUnfinished, "only %d of %d runs are finished; figures of fewer runs than planned say of how many", finished, planned)
	}
	if notSettled > 0 {
		add(results.WarnNotSettled, "%d of %d runs did not settle before their time limit: their counts are lower bounds", notSettled, finished)
	}
	if len(s.Seeds) == 1 {
		add(results.WarnOneRun, "there is one run of each arm in each case: nothing is said about the variation between runs")
	}
	if s.differ() {
		add(results.WarnDiffer, "the runs were made with different versions, engines or machines: differences between cases may be due to these")
	}
}

// differ tells whether runs were made under different conditions.
func (s *Sweep) differ() bool {
	var first *results.RunInfo
	for _, arm := range s.arms {
		for i := range arm.Runs {
			if first == nil {
				first = &arm.Runs[i]
			}
			if !arm.Runs[i].SameConditions(first) {
				return true
			}
		}
	}
	return false
}
