package results

import (
	"slices"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// planningMetrics are what the race, or the gate, costs.
func planningMetrics() []Metric {
	return []Metric{
		{Name: MetricFailed, Unit: "pods", MachineDependent: true, ofRun: podsThat(func(p *Pod) bool { return p.Role == RoleWorkload && p.Failed })},
		{Name: MetricExtraPods, Unit: "pods", MachineDependent: true, ofRun: (*Run).extraPods},
		{Name: MetricPodStart, Unit: "s", MachineDependent: true, ofPod: (*Run).podStart},
		{Name: MetricHeldNodes, Unit: "node·s", ofRun: ofHolds(func(h *Hold) *float64 {
			if h.BeyondReady == nil {
				return nil
			}
			return new(h.BeyondReady.Duration.Seconds())
		})},
		{Name: MetricIdle, Unit: "mCPU·s", ofRun: ofHolds(func(h *Hold) *float64 { return h.Idle })},
		{Name: MetricUnusedAtEnd, Unit: "mCPU", ofRun: func(r *Run) *Observation { return r.unused(float64(r.Usage.UnusedAtEnd)) }},
		{Name: MetricUnused, Unit: "mCPU·s", MachineDependent: true, ofRun: func(r *Run) *Observation {
			if _, reached := r.Phases[trace.PhaseScaleUp]; !reached {
				return nil
			}
			return r.unused(r.Usage.UnusedSeconds)
		}},
		{Name: MetricNodesUsed, Unit: "nodes", ofRun: func(r *Run) *Observation { return count(len(r.runningByNode())) }},
		{Name: MetricNodesNeeded, Unit: "nodes", ofRun: (*Run).nodesNeeded},
		{Name: MetricPeakHidden, Unit: "mCPU", ofRun: ofHidden(func(u Usage) float64 { return float64(u.PeakHidden) })},
		{Name: MetricPeakOvercommit, Unit: "mCPU", MachineDependent: true, ofRun: ofHidden(func(u Usage) float64 { return float64(u.PeakOvercommit) })},
		{Name: MetricOvercommit, Unit: "mCPU·s", MachineDependent: true, ofRun: ofHidden(func(u Usage) float64 { return u.OvercommitSeconds })},
	}
}

// ofHidden is a figure to which hidden static pods add; nil if there may be some of which nobody tells.
func ofHidden(amount func(Usage) float64) func(*Run) *Observation {
	return func(r *Run) *Observation {
		if !r.KubeletEvidence && !slices.ContainsFunc(r.Nodes, func(n *Node) bool { return n.StaticPods > 0 }) {
			return nil
		}
		return &Observation{Value: amount(r.Usage)}
	}
}

// unused is a figure of what Ready nodes leave unused; nil if there was none.
func (r *Run) unused(amount float64) *Observation {
	if r.Usage.ReadyNodes == 0 {
		return nil
	}
	return &Observation{Value: amount}
}

// podStart is the time from the pod's creation to Running; censored for one that was still waiting at the end of the trace. Nil for one that ended, or
// was rejected, without having run, and for one that was there when recording began.
func (r *Run) podStart(p *Pod) *Observation {
	switch {
	case p.Created == nil || p.Existing || p.Running != nil && *p.Running < *p.Created:
		return nil
	case p.Running != nil:
		return observe(&Span{Duration: *p.Running - *p.Created})
	case p.Rejection != nil || p.Ended != nil || p.Deleted != nil:
		return nil
	}
	return observe(&Span{Duration: r.Wall - *p.Created, Censored: true})
}

// extraPods counts what controllers created beyond what they wanted; nil without controllers.
func (r *Run) extraPods() *Observation {
	if len(r.Controllers) == 0 {
		return nil
	}
	extra := 0
	for _, c := range r.Controllers {
		extra += c.Created - c.Wanted
	}
	return count(extra)
}

// ofHolds sums what the holds of new nodes cost; nil if none cost anything that is known. A hold that had not ended makes it a lower bound.
func ofHolds(cost func(*Hold) *float64) func(*Run) *Observation {
	return func(r *Run) *Observation {
		var sum *Observation
		for _, n := range r.Nodes {
			if n.Initial || n.Hold == nil || cost(n.Hold) == nil {
				continue
			}
			if sum == nil {
				sum = &Observation{}
			}
			sum.Value += *cost(n.Hold)
			sum.Censored = sum.Censored || n.Hold.Total.Censored
		}
		return sum
	}
}

// runningByNode counts the workload pods Running at the end, by the UID of their node.
func (r *Run) runningByNode() map[string]int {
	running := map[string]int{}
	for _, p := range r.Pods {
		if p.Role == RoleWorkload && p.State == StateRunning {
			running[p.NodeUID]++
		}
	}
	return running
}

// nodesNeeded is the number of nodes that run the workload at the end, and of those which what still waits would take, each with as many pods as the
// fullest new node. Nil if pods wait and are of unequal requests, or no new node runs any.
func (r *Run) nodesNeeded() *Observation {
	running := r.runningByNode()
	var waiting, fullest int
	var pod tally
	equal := true
	for _, p := range r.Pods {
		if p.Role != RoleWorkload || p.State != StateRunning && p.State != StatePending && p.State != StateUnschedulable {
			continue
		}
		if pod == nil {
			pod = footprint(p.Requests)
		}
		equal = equal && footprint(p.Requests).equal(pod)
		if p.State != StateRunning {
			waiting++
		}
	}
	for _, n := range r.Nodes {
		if !n.Initial {
			fullest = max(fullest, running[n.UID])
		}
	}
	switch {
	case waiting == 0:
		return count(len(running))
	case !equal || fullest == 0:
		return nil
	}
	return count(len(running) + (waiting+fullest-1)/fullest)
}
