package verdict

import "slices"

// Plan is what an experiment says about its runs before they are made: which there are to be, and what is asked of them.
type Plan struct {
	// Arms and Seeds make up the expected runs: every arm with every seed.
	Arms  []Arm
	Seeds []uint64
	// Engine and Labels are those of the experiment, by which a threshold may select runs.
	Engine string
	Labels map[string]string
	// Thresholds are judged in their order. At least one.
	Thresholds  []Threshold
	Assumptions Assumptions
}

// Arm is one treatment.
type Arm struct {
	Name string
	// Gated: its nodes are held by a readiness gate.
	Gated bool
}

// Over says what a statistic is taken over.
type Over string

const (
	// OverRuns: the runs' own figures, one a run. For a metric of nodes or pods the run's figure is the median over these.
	OverRuns Over = "runs"
	// OverNodes: the values of the new nodes of all selected runs, pooled; only for metrics that nodes have.
	OverNodes Over = "nodes"
	// OverPods: the values of the workload pods of all selected runs, pooled; only for metrics that pods have.
	OverPods Over = "pods"
)

// Threshold is what is asked of one metric in one arm.
type Threshold struct {
	// Name is what people and JUnit readers call it; without one it is called after what it says.
	Name string `json:"name,omitempty"`
	// Why says what it means if it is not met. It is shown then.
	Why string `json:"why,omitempty"`
	// Arm is the arm whose runs are looked at.
	Arm string `json:"arm"`
	// Metric is the name of a metric (results.Metrics). Key is the reason or the cause, for a metric that has one for each.
	Metric string `json:"metric"`
	Key    string `json:"key,omitempty"`
	// Statistic is taken Over the figures of the selected runs. Default of Over: OverRuns.
	Statistic Statistic `json:"statistic"`
	Over      Over      `json:"over,omitempty"`
	// The threshold is met if the statistic compares so with Value, which is in the metric's unit. It has no default.
	Operator Operator `json:"operator"`
	Value    *float64 `json:"value"`
	// When selects runs of the arm; empty selects all. Keys are seed, engine, kubernetes (its version) and the labels of the experiment; values are
	// patterns as of path.Match. A run is selected if all of them match.
	When map[string]string `json:"when,omitempty"`
}

// SetDefaults sets every field that is not set and has a default.
func (t *Threshold) SetDefaults() {
	if t.Over == "" {
		t.Over = OverRuns
	}
}

// Assumptions are under what conditions thresholds mean anything. Besides these, every expected run must be there and have settled, no component may
// have died, and kubelets and API must agree about rejections.
type Assumptions struct {
	// RaceIn names the arms that must show the race: in each of their runs at least one pod was rejected for static pods that the scheduler could
	// not see. Default: all arms that are not gated, if the experiment has both kinds, else none. An empty list is none.
	RaceIn *[]string `json:"raceIn,omitempty"`
	// MinNewNodes and MinPods are how many new nodes, and workload pods, each run must have at least. Default 1.
	MinNewNodes *int `json:"minNewNodes,omitempty"`
	MinPods     *int `json:"minPods,omitempty"`
}

// SetDefaults sets every field that is not set. Arms are those of the experiment.
func (a *Assumptions) SetDefaults(arms []Arm) {
	if a.RaceIn == nil {
		a.RaceIn = new(ungatedOf(arms))
	}
	if a.MinNewNodes == nil {
		a.MinNewNodes = new(1)
	}
	if a.MinPods == nil {
		a.MinPods = new(1)
	}
}

// ungatedOf are the arms that others are compared with: those that are not gated, where there are both kinds.
func ungatedOf(arms []Arm) []string {
	ungated := []string{}
	for _, arm := range arms {
		if !arm.Gated {
			ungated = append(ungated, arm.Name)
		}
	}
	if len(ungated) == len(arms) {
		return []string{}
	}
	return ungated
}

// withDefaults is a copy of the plan in which every default is set.
func (p Plan) withDefaults() Plan {
	p.Thresholds = slices.Clone(p.Thresholds)
	for i := range p.Thresholds {
		p.Thresholds[i].SetDefaults()
	}
	p.Assumptions.SetDefaults(p.Arms)
	return p
}
