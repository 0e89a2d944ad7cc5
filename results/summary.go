package results

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mirrorgap/mirrorgap/results/stats"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Summary puts the runs of one experiment together.
type Summary struct {
	// Version is SummaryVersion.
	Version    string `json:"version"`
	Experiment string `json:"experiment"`
	// Arms are in the order of their first runs.
	Arms []Arm `json:"arms"`
	// Comparisons are of each other arm with the first, a metric each.
	Comparisons []Comparison `json:"comparisons,omitempty"`
	// Warnings say what the summary does not carry.
	Warnings []stats.Warning `json:"warnings,omitempty"`
}

// Arm is one treatment over all its runs.
type Arm struct {
	Name string `json:"name"`
	// Gate is the readiness gate of the arm; nil if nodes are not held.
	Gate *trace.Gate `json:"gate,omitempty"`
	// Runs are in order of their seeds.
	Runs []RunInfo `json:"runs"`
	// Figures has one entry for each of Metrics.
	Figures []Figure `json:"metrics"`
}

// RunInfo tells which run it was and how it ended.
type RunInfo struct {
	Seed uint64 `json:"seed"`
	// Labels, Engine, Versions and Machine are those of the trace's header.
	Labels     map[string]string `json:"labels,omitempty"`
	Engine     string            `json:"engine"`
	Versions   map[string]string `json:"versions,omitempty"`
	Machine    trace.Machine     `json:"machine"`
	End        string            `json:"end"`
	EndMessage string            `json:"endMessage,omitempty"`
	// Conclusive and Settled are Run.Conclusive and Run.Settled.
	Conclusive bool    `json:"conclusive"`
	Settled    bool    `json:"settled"`
	Died       []Death `json:"died,omitempty"`
	// KubeletEvidence is Run.KubeletEvidence.
	KubeletEvidence bool `json:"kubeletEvidence"`
	// Interrupted is Run.LongestInterruption in seconds, absent if no watch was broken.
	Interrupted float64 `json:"interruptedSeconds,omitempty"`
}

// Figure is what the runs of an arm say about a metric.
type Figure struct {
	Metric
	// OverNodes describes the new nodes of all runs of the arm, pooled; nil for a metric that nodes do not have.
	OverNodes *Distribution `json:"overNodes,omitempty"`
	// OverPods describes the workload pods of all runs of the arm, pooled; nil for a metric that pods do not have.
	OverPods *Distribution `json:"overPods,omitempty"`
	// OverSeeds describes the runs' own figures, one a run.
	OverSeeds Distribution `json:"overSeeds"`
	// Rate is the total over all runs as a part of what the metric counts; nil for a metric that is no part of others.
	Rate *Rate `json:"rate,omitempty"`
	// Runs are these figures, in the order of Arm.Runs; null where a run has none.
	Runs []*Observation `json:"runs"`
	// Nodes and Pods are the values of each run's new nodes and workload pods, in the order of Arm.Runs; nil ones were not measured. They are not in
	// the JSON form: nodes.csv and pods.csv of the runs have what they are made from.
	Nodes [][]*Observation `json:"-"`
	Pods  [][]*Observation `json:"-"`
}

// Figure returns the arm's figure of that name and key; nil if there is none.
func (a *Arm) Figure(name, key string) *Figure {
	for i := range a.Figures {
		if f := &a.Figures[i]; f.Name == name && f.Key == key {
			return f
		}
	}
	return nil
}

// Summarize puts runs together by arm. Runs that are not conclusive take part; RunInfo says so. It fails when there is no run, when the runs are
// not of one experiment, and when an arm has two runs of one seed.
func Summarize(runs []*Digest) (*Summary, error) {
	if len(runs) == 0 {
		return nil, errors.New("summarize runs: there is none")
	}
	s := &Summary{Version: SummaryVersion, Experiment: runs[0].Header.Experiment}
	var names []string
	byArm := map[string][]*Digest{}
	for _, run := range runs {
		h := run.Header
		if h.Experiment != s.Experiment {
			return nil, fmt.Errorf("summarize runs: they are of different experiments, %q and %q", s.Experiment, h.Experiment)
		}
		if !slices.Contains(names, h.Arm) {
			names = append(names, h.Arm)
		}
		if slices.ContainsFunc(byArm[h.Arm], func(other *Digest) bool { return other.Header.Seed == h.Seed }) {
			return nil, fmt.Errorf("summarize runs: arm %q has two runs of seed %d", h.Arm, h.Seed)
		}
		byArm[h.Arm] = append(byArm[h.Arm], run)
	}
	for _, name := range names {
		s.Arms = append(s.Arms, summarizeArm(name, byArm[name], metricsOf(runs)))
	}
	s.compare()
	s.warn()
	return s, nil
}

func summarizeArm(name string, runs []*Digest, metrics []Metric) Arm {
	slices.SortFunc(runs, func(a, b *Digest) int { return cmp.Compare(a.Header.Seed, b.Header.Seed) })
	arm := Arm{Name: name, Gate: runs[0].Header.Gate}
	for _, run := range runs {
		arm.Runs = append(arm.Runs, run.RunInfo)
	}
	for _, m := range metrics {
		f := m.over(runs)
		f.estimate(name)
		arm.Figures = append(arm.Figures, f)
	}
	conclusive := !slices.ContainsFunc(arm.Runs, func(r RunInfo) bool { return !r.Conclusive })
	for i := range arm.Figures {
		if f := &arm.Figures[i]; f.of != "" {
			f.Rate = rate(f, arm.Figure(f.of, ""), conclusive)
		}
	}
	return arm
}

func (r *Run) info() RunInfo {
	return RunInfo{
		Seed: r.Header.Seed, Labels: r.Header.Labels, Engine: r.Header.Engine, Versions: r.Header.Versions, Machine: r.Header.Machine,
		End: r.End, EndMessage: r.EndMessage, Conclusive: r.Conclusive(), Settled: r.Settled(), Died: r.Died,
		KubeletEvidence: r.KubeletEvidence, Interrupted: r.LongestInterruption().Seconds(),
	}
}

// SameConditions tells whether two runs can be compared as far as what they were made with is concerned.
func (r *RunInfo) SameConditions(other *RunInfo) bool {
	return r.Engine == other.Engine && maps.Equal(r.Versions, other.Versions) && r.Machine == other.Machine
}

// estimate adds estimates to the figure's distributions; name is the arm's.
func (f *Figure) estimate(name string) {
	f.OverSeeds.estimateSeeds(f.Runs)
	stream := strings.Join([]string{name, f.Name, f.Key}, "/")
	if f.OverNodes != nil {
		f.OverNodes.estimate(stream, f.Nodes)
	}
	if f.OverPods != nil {
		f.OverPods.estimate(stream, f.Pods)
	}
}

// over takes the metric of all these runs.
func (m Metric) over(runs []*Digest) Figure {
	f := Figure{Metric: m}
	for _, run := range runs {
		o := run.reading(m)
		f.Runs, f.Nodes, f.Pods = append(f.Runs, o.run), append(f.Nodes, o.nodes), append(f.Pods, o.pods)
	}
	f.OverSeeds = distribute(f.Runs)
	if m.OfNodes() {
		f.OverNodes = new(distribute(slices.Concat(f.Nodes...)))
	}
	if m.OfPods() {
		f.OverPods = new(distribute(slices.Concat(f.Pods...)))
	}
	return f
}
