package agreement

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
	"github.com/mirrorgap/mirrorgap/results/verdict"
)

// The sides.
const (
	model = iota
	realKubelet
)

// sides are what they are called.
var sides = [...]string{model: "model", realKubelet: "real"}

// Pair are two node groups that differ in nothing but what plays their kubelets.
type Pair struct{ Model, Real string }

func (p Pair) group(side int) string { return [...]string{model: p.Model, realKubelet: p.Real}[side] }

// Plan says which node groups of an experiment are held against each other.
type Plan struct {
	// Start are groups of nodes that register while the API takes their mirror pods, Storm groups whose mirror pods it refuses while a controller replaces
	// what their kubelets reject.
	Start, Storm Pair
	// Seeds are those of the runs that the experiment was to have.
	Seeds []uint64
}

// Measure takes the figures from the runs, and judges them. The error is that of the runs.
func Measure(runs iter.Seq2[*results.Run, error], plan Plan) (*Timing, error) {
	m := &measurement{plan: plan, timing: &Timing{Seeds: plan.Seeds}}
	for run, err := range runs {
		if err != nil {
			return nil, err
		}
		m.add(run)
	}
	m.doubt()
	m.delays()
	m.storm()
	m.timing.judge()
	return m.timing, nil
}

// measurement is what is kept of the runs: one entry a run.
type measurement struct {
	plan   Plan
	timing *Timing
	runs   []observed
}

// observed are the new nodes of a run, by group.
type observed struct {
	seed   uint64
	groups map[string][]*node
}

// node is what is kept of a node. Instants are times since the start of the trace.
type node struct {
	name       string
	registered time.Duration
	ready      *time.Duration
	// mirrors are the delays of the first mirror pods, by static pod. mirrored is when the last of them appeared; nil if one never did.
	mirrors  map[string]time.Duration
	mirrored *time.Duration
	rejected []rejection
}

// rejection is a pod that a scheduler bound to the node and its kubelet rejected. Failed is nil if the API did not show it by the end.
type rejection struct {
	bound  time.Duration
	failed *time.Duration
}

func (m *measurement) add(run *results.Run) {
	if len(m.runs) == 0 {
		m.timing.Experiment, m.timing.Start = run.Header.Experiment, run.Header.Start
	}
	m.timing.Runs = append(m.timing.Runs, run.Digest().RunInfo)
	seen := observed{seed: run.Header.Seed, groups: map[string][]*node{}}
	mirrors, byUID := run.FirstMirrors(), map[string]*node{}
	for _, n := range run.Nodes {
		if n.Initial {
			continue
		}
		own := &node{name: n.Name, registered: n.Registered, ready: n.Ready, mirrors: mirrors[n.UID], mirrored: n.MirrorsVisible}
		byUID[n.UID] = own
		seen.groups[n.Group] = append(seen.groups[n.Group], own)
	}
	for _, p := range run.Pods {
		if n := byUID[p.NodeUID]; n != nil && p.Role == results.RoleWorkload && p.Bound != nil && p.Rejection != nil {
			r := rejection{bound: *p.Bound}
			if p.Rejection.SeenByAPI {
				r.failed = p.Ended
			}
			n.rejected = append(n.rejected, r)
		}
	}
	m.runs = append(m.runs, seen)
}

// doubt notes why nothing can be concluded from the runs.
func (m *measurement) doubt() {
	doubt := func(format string, args ...any) {
		m.timing.Doubts = append(m.timing.Doubts, fmt.Sprintf(format, args...))
	}
	for _, seed := range m.plan.Seeds {
		if !slices.ContainsFunc(m.runs, func(o observed) bool { return o.seed == seed }) {
			doubt("there is no run of seed %d", seed)
		}
	}
	for i, run := range m.timing.Runs {
		switch {
		case !run.Conclusive || !run.Settled:
			doubt("seed %d ended as %s", run.Seed, run.End)
		case run.Interrupted > 0:
			doubt("seed %d: a watch was broken for %.2g s, so that times may be wrong by as much", run.Seed, run.Interrupted)
		}
		for _, pair := range []Pair{m.plan.Start, m.plan.Storm} {
			for side := range 2 {
				if group := pair.group(side); len(m.runs[i].groups[group]) == 0 {
					doubt("seed %d has no new node in group %s", run.Seed, group)
				}
			}
		}
	}
}

// quantity is a delay, and how a node gives its values and says how many were not over.
type quantity struct {
	Delay
	pair Pair
	of   func(*node) (values []float64, open int)
}

// delays measures all delays.
func (m *measurement) delays() {
	quantities := []quantity{{Delay{Name: DelayReady, Of: "node"}, m.plan.Start, func(n *node) ([]float64, int) { return since(n.registered, n.ready) }}}
	for _, pod := range m.staticPods() {
		quantities = append(quantities, quantity{Delay{Name: DelayMirror, StaticPod: pod, Of: "node"}, m.plan.Start, func(n *node) ([]float64, int) {
			if delay, seen := n.mirrors[pod]; seen {
				return []float64{delay.Seconds()}, 0
			}
			return nil, 1
		}})
	}
	early := func(r rejection, n *node) bool { return r.bound-n.registered < Early }
	late := func(r rejection, n *node) bool { return r.bound-n.registered >= StatusTick }
	quantities = append(quantities,
		quantity{Delay{Name: DelayFailedEarly, Of: "pod"}, m.plan.Start, untilFailed(early)},
		quantity{Delay{Name: DelayFailed, Of: "pod"}, m.plan.Storm, untilFailed(late)})
	m.timing.Delays = make([]Delay, len(quantities))
	for i, q := range quantities {
		m.timing.Delays[i] = m.delay(q)
	}
}

