package agreement

import (
	"slices"
	"time"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
	"github.com/mirrorgap/mirrorgap/results/verdict"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Version is the version of Report's JSON form. The number changes when a field changes its meaning or goes; new fields may come at any time.
const Version = "mirrorgap.agreement/v1"

const (
	// Tolerance is by how much the model's storm rate, and the 10th, 50th and 90th percentile of its delays, may differ from the real kubelet's, as a part of
	// that. It is a choice, not a law.
	Tolerance = 0.2
	// Resolution is by how many seconds percentiles may differ in any case: events reach a trace through watches, a few milliseconds late.
	Resolution = 0.02
	// Distance is the Kolmogorov–Smirnov distance up to which delays agree whatever their percentiles: the shares of nodes, or pods, that were done by any
	// given time differ by at most a fifth. Samples by which chance alone makes a larger one are too small to be judged.
	Distance = 0.2
	// LeastSequences is the number of random sequences below which the admission test is inconclusive: 0 disagreements in 200 bound their rate by 1.5 %.
	LeastSequences = 200
)

// Report is what the model and the real kubelet had in common. The zero value is inconclusive.
type Report struct {
	// Version is the constant Version.
	Version string `json:"version"`
	// Outcome is Passed if model and real kubelet agree in everything that is judged, and Failed if they differ in something.
	Outcome verdict.Outcome `json:"outcome"`
	// Command is the command line that made the report; Start when it was begun.
	Command string    `json:"command,omitempty"`
	Start   time.Time `json:"start"`
	// Versions and Machine are what it was made with.
	Versions map[string]string `json:"versions,omitempty"`
	Machine  trace.Machine     `json:"machine"`
	// Admission and Timing are the two parts; nil if one was not done, which makes the report inconclusive.
	Admission *Admission `json:"admission,omitempty"`
	Timing    *Timing    `json:"timing,omitempty"`
}

// Admission is what the differential admission test counted: random sequences of pods and changes, the same ones for a model and a real kubelet.
type Admission struct {
	Outcome verdict.Outcome `json:"outcome"`
	// Seed is what the sequences were drawn from.
	Seed uint64 `json:"seed"`
	// Planned is how many sequences there were to be, Sequences how many were played to their ends on both sides.
	Planned   int `json:"planned"`
	Sequences int `json:"sequences"`
	// Pods is how many pods the sequences had, Decisions how many of them kubelets decided about, by the real one's verdict (admitted, rejected, …), and
	// Reasons how many of these it rejected for which reason.
	Pods      int            `json:"pods"`
	Decisions map[string]int `json:"decisions,omitempty"`
	Reasons   map[string]int `json:"reasons,omitempty"`
	// NotExercised are the features of sequences that none of these had. What was not exercised is not known to agree.
	NotExercised []string `json:"notExercised,omitempty"`
	// Disagreements is in how many sequences anything differed: who was admitted, status, reason, message, events. Flaky is how many of these agreed when they
	// were played again.
	Disagreements int `json:"disagreements"`
	Flaky         int `json:"flaky,omitempty"`
	// Repeated is how many sequences had to be played a second time, because on one side something did not come in time.
	Repeated int `json:"repeated,omitempty"`
	// Rate is the share of sequences with a disagreement. The sequences are drawn independently of one another.
	Rate stats.Estimate `json:"rate"`
	// Examples are disagreements, shrunk.
	Examples []string `json:"examples,omitempty"`
}

// Timing is what the timing experiment measured.
type Timing struct {
	Outcome verdict.Outcome `json:"outcome"`
	// Experiment is its name, Seeds those of the runs that it was to have, Runs those that there are, and Start when the first of them began.
	Experiment string            `json:"experiment"`
	Seeds      []uint64          `json:"seeds"`
	Start      time.Time         `json:"start"`
	Runs       []results.RunInfo `json:"runs"`
	// Doubts are why nothing is concluded from the runs.
	Doubts []string `json:"doubts,omitempty"`
	Delays []Delay  `json:"delays"`
	Storm  Storm    `json:"storm"`
}

// Delay is a length of time, in seconds, of modelled and of real nodes.
type Delay struct {
	// Name is one of the Delay… constants, StaticPod the static pod (namespace/name) if it is about one.
	Name      string `json:"name"`
	StaticPod string `json:"staticPod,omitempty"`
	// Of is what there is one value of: "node" or "pod".
	Of    string `json:"of"`
	Model Sample `json:"model"`
	Real  Sample `json:"real"`
	// Distance is that between the two, over all runs.
	Distance stats.Distance  `json:"distance"`
	Outcome  verdict.Outcome `json:"outcome"`
	// Reason says what the outcome rests on.
	Reason string `json:"reason"`
	// values are what the samples are of, by side.
	values [2]sample
}

// The names of delays.
const (
	// DelayReady is from registration to Ready, DelayMirror to the first mirror pod of a static pod, on nodes of the start groups.
	DelayReady  = "registrationToReady"
	DelayMirror = "registrationToMirror"
	// DelayFailedEarly and DelayFailed are from the bind of a pod that its kubelet rejected to its Failed status in the API: of those on nodes of the start
	// groups that were bound within Early of the node's registration, and of those on nodes of the storm groups that were bound after StatusTick.
	DelayFailedEarly = "bindToFailedEarly"
	DelayFailed      = "bindToFailed"
)

const (
	// Early is the period of the kubelet's housekeeping (pkg/kubelet/kubelet.go, housekeepingPeriod), which begins after registration: of what is bound
	// within that no rejection is from after the first.
	Early = 2 * time.Second
	// StatusTick is the period of the kubelet's full status sync (pkg/kubelet/status/status_manager.go, syncPeriod). A rejection from before the first
	// housekeeping waits for it, so that what is bound later than that after registration is not held up by the start of its kubelet.
	StatusTick = 10 * time.Second
)

// Sample describes the values of one side.
type Sample struct {
	// N is the number of values, Nodes that of the nodes that they are of.
	N     int `json:"n"`
	Nodes int `json:"nodes"`
	// Open is how many were not over at the end of their run. They are in none of the others.
	Open int `json:"open"`
	// Median has the interval over runs. P10 and P90 are the sample's own; nil if it is empty.
	Median stats.Estimate `json:"median"`
	P10    *float64       `json:"p10,omitempty"`
	P90    *float64       `json:"p90,omitempty"`
}

// Storm is the loop of rejection and replacement on nodes of the storm groups, while the mirror pods of all of them were missing.
type Storm struct {
	// Runs are in the order of Timing.Runs. Nil for one without a storm.
	Runs []*StormRun `json:"runs"`
	// Ratio is the model's rate divided by the real one, by runs: the Hodges–Lehmann estimate over the logarithms of the runs' ratios, and the interval that
	// the signed-rank test inverts to.
	Ratio   stats.Estimate  `json:"ratio"`
	Outcome verdict.Outcome `json:"outcome"`
	Reason  string          `json:"reason"`
}

// StormRun is the storm of one run: of both sides in the same time.
type StormRun struct {
	// Seconds is the time from when every kubelet of the storm groups was warm to the first mirror pod of any of them.
	Seconds float64 `json:"seconds"`
	// ModelNodes and RealNodes are how many nodes there were, Model and Real their rates: rejections that the API showed, per node and second.
	ModelNodes int     `json:"modelNodes"`
	RealNodes  int     `json:"realNodes"`
	Model      float64 `json:"modelPerNodeSecond"`
	Real       float64 `json:"realPerNodeSecond"`
}

// Judge sets the outcome of the admission part and of the whole. Measure has set that of the timing.
func (r *Report) Judge() {
	r.Version = Version
	parts := []verdict.Outcome{verdict.Inconclusive, verdict.Inconclusive}
	if r.Admission != nil {
		r.Admission.judge()
		parts[0] = r.Admission.Outcome
	}
	if r.Timing != nil {
		parts[1] = r.Timing.Outcome
	}
	r.Outcome = conclude(parts)
}

func (a *Admission) judge() {
	a.Rate = stats.Proportion(a.Disagreements, a.Sequences)
	switch {
	case a.Disagreements > a.Flaky:
		a.Outcome = verdict.Failed
	case a.Disagreements == 0 && a.Sequences >= max(a.Planned, LeastSequences) && a.decisions() > 0:
		a.Outcome = verdict.Passed
	default:
		a.Outcome = verdict.Inconclusive
	}
}

// decisions is how many there were in all.
func (a *Admission) decisions() int {
	sum := 0
	for _, n := range a.Decisions {
		sum += n
	}
	return sum
}

// conclude makes one outcome of several.
func conclude(parts []verdict.Outcome) verdict.Outcome {
	switch {
	case slices.Contains(parts, verdict.Failed):
		return verdict.Failed
	case len(parts) == 0 || slices.Contains(parts, verdict.Inconclusive):
		return verdict.Inconclusive
	}
	return verdict.Passed
}
