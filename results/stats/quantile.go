package stats

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// resamples is the number of bootstrap resamples of clusters; with 2,000 the ends of a 95 % interval are stable to about a tenth of its width
	// (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, 14.2).
	resamples = 2000
	// enoughClusters is the number of runs below which the bootstrap of clusters is known to be too narrow. Conservative reading of Cameron, Gelbach
	// and Miller, Bootstrap-Based Improvements for Inference with Clustered Errors, 2008: trouble below five to ten.
	enoughClusters = 10
)

// Quantile estimates the p-quantile (0 < p < 1) of independent values: gonum's empirical quantile, and the interval between two order statistics that
// covers at least 95 % whatever the distribution (David and Nagaraja, Order Statistics, 2003, 7.1). The bootstrap's percentile interval, also between order
// statistics, is not used here: it covered 91.8 % at p90 of 100 exponential values. There is no interval if the sample is so small that the true
// quantile lies beyond one of its ends with a probability above 2.5 %: below 6 values for a median, 36 for p90, 368 for p99.
func Quantile(sample []float64, p float64) Estimate {
	sorted := finite(sample)
	e := Estimate{N: len(sorted)}
	if len(sorted) == 0 {
		e.Warnings = []Warning{warn(NoneComplete, "there is no value")}
		return e
	}
	e.Value = new(stat.Quantile(p, stat.Empirical, sorted, nil))
	if least := leastFor(p); len(sorted) < least {
		e.Warnings = []Warning{warn(TooFew, "n = %d is too small for an interval of this quantile: it needs %d", len(sorted), least)}
		return e
	}
	e.Interval = orderInterval(sorted, p)
	return e
}

// leastFor is the least number of values whose extremes enclose the p-quantile with at least 97.5 % on either side.
func leastFor(p float64) int { return int(math.Ceil(math.Log(tail) / math.Log(max(p, 1-p)))) }

// orderInterval lies between the order statistics that the p-quantile is below, and above, with at most 2.5 % each. The number of values below it is binomial.
func orderInterval(sorted []float64, p float64) *Interval {
	below := distuv.Binomial{N: float64(len(sorted)), P: p}
	first := func(q float64) int {
		return sort.Search(len(sorted)-1, func(k int) bool { return below.CDF(float64(k)) > q })
	}
	return &Interval{Low: sorted[max(0, first(tail)-1)], High: sorted[first(1-tail)]}
}

// ClusterQuantile estimates the p-quantile of the pooled values of several runs. Values of a run are not independent of one another, so the interval
// comes from resampling whole runs: the expanded percentile interval of the bootstrap (Hesterberg, What Teachers Should Know About the Bootstrap, 2015, 5.3),
// since the plain one is too narrow for few runs (it covered 91.2 % with 20). Of a single run it is Quantile's, which says nothing about other runs; a
// Warning says so. Name seeds the draws.
func ClusterQuantile(name string, clusters [][]float64, p float64) Estimate {
	sorted := make([][]float64, 0, len(clusters))
	for _, c := range clusters {
		if c = finite(c); len(c) > 0 {
			sorted = append(sorted, c)
		}
	}
	pooled := finite(slices.Concat(sorted...))
	e := Quantile(pooled, p)
	switch {
	case len(sorted) == 1:
		e.Warnings = append(e.Warnings, warn(OneCluster, "all values are of one run: nothing is said about the variation between runs"))
	case e.Interval != nil:
		e.Interval = bootstrapClusters(name, sorted, pooled, p)
		if len(sorted) < enoughClusters {
			e.Warnings = append(e.Warnings, warn(FewClusters, "%d runs: an interval from so few is likely too narrow", len(sorted)))
		}
	}
	return e
}

func bootstrapClusters(name string, clusters [][]float64, pooled []float64, p float64) *Interval {
	draws := stream(name)
	values := make([]float64, resamples)
	weights := make([]int, len(clusters))
	for i := range values {
		clear(weights)
		for range clusters {
			weights[draws.IntN(len(clusters))]++
		}
		values[i] = weightedQuantile(clusters, weights, pooled, p)
	}
	slices.Sort(values)
	outside := expandedTail(len(clusters))
	return &Interval{
		Low:  stat.Quantile(outside, stat.Empirical, values, nil),
		High: stat.Quantile(1-outside, stat.Empirical, values, nil),
	}
}

// expandedTail is the share of resamples to leave out at each end so that the interval is as wide as Student's for n clusters would be.
func expandedTail(n int) float64 {
	runs := float64(n)
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: runs - 1}
	return distuv.UnitNormal.CDF(math.Sqrt(runs/(runs-1)) * student.Quantile(tail))
}

// weightedQuantile is the empirical p-quantile of the sorted clusters, each taken as often as its weight says.
func weightedQuantile(clusters [][]float64, weights []int, pooled []float64, p float64) float64 {
	total := 0
	for i, c := range clusters {
		total += weights[i] * len(c)
	}
	k := int(math.Ceil(p * float64(total)))
	return pooled[sort.Search(len(pooled)-1, func(at int) bool {
		atMost := 0
		for i, c := range clusters {
			if weights[i] > 0 {
				atMost += weights[i] * sort.Search(len(c), func(j int) bool { return c[j] > pooled[at] })
			}
		}
		return atMost >= k
	})]
}

// stream is the stream of random numbers of that name.
func stream(name string) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // a hash never fails
	return rand.New(rand.NewPCG(hash.Sum64(), 0))
}
