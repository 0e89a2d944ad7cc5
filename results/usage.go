package results

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// The names of the series.
const (
	// SeriesRejected is the number of pods that kubelets have rejected so far.
	SeriesRejected = "rejectedPods"
	// SeriesRunning is the number of workload pods that are Running.
	SeriesRunning = "runningPods"
	// SeriesHeld is the number of nodes on which the gate's taint is, SeriesExposed that of nodes which are exposed.
	SeriesHeld    = "heldNodes"
	SeriesExposed = "exposedNodes"
	// SeriesSeen is the cpu that the scheduler sees requested on nodes, SeriesPlaced the same with what it does not see of static pods: what the nodes
	// have to run. SeriesAllocatable is what they have.
	SeriesSeen        = "cpuSeenByScheduler"
	SeriesPlaced      = "cpuPlacedOnNodes"
	SeriesAllocatable = "cpuAllocatable"
	// SeriesOvercommit is the cpu that is placed on nodes beyond what each of them has, summed over these. It knows no more than MetricPeakOvercommit.
	SeriesOvercommit = "cpuOvercommitted"
)

// Series is a quantity over the time of a run, as a step function.
type Series struct {
	Name string `json:"name"`
	// Unit is "pods", "nodes" or "mCPU".
	Unit string `json:"unit"`
	// Points are in order of time; between two of them the value is that of the first. There are at most 2,000: of a longer series each bucket of time
	// keeps its first, lowest, highest and last point.
	Points []Point `json:"points"`
}

// Point is a value that holds from an instant on.
type Point struct {
	// At is in seconds since the start of the trace.
	At    float64 `json:"atSeconds"`
	Value float64 `json:"value"`
}

// maxPoints is enough for a plot that is a thousand pixels wide.
const maxPoints = 2000

// Usage is what the nodes of a run had to run, beside what the scheduler saw of it. Amounts are millicores, over all nodes whose allocatable cpu is known.
type Usage struct {
	// PeakHidden is the most that was hidden from the scheduler at one time; PeakOvercommit the most that was placed on nodes beyond their allocatable,
	// OvercommitSeconds its integral over time, in millicore-seconds.
	PeakHidden, PeakOvercommit int64
	OvercommitSeconds          float64
	// UnusedAtEnd is what was free at the end on the nodes that were there and had been Ready, UnusedSeconds the integral of the same since the start of the
	// scale-up, in millicore-seconds. ReadyNodes counts the nodes that ever were Ready.
	UnusedAtEnd   int64
	UnusedSeconds float64
	ReadyNodes    int
}

// change is a step of a quantity.
type change struct {
	at time.Duration
	by int64
}

// level is a value that holds from an instant on.
type level struct {
	at    time.Duration
	value int64
}

// levels are the values that the changes lead to, one an instant, from 0 at the start of the trace on. It sorts the changes.
func levels(changes []change) iter.Seq[level] {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return func(yield func(level) bool) {
		var now level
		for _, c := range changes {
			if c.at > now.at {
				if !yield(now) {
					return
				}
				now.at = c.at
			}
			now.value += c.by
		}
		yield(now)
	}
}

// during appends the changes of a quantity that has an amount more for as long as an interval lasts.
func during(changes []change, i interval, amount int64) []change {
	if i.from >= i.to {
		return changes
	}
	changes = append(changes, change{i.from, amount})
	if i.to != forever {
		changes = append(changes, change{i.to, -amount})
	}
	return changes
}

// usage follows what is placed on nodes, and makes the series of the run.
type usage struct {
	// scaleUp is the start of the scale-up, or forever; end that of the trace.
	scaleUp, end                               time.Duration
	seen, hidden, over, allocatable            []change
	rejected, running, heldNodes, exposedNodes []change
	unused                                     int64
	unusedSeconds                              float64
	readyNodes                                 int
}

