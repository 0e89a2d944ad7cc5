package random

import (
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate reports everything that is wrong with the distribution; path is where it stands. A file that has not been read counts as missing
// values.
func (d *Delay) Validate(path *field.Path) field.ErrorList {
	var set int
	var errs field.ErrorList
	check := func(present bool, validate func() field.ErrorList) {
		if present {
			set++
			errs = append(errs, validate()...)
		}
	}
	check(d.Constant != nil, func() field.ErrorList { return notNegative(*d.Constant, path.Child("constant")) })
	check(d.Uniform != nil, func() field.ErrorList { return d.Uniform.validate(path.Child("uniform")) })
	check(d.Normal != nil, func() field.ErrorList { return d.Normal.validate(path.Child("normal")) })
	check(d.Lognormal != nil, func() field.ErrorList { return d.Lognormal.validate(path.Child("lognormal")) })
	check(d.Exponential != nil, func() field.ErrorList { return positive(d.Exponential.Mean, path.Child("exponential", "mean")) })
	check(d.Weibull != nil, func() field.ErrorList { return d.Weibull.validate(path.Child("weibull")) })
	check(d.Empirical != nil, func() field.ErrorList { return d.Empirical.validate(path.Child("empirical")) })
	check(d.Preset != "", func() field.ErrorList { return d.Preset.validate(path.Child("preset")) })
	switch set {
	case 0:
		errs = append(errs, field.Required(path,
			"set one of constant, uniform, normal, lognormal, exponential, weibull, empirical and preset"))
	case 1:
	default:
		errs = append(errs, field.Forbidden(path, "set only one distribution"))
	}
	return errs
}

func (u UniformDelay) validate(path *field.Path) field.ErrorList {
	errs := append(notNegative(u.Min, path.Child("min")), notNegative(u.Max, path.Child("max"))...)
	if u.Max.Duration < u.Min.Duration {
		errs = append(errs, field.Invalid(path.Child("max"), u.Max.Duration.String(), "must not be less than min, "+u.Min.Duration.String()))
	}
	return errs
}

func (n NormalDelay) validate(path *field.Path) field.ErrorList {
	return append(notNegative(n.Mean, path.Child("mean")), positive(n.Stddev, path.Child("stddev"))...)
}

func (l LognormalDelay) validate(path *field.Path) field.ErrorList {
	return append(positive(l.Median, path.Child("median")), positiveNumber(l.Sigma, path.Child("sigma"))...)
}

func (w WeibullDelay) validate(path *field.Path) field.ErrorList {
	return append(positiveNumber(w.Shape, path.Child("shape")), positive(w.Scale, path.Child("scale"))...)
}

func (e EmpiricalDelay) validate(path *field.Path) field.ErrorList {
	if len(e.Values) == 0 {
		return field.ErrorList{field.Required(path, "set values, or a file of them")}
	}
	path = path.Child("values")
	var errs field.ErrorList
	for i, v := range e.Values {
		errs = append(errs, notNegative(v, path.Index(i))...)
		if i > 0 && v.Duration < e.Values[i-1].Duration {
			errs = append(errs, field.Invalid(path.Index(i), v.Duration.String(), "values must be in ascending order: sort them"))
		}
	}
	return errs
}

func (p Preset) validate(path *field.Path) field.ErrorList {
	if p.delay() == nil {
		return field.ErrorList{field.NotSupported(path, p, Presets())}
	}
	return nil
}

func notNegative(d metav1.Duration, path *field.Path) field.ErrorList {
	if d.Duration < 0 || d.Duration > Longest {
		return field.ErrorList{field.Invalid(path, d.Duration.String(), "must be from 0s to "+Longest.String())}
	}
	return nil
}

func positive(d metav1.Duration, path *field.Path) field.ErrorList {
	if d.Duration <= 0 || d.Duration > Longest {
		return field.ErrorList{field.Invalid(path, d.Duration.String(), "must be more than 0s, and at most "+Longest.String())}
	}
	return nil
}

func positiveNumber(x float64, path *field.Path) field.ErrorList {
	if !(x > 0) || math.IsInf(x, 1) {
		return field.ErrorList{field.Invalid(path, x, "must be a positive number")}
	}
	return nil
}
