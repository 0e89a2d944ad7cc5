package results

import (
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// moment is a place in a trace. Events are ordered by seq even if they carry the same time.
type moment struct {
	at  time.Duration
	seq int
}

// endOfTrace is the moment of what did not happen before the trace ended.
var endOfTrace = moment{at: forever, seq: int(^uint(0) >> 1)}

func earlier(a, b moment) moment {
	if a.seq < b.seq {
		return a
	}
	return b
}

// staticPod is one run of a static pod by a kubelet.
type staticPod struct {
	// pod is the namespace/name of its mirror, hash its UID in the kubelet.
	pod, hash string
	requests  trace.Resources
	from, to  moment
}

// mirrorPod is a mirror pod for as long as the scheduler counts it: until it is deleted, Failed or Succeeded.
type mirrorPod struct {
	hash, ownerUID string
	requests       trace.Resources
	from, to       moment
}

// machine is what the trace tells about a node name, across the Node objects that bore it.
type machine struct {
	name string
	// nodes are the Node objects in order of registration; current is the one that exists now, or nil.
	nodes   []*nodeRecord
	current *nodeRecord
	// statics are in order of their start; live are those that run now. Live is replaced when it changes, so that others may keep it.
	statics, live []*staticPod
	// mirrors are by namespace/name in order of their creation. Those of one name follow one another.
	mirrors map[string][]*mirrorPod
	// visible is what a scheduler counts on the node: the pods bound to it that are neither Failed, Succeeded nor gone.
	visible tally
	// overcommitted lists, of pods for which the node had too little in the scheduler's own view when they were bound, the resources.
	overcommitted map[*podRecord][]string
}

func newMachine(name string) *machine {
	return &machine{name: name, mirrors: map[string][]*mirrorPod{}, visible: tally{}, overcommitted: map[*podRecord][]string{}}
}

func (m *machine) startStatic(e trace.Event, at moment) {
	m.stopStatics(at, func(s *staticPod) bool { return s.pod == e.Pod })
	started := &staticPod{pod: e.Pod, hash: e.UID, requests: e.Requests, from: at, to: endOfTrace}
	m.statics, m.live = append(m.statics, started), append(m.live, started)
}

// stopStatics ends those that stop is true of.
func (m *machine) stopStatics(at moment, stop func(*staticPod) bool) {
	var live []*staticPod
	for _, s := range m.live {
		if stop(s) {
			s.to = at
		} else {
			live = append(live, s)
		}
	}
	m.live = slices.Clip(live)
}

// counted are those that run now and that a kubelet counted; all of them if it did not say what it counted.
func (m *machine) counted(told *trace.Rejection) []*staticPod {
	missing := func(s *staticPod) bool { return told != nil && !slices.Contains(told.Pods, s.hash) }
	if !slices.ContainsFunc(m.live, missing) {
		return m.live
	}
	return slices.DeleteFunc(slices.Clone(m.live), missing)
}

// running lists the static pods that ran at that place of the trace.
func (m *machine) running(seq int) []*staticPod {
	var now []*staticPod
	for _, s := range m.statics {
		if s.from.seq <= seq && seq < s.to.seq {
			now = append(now, s)
		}
	}
	return now
}

// addMirror adds a mirror pod of that name. Its name is free, so that one before it is gone, whether or not the trace says so.
func (m *machine) addMirror(pod string, mirror *mirrorPod) {
	if before := m.mirrors[pod]; len(before) > 0 && before[len(before)-1].to == endOfTrace {
		before[len(before)-1].to = mirror.from
	}
	m.mirrors[pod] = append(m.mirrors[pod], mirror)
}

// mirrorsDuring are the mirror pods of a static pod's name that existed while it ran.
func (m *machine) mirrorsDuring(s *staticPod) []*mirrorPod {
	all := m.mirrors[s.pod]
	first := sort.Search(len(all), func(i int) bool { return all[i].to.seq > s.from.seq })
	after := sort.Search(len(all), func(i int) bool { return all[i].from.seq >= s.to.seq })
	return all[first:max(first, after)]
}

// hidden is what a scheduler could not see of the static pods at that moment, if it was behind by lag: their requests less those of the mirror
// pod of the same name, if there was one. A stale mirror (of an earlier node, or an earlier manifest) hides as much as it requests less.
func (m *machine) hidden(statics []*staticPod, at moment, lag time.Duration) tally {
	sum := tally{}
	for _, s := range statics {
		for resource, amount := range footprint(s.requests).minus(m.mirrorVisible(s.pod, at, lag)) {
			sum[resource] += max(0, amount)
		}
	}
	return sum
}

// mirrorVisible is what the mirror pod of that name takes in the view of a scheduler that is behind by lag; empty if it sees none.
func (m *machine) mirrorVisible(pod string, at moment, lag time.Duration) tally {
	all := m.mirrors[pod]
	created := sort.Search(len(all), func(i int) bool { return all[i].from.seq >= at.seq })
	if created == 0 {
		return nil
	}
	if last := all[created-1]; last.from.at <= at.at-lag && at.seq < last.to.seq {
		return footprint(last.requests)
	}
	return nil
}

// gap is the time during which a static pod ran without its mirror: one of its hash. As to a kubelet, which Node owns the mirror is all the same: a
// machine that returns under its old name adopts mirrors that are still there.
func (m *machine) gap() intervals {
	var missing []interval
	for _, s := range m.statics {
		var own []interval
		for _, mirror := range m.mirrorsDuring(s) {
			if mirror.hash == s.hash {
				own = append(own, interval{mirror.from.at, mirror.to.at})
			}
		}
		missing = append(missing, intervals{{s.from.at, s.to.at}}.minus(union(own))...)
	}
	return union(missing)
}

// appearances are the instants at which a mirror pod appeared. A gap that ended at one of them was closed, rather than cut off by the end of the trace,
// of the node, of its kubelet or of the static pod.
func (m *machine) appearances() map[time.Duration]bool {
	instants := map[time.Duration]bool{}
	for _, mirrors := range m.mirrors {
		for _, mirror := range mirrors {
			instants[mirror.from.at] = true
		}
	}
	return instants
}

// inferStatics concludes from mirror pods which static pods a node had, for a trace without kubelet events. The static pod behind the first
// mirror of a name is taken to run since the node's registration; that behind one of another hash, which replaced it, since its mirror.
func (m *machine) inferStatics() {
	for _, node := range m.nodes {
		for _, pod := range slices.Sorted(maps.Keys(m.mirrors)) {
			from := node.registeredAt
			var last *staticPod
			for _, mirror := range m.mirrors[pod] {
				switch {
				case mirror.ownerUID != node.UID:
				case last != nil && last.hash == mirror.hash:
					last.to = earlier(mirror.to, node.goneAt)
				default:
					if last != nil {
						from = mirror.from
					}
					last = &staticPod{pod: pod, hash: mirror.hash, requests: mirror.requests, from: from, to: earlier(mirror.to, node.goneAt)}
					m.statics = append(m.statics, last)
				}
			}
		}
	}
}

// nodeAt is the Node object that existed at that place of the trace, or the last one before, else the first one that followed; nil if the trace has none.
func (m *machine) nodeAt(seq int) *nodeRecord {
	if len(m.nodes) == 0 {
		return nil
	}
	registered := sort.Search(len(m.nodes), func(i int) bool { return m.nodes[i].registeredAt.seq > seq })
	return m.nodes[max(0, registered-1)]
}