// closeUsage computes the run's usage and series, once pods and nodes are closed.
func (l *ledger) closeUsage() {
	u := &usage{scaleUp: forever, end: l.run.Wall}
	if at, reached := l.run.Phases[trace.PhaseScaleUp]; reached {
		u.scaleUp = at
	}
	placed := map[*machine][]change{}
	for _, p := range l.order {
		if counted, ever := p.counting(); ever {
			placed[p.machine] = during(placed[p.machine], counted, p.Requests[cpuResource])
		}
		u.addPod(p)
	}
	for _, m := range l.machines {
		u.addMachine(m, placed[m])
		delete(placed, m) // millions of changes
	}
	l.run.Usage = Usage{
		PeakHidden: peak(u.hidden), PeakOvercommit: peak(u.over), OvercommitSeconds: integral(u.over, u.end),
		UnusedAtEnd: u.unused, UnusedSeconds: u.unusedSeconds, ReadyNodes: u.readyNodes,
	}
	l.run.Series = u.series()
}

// counting is when the scheduler counted the pod on its node.
func (p *podRecord) counting() (counted interval, ever bool) {
	from := p.Bound
	if from == nil && (p.Pinned || p.mirror != nil) {
		from = p.Created
	}
	if from == nil || p.machine == nil {
		return interval{}, false
	}
	return interval{*from, until(p.Ended, p.Deleted)}, true
}

// until is the first of the instants that is known.
func until(instants ...*time.Duration) time.Duration {
	for _, at := range instants {
		if at != nil {
			return *at
		}
	}
	return forever
}

func (u *usage) addPod(p *podRecord) {
	if p.Rejection != nil {
		u.rejected = append(u.rejected, change{p.Rejection.At, 1})
	}
	if p.Role == RoleWorkload && p.Running != nil {
		u.running = during(u.running, interval{*p.Running, until(p.Ended, p.Deleted)}, 1)
	}
}

// addMachine adds what is on one machine while it has a Node.
func (u *usage) addMachine(m *machine, placed []change) {
	hiddenEver := m.hiddenCPU()
	for _, n := range m.nodes {
		for _, held := range n.heldDuring {
			u.heldNodes = during(u.heldNodes, held, 1)
		}
		for _, exposed := range n.exposedDuring {
			u.exposedNodes = during(u.exposedNodes, exposed, 1)
		}
		if allocatable, known := n.Allocatable[cpuResource]; known {
			u.addNode(n, allocatable, within(placed, n.life()), within(hiddenEver, n.life()))
		}
	}
}

func (u *usage) addNode(n *nodeRecord, allocatable int64, seen, hidden []change) {
	u.allocatable = during(u.allocatable, n.life(), allocatable)
	u.seen, u.hidden = append(u.seen, seen...), append(u.hidden, hidden...)
	total := slices.Collect(levels(append(seen, hidden...)))
	u.over = append(u.over, beyond(total, allocatable)...)
	if n.Ready == nil {
		return
	}
	u.readyNodes++
	usable := max(*n.Ready, n.Registered)
	if n.Hold != nil {
		n.Hold.Idle = new(free(total, allocatable, interval{usable, n.Registered + n.Hold.Total.Duration}))
	}
	u.unusedSeconds += free(total, allocatable, interval{max(usable, u.scaleUp), min(n.life().to, u.end)})
	if n.Gone == nil {
		u.unused += max(0, allocatable-total[len(total)-1].value)
	}
}

// hiddenCPU is the cpu of static pods for as long as they run, less that of their mirror pods for as long as they exist, but never less than nothing.
func (m *machine) hiddenCPU() []change {
	var changes []change
	for _, s := range m.statics {
		cpu, from := s.requests[cpuResource], s.from.at
		for _, mirror := range m.mirrorsDuring(s) {
			visible := max(from, mirror.from.at)
			gone := max(visible, min(mirror.to.at, s.to.at))
			changes = during(changes, interval{from, visible}, cpu)
			changes = during(changes, interval{visible, gone}, max(0, cpu-mirror.requests[cpuResource]))
			from = gone
		}
		changes = during(changes, interval{from, s.to.at}, cpu)
	}
	return changes
}

