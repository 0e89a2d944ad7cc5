package results

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// wave collects the first wave of a node while the trace is read; see FirstWave for what belongs to it.
type wave struct {
	// pods may have replacements at its end, until trim.
	pods []*podRecord
	// start is the first bind; seen is what the scheduler saw on the node then.
	start moment
	seen  tally
	// asked is the sum over all its pods, live over those that have not ended.
	asked, live tally
	// gaveBack: a pod of it has ended, so that there is room which was used before. over: such room was used again.
	gaveBack, over bool
	// undisturbed is the number of pods until what the scheduler saw besides the wave changed.
	undisturbed int
}

// take adds a pod that is being bound to the node, unless the wave is over.
func (w *wave) take(p *podRecord, at moment, allocatable trace.Resources) {
	if w.over {
		return
	}
	others := p.machine.visible.minus(w.live)
	if len(w.pods) == 0 {
		w.start, w.seen, w.asked, w.live = at, others, tally{}, tally{}
	}
	if w.gaveBack && !w.fits(p, others, allocatable) {
		w.over = true
		return
	}
	if w.undisturbed == len(w.pods) && others.equal(w.seen) {
		w.undisturbed++
	}
	w.asked.add(p.Requests)
	w.live.add(p.Requests)
	w.pods = append(w.pods, p)
	p.wave = w
}

// trim ends the wave at its first replacement. To be called at the end of the trace.
func (w *wave) trim() {
	if i := slices.IndexFunc(w.pods, (*podRecord).isReplacement); i >= 0 {
		w.pods = w.pods[:i]
	}
	for _, p := range w.pods {
		p.inWave = true
	}
}

// fits tells whether the pod has room beside all pods of the wave, ended or not.
func (w *wave) fits(p *podRecord, others tally, allocatable trace.Resources) bool {
	all := maps.Clone(others)
	for resource, amount := range w.asked {
		all[resource] += amount
	}
	all.add(p.Requests)
	return len(all.shortOf(allocatable)) == 0
}

// giveBack notes that a pod of the wave ended.
func (w *wave) giveBack(p *podRecord) {
	w.gaveBack = true
	w.live.remove(p.Requests)
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
		return nil, "no workload pod was bound by a scheduler before a replacement"
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
	admitted, _ := copiesThatFit(room.minus(m.hidden(m.running(w.start), w.start, 0)), pod, allocatable)
	return &ClosedForm{Bound: int(bound), Admitted: int(admitted)}, ""
}
