package experiments

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
)

// SweepKind is the kind of a sweep file; its apiVersion is APIVersion.
const SweepKind = "Sweep"

// Sweep is one file: an experiment, parameters of it that are varied, and thereby the cases, one for each combination of their values. Every case
// is run with the same seeds, so that cases differ in nothing but their parameters: random quantities that they share are drawn alike.
type Sweep struct {
	// APIVersion and Kind are always APIVersion and SweepKind.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Metadata names the sweep, and the experiment of each of its cases.
	Metadata SweepMetadata `json:"metadata"`
	// Spec is everything else.
	Spec SweepSpec `json:"spec"`
	// Cases are the combinations of the parameters' values, in the order of the file; the last parameter varies first.
	Cases []Case `json:"-"`
}

// SweepMetadata names a sweep.
type SweepMetadata struct {
	// Name is a DNS label; results folders are called after it.
	Name string `json:"name"`
}

// SweepSpec is what is varied. Exactly one of Base and Experiment is set; after loading it is always Experiment.
type SweepSpec struct {
	// Description says what the sweep shows, and how long it takes; its first line stands for it in lists.
	Description string `json:"description,omitempty"`
	// Base names the experiment: one of the library, or a file, relative to the sweep's. Its thresholds and assumptions are left out, as they were set
	// for its own values.
	Base string `json:"base,omitempty"`
	// Experiment is the experiment inline: a map with its spec. It has neither thresholds nor assumptions.
	Experiment json.RawMessage `json:"experiment,omitempty"`
	// Seeds are what every arm of every case is run with. Default: the experiment's.
	Seeds Seeds `json:"seeds,omitempty"`
	// Set sets fields of the experiment, by their paths, in all cases; empty after loading.
	Set map[string]json.RawMessage `json:"set,omitempty"`
	// Parameters are what is varied. At least one.
	Parameters []Parameter `json:"parameters"`
	// Show names the metrics (results.Metrics, without those that have keys) that tables and plots show. Default DefaultShow.
	Show []string `json:"show,omitempty"`
}

// DefaultShow lists the metrics that a sweep shows unless told otherwise: how often the race is lost, how much, and what the gate costs.
func DefaultShow() []string {
	return []string{
		results.MetricNewNodesWithRejection, results.MetricRejectedPods, results.MetricFirstWaveRejections,
		results.MetricExposure, results.MetricHoldBeyondReady,
	}
}

// Parameter is something that is varied.
type Parameter struct {
	// Name is up to 30 letters, digits and hyphens, unique in the sweep; the runs carry it as a label.
	Name string `json:"name"`
	// Fields are the paths of the fields of the experiment that take its value: spec.kubelet.mirrorDelay, spec.nodeGroups[0].scaleUp.to. At least one.
	// No field is, or is in, a field of another parameter.
	Fields []string `json:"fields"`
	// Values are what it is set to. In a file each may be the bare value.
	Values []Value `json:"values"`
}

// Value is one value of a parameter.
type Value struct {
	// Label stands for the value in tables, plots and names of folders: at most 40 characters, unique in the parameter. Default: a scalar itself, or the
	// scalar of a map of one field, as in {preset: kubelet-1.32}.
	Label string `json:"label"`
	// Value is what the fields are set to.
	Value json.RawMessage `json:"value"`
}

// Case is one point of a sweep.
type Case struct {
	// Labels are those of the parameters' values, in the order of the parameters.
	Labels []string
	// Name is parameter=label of each parameter, with commas between: what people and its results folder call the case. It has no character that a
	// shell or a file system treats in a special way.
	Name string
	// Experiment is the sweep's experiment with the values of the case, resolved. It has the sweep's name and the labels of the case.
	Experiment *Experiment
}

// SweepRun is one run of a sweep.
type SweepRun struct {
	Case *Case
	Run
}

// Arms are the names of the arms, which all cases have.
func (s *Sweep) Arms() []string {
	var names []string
	for _, arm := range s.Cases[0].Experiment.Spec.Arms {
		names = append(names, arm.Name)
	}
	return names
}

// Runs lists the runs in the order in which they are to be made: all cases with all arms of the first seed, then of the next, so that a sweep which
// is cut short still holds whole comparisons.
func (s *Sweep) Runs() []SweepRun {
	var runs []SweepRun
	for _, seed := range s.Spec.Seeds {
		for i := range s.Cases {
			for _, arm := range s.Cases[i].Experiment.Spec.Arms {
				runs = append(runs, SweepRun{&s.Cases[i], Run{arm, seed}})
			}
		}
	}
	return runs
}

// Check checks the experiment of every case. What is wrong with several of them is reported once, and says with which. The error is a *BadInput, or
// one of check's that is none.
func (s *Sweep) Check(check func(*Experiment) error) error {
	var found caseProblems
	for i := range s.Cases {
		err := check(s.Cases[i].Experiment)
		var bad *BadInput
		switch {
		case errors.As(err, &bad):
			found.add(s.Cases[i].Name, bad.Problems)
		case err != nil:
			return fmt.Errorf("case %s: %w", s.Cases[i].Name, err)
		}
	}
	if problems := found.merged(len(s.Cases)); len(problems) > 0 {
		return &BadInput{problems}
	}
	return nil
}

// caseName makes the name of a case.
func caseName(parameters []Parameter, labels []string) string {
	parts := make([]string, len(labels))
	for i, label := range labels {
		parts[i] = parameters[i].Name + "=" + strings.Map(plainOrHyphen, label)
	}
	return strings.Join(parts, ",")
}

// plainOrHyphen keeps characters that mean nothing to any shell or file system.
func plainOrHyphen(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._+%", r) {
		return r
	}
	return '-'
}