func since(start time.Duration, at *time.Duration) (values []float64, open int) {
	if at == nil {
		return nil, 1
	}
	return []float64{(*at - start).Seconds()}, 0
}

func untilFailed(which func(rejection, *node) bool) func(*node) ([]float64, int) {
	return func(n *node) (values []float64, open int) {
		for _, r := range n.rejected {
			if which(r, n) {
				value, not := since(r.bound, r.failed)
				values, open = append(values, value...), open+not
			}
		}
		return values, open
	}
}

// staticPods are those of which a node of the start groups got a mirror pod, sorted.
func (m *measurement) staticPods() []string {
	names := map[string]bool{}
	for _, run := range m.runs {
		for side := range 2 {
			for _, n := range run.groups[m.plan.Start.group(side)] {
				for pod := range n.mirrors {
					names[pod] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// sample are the values of one side, by run and node, and the names of the nodes that have any.
type sample struct {
	runs  [][][]float64
	names [][]string
	open  int
}

func (m *measurement) sample(q *quantity, side int) sample {
	s := sample{runs: make([][][]float64, len(m.runs)), names: make([][]string, len(m.runs))}
	for i, run := range m.runs {
		for _, n := range run.groups[q.pair.group(side)] {
			values, open := q.of(n)
			s.open += open
			if len(values) > 0 {
				s.runs[i], s.names[i] = append(s.runs[i], values), append(s.names[i], n.name)
			}
		}
	}
	return s
}

// describe describes the sample; name seeds the draws of its interval.
func (s *sample) describe(name string) Sample {
	byRun := make([][]float64, len(s.runs))
	d := Sample{Open: s.open}
	for i, nodes := range s.runs {
		d.Nodes += len(nodes)
		byRun[i] = slices.Concat(nodes...)
	}
	all := slices.Sorted(slices.Values(slices.Concat(byRun...)))
	d.N, d.Median = len(all), stats.ClusterQuantile(name, byRun, 0.5)
	if len(all) > 0 {
		d.P10, d.P90 = new(stat.Quantile(0.1, stat.Empirical, all, nil)), new(stat.Quantile(0.9, stat.Empirical, all, nil))
	}
	return d
}

func (m *measurement) delay(q quantity) Delay {
	d, name := q.Delay, q.Name+"/"+q.StaticPod
	strata := make([]stats.Stratum, len(m.runs))
	for side := range 2 {
		d.values[side] = m.sample(&q, side)
	}
	for i := range strata {
		strata[i] = stats.Stratum{A: d.values[model].runs[i], B: d.values[realKubelet].runs[i]}
	}
	d.Model, d.Real = d.values[model].describe(name+"/model"), d.values[realKubelet].describe(name+"/real")
	d.Distance = stats.KolmogorovSmirnov(name, strata)
	d.judge()
	return d
}

// judge holds the distance and the percentiles against their tolerances. Either may be the wrong measure: two narrow distributions lie apart though their
// values hardly differ, and the median of a distribution with two peaks is at one or the other by chance.
func (d *Delay) judge() {
	d.Outcome = verdict.Inconclusive
	distance := d.Distance
	switch {
	case d.Model.Open+d.Real.Open > 0:
		d.Reason = fmt.Sprintf("%d of the model's and %d of the real kubelet's were not over at the end", d.Model.Open, d.Real.Open)
		return
	case distance.Value == nil:
		d.Reason = "one side has no value"
		return
	case distance.P == nil:
		d.Reason = "too few nodes to show any difference"
		return
	}
	apart := d.apart()
	switch near := *distance.Value <= Distance; {
	case !near && apart != "" && distance.Shown():
		d.Outcome, d.Reason = verdict.Failed, fmt.Sprintf("distance above %.2g, and %s not within tolerance", Distance, apart)
	case !near && apart != "":
		d.Reason = fmt.Sprintf("distance above %.2g, and %s not within tolerance, which may be chance", Distance, apart)
	case *distance.Critical > Distance:
		d.Reason = fmt.Sprintf("too few nodes: chance alone makes distances up to %.2f", *distance.Critical)
	default:
		d.Outcome = verdict.Passed
		d.Reason = d.agreement(near, apart == "")
	}
}

// apart lists the percentiles that are not within tolerance.
func (d *Delay) apart() string {
	var names []string
	for _, p := range []struct {
		name            string
		modelled, other *float64
	}{{"p10", d.Model.P10, d.Real.P10}, {"median", d.Model.Median.Value, d.Real.Median.Value}, {"p90", d.Model.P90, d.Real.P90}} {
		if math.Abs(*p.modelled-*p.other) > max(Tolerance**p.other, Resolution) {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", ")
}

// agreement says by what they agree, and whether there is a difference nevertheless.
func (d *Delay) agreement(near, within bool) string {
	by := "distance and percentiles within tolerance"
	switch {
	case !within:
		by = "distance within tolerance, though " + d.apart() + " not"
	case !near:
		by = "percentiles within tolerance, though the distance not"
	}
	if d.Distance.Shown() {
		return by + "; a difference is shown"
	}
	return by + "; no difference shown"
}

func (t *Timing) judge() {
	t.Outcome = verdict.Inconclusive
	if len(t.Doubts) > 0 || len(t.Runs) == 0 {
		return
	}
	parts := []verdict.Outcome{t.Storm.Outcome}
	for _, d := range t.Delays {
		parts = append(parts, d.Outcome)
	}
	t.Outcome = conclude(parts)
}
