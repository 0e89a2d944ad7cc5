package stats

import "gonum.org/v1/gonum/stat/distuv"

// Proportion estimates a rate from k of n independent trials: k/n with the interval of Clopper and Pearson (The Use of Confidence or Fiducial Limits
// Illustrated in the Case of the Binomial, 1934), which covers at least 95 %. Where k is 0 or n one end is certain, and the other is the one-sided
// bound: 0 of n is at most 1 − 0.05^(1/n), about 3/n. n must be at least k, and k at least 0.
func Proportion(k, n int) Estimate {
	if n <= 0 {
		return Estimate{Warnings: []Warning{warn(NoneComplete, "there was no trial")}}
	}
	return Estimate{Value: new(float64(k) / float64(n)), N: n, Interval: clopperPearson(float64(k), float64(n))}
}

func clopperPearson(k, n float64) *Interval {
	switch k {
	case 0:
		return &Interval{0, distuv.Beta{Alpha: 1, Beta: n}.Quantile(Level)}
	case n:
		return &Interval{distuv.Beta{Alpha: n, Beta: 1}.Quantile(1 - Level), 1}
	}
	return &Interval{
		Low:  distuv.Beta{Alpha: k, Beta: n - k + 1}.Quantile(tail),
		High: distuv.Beta{Alpha: k + 1, Beta: n - k}.Quantile(1 - tail),
	}
}
