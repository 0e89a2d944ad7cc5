package results

import (
	"maps"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// podsResource is the resource of which every pod takes one.
const podsResource = "pods"

// cpuResource is cpu, in millicores.
const cpuResource = "cpu"

// tally is the sum of the requests of a set of pods, with their number under podsResource.
type tally trace.Resources

// footprint is what one pod with those requests takes.
func footprint(requests trace.Resources) tally {
	t := tally{}
	t.add(requests)
	return t
}

func (t tally) add(requests trace.Resources)    { t.change(requests, 1) }
func (t tally) remove(requests trace.Resources) { t.change(requests, -1) }

func (t tally) change(requests trace.Resources, sign int64) {
	for resource, amount := range requests {
		if resource != podsResource {
			t[resource] += sign * amount
		}
	}
	t[podsResource] += sign
}

// minus is what t has more than other; it may be negative.
func (t tally) minus(other tally) tally {
	diff := tally{}
	maps.Copy(diff, t)
	for resource, amount := range other {
		diff[resource] -= amount
	}
	return diff
}

// equal tells whether both hold the same amounts; an absent resource is 0.
func (t tally) equal(other tally) bool {
	for _, amount := range t.minus(other) {
		if amount != 0 {
			return false
		}
	}
	return true
}

// shortOf lists the resources of which allocatable has too little for t and a pod of these requests. A resource that the node does not offer is not
// compared: the kubelet drops it too.
func (t tally) shortOf(requests, allocatable trace.Resources) []string {
	var short []string
	for resource, offered := range allocatable {
		more := requests[resource]
		if resource == podsResource {
			more = 1
		}
		if t[resource]+more > offered {
			short = append(short, resource)
		}
	}
	return short
}

// copiesThatFit is the number of pods of that footprint that room holds: the least of floor(room/footprint) over the resources, at least 0.
// It is false when nothing bounds the number.
func copiesThatFit(room, footprint tally, allocatable trace.Resources) (int64, bool) {
	var copies int64
	bounded := false
	for resource, amount := range footprint {
		if _, ok := allocatable[resource]; !ok || amount <= 0 {
			continue
		}
		fits := max(0, room[resource]/amount)
		if !bounded || fits < copies {
			copies, bounded = fits, true
		}
	}
	return copies, bounded
}