// within cuts the changes to an interval: what was there before begins with it, and all of it ends with it.
func within(changes []change, life interval) []change {
	var inside []change
	var before, sum int64
	for _, c := range changes {
		switch {
		case c.at < life.from:
			before += c.by
		case c.at < life.to:
			inside = append(inside, c)
			sum += c.by
		}
	}
	if before != 0 {
		inside = append(inside, change{life.from, before})
	}
	if rest := before + sum; rest != 0 && life.to != forever {
		inside = append(inside, change{life.to, -rest})
	}
	return inside
}

// beyond is what the levels have above a limit.
func beyond(levels []level, limit int64) []change {
	var changes []change
	var above int64
	for _, l := range levels {
		if now := max(0, l.value-limit); now != above {
			changes = append(changes, change{l.at, now - above})
			above = now
		}
	}
	return changes
}

// free is what the levels leave of a limit during a period, in millicore-seconds.
func free(levels []level, limit int64, period interval) float64 {
	var sum float64
	var value int64
	from := period.from
	upTo := func(to time.Duration) {
		if to = min(to, period.to); to > from {
			sum += float64(max(0, limit-value)) * (to - from).Seconds()
			from = to
		}
	}
	for _, l := range levels {
		upTo(l.at)
		value = l.value
	}
	upTo(period.to)
	return sum
}

func peak(changes []change) int64 {
	var highest int64
	for l := range levels(changes) {
		highest = max(highest, l.value)
	}
	return highest
}

// integral is over time in seconds.
func integral(changes []change, end time.Duration) float64 {
	var sum float64
	var before level
	for l := range levels(changes) {
		sum += float64(before.value) * (l.at - before.at).Seconds()
		before = l
	}
	return sum + float64(before.value)*(end-before.at).Seconds()
}

func (u *usage) series() []Series {
	all := []Series{
		{SeriesRejected, "pods", points(u.rejected, u.end)},
		{SeriesRunning, "pods", points(u.running, u.end)},
		{SeriesHeld, "nodes", points(u.heldNodes, u.end)},
		{SeriesExposed, "nodes", points(u.exposedNodes, u.end)},
		{SeriesSeen, "mCPU", points(u.seen, u.end)},
	}
	return append(all,
		Series{SeriesPlaced, "mCPU", points(append(u.seen, u.hidden...), u.end)},
		Series{SeriesAllocatable, "mCPU", points(u.allocatable, u.end)},
		Series{SeriesOvercommit, "mCPU", points(u.over, u.end)},
	)
}

// points begin with the start of the trace and end with its end.
func points(changes []change, end time.Duration) []Point {
	var points []Point
	var last level
	for l := range thin(levels(changes), end) {
		points = append(points, Point{l.at.Seconds(), float64(l.value)})
		last = l
	}
	if last.at < end {
		points = append(points, Point{end.Seconds(), float64(last.value)})
	}
	return points
}

// thin keeps the first, lowest, highest and last level of each bucket of time, if there are too many for a series.
func thin(all iter.Seq[level], end time.Duration) iter.Seq[level] {
	number := 0
	for range all {
		number++
	}
	if number < maxPoints {
		return all
	}
	const buckets = maxPoints/4 - 1
	width := end/buckets + 1
	return func(yield func(level) bool) {
		var first, lowest, highest, last level
		flush := func() bool {
			kept := []level{first, lowest, highest, last}
			slices.SortFunc(kept, func(a, b level) int { return cmp.Compare(a.at, b.at) })
			for _, l := range slices.Compact(kept) {
				if !yield(l) {
					return false
				}
			}
			return true
		}
		for l := range all {
			if l.at/width != first.at/width {
				if !flush() {
					return
				}
				first, lowest, highest = l, l, l
			}
			if l.value < lowest.value {
				lowest = l
			}
			if l.value > highest.value {
				highest = l
			}
			last = l
		}
		flush()
	}
}
