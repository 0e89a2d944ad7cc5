package results

import (
	"maps"
	"slices"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Digest is what is kept of a run once its trace has been read and its tables are written: figures instead of nodes and pods, so that many runs
// can be put together.
type Digest struct {
	// Header is the trace's.
	Header trace.Header
	RunInfo
	// Series are Run.Series.
	Series []Series
	// reasons and causes are the keys of its metrics of rejected pods.
	reasons, causes []string
	figures         map[metricKey]reading
}

// metricKey identifies a metric.
type metricKey struct{ name, key string }

// reading is what a run says about a metric.
type reading struct {
	run         *Observation
	nodes, pods []*Observation
}

// Digest reduces the run to its figures.
func (r *Run) Digest() *Digest {
	d := &Digest{Header: r.Header, RunInfo: r.info(), Series: r.Series, figures: map[metricKey]reading{}}
	d.reasons, d.causes = rejectionKeys(r)
	for _, m := range metrics(d.reasons, d.causes) {
		d.figures[m.id()] = reading{run: m.RunValue(r), nodes: m.nodeValues(r), pods: m.podValues(r)}
	}
	return d
}

// rejectionKeys are the reasons and causes of the run's rejections, sorted.
func rejectionKeys(r *Run) (reasons, causes []string) {
	reason, cause := map[string]bool{}, map[string]bool{}
	for _, p := range r.Pods {
		if p.Rejection != nil {
			reason[p.Rejection.Reason] = true
			cause[string(p.Rejection.Cause)] = true
		}
	}
	return slices.Sorted(maps.Keys(reason)), slices.Sorted(maps.Keys(cause))
}

func (m Metric) id() metricKey { return metricKey{m.Name, m.Key} }

// reading returns what the run says about a metric. Of rejections for a reason, or with a cause, that it does not have it had none.
func (d *Digest) reading(m Metric) reading {
	if o, ok := d.figures[m.id()]; ok {
		return o
	}
	return reading{run: count(0)}
}

// metricsOf lists the metrics of all these runs: those by reason and by cause have an entry for every key that one of them has, so that a 0 in
// another run is written as 0.
func metricsOf(digests []*Digest) []Metric {
	reasons, causes := map[string]bool{}, map[string]bool{}
	for _, d := range digests {
		for _, reason := range d.reasons {
			reasons[reason] = true
		}
		for _, cause := range d.causes {
			causes[cause] = true
		}
	}
	return metrics(slices.Sorted(maps.Keys(reasons)), slices.Sorted(maps.Keys(causes)))
}
