package verdict

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
)

// Version is the version of Verdict's JSON form. The number changes when a field changes its meaning or goes; new fields may come at any time.
const Version = "mirrorgap.verdict/v1"

// Verdict says whether the runs of an experiment meet its thresholds. The zero value is inconclusive.
type Verdict struct {
	// Version is the constant Version.
	Version    string `json:"version"`
	Experiment string `json:"experiment"`
	// Outcome is Passed if all assumptions hold and all thresholds passed; Failed if all assumptions hold and a threshold failed.
	Outcome     Outcome `json:"outcome"`
	Assumptions []Check `json:"assumptions"`
	Thresholds  []Check `json:"thresholds"`
}

// Check is one assumption or one threshold, and what was found.
type Check struct {
	// Name is what it is about, without what was found.
	Name string `json:"name"`
	// Arm is that of a threshold; empty for an assumption.
	Arm     string  `json:"arm,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Waived says why the experiment does not make the assumption. Its Outcome then means nothing.
	Waived string `json:"waived,omitempty"`
	// Got is what was found, Want what was asked for, both with units.
	Got  string `json:"got,omitempty"`
	Want string `json:"want,omitempty"`
	// Message is all of it in one line.
	Message string `json:"message"`
	// Notes say how far the figure carries.
	Notes []string `json:"notes,omitempty"`

	// The following are of thresholds only.

	// Threshold is what was judged, with its defaults; Field its path in the experiment.
	Threshold *Threshold `json:"threshold,omitempty"`
	Field     string     `json:"field,omitempty"`
	// Value is the statistic, in Unit; nil if it was not measured. LowerBound: it rests on a censored observation, and is at least that.
	Value      *float64 `json:"value,omitempty"`
	LowerBound bool     `json:"lowerBound,omitempty"`
	Unit       string   `json:"unit,omitempty"`
	// Runs is the number of selected runs, N that of the observations which the statistic was taken of.
	Runs int `json:"runs,omitempty"`
	N    int `json:"n,omitempty"`
	// Rates are there where none of the observed things was counted: how often it may happen nevertheless.
	Rates []Rate `json:"rates,omitempty"`
}

// Rate is how often something that was not seen may happen nevertheless.
type Rate struct {
	// Of is what was observed: "new nodes", "runs".
	Of string `json:"of"`
	// Estimate has the number of them, and the upper bound as the end of its interval.
	stats.Estimate
}

// Holds tells whether a check stands in no verdict's way.
func (c *Check) Holds() bool { return c.Waived != "" || c.Outcome == Passed }

// Judge holds the runs of a summary against a plan. Its error is a *results.InputError: the plan is wrong or has no threshold, or a threshold selects
// none of the runs although all that were expected are there.
func Judge(s *results.Summary, plan Plan) (*Verdict, error) {
	if err := plan.Check(); err != nil {
		return nil, err
	}
	plan = plan.withDefaults()
	j := &judge{plan: &plan, summary: s}
	v := &Verdict{Version: Version, Experiment: s.Experiment, Assumptions: j.assumptions()}
	sound := !slices.ContainsFunc(v.Assumptions, func(c Check) bool { return !c.Holds() })
	var problems []error
	for i := range plan.Thresholds {
		c, err := j.threshold(i, sound)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		v.Thresholds = append(v.Thresholds, *c)
	}
	if len(problems) > 0 {
		return nil, &results.InputError{Err: errors.Join(problems...)}
	}
	v.Outcome = conclude(sound, v.Thresholds)
	return v, nil
}

// Check tells whether runs can be judged by the plan, before they are made. Its error is a *results.InputError with everything that is wrong with it, or
// says that it has no threshold.
func (p Plan) Check() error {
	p = p.withDefaults()
	if len(p.Thresholds) == 0 {
		return &results.InputError{Err: errors.New("the experiment has no thresholds to judge by: write some into spec.thresholds (docs/gate.md)")}
	}
	var problems []error
	for _, problem := range p.Validate() {
		problems = append(problems, fmt.Errorf("%s: %s", problem.Field, problem.Message))
	}
	if len(problems) > 0 {
		return &results.InputError{Err: errors.Join(problems...)}
	}
	return nil
}

// conclude makes one outcome of those of the thresholds.
func conclude(sound bool, thresholds []Check) Outcome {
	has := func(o Outcome) bool {
		return slices.ContainsFunc(thresholds, func(c Check) bool { return c.Outcome == o })
	}
	switch {
	case !sound || len(thresholds) == 0:
		return Inconclusive
	case has(Failed):
		return Failed
	case has(Inconclusive):
		return Inconclusive
	}
	return Passed
}

// judge has what judging needs.
type judge struct {
	plan    *Plan
	summary *results.Summary
}

// arm is the arm of that name; nil if it has no run.
func (j *judge) arm(name string) *results.Arm {
	for i := range j.summary.Arms {
		if j.summary.Arms[i].Name == name {
			return &j.summary.Arms[i]
		}
	}
	return nil
}

// missing lists the seeds of the expected runs of an arm that are not there.
func (j *judge) missing(arm string) []uint64 {
	a := j.arm(arm)
	var seeds []uint64
	for _, seed := range j.plan.Seeds {
		if a == nil || !slices.ContainsFunc(a.Runs, func(r results.RunInfo) bool { return r.Seed == seed }) {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}
