package random

import (
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Delay is a distribution of non-negative times. Exactly one of the fields other than Min and Max is set.
type Delay struct {
	Constant *metav1.Duration `json:"constant,omitempty"`
	Uniform  *UniformDelay    `json:"uniform,omitempty"`
}

// UniformDelay is uniform on [Min, Max].
type UniformDelay struct {
	Min metav1.Duration `json:"min"`
	Max metav1.Duration `json:"max"`
}

// Constant is the distribution that always gives d.
func Constant(d time.Duration) *Delay { return &Delay{Constant: &metav1.Duration{Duration: d}} }

// Uniform is the uniform distribution on [lo, hi].
func Uniform(lo, hi time.Duration) *Delay {
	return &Delay{Uniform: &UniformDelay{metav1.Duration{Duration: lo}, metav1.Duration{Duration: hi}}}
}

// Sample draws a delay; it is never negative.
func (d *Delay) Sample(r *rand.Rand) time.Duration {
	switch {
	case d.Constant != nil:
		return d.Constant.Duration
	case d.Uniform != nil:
		span := d.Uniform.Max.Duration - d.Uniform.Min.Duration
		return d.Uniform.Min.Duration + time.Duration(r.Float64()*float64(span))
	}
	return 0
}
