package results

import (
	"slices"
	"strings"
	"time"
)

// conditionTaints starts the keys of the taints that Kubernetes itself puts on a node for its conditions. They block whether or not they go again.
const conditionTaints = "node.kubernetes.io/"

// closeNode computes the node's times from its history. Binds are those of workload pods, in order.
func (l *ledger) closeNode(m *machine, n *nodeRecord, binds []time.Duration) {
	life := intervals{{n.Registered, forever}}
	if n.Gone != nil {
		life[0].to = *n.Gone
	}
	gap := m.gap().intersect(life)
	open := life.minus(union(l.blocked(n)))
	if len(open) > 0 {
		n.Schedulable = new(open[0].from)
	}
	n.StaticPods, n.StaticCPU = m.staticPods(life[0])
	n.exposedDuring = gap.intersect(open)
	n.Exposed = n.exposedDuring.periods(l.run.Wall)
	for t, since := range n.taints {
		if l.isGateTaint(t) {
			n.heldDuring = append(n.heldDuring, intervals{{since, forever}}.intersect(life)...)
		}
	}
	if n.StaticPods > 0 {
		n.MirrorsVisible = mirrorsVisible(m, n, gap)
		n.Exposure = l.exposure(m, gap, open)
	}
	n.FirstBind = firstBind(binds, n.Released)
	n.Hold = l.hold(n, life[0])
	n.FirstWave = n.wave.result(m, n.Allocatable)
}

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

// staticPods counts the static pods, by name, that ran during the node's life, and sums the most cpu that each requested.
func (m *machine) staticPods(life interval) (number int, cpu int64) {
	most := map[string]int64{}
	for _, s := range m.statics {
		if s.from.at < life.to && s.to.at > life.from {
			most[s.pod] = max(most[s.pod], s.requests[cpuResource])
		}
	}
	for _, amount := range most {
		cpu += amount
	}
	return len(most), cpu
}

// mirrorsVisible is the end of the gap that was open at the node's release, else of the last one before it. Nil if no mirror pod ended it.
func mirrorsVisible(m *machine, n *nodeRecord, gap intervals) *time.Duration {
	visible := n.Registered
	for _, piece := range gap {
		if n.Released == nil || piece.from < *n.Released {
			visible = piece.to
		}
	}
	if visible != n.Registered && !m.mirroredAt(visible) {
		return nil
	}
	return &visible
}

// exposure measures the time during which the node was both schedulable and in a gap. It is censored if nothing closed the last gap in which it
// was exposed.
func (l *ledger) exposure(m *machine, gap, open intervals) *Span {
	if len(open) == 0 {
		return nil
	}
	span := &Span{Duration: gap.intersect(open).lengthUntil(l.run.Wall)}
	for _, piece := range gap {
		if len(open.intersect(intervals{piece})) > 0 {
			span.Censored = !m.mirroredAt(piece.to)
		}
	}
	return span
}

// firstBind is the first bind, or on a node that was held the first one that its release allowed. Binds come through another watch than taints,
// so that one seen shortly before the release belongs to it.
func firstBind(binds []time.Duration, released *time.Duration) *time.Duration {
	for _, bind := range binds {
		if released == nil || bind > *released-InFlightWindow {
			return &bind
		}
	}
	return nil
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
