package results

import (
	"cmp"
	"math"
	"slices"
	"time"
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

// Usage is what the nodes of a run had to run, beside what the scheduler saw of it. Amounts are millicores, over all nodes.
type Usage struct {
	// PeakHidden is the most that was hidden from the scheduler at one time; PeakOvercommit the most that was placed on nodes beyond their allocatable,
	// OvercommitSeconds its integral over time, in millicore-seconds.
	PeakHidden, PeakOvercommit int64
	OvercommitSeconds          float64
	// UnusedAtEnd is what was free on the nodes that were there, and Ready, at the end.
	UnusedAtEnd int64
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

// accumulate turns changes into levels, one an instant.
func accumulate(changes []change) []level {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var levels []level
	var value int64
	for _, c := range changes {
		value += c.by
		if last := len(levels) - 1; last >= 0 && levels[last].at == c.at {
			levels[last].value = value
		} else {
			levels = append(levels, level{c.at, value})
		}
	}
	return levels
}

// during changes a quantity by an amount for as long as each interval lasts.
func during(set intervals, amount int64) []change {
	var changes []change
	for _, i := range set {
		changes = append(changes, change{i.from, amount})
		if i.to != forever {
			changes = append(changes, change{i.to, -amount})
		}
	}
	return changes
}

// usage follows what is placed on nodes, and makes the series of the run.
type usage struct {
	end                                        time.Duration
	seen, hidden, over, allocatable            []change
	rejected, running, heldNodes, exposedNodes []change
	unused                                     int64
}

// closeUsage computes the run's usage and series, once pods and nodes are closed.
func (l *ledger) closeUsage() {
	u := &usage{end: l.run.Wall}
	placed := map[*machine][]change{}
	for _, p := range l.order {
		if p.machine != nil {
			placed[p.machine] = append(placed[p.machine], during(p.counting(), p.Requests[cpuResource])...)
		}
		u.addPod(p)
	}
	for _, m := range l.machines {
		u.addMachine(m, placed[m])
	}
	l.run.Usage = Usage{
		PeakHidden: peak(u.hidden), PeakOvercommit: peak(u.over), OvercommitSeconds: integral(u.over, u.end), UnusedAtEnd: u.unused,
	}
	l.run.Series = u.series()
}

// counting is when the scheduler counted the pod on its node.
func (p *podRecord) counting() intervals {
	from := p.Bound
	if from == nil && (p.Pinned || p.mirror != nil) {
		from = p.Created
	}
	if from == nil {
		return nil
	}
	return intervals{{*from, until(p.Ended, p.Deleted)}}
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
		u.running = append(u.running, during(intervals{{*p.Running, until(p.Ended, p.Deleted)}}, 1)...)
	}
}

// addMachine adds what is on one machine while it has a Node.
func (u *usage) addMachine(m *machine, placed []change) {
	for _, n := range m.nodes {
		life := interval{n.Registered, until(n.Gone)}
		allocatable, known := n.Allocatable[cpuResource]
		if !known {
			continue
		}
		seen, hidden := within(placed, life), within(m.hiddenCPU(), life)
		u.seen = append(u.seen, seen...)
		u.hidden = append(u.hidden, hidden...)
		u.allocatable = append(u.allocatable, during(intervals{life}, allocatable)...)
		total := accumulate(slices.Concat(seen, hidden))
		u.over = append(u.over, beyond(total, allocatable)...)
		u.heldNodes = append(u.heldNodes, during(n.heldDuring, 1)...)
		u.exposedNodes = append(u.exposedNodes, during(n.exposedDuring, 1)...)
		if n.Gone == nil && n.Ready != nil {
			u.unused += allocatable - last(total)
		}
	}
}

// hiddenCPU is the cpu of static pods for as long as they run, less that of their mirror pods for as long as they exist, but never less than nothing.
func (m *machine) hiddenCPU() []change {
	var changes []change
	for _, s := range m.statics {
		running := intervals{{s.from.at, s.to.at}}
		for _, mirror := range m.mirrors[s.pod] {
			covered := running.intersect(intervals{{mirror.from.at, mirror.to.at}})
			changes = append(changes, during(covered, max(0, s.requests[cpuResource]-mirror.requests[cpuResource]))...)
			running = running.minus(covered)
		}
		changes = append(changes, during(running, s.requests[cpuResource])...)
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

func last(levels []level) int64 {
	if len(levels) == 0 {
		return 0
	}
	return levels[len(levels)-1].value
}

func peak(changes []change) int64 {
	var highest int64
	for _, l := range accumulate(changes) {
		highest = max(highest, l.value)
	}
	return highest
}

// integral is over time in seconds.
func integral(changes []change, end time.Duration) float64 {
	sum := 0.0
	levels := accumulate(changes)
	for i, l := range levels {
		to := end
		if i+1 < len(levels) {
			to = levels[i+1].at
		}
		sum += float64(l.value) * (to - l.at).Seconds()
	}
	return sum
}

func (u *usage) series() []Series {
	return []Series{
		{SeriesRejected, "pods", u.points(u.rejected)},
		{SeriesRunning, "pods", u.points(u.running)},
		{SeriesHeld, "nodes", u.points(u.heldNodes)},
		{SeriesExposed, "nodes", u.points(u.exposedNodes)},
		{SeriesSeen, "mCPU", u.points(u.seen)},
		{SeriesPlaced, "mCPU", u.points(slices.Concat(u.seen, u.hidden))},
		{SeriesAllocatable, "mCPU", u.points(u.allocatable)},
	}
}

// points begin with 0 at the start of the trace and end with the last value at its end.
func (u *usage) points(changes []change) []Point {
	levels := accumulate(append([]change{{0, 0}}, changes...))
	levels = append(levels, level{max(u.end, levels[len(levels)-1].at), last(levels)})
	points := make([]Point, len(levels))
	for i, l := range levels {
		points[i] = Point{l.at.Seconds(), float64(l.value)}
	}
	return thin(points)
}

// thin keeps the first, lowest, highest and last point of each bucket of time, if there are more than maxPoints.
func thin(points []Point) []Point {
	if len(points) <= maxPoints {
		return points
	}
	const buckets = maxPoints / 4
	start, span := points[0].At, points[len(points)-1].At-points[0].At
	bucketOf := func(p Point) int { return min(buckets-1, int(math.Floor((p.At-start)/span*buckets))) }
	var kept []Point
	for from := 0; from < len(points); {
		to, lowest, highest := from, from, from
		for ; to < len(points) && bucketOf(points[to]) == bucketOf(points[from]); to++ {
			if points[to].Value < points[lowest].Value {
				lowest = to
			}
			if points[to].Value > points[highest].Value {
				highest = to
			}
		}
		indices := []int{from, lowest, highest, to - 1}
		slices.Sort(indices)
		for _, i := range slices.Compact(indices) {
			kept = append(kept, points[i])
		}
		from = to
	}
	return kept
}
