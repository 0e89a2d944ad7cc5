package random

import (
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Longest is the longest delay: samples are cut there, so that an unbounded distribution cannot overflow a time. It stands for "never in any
// experiment", and parameters may not exceed it.
const Longest = 365 * 24 * time.Hour

// upperQuantile is where Upper cuts distributions that have no bound: one sample in 10,000 is longer.
const upperQuantile = 0.9999

// Delay is a distribution of times from 0 to Longest. Exactly one field is set.
type Delay struct {
	// Constant is always this time.
	Constant *metav1.Duration `json:"constant,omitempty"`
	// Uniform is uniform between two times.
	Uniform *UniformDelay `json:"uniform,omitempty"`
	// Normal is a normal distribution, conditioned on not being negative.
	Normal *NormalDelay `json:"normal,omitempty"`
	// Lognormal is a distribution whose logarithm is normal: most delays near the median, a long tail above it.
	Lognormal *LognormalDelay `json:"lognormal,omitempty"`
	// Exponential is the memoryless distribution.
	Exponential *ExponentialDelay `json:"exponential,omitempty"`
	// Weibull has a failure rate that falls (shape < 1) or grows (shape > 1) with time.
	Weibull *WeibullDelay `json:"weibull,omitempty"`
	// Empirical draws from measured values.
	Empirical *EmpiricalDelay `json:"empirical,omitempty"`
	// Preset is a named distribution, one of Presets.
	Preset Preset `json:"preset,omitempty"`
}

// UniformDelay is uniform on [Min, Max]; 0 ≤ Min ≤ Max.
type UniformDelay struct {
	Min metav1.Duration `json:"min"`
	Max metav1.Duration `json:"max"`
}

// NormalDelay is normal with this Mean ≥ 0 and Stddev > 0, conditioned on not being negative: what lies below 0 is drawn again, so the mean of
// the samples is a little above Mean when Mean is not several times Stddev.
type NormalDelay struct {
	Mean   metav1.Duration `json:"mean"`
	Stddev metav1.Duration `json:"stddev"`
}

// LognormalDelay is exp(N(ln Median, Sigma²)); Median > 0, Sigma > 0. Sigma has no unit: 68 % of the samples lie within a factor of
// exp(Sigma) of the median.
type LognormalDelay struct {
	Median metav1.Duration `json:"median"`
	Sigma  float64         `json:"sigma"`
}

// ExponentialDelay has this Mean > 0.
type ExponentialDelay struct {
	Mean metav1.Duration `json:"mean"`
}

// WeibullDelay has the distribution function 1 − exp(−(t/Scale)^Shape); Shape > 0 has no unit, Scale > 0.
type WeibullDelay struct {
	Shape float64         `json:"shape"`
	Scale metav1.Duration `json:"scale"`
}

// EmpiricalDelay draws one of the measured Values, each equally likely (the inverse of their empirical distribution function).
// Exactly one of File and Values is set; after loading it is always Values.
type EmpiricalDelay struct {
	// File is the path of a CSV file of seconds, relative to the experiment file; see ParseCSV.
	File string `json:"file,omitempty"`
	// Column is the name of the column in File. Empty: File has one column.
	Column string `json:"column,omitempty"`
	// Values are the measured values in ascending order.
	Values []metav1.Duration `json:"values,omitempty"`
}

// Preset names a distribution of the time from Node CREATE to the creation of a static pod's mirror, by the kubelet versions that show it.
type Preset string

// The presets.
const (
	// PresetKubelet121 is kubelets up to 1.21: constant 1 s, since their mirror pods appear about 1 s after registration
	// (kubernetes/kubernetes#115325, where it is told as a regression of 1.22). A round number, not a measured distribution.
	PresetKubelet121 Preset = "kubelet-1.21"
	// PresetKubelet122 is kubelets 1.22 to 1.31: uniform 60–90 s. The first creation fails because the node is not in the kubelet's lister yet,
	// and is tried again at the pod's resync: 1 min × U(1.0, 1.5) (pkg/kubelet/pod_workers.go, workerResyncIntervalJitterFactor;
	// kubernetes/kubernetes#115325, fixed by #126870).
	PresetKubelet122 Preset = "kubelet-1.22-1.31"
	// PresetKubelet132 is kubelets from 1.32: lognormal, median 17 ms, sigma 0.45. Since kubernetes/kubernetes#126870 they poll the lister every 100 ms;
	// the distribution was measured on the real kubelet v1.37.2 with 2 static pods by mirrorgap validate-model (docs/model-agreement.md), less the time that
	// the creation itself takes. (20 mirrors take up to 0.5 s, since they are created one after another.)
	PresetKubelet132 Preset = "kubelet-1.32"
)

// Presets lists all presets, oldest kubelet first.
func Presets() []Preset { return []Preset{PresetKubelet121, PresetKubelet122, PresetKubelet132} }

// delay is the distribution behind the name; nil for an unknown name.
func (p Preset) delay() *Delay {
	switch p {
	case PresetKubelet121:
		return Constant(time.Second)
	case PresetKubelet122:
		return Uniform(60*time.Second, 90*time.Second)
	case PresetKubelet132:
		return Lognormal(17*time.Millisecond, 0.45)
	}
	return nil
}

// Constant is the distribution that always gives d.
func Constant(d time.Duration) *Delay { return &Delay{Constant: &metav1.Duration{Duration: d}} }

// Uniform is the uniform distribution on [lo, hi].
func Uniform(lo, hi time.Duration) *Delay {
	return &Delay{Uniform: &UniformDelay{metav1.Duration{Duration: lo}, metav1.Duration{Duration: hi}}}
}

// Lognormal is the lognormal distribution with this median and sigma.
func Lognormal(median time.Duration, sigma float64) *Delay {
	return &Delay{Lognormal: &LognormalDelay{metav1.Duration{Duration: median}, sigma}}
}

// Empirical is the distribution of measured values, in ascending order.
func Empirical(values ...time.Duration) *Delay {
	e := &EmpiricalDelay{}
	for _, v := range values {
		e.Values = append(e.Values, metav1.Duration{Duration: v})
	}
	return &Delay{Empirical: e}
}

// Named is the distribution of a preset.
func Named(p Preset) *Delay { return &Delay{Preset: p} }

// Sample draws a delay. It takes exactly one number from r, whatever the distribution, and a larger number gives a longer delay: two arms that
// differ in a delay's parameters still draw comparable delays from the same stream. d must be valid (see Validate).
func (d *Delay) Sample(r *rand.Rand) time.Duration { return d.Quantile(r.Float64()) }

// Upper is a time that samples hardly exceed: the upper bound of the distribution where it has one, else the time that 1 sample in 10,000
// exceeds.
func (d *Delay) Upper() time.Duration {
	if d.Preset != "" {
		return d.Preset.delay().Upper()
	}
	if d.Normal != nil || d.Lognormal != nil || d.Exponential != nil || d.Weibull != nil {
		return d.Quantile(upperQuantile)
	}
	return d.Quantile(1)
}

// Quantile is the time that a sample does not exceed with probability p, from 0 to 1, cut at Longest. d must be valid (see Validate).
func (d *Delay) Quantile(p float64) time.Duration {
	switch {
	case d.Constant != nil:
		return d.Constant.Duration
	case d.Uniform != nil:
		span := d.Uniform.Max.Duration - d.Uniform.Min.Duration
		return d.Uniform.Min.Duration + time.Duration(p*float64(span))
	case d.Normal != nil:
		n := distuv.Normal{Mu: d.Normal.Mean.Seconds(), Sigma: d.Normal.Stddev.Seconds()}
		negative := n.CDF(0)
		return fromSeconds(n.Quantile(negative + p*(1-negative)))
	case d.Lognormal != nil:
		return fromSeconds(distuv.LogNormal{Mu: math.Log(d.Lognormal.Median.Seconds()), Sigma: d.Lognormal.Sigma}.Quantile(p))
	case d.Exponential != nil:
		return fromSeconds(distuv.Exponential{Rate: 1 / d.Exponential.Mean.Seconds()}.Quantile(p))
	case d.Weibull != nil:
		return fromSeconds(distuv.Weibull{K: d.Weibull.Shape, Lambda: d.Weibull.Scale.Seconds()}.Quantile(p))
	case d.Empirical != nil:
		n := len(d.Empirical.Values)
		return d.Empirical.Values[min(int(p*float64(n)), n-1)].Duration
	}
	return d.Preset.delay().Quantile(p)
}

// fromSeconds converts to a duration within [0, Longest]; rounding may have left s a trifle below 0.
func fromSeconds(s float64) time.Duration {
	if s >= Longest.Seconds() {
		return Longest
	}
	return time.Duration(max(s, 0) * float64(time.Second))
}
