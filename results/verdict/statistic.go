package verdict

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/mirrorgap/mirrorgap/results"
)

// Statistic makes one number of several.
type Statistic string

// The statistics. The quantiles are empirical ones, as everywhere in package results: always a value that was observed.
const (
	Max    Statistic = "max"
	Min    Statistic = "min"
	Median Statistic = "median"
	Mean   Statistic = "mean"
	P90    Statistic = "p90"
	P99    Statistic = "p99"
	Total  Statistic = "total"
)

// Statistics lists all statistics.
func Statistics() []Statistic { return []Statistic{Max, Min, Median, Mean, P90, P99, Total} }

// span is where a number lies: it is at least low, and at most high. The two are equal unless it rests on a censored observation; high is then +Inf.
type span struct{ low, high float64 }

func (s span) exact() bool { return s.low == s.high }

// of takes the statistic of observations, of which there is at least one and none is nil. A censored one is at least its value: every statistic here
// grows with each of its arguments, so that it lies between what the lower bounds give and what no upper bound gives.
func (s Statistic) of(observations []*results.Observation) span {
	low, high := make([]float64, len(observations)), make([]float64, len(observations))
	for i, o := range observations {
		low[i], high[i] = o.Value, o.Value
		if o.Censored {
			high[i] = math.Inf(1)
		}
	}
	return span{s.ofSample(low), s.ofSample(high)}
}

func (s Statistic) ofSample(sample []float64) float64 {
	slices.Sort(sample)
	switch s {
	case Max:
		return sample[len(sample)-1]
	case Min:
		return sample[0]
	case Median:
		return stat.Quantile(0.5, stat.Empirical, sample, nil)
	case P90:
		return stat.Quantile(0.9, stat.Empirical, sample, nil)
	case P99:
		return stat.Quantile(0.99, stat.Empirical, sample, nil)
	case Mean:
		return stat.Mean(sample, nil)
	case Total:
		return floats.Sum(sample)
	}
	return math.NaN() // refused by validation; NaN meets no threshold
}

// Operator compares a statistic with the value of a threshold.
type Operator string

// The operators.
const (
	Less           Operator = "<"
	LessOrEqual    Operator = "<="
	Equal          Operator = "=="
	GreaterOrEqual Operator = ">="
	Greater        Operator = ">"
)

// Operators lists all operators.
func Operators() []Operator { return []Operator{Less, LessOrEqual, Equal, GreaterOrEqual, Greater} }

// outcome tells whether everything in the span meets the threshold, or nothing does.
func (o Operator) outcome(s span, value float64) Outcome {
	var met, missed bool
	switch o {
	case Less:
		met, missed = s.high < value, s.low >= value
	case LessOrEqual:
		met, missed = s.high <= value, s.low > value
	case Equal:
		met, missed = s.exact() && s.low == value, s.low > value || s.high < value
	case GreaterOrEqual:
		met, missed = s.low >= value, s.high < value
	case Greater:
		met, missed = s.low > value, s.high <= value
	}
	switch {
	case met:
		return Passed
	case missed:
		return Failed
	}
	return Inconclusive
}
