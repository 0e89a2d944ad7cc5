package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Observation is a length of time that was seen to its end, or not.
type Observation struct {
	Value float64
	// Censored: it was not over when it was last seen; Value is a lower bound.
	Censored bool
}

// Survival is the estimated probability of lasting longer than a time, where some observations are censored (Kaplan and Meier, Nonparametric
// Estimation from Incomplete Observations, 1958).
type Survival struct {
	// N counts all observations, Censored those that are.
	N        int `json:"n"`
	Censored int `json:"censored"`
	// Steps are the times at which something ended, in ascending order.
	Steps []Step `json:"steps"`
}

// Step is where a survival curve falls.
type Step struct {
	// Time is when, AtRisk how many lasted until then, Ended how many ended then.
	Time   float64 `json:"time"`
	AtRisk int     `json:"atRisk"`
	Ended  int     `json:"ended"`
	// Survival is the probability of lasting longer than Time, StandardError Greenwood's.
	Survival      float64 `json:"survival"`
	StandardError float64 `json:"standardError"`
	// Interval is pointwise, on the scale of log(−log S), which keeps it between 0 and 1. Nil where the curve is 0.
	Interval *Interval `json:"interval,omitempty"`
}

// KaplanMeier estimates a survival curve. Values that are not finite are left out. An observation that is censored when another ends counts as at risk then.
func KaplanMeier(observations []Observation) Survival {
	sorted := slices.DeleteFunc(slices.Clone(observations), func(o Observation) bool { return math.IsNaN(o.Value) || math.IsInf(o.Value, 0) })
	slices.SortFunc(sorted, func(a, b Observation) int { return cmp.Compare(a.Value, b.Value) })
	s := Survival{N: len(sorted)}
	survival, greenwood := 1.0, 0.0
	for i := 0; i < len(sorted); {
		step := Step{Time: sorted[i].Value, AtRisk: len(sorted) - i}
		for ; i < len(sorted) && sorted[i].Value == step.Time; i++ {
			if sorted[i].Censored {
				s.Censored++
			} else {
				step.Ended++
			}
		}
		if step.Ended == 0 {
			continue
		}
		risk, ended := float64(step.AtRisk), float64(step.Ended)
		survival *= 1 - ended/risk
		greenwood += ended / (risk * (risk - ended))
		step.Survival = survival
		if survival > 0 {
			step.StandardError = survival * math.Sqrt(greenwood)
			step.Interval = logLog(survival, greenwood)
		}
		s.Steps = append(s.Steps, step)
	}
	return s
}

// logLog is the interval of a survival probability whose Greenwood sum is given (Kalbfleisch and Prentice, The Statistical Analysis of Failure Time Data).
func logLog(survival, greenwood float64) *Interval {
	z := distuv.UnitNormal.Quantile(1 - tail)
	spread := math.Exp(z * math.Sqrt(greenwood) / math.Log(survival))
	return &Interval{Low: math.Pow(survival, 1/spread), High: math.Pow(survival, spread)}
}

// Quantile is the time by which a share p (0 < p < 1) has ended, with the interval of Brookmeyer and Crowley (A Confidence Interval for the Median
// Survival Time, 1982): the times at which the bounds of the curve pass 1 − p. The value is nil if the curve does not get there, the interval if its
// upper bound does not.
func (s Survival) Quantile(p float64) Estimate {
	e := Estimate{N: s.N}
	value, reached := s.firstAtMost(1-p, func(step Step) float64 { return step.Survival })
	if !reached {
		e.Warnings = []Warning{warn(NotReached, "%d of %d had not ended: this quantile is beyond what was seen", s.Censored, s.N)}
		return e
	}
	e.Value = new(value)
	low, _ := s.firstAtMost(1-p, lower)
	high, bounded := s.firstAtMost(1-p, upper)
	if !bounded {
		e.Warnings = []Warning{warn(TooFew, "n = %d, %d of them censored, bounds this quantile on one side only", s.N, s.Censored)}
		return e
	}
	e.Interval = &Interval{low, high}
	return e
}

func lower(s Step) float64 {
	if s.Interval == nil {
		return 0
	}
	return s.Interval.Low
}

// upper is 1 where the curve is 0: Greenwood's variance is not defined there, and nothing bounds it.
func upper(s Step) float64 {
	if s.Interval == nil {
		return 1
	}
	return s.Interval.High
}

// firstAtMost is the time of the first step whose value is at most bound.
func (s Survival) firstAtMost(bound float64, value func(Step) float64) (float64, bool) {
	const rounding = 1e-12
	for _, step := range s.Steps {
		if value(step) <= bound+rounding {
			return step.Time, true
		}
	}
	return 0, false
}
