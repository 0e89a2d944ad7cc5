package results

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Description describes a sample. All fields but N are nil when N is 0.
//
// Median, P90 and P99 are empirical quantiles: the smallest value of the sample that at least that part of the sample does not exceed (gonum's
// stat.Empirical). They are always values that were observed, nothing is interpolated; so P90 is the maximum below 10 values, P99 below 100, and
// the median of an even number is the lower one of the middle two.
type Description struct {
	N      int      `json:"n"`
	Mean   *float64 `json:"mean,omitempty"`
	Median *float64 `json:"median,omitempty"`
	P90    *float64 `json:"p90,omitempty"`
	P99    *float64 `json:"p99,omitempty"`
	Max    *float64 `json:"max,omitempty"`
}

// Describe describes a sample. Values that are not finite are no observations and are left out.
func Describe(sample []float64) Description {
	sorted := slices.DeleteFunc(slices.Clone(sample), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	slices.Sort(sorted)
	if len(sorted) == 0 {
		return Description{}
	}
	quantile := func(p float64) *float64 { return new(stat.Quantile(p, stat.Empirical, sorted, nil)) }
	return Description{
		N:    len(sorted),
		Mean: new(stat.Mean(sorted, nil)), Median: quantile(0.5), P90: quantile(0.9), P99: quantile(0.99), Max: new(sorted[len(sorted)-1]),
	}
}

// Observation is one value of a metric.
type Observation struct {
	// Value is in the metric's unit.
	Value float64 `json:"value"`
	// Censored: Value is a lower bound, because what it measures was not over when the trace or the node ended.
	Censored bool `json:"censored,omitempty"`
}

// Distribution describes the observations of a metric. The description is of the complete ones only; since the censored ones are the longest,
// it is too low whenever Censored is not 0.
type Distribution struct {
	Description
	// Censored is the number of censored observations. They are not in N.
	Censored int `json:"censored"`
	// Estimates are of what the observations were sampled from; nil where there is none.
	Estimates *Estimates `json:"estimates,omitempty"`
}

// distribute describes observations; nil ones were not measured and do not count.
func distribute(observations []*Observation) Distribution {
	var complete []float64
	var d Distribution
	for _, o := range observations {
		switch {
		case o == nil:
		case o.Censored:
			d.Censored++
		default:
			complete = append(complete, o.Value)
		}
	}
	d.Description = Describe(complete)
	return d
}

// observe makes an observation in seconds of a span; nil of nil.
func observe(s *Span) *Observation {
	if s == nil {
		return nil
	}
	return &Observation{Value: s.Duration.Seconds(), Censored: s.Censored}
}

// count makes an observation of a number of things.
func count(n int) *Observation { return &Observation{Value: float64(n)} }
