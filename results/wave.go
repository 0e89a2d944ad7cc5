package results

import (
	"fmt"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// wave collects the first wave of a node while the trace is read; see FirstWave for what belongs to it.
type wave struct {
	pods []*podRecord
	// start is the first bind; seen is what the scheduler saw on the node then.
	start moment
	seen  tally
	// live is the sum over those of its pods that the scheduler still counts, givenBack over those whose rejection the API has shown.
	live, givenBack tally
	// over: room that was given back is used again.
	over bool
	// undisturbed is the number of pods until what the scheduler saw besides the wave changed.
	undisturbed int
}

// take adds a pod that is being bound to the node, unless the wave is over.
func (w *wave) take(p *podRecord, at moment, allocatable trace.Resources) {
	w.over = w.over || w.usesAgain(p, allocatable)
	if w.over {
		return
	}
	others := p.machine.visible.minus(w.live)
	if len(w.pods) == 0 {
		w.start, w.seen, w.live, w.givenBack = at, others, tally{}, tally{}
	}
	if w.undisturbed == len(w.pods) && others.equal(w.seen) {
		w.undisturbed++
	}
	w.live.add(p.Requests)
	w.pods = append(w.pods, p)
	p.wave = w
}

// usesAgain tells whether the pod has no room but that which rejected pods have given back.
func (w *wave) usesAgain(p *podRecord, allocatable trace.Resources) bool {
	if len(w.givenBack) == 0 {
		return false
	}
	neverUsed := tally(allocatable).minus(p.machine.visible).minus(w.givenBack)
	copies, bounded := copiesThatFit(neverUsed, footprint(p.Requests), allocatable)
	return bounded && copies == 0
}

// release notes that the scheduler no longer counts a pod of the wave.
func (w *wave) release(p *podRecord) {
	w.live.remove(p.Requests)
	if p.Rejection != nil {
		w.givenBack.add(p.Requests)
	}
}

// result sets the wave beside the closed form.
func (w *wave) result(m *machine, allocatable trace.Resources) FirstWave {
	r := FirstWave{Bound: len(w.pods)}
	for _, p := range w.pods {
		if p.Rejection == nil {
			continue
		}
		r.Rejected++
		if p.Rejection.Cause == CauseHiddenStaticPod || p.Rejection.Cause == CauseMirrorInFlight {
			r.HiddenRejected++
		}
	}
	r.ClosedForm, r.NotApplicable = w.closedForm(m, allocatable)
	return r
}

// closedForm computes what is expected of the wave, or says why the arithmetic does not apply.
func (w *wave) closedForm(m *machine, allocatable trace.Resources) (*ClosedForm, string) {
	if len(w.pods) == 0 {
		return nil, "no workload pod was bound by a scheduler"
	}
	pod := footprint(w.pods[0].Requests)
	for _, p := range w.pods {
		if !footprint(p.Requests).equal(pod) {
			return nil, "its pods have unequal requests"
		}
	}
	if w.undisturbed < len(w.pods) {
		return nil, "what the scheduler saw on the node changed while it was bound"
	}
	room := tally(allocatable).minus(w.seen)
	bound, bounded := copiesThatFit(room, pod, allocatable)
	if !bounded {
		return nil, "the node's allocatable is not known"
	}
	if int64(len(w.pods)) != bound {
		return nil, fmt.Sprintf("%d pods were bound where %d fit", len(w.pods), bound)
	}
	admitted, _ := copiesThatFit(room.minus(m.hidden(m.running(w.start.seq), w.start, 0)), pod, allocatable)
	return &ClosedForm{Bound: int(bound), Admitted: int(admitted)}, ""
}
