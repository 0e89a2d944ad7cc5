package results

import (
	"slices"
	"strings"
	"time"
)

// conditionTaints starts the keys of the taints that Kubernetes itself puts on a node for its conditions. They block whether or not they go again.
const conditionTaints = "node.kubernetes.io/"

// closeNodes computes the times of the Nodes of one name from their history.
func (l *ledger) closeNodes(m *machine) {
	allGaps, mirrored := m.gap(), m.appearances()
	for _, n := range m.nodes {
		life := intervals{n.life()}
		gap, open := allGaps.intersect(life), life.minus(union(l.blocked(n)))
		if len(open) > 0 {
			n.Schedulable = new(open[0].from)
		}
		n.exposedDuring = gap.intersect(open)
		n.Exposed = n.exposedDuring.periods(l.run.Wall)
		for t, since := range n.taints {
			if l.isGateTaint(t) {
				n.heldDuring = append(n.heldDuring, intervals{{since, forever}}.intersect(life)...)
			}
		}
		if n.StaticPods = m.staticPods(life[0]); n.StaticPods > 0 {
			n.MirrorsVisible = mirrorsVisible(n, gap, mirrored)
			n.Exposure = l.exposure(n, gap, mirrored)
		}
		n.Hold = l.hold(n, life[0])
		n.FirstWave = n.wave.result(m, n.Allocatable)
	}
}

// life is when the Node existed.
func (n *nodeRecord) life() interval { return interval{n.Registered, until(n.Gone)} }

// blocked lists when a taint kept pods away for a while: the gate's, those of Kubernetes' own, and any other that went again. One that stays for
// the whole life of the node is meant for pods which tolerate it.
func (l *ledger) blocked(n *nodeRecord) []interval {
	times := slices.Clone(n.pastTaints)
	for t, since := range n.taints {
		if l.isGateTaint(t) || strings.HasPrefix(t.Key, conditionTaints) {
			times = append(times, interval{since, forever})
		}
	}
	return times
}

// staticPods counts the static pods, by name, that ran during the node's life.
func (m *machine) staticPods(life interval) int {
	names := map[string]bool{}
	for _, s := range m.statics {
		if s.from.at < life.to && s.to.at > life.from {
			names[s.pod] = true
		}
	}
	return len(names)
}

// mirrorsVisible is the end of the gap that was open at the node's release, else of the last one before it. Nil if no mirror pod ended it.
func mirrorsVisible(n *nodeRecord, gap intervals, mirrored map[time.Duration]bool) *time.Duration {
	visible := n.Registered
	for _, piece := range gap {
		if n.Released == nil || piece.from < *n.Released {
			visible = piece.to
		}
	}
	if visible != n.Registered && !mirrored[visible] {
		return nil
	}
	return &visible
}

// exposure measures the time during which the node was exposed. It is censored if no mirror pod closed the last gap in which it was.
func (l *ledger) exposure(n *nodeRecord, gap intervals, mirrored map[time.Duration]bool) *Span {
	if n.Schedulable == nil {
		return nil
	}
	span := &Span{Duration: n.exposedDuring.lengthUntil(l.run.Wall)}
	if exposed := len(n.exposedDuring); exposed > 0 {
		last := n.exposedDuring[exposed-1].from
		for _, piece := range gap {
			if piece.from <= last && last < piece.to {
				span.Censored = !mirrored[piece.to]
			}
		}
	}
	return span
}

// use notes a bind of a workload pod. The first one counts; on a node that was held, the first one that its release allowed. Binds come through another
// watch than taints, so that one seen shortly before the release belongs to it.
func (n *nodeRecord) use(bind *time.Duration) {
	if bind == nil || n.Released != nil && *bind <= *n.Released-InFlightWindow {
		return
	}
	if n.FirstBind == nil || *bind < *n.FirstBind {
		n.FirstBind = bind
	}
}

// hold measures how long the gate held the node, and what for.
func (l *ledger) hold(n *nodeRecord, life interval) *Hold {
	if !n.held {
		return nil
	}
	h := &Hold{Total: Span{Duration: min(life.to, l.run.Wall) - n.Registered, Censored: true}}
	if n.Released != nil {
		h.Total = Span{Duration: *n.Released - n.Registered}
	}
	if n.Ready != nil {
		end := n.Registered + h.Total.Duration
		h.BeyondReady = &Span{Duration: max(0, end-max(*n.Ready, n.Registered)), Censored: h.Total.Censored}
	}
	h.split(n, l.run.KubeletEvidence)
	if n.Released != nil && n.FirstBind != nil {
		h.Scheduler = &Span{Duration: max(0, *n.FirstBind-*n.Released)}
		h.OutOfOrder = h.OutOfOrder || *n.FirstBind < *n.Released
	}
	return h
}

// split divides the total at the steps that led to the release. A step out of order is moved to the nearest instant that is in order. Without static
// pods there was no mirror to wait for; unless kubelets tell that there were none, it is not known either when the checker could have noticed.
func (h *Hold) split(n *nodeRecord, kubeletEvidence bool) {
	type step struct {
		at   *time.Duration
		part **Span
	}
	steps := []step{{n.ConditionTrue, &h.Checker}, {n.Released, &h.Controller}}
	if n.StaticPods > 0 {
		steps = append([]step{{n.MirrorsVisible, &h.Mirrors}}, steps...)
	}
	known := n.StaticPods > 0 || kubeletEvidence
	end := n.Registered + h.Total.Duration
	var from *time.Duration // where the next part begins
	if known {
		from = &n.Registered
	}
	open := false // a part that has not ended takes the rest
	for _, step := range steps {
		switch {
		case open:
			h.OutOfOrder = h.OutOfOrder || step.at != nil
		case step.at == nil && from != nil && h.Total.Censored:
			*step.part = &Span{Duration: end - *from, Censored: true}
			open = true
		case step.at == nil:
			from = nil // skipped, or not known
		case from == nil:
			h.OutOfOrder = h.OutOfOrder || known
			from = new(min(max(*step.at, n.Registered), end))
		default:
			at := min(max(*step.at, *from), end)
			*step.part = &Span{Duration: at - *from}
			h.OutOfOrder = h.OutOfOrder || at != *step.at
			from = &at
		}
	}
}
