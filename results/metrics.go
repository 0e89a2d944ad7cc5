package results

import (
	"slices"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// The names of the metrics. docs/metrics.md defines each.
const (
	MetricNewNodes                  = "newNodes"
	MetricInitialNodes              = "initialNodes"
	MetricPodsCreated               = "podsCreated"
	MetricRejectedPods              = "rejectedPods"
	MetricRejectedPodsByReason      = "rejectedPodsByReason"
	MetricRejectedPodsByCause       = "rejectedPodsByCause"
	MetricNewNodesWithRejection     = "newNodesWithRejection"
	MetricInitialNodesWithRejection = "initialNodesWithRejection"
	MetricFirstWaveRejections       = "firstWaveRejections"
	MetricFirstWaveHidden           = "firstWaveHiddenRejections"
	MetricClosedFormNodes           = "closedFormNodes"
	MetricClosedFormRejections      = "closedFormRejections"
	MetricClosedFormObserved        = "closedFormObservedRejections"
	MetricStormRejections           = "stormRejections"
	MetricStormSpan                 = "stormSpanSeconds"
	MetricStormRate                 = "stormRatePerSecond"
	MetricStormRatePerNode          = "stormRatePerExposedNodeSecond"
	MetricNeverSchedulable          = "newNodesNeverSchedulable"
	MetricExposure                  = "exposureSeconds"
	MetricHold                      = "holdSeconds"
	MetricHoldBeyondReady           = "holdBeyondReadySeconds"
	MetricHoldMirrors               = "holdMirrorsSeconds"
	MetricHoldChecker               = "holdCheckerSeconds"
	MetricHoldController            = "holdControllerSeconds"
	MetricSchedulerUse              = "schedulerUseSeconds"
	MetricHoldOutOfOrder            = "holdOutOfOrderNodes"
	MetricRunningAfterScaleUp       = "allRunningAfterScaleUpSeconds"
	MetricRunningAfterWorkload      = "allRunningAfterWorkloadSeconds"
	MetricRunningAtEnd              = "podsRunningAtEnd"
	MetricUnschedulableAtEnd        = "podsUnschedulableAtEnd"
	MetricPendingAtEnd              = "podsPendingAtEnd"
	MetricFailedAtEnd               = "podsFailedAtEnd"
	MetricSucceededAtEnd            = "podsSucceededAtEnd"
	MetricNotShownByAPI             = "rejectionsNotShownByAPI"
	MetricNotSeenByKubelet          = "rejectionsNotSeenByKubelet"
	MetricFailed                    = "failedPods"
	MetricExtraPods                 = "extraPodsCreated"
	MetricPodStart                  = "podStartSeconds"
	MetricHeldNodes                 = "heldNodeSeconds"
	MetricIdle                      = "idleMillicoreSeconds"
	MetricUnusedAtEnd               = "unusedMillicoresAtEnd"
	MetricUnused                    = "unusedMillicoreSeconds"
	MetricNodesUsed                 = "nodesRunningWorkloadAtEnd"
	MetricNodesNeeded               = "nodesNeeded"
	MetricPeakHidden                = "peakHiddenMillicores"
	MetricPeakOvercommit            = "peakOvercommitMillicores"
	MetricOvercommit                = "overcommitMillicoreSeconds"
	MetricWall                      = "wallSeconds"
	MetricLastMirror                = "lastMirrorSeconds"
	MetricWallBeyondLastMirror      = "wallBeyondLastMirrorSeconds"
)

// Metric is something that a run has a figure for.
type Metric struct {
	// Name is one of the Metric… constants; Key tells metrics of one name apart (the reason or the cause of a rejection).
	Name string `json:"name"`
	Key  string `json:"key,omitempty"`
	// Unit is of every value: "pods", "nodes", "s", "1/s", "mCPU" (millicores), "node·s", "mCPU·s".
	Unit string `json:"unit"`
	// MachineDependent: the speed of the machine and of the loop of controllers, scheduler and kubelet shapes it, so that it compares only
	// between runs on one machine.
	MachineDependent bool `json:"machineDependent,omitempty"`

	// of is the name of the metric that counts what this one counts a part of; empty for others.
	of string
	// ofNode is a new node's value, nil for a metric that nodes do not have.
	ofNode func(*Node) *Observation
	// ofPod is a workload pod's value, nil for a metric that pods do not have.
	ofPod func(*Run, *Pod) *Observation
	// ofRun is the run's value; nil for the median over its new nodes, or its workload pods.
	ofRun func(*Run) *Observation
}

// OfNodes tells whether new nodes have a value of their own.
func (m Metric) OfNodes() bool { return m.ofNode != nil }

// OfPods tells whether workload pods have a value of their own.
func (m Metric) OfPods() bool { return m.ofPod != nil }

// RunValue is the run's own figure; nil if there is none. For a metric of nodes or pods it is the median over the new nodes, or the workload pods.
// If one of these is censored, so is the median: it is taken with every lower bound in the place of what it bounds, and is one itself.
func (m Metric) RunValue(r *Run) *Observation {
	if m.ofRun != nil {
		return m.ofRun(r)
	}
	var values []float64
	censored := false
	for _, o := range slices.Concat(m.nodeValues(r), m.podValues(r)) {
		if o != nil {
			values, censored = append(values, o.Value), censored || o.Censored
		}
	}
	median := Describe(values).Median
	if median == nil {
		return nil
	}
	return &Observation{Value: *median, Censored: censored}
}

// podValues are the values of the run's workload pods that have one; none for a metric that pods do not have.
func (m Metric) podValues(r *Run) []*Observation {
	if m.ofPod == nil {
		return nil
	}
	var values []*Observation
	for _, p := range r.Pods {
		if p.Role != RoleWorkload {
			continue
		}
		if o := m.ofPod(r, p); o != nil { // a storm has millions of pods that never ran
			values = append(values, o)
		}
	}
	return values
}

// nodeValues are the values of the run's new nodes; none for a metric that nodes do not have.
func (m Metric) nodeValues(r *Run) []*Observation {
	if m.ofNode == nil {
		return nil
	}
	var values []*Observation
	for _, n := range r.Nodes {
		if !n.Initial {
			values = append(values, m.ofNode(n))
		}
	}
	return values
}

// Metrics lists every metric, in the order in which they are shown. Those of rejected pods by reason and by cause, which a run has one of for
// each of its reasons and causes, are there once, without a key.
func Metrics() []Metric { return metrics([]string{""}, []string{""}) }

// metrics lists every metric, with those by reason and by cause for these keys.
func metrics(reasons, causes []string) []Metric {
	return slices.Concat(populationMetrics(), rejectionMetrics(reasons, causes), firstWaveMetrics(), stormMetrics(), nodeTimeMetrics(), planningMetrics(), outcomeMetrics())
}

func populationMetrics() []Metric {
	return []Metric{
		{Name: MetricInitialNodes, Unit: "nodes", ofRun: nodesThat(func(n *Node) bool { return n.Initial })},
		{Name: MetricNewNodes, Unit: "nodes", ofRun: nodesThat(isNew)},
		{Name: MetricPodsCreated, Unit: "pods", MachineDependent: true, ofRun: podsThat(func(p *Pod) bool {
			return p.Role == RoleWorkload && p.Created != nil && !p.Existing
		})},
	}
}

func rejectionMetrics(reasons, causes []string) []Metric {
	metrics := []Metric{{
		Name: MetricRejectedPods, Unit: "pods", MachineDependent: true,
		ofNode: func(n *Node) *Observation { return count(n.Rejected) },
		ofRun:  podsThat(isRejected),
	}}
	for _, reason := range reasons {
		metrics = append(metrics, Metric{
			Name: MetricRejectedPodsByReason, Key: reason, Unit: "pods", MachineDependent: true,
			ofRun: podsThat(func(p *Pod) bool { return isRejected(p) && p.Rejection.Reason == reason }),
		})
	}
	for _, cause := range causes {
		metrics = append(metrics, Metric{
			Name: MetricRejectedPodsByCause, Key: cause, Unit: "pods", MachineDependent: true,
			ofRun: podsThat(func(p *Pod) bool { return isRejected(p) && string(p.Rejection.Cause) == cause }),
		})
	}
	return append(metrics,
		Metric{Name: MetricNewNodesWithRejection, Unit: "nodes", of: MetricNewNodes, ofRun: nodesThat(func(n *Node) bool { return isNew(n) && n.Rejected > 0 })},
		Metric{Name: MetricInitialNodesWithRejection, Unit: "nodes", of: MetricInitialNodes, ofRun: nodesThat(func(n *Node) bool { return n.Initial && n.Rejected > 0 })},
		Metric{Name: MetricNotShownByAPI, Unit: "pods", MachineDependent: true, ofRun: podsThat(func(p *Pod) bool {
			return isRejected(p) && !p.Rejection.SeenByAPI
		})},
		Metric{Name: MetricNotSeenByKubelet, Unit: "pods", ofRun: func(r *Run) *Observation {
			if !r.KubeletEvidence {
				return nil
			}
			return podsThat(func(p *Pod) bool { return isRejected(p) && !p.Rejection.SeenByKubelet })(r)
		}},
	)
}

func firstWaveMetrics() []Metric {
	applies := func(n *Node) bool { return isNew(n) && n.FirstWave.ClosedForm != nil }
	return []Metric{
		perNodeSum(MetricFirstWaveRejections, isNew, func(n *Node) int { return n.FirstWave.Rejected }),
		perNodeSum(MetricFirstWaveHidden, isNew, func(n *Node) int { return n.FirstWave.HiddenRejected }),
		{Name: MetricClosedFormNodes, Unit: "nodes", ofRun: nodesThat(applies)},
		perNodeSum(MetricClosedFormRejections, applies, func(n *Node) int { return n.FirstWave.ClosedForm.Rejected() }),
		perNodeSum(MetricClosedFormObserved, applies, func(n *Node) int { return n.FirstWave.Rejected }),
	}
}

func stormMetrics() []Metric {
	return []Metric{
		{Name: MetricStormRejections, Unit: "pods", MachineDependent: true, ofRun: podsThat(isStorm)},
		{Name: MetricStormSpan, Unit: "s", MachineDependent: true, ofRun: func(r *Run) *Observation { return observe(r.stormSpan()) }},
		{Name: MetricStormRate, Unit: "1/s", MachineDependent: true, ofRun: (*Run).stormRate},
		{Name: MetricStormRatePerNode, Unit: "1/s", MachineDependent: true, ofNode: (*Node).stormRate, ofRun: (*Run).stormRatePerNode},
	}
}

func nodeTimeMetrics() []Metric {
	part := func(pick func(*Hold) *Span) func(*Node) *Observation {
		return func(n *Node) *Observation { return observe(n.holdPart(pick)) }
	}
	return []Metric{
		{Name: MetricNeverSchedulable, Unit: "nodes", of: MetricNewNodes, ofRun: nodesThat(func(n *Node) bool { return isNew(n) && n.Schedulable == nil })},
		{Name: MetricExposure, Unit: "s", ofNode: func(n *Node) *Observation { return observe(n.Exposure) }},
		{Name: MetricHold, Unit: "s", ofNode: part(func(h *Hold) *Span { return &h.Total })},
		{Name: MetricHoldBeyondReady, Unit: "s", ofNode: part(func(h *Hold) *Span { return h.BeyondReady })},
		{Name: MetricHoldMirrors, Unit: "s", ofNode: part(func(h *Hold) *Span { return h.Mirrors })},
		{Name: MetricHoldChecker, Unit: "s", ofNode: part(func(h *Hold) *Span { return h.Checker })},
		{Name: MetricHoldController, Unit: "s", MachineDependent: true, ofNode: part(func(h *Hold) *Span { return h.Controller })},
		{Name: MetricSchedulerUse, Unit: "s", MachineDependent: true, ofNode: part(func(h *Hold) *Span { return h.Scheduler })},
		{Name: MetricHoldOutOfOrder, Unit: "nodes", of: MetricNewNodes, ofRun: nodesThat(func(n *Node) bool { return isNew(n) && n.Hold != nil && n.Hold.OutOfOrder })},
	}
}

func outcomeMetrics() []Metric {
	metrics := []Metric{
		{Name: MetricRunningAfterWorkload, Unit: "s", MachineDependent: true, ofRun: runningAfter(trace.PhaseWorkload)},
		{Name: MetricRunningAfterScaleUp, Unit: "s", MachineDependent: true, ofRun: runningAfter(trace.PhaseScaleUp)},
	}
	for _, end := range []struct {
		name  string
		state State
	}{
		{MetricRunningAtEnd, StateRunning}, {MetricUnschedulableAtEnd, StateUnschedulable}, {MetricPendingAtEnd, StatePending},
		{MetricSucceededAtEnd, StateSucceeded}, {MetricFailedAtEnd, StateFailed},
	} {
		metrics = append(metrics, Metric{
			Name: end.name, Unit: "pods", MachineDependent: end.state == StateFailed,
			ofRun: podsThat(func(p *Pod) bool { return p.Role == RoleWorkload && p.State == end.state }),
		})
	}
	return append(metrics,
		Metric{Name: MetricWall, Unit: "s", MachineDependent: true, ofRun: func(r *Run) *Observation {
			return &Observation{Value: r.Wall.Seconds(), Censored: !r.Settled()}
		}},
		Metric{Name: MetricLastMirror, Unit: "s", ofRun: func(r *Run) *Observation { return observe(r.lastMirror()) }},
		Metric{Name: MetricWallBeyondLastMirror, Unit: "s", MachineDependent: true, ofRun: (*Run).wallBeyondLastMirror},
	)
}

func isNew(n *Node) bool     { return !n.Initial }
func isRejected(p *Pod) bool { return p.Rejection != nil }
func isStorm(p *Pod) bool    { return isRejected(p) && !p.Rejection.FirstWave }

// holdPart picks a part of the node's hold; nil if it was not held.
func (n *Node) holdPart(pick func(*Hold) *Span) *Span {
	if n.Hold == nil {
		return nil
	}
	return pick(n.Hold)
}

// nodesThat counts nodes.
func nodesThat(hold func(*Node) bool) func(*Run) *Observation {
	return func(r *Run) *Observation {
		n := 0
		for _, node := range r.Nodes {
			if hold(node) {
				n++
			}
		}
		return count(n)
	}
}

// podsThat counts pods.
func podsThat(hold func(*Pod) bool) func(*Run) *Observation {
	return func(r *Run) *Observation {
		n := 0
		for _, pod := range r.Pods {
			if hold(pod) {
				n++
			}
		}
		return count(n)
	}
}

// perNodeSum is a number of pods on each of the chosen nodes, and in a run their sum.
func perNodeSum(name string, chosen func(*Node) bool, number func(*Node) int) Metric {
	return Metric{
		Name: name, Unit: "pods",
		ofNode: func(n *Node) *Observation {
			if !chosen(n) {
				return nil
			}
			return count(number(n))
		},
		ofRun: func(r *Run) *Observation {
			sum := 0
			for _, n := range r.Nodes {
				if chosen(n) {
					sum += number(n)
				}
			}
			return count(sum)
		},
	}
}

// stormSpan is the time from the first rejection to the last of the storm; nil if there was no storm.
func (r *Run) stormSpan() *Span {
	var all, storm []time.Duration
	for _, p := range r.Pods {
		if isRejected(p) {
			all = append(all, p.Rejection.At)
		}
		if isStorm(p) {
			storm = append(storm, p.Rejection.At)
		}
	}
	if len(storm) == 0 {
		return nil
	}
	return &Span{Duration: slices.Max(storm) - slices.Min(all)}
}

// stormRate is the rejections of the storm over its span.
func (r *Run) stormRate() *Observation {
	span := r.stormSpan()
	if span == nil || span.Duration == 0 {
		return nil
	}
	return &Observation{Value: podsThat(isStorm)(r).Value / span.Duration.Seconds()}
}

// stormRate is the rejections of the storm on the node over its exposure; nil for a node that was not exposed.
func (n *Node) stormRate() *Observation {
	if n.Exposure == nil || n.Exposure.Duration == 0 {
		return nil
	}
	return &Observation{Value: float64(n.Rejected-n.FirstWave.Rejected) / n.Exposure.Duration.Seconds()}
}

// stormRatePerNode is the rejections of the storm on new, exposed nodes over the sum of their exposures.
func (r *Run) stormRatePerNode() *Observation {
	var storm int
	var exposed time.Duration
	for _, n := range r.Nodes {
		if isNew(n) && n.Exposure != nil && n.Exposure.Duration > 0 {
			storm += n.Rejected - n.FirstWave.Rejected
			exposed += n.Exposure.Duration
		}
	}
	if exposed == 0 {
		return nil
	}
	return &Observation{Value: float64(storm) / exposed.Seconds()}
}

// runningAfter is the time from the start of a phase to the last workload pod's Running; nil if none ran after it. It is censored in a run that
// did not settle: more might have followed.
func runningAfter(phase string) func(*Run) *Observation {
	return func(r *Run) *Observation {
		start, reached := r.Phases[phase]
		if !reached {
			return nil
		}
		var last *Observation
		for _, p := range r.Pods {
			if p.Role != RoleWorkload || p.Running == nil || *p.Running < start {
				continue
			}
			if after := (*p.Running - start).Seconds(); last == nil || after > last.Value {
				last = &Observation{Value: after, Censored: !r.Settled()}
			}
		}
		return last
	}
}

// lastMirror is the time from the registration of a new node to its last mirror pod, of the node where that came last; nil if there is none.
func (r *Run) lastMirror() *Span {
	n := r.lastMirrored()
	if n == nil {
		return nil
	}
	return &Span{Duration: *n.MirrorsVisible - n.Registered}
}

// wallBeyondLastMirror is what the run took after the last mirror pod of a new node had appeared.
func (r *Run) wallBeyondLastMirror() *Observation {
	n := r.lastMirrored()
	if n == nil {
		return nil
	}
	return &Observation{Value: (r.Wall - *n.MirrorsVisible).Seconds(), Censored: !r.Settled()}
}

// lastMirrored is the new node with static pods whose mirror pods were complete last; nil if there is none.
func (r *Run) lastMirrored() *Node {
	var last *Node
	for _, n := range r.Nodes {
		if isNew(n) && n.MirrorsVisible != nil && (last == nil || *n.MirrorsVisible > *last.MirrorsVisible) {
			last = n
		}
	}
	return last
}
