package results

// planningMetrics are what the race, or the gate, costs.
func planningMetrics() []Metric {
	return []Metric{
		{Name: MetricFailed, Unit: "pods", MachineDependent: true, ofRun: podsThat(func(p *Pod) bool { return p.Role == RoleWorkload && p.Failed })},
		{Name: MetricExtraPods, Unit: "pods", MachineDependent: true, ofRun: (*Run).extraPods},
		{Name: MetricPodStart, Unit: "s", MachineDependent: true, ofPod: func(p *Pod) *Observation { return observe(p.Start) }},
		{Name: MetricHeldNodes, Unit: "node·s", ofRun: heldTimes(func(*Node) int64 { return 1 })},
		{Name: MetricIdle, Unit: "mCPU·s", ofRun: heldTimes(func(n *Node) int64 { return max(0, n.Allocatable[cpuResource]-n.StaticCPU) })},
		{Name: MetricUnusedAtEnd, Unit: "mCPU", ofRun: ofUsage(func(u Usage) float64 { return float64(u.UnusedAtEnd) })},
		{Name: MetricNodesUsed, Unit: "nodes", ofRun: func(r *Run) *Observation { return count(len(r.runningByNode())) }},
		{Name: MetricNodesNeeded, Unit: "nodes", ofRun: (*Run).nodesNeeded},
		{Name: MetricPeakHidden, Unit: "mCPU", ofRun: ofUsage(func(u Usage) float64 { return float64(u.PeakHidden) })},
		{Name: MetricPeakOvercommit, Unit: "mCPU", MachineDependent: true, ofRun: ofUsage(func(u Usage) float64 { return float64(u.PeakOvercommit) })},
		{Name: MetricOvercommit, Unit: "mCPU·s", MachineDependent: true, ofRun: ofUsage(func(u Usage) float64 { return u.OvercommitSeconds })},
	}
}

func ofUsage(amount func(Usage) float64) func(*Run) *Observation {
	return func(r *Run) *Observation { return &Observation{Value: amount(r.Usage)} }
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

// heldTimes sums, over the new nodes, what a node could have given times how long the gate held it beyond Ready; nil if none was held and Ready.
func heldTimes(worth func(*Node) int64) func(*Run) *Observation {
	return func(r *Run) *Observation {
		var sum *Observation
		for _, n := range r.Nodes {
			span := n.holdPart(func(h *Hold) *Span { return h.BeyondReady })
			if n.Initial || span == nil {
				continue
			}
			if sum == nil {
				sum = &Observation{}
			}
			sum.Value += float64(worth(n)) * span.Duration.Seconds()
			sum.Censored = sum.Censored || span.Censored
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
