package stats

import (
	"fmt"
	"math"
	"slices"
)

// Level is the confidence level of every interval, and 1 − Level the level at which a difference is called one.
const Level = 0.95

// tail is what lies outside of an interval on each side.
const tail = (1 - Level) / 2

// Interval is a confidence interval of Level; both ends belong to it.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Codes of warnings.
const (
	// TooFew: the sample is too small for an interval, or for a test to show anything.
	TooFew = "too-few"
	// OneCluster: all values are of one run, so that nothing is said about other runs.
	OneCluster = "one-run"
	// FewClusters: so few runs that the interval is likely too narrow.
	FewClusters = "few-runs"
	// NoneComplete: all values are censored, or there is none.
	NoneComplete = "none-complete"
	// NotReached: so many values are censored that the survival curve does not reach the quantile.
	NotReached = "not-reached"
	// FewDiffer: most pairs are equal, and by the others the test can show nothing.
	FewDiffer = "few-differ"
	// AllEqual: no two values differ, so that nothing can be tested.
	AllEqual = "all-equal"
)

// Warning says what an estimate does not carry.
type Warning struct {
	// Code is one of the constants, for programs; Message is for people.
	Code    string `json:"code"`
	Message string `json:"message"`
}

func warn(code, format string, args ...any) Warning {
	return Warning{code, fmt.Sprintf(format, args...)}
}

// Estimate is what a sample says about a quantity.
type Estimate struct {
	// Value is the point estimate; nil if the sample has none.
	Value *float64 `json:"value,omitempty"`
	// Interval has the true value in it in at least about 95 of 100 samples; nil if the sample is too small to say.
	Interval *Interval `json:"interval,omitempty"`
	// N is the size of the sample.
	N        int       `json:"n"`
	Warnings []Warning `json:"warnings,omitempty"`
}

// finite drops what is no number, and sorts.
func finite(sample []float64) []float64 {
	sorted := slices.DeleteFunc(slices.Clone(sample), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	slices.Sort(sorted)
	return sorted
}
