package results

import (
	"fmt"
	"slices"

	"github.com/mirrorgap/mirrorgap/results/stats"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Codes of warnings about a summary, besides those of package stats.
const (
	// WarnInconclusive: a run may not be judged; WarnNotSettled: its counts are lower bounds.
	WarnInconclusive = "inconclusive"
	WarnNotSettled   = "not-settled"
	// WarnInterrupted: a watch was broken for longer than InFlightWindow, so that times may be wrong.
	WarnInterrupted = "watch-interrupted"
	// WarnDiffer: the runs were made with different versions, or on different machines.
	WarnDiffer = "runs-differ"
	// WarnOneRun: an arm has a single run.
	WarnOneRun = stats.OneCluster
	// WarnIndependent: a rate over nodes takes the nodes of a run to be independent of one another.
	WarnIndependent = "nodes-taken-as-independent"
)

// Estimates are what a distribution says about the quantiles of what it was sampled from. If observations are censored they are those of the
// survival curve, which takes the lower bounds into account.
type Estimates struct {
	Median stats.Estimate `json:"median"`
	P90    stats.Estimate `json:"p90"`
	P99    stats.Estimate `json:"p99"`
}

// Rate is how many of some nodes a metric counts.
type Rate struct {
	// Count is how many it counts, of N, over all runs of the arm.
	Count int `json:"count"`
	stats.Estimate
}

// Comparison compares the runs' own figures of an arm with those of the first arm, in pairs of equal seed.
type Comparison struct {
	Metric
	// From is the first arm, To the other one.
	From string `json:"from"`
	To   string `json:"to"`
	stats.Comparison
}

// estimate adds estimates to a distribution of observations, by run. Name seeds the random numbers.
func (d *Distribution) estimate(name string, byRun [][]*Observation) {
	quantile := func(p float64) stats.Estimate { return stats.ClusterQuantile(name, complete(byRun), p) }
	if d.Censored > 0 {
		quantile = Survival(byRun).Quantile
	}
	d.Estimates = &Estimates{Median: quantile(0.5), P90: quantile(0.9), P99: quantile(0.99)}
}

// estimateSeeds adds estimates to the distribution of the runs' own figures, which are independent. One run says nothing about others.
func (d *Distribution) estimateSeeds(runs []*Observation) {
	if d.N+d.Censored < 2 {
		return
	}
	quantile := func(p float64) stats.Estimate {
		return stats.Quantile(slices.Concat(complete([][]*Observation{runs})...), p)
	}
	if d.Censored > 0 {
		quantile = Survival([][]*Observation{runs}).Quantile
	}
	d.Estimates = &Estimates{Median: quantile(0.5), P90: quantile(0.9), P99: quantile(0.99)}
}

// complete are the values, by run, without those that are censored or were not measured.
func complete(byRun [][]*Observation) [][]float64 {
	values := make([][]float64, len(byRun))
	for i, observations := range byRun {
		for _, o := range observations {
			if o != nil && !o.Censored {
				values[i] = append(values[i], o.Value)
			}
		}
	}
	return values
}

// Survival is the survival curve of the observations of all runs, pooled. Those that were not measured do not count.
func Survival(byRun [][]*Observation) stats.Survival {
	var all []stats.Observation
	for _, o := range slices.Concat(byRun...) {
		if o != nil {
			all = append(all, stats.Observation{Value: o.Value, Censored: o.Censored})
		}
	}
	return stats.KaplanMeier(all)
}

// rate sets the totals of a metric and of what it counts a part of beside each other. A run that may not be judged may have been about to show more, so
// that nothing bounds the rate of the arm then.
func rate(part, whole *Figure, conclusive bool) *Rate {
	k, n := int(sum(part.Runs)), int(sum(whole.Runs))
	r := &Rate{Count: k, Estimate: stats.Proportion(k, n)}
	switch {
	case n == 0:
	case !conclusive:
		r.Interval = nil
		r.Warnings = append(r.Warnings, stats.Warning{Code: WarnInconclusive, Message: "a run of the arm is inconclusive: nothing bounds the rate"})
	default:
		r.Warnings = append(r.Warnings, stats.Warning{Code: WarnIndependent,
			Message: "the interval takes the nodes of a run to be independent of one another, which they are not entirely: they share a control plane"})
	}
	return r
}

// sum is over all runs that have a value.
func sum(runs []*Observation) float64 {
	total := 0.0
	for _, o := range runs {
		if o != nil {
			total += o.Value
		}
	}
	return total
}

// compare compares all arms with the first.
func (s *Summary) compare() {
	if len(s.Arms) == 0 {
		return
	}
	first := &s.Arms[0]
	for i := range s.Arms[1:] {
		other := &s.Arms[i+1]
		for j := range first.Figures {
			a, b := first.pairs(other, j)
			if len(a) > 1 { // one pair is no sample of differences
				s.Comparisons = append(s.Comparisons, Comparison{
					Metric: first.Figures[j].Metric, From: first.Name, To: other.Name, Comparison: stats.ComparePaired(a, b),
				})
			}
		}
	}
}

// pairs are the figures of a metric of both arms, of the seeds of which both have a run that may be judged, and where neither is censored.
func (a *Arm) pairs(other *Arm, metric int) (own, theirs []float64) {
	for i, run := range a.Runs {
		j := slices.IndexFunc(other.Runs, func(r RunInfo) bool { return r.Seed == run.Seed })
		if j < 0 || !run.Conclusive || !other.Runs[j].Conclusive {
			continue
		}
		x, y := a.Figures[metric].Runs[i], other.Figures[metric].Runs[j]
		if x != nil && y != nil && !x.Censored && !y.Censored {
			own, theirs = append(own, x.Value), append(theirs, y.Value)
		}
	}
	return own, theirs
}

// warn adds what a reader must know before believing the summary.
func (s *Summary) warn() {
	add := func(code, format string, args ...any) {
		s.Warnings = append(s.Warnings, stats.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	var first *RunInfo
	differ := false
	for i := range s.Arms {
		arm := &s.Arms[i]
		if len(arm.Runs) == 1 {
			add(WarnOneRun, "arm %s has one run: nothing is said about the variation between runs", arm.Name)
		}
		for j := range arm.Runs {
			run := &arm.Runs[j]
			switch {
			case !run.Conclusive:
				add(WarnInconclusive, "arm %s, seed %d is inconclusive: it ended as %s", arm.Name, run.Seed, run.End)
			case run.End == trace.EndStopped:
				add(WarnNotSettled, "recording was stopped: what had not ended then is a lower bound")
			case !run.Settled:
				add(WarnNotSettled, "arm %s, seed %d did not settle: its counts and open times are lower bounds", arm.Name, run.Seed)
			}
			if run.Interrupted > InFlightWindow.Seconds() {
				add(WarnInterrupted, "arm %s, seed %d: a watch was broken for up to %s, so that times may be wrong by as much",
					arm.Name, run.Seed, duration(run.Interrupted))
			}
			if first == nil {
				first = run
			}
			differ = differ || !run.SameConditions(first)
		}
	}
	if differ {
		add(WarnDiffer, "the runs were made with different versions, engines or machines: differences between arms may be due to these")
	}
}
