package results

import (
	"maps"
	"slices"
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
	// statics are in order of their start, mirrors by namespace/name in order of their creation.
	statics []*staticPod
	mirrors map[string][]*mirrorPod
	// visible is what a scheduler counts on the node: the pods bound to it that are neither Failed, Succeeded nor gone.
	visible tally
}

func newMachine(name string) *machine {
	return &machine{name: name, mirrors: map[string][]*mirrorPod{}, visible: tally{}}
}

func (m *machine) startStatic(e trace.Event, at moment) {
	m.stopStatic(e.Pod, at)
	m.statics = append(m.statics, &staticPod{pod: e.Pod, hash: e.UID, requests: e.Requests, from: at, to: endOfTrace})
}

func (m *machine) stopStatic(pod string, at moment) {
	for _, s := range m.statics {
		if s.pod == pod && s.to == endOfTrace {
			s.to = at
		}
	}
}

func (m *machine) stopKubelet(at moment) {
	for _, s := range m.running(at) {
		s.to = at
	}
}

// running lists the static pods that run at that moment.
func (m *machine) running(at moment) []*staticPod {
	var now []*staticPod
	for _, s := range m.statics {
		if s.from.seq <= at.seq && at.seq < s.to.seq {
			now = append(now, s)
		}
	}
	return now
}

// counted picks the running static pods out of the UIDs that a kubelet counted.
func (m *machine) counted(uids []string, at moment) []*staticPod {
	return slices.DeleteFunc(m.running(at), func(s *staticPod) bool { return !slices.Contains(uids, s.hash) })
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
	for _, mirror := range m.mirrors[pod] {
		if mirror.from.seq < at.seq && mirror.from.at <= at.at-lag && at.seq < mirror.to.seq {
			return footprint(mirror.requests)
		}
	}
	return nil
}

// gap is the time during which a static pod ran without its mirror: one of its hash. As to a kubelet, which Node owns the mirror is all the same: a
// machine that returns under its old name adopts mirrors that are still there.
func (m *machine) gap() intervals {
	var missing []interval
	for _, s := range m.statics {
		var own []interval
		for _, mirror := range m.mirrors[s.pod] {
			if mirror.hash == s.hash {
				own = append(own, interval{mirror.from.at, mirror.to.at})
			}
		}
		missing = append(missing, intervals{{s.from.at, s.to.at}}.minus(union(own))...)
	}
	return union(missing)
}

// mirroredAt tells whether a mirror pod appeared at that instant: whether a gap that ended then was closed, rather than cut off by the end of the
// trace, of the node, of its kubelet or of the static pod.
func (m *machine) mirroredAt(at time.Duration) bool {
	for _, mirrors := range m.mirrors {
		for _, mirror := range mirrors {
			if mirror.from.at == at {
				return true
			}
		}
	}
	return false
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

// nodeAt is the Node object that existed at that moment, else the first one that followed; nil if the trace has none.
func (m *machine) nodeAt(seq int) *nodeRecord {
	for _, n := range slices.Backward(m.nodes) {
		if n.registeredAt.seq <= seq {
			return n
		}
	}
	if len(m.nodes) > 0 {
		return m.nodes[0]
	}
	return nil
}
