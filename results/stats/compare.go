package stats

import (
	"math"
	"slices"
	"sort"

	"github.com/aclements/go-moremath/stats"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// The tests of a Comparison.
const (
	WilcoxonSignedRank = "wilcoxon-signed-rank"
	MannWhitney        = "mann-whitney"
)

// Comparison says how far a second sample lies above a first.
type Comparison struct {
	// Test is WilcoxonSignedRank for pairs, else MannWhitney.
	Test string `json:"test"`
	// Difference is the estimate of Hodges and Lehmann (Estimates of Location Based on Rank Tests, 1963): the median of the averages of all pairs of
	// differences, or of the differences between all members of both samples. N is the number of pairs, or the size of the smaller sample.
	Difference Estimate `json:"difference"`
	// P is the two-sided p-value of "no difference"; nil if the samples cannot be tested.
	P *float64 `json:"p,omitempty"`
	// Effect is from −1 (the second always lower) to 1 (always higher): the matched-pairs rank-biserial correlation, or Cliff's delta.
	Effect *float64 `json:"effect,omitempty"`
}

// Shown tells whether the samples show a difference at Level.
func (c Comparison) Shown() bool { return c.P != nil && *c.P < 1-Level }

const (
	// exactPairs is the number of pairs up to which the null distribution is computed, exactEach the size of each sample; beyond, the normal
	// approximation is as good.
	exactPairs = 100
	exactEach  = 50
	// leastPairs is the number of pairs with which the test of Wilcoxon can show a difference: 2/2⁶ is below 5 %, 2/2⁵ is not.
	leastPairs = 6
)

// ComparePaired compares b with a, pair by pair, by the signed-rank test of Wilcoxon (Individual Comparisons by Ranking Methods, 1945). Pairs without a
// difference are left out of the test, as Wilcoxon had it, but not of the estimate. Ranks of equal differences are shared, and the p-value is that of
// the permutations of signs given these ranks: exact up to 100 pairs. Below 6 pairs that differ it never is below 5 %, and a Warning says so. Both must
// have the same length; pairs with a value that is not finite are left out.
func ComparePaired(a, b []float64) Comparison {
	var differences []float64
	for i := range a {
		differences = append(differences, b[i]-a[i])
	}
	differences = finite(differences)
	c := Comparison{Test: WilcoxonSignedRank, Difference: hodgesLehmann(differences)}
	nonzero := slices.DeleteFunc(slices.Clone(differences), func(d float64) bool { return d == 0 })
	if len(nonzero) == 0 {
		c.Difference.Warnings = append(c.Difference.Warnings, warn(AllEqual, "no pair differs"))
		return c
	}
	if len(nonzero) < leastPairs && len(differences) >= leastPairs {
		c.Difference.Warnings = append(c.Difference.Warnings,
			warn(FewDiffer, "%d of %d pairs differ: the test can show no difference by so few, it takes %d", len(nonzero), len(differences), leastPairs))
	}
	ranks := doubledRanks(nonzero)
	positive, total := 0, 0
	for i, rank := range ranks {
		total += rank
		if nonzero[i] > 0 {
			positive += rank
		}
	}
	c.P = new(signedRankP(ranks, positive, total))
	c.Effect = new(float64(2*positive-total) / float64(total))
	return c
}

// doubledRanks are twice the ranks of the absolute values, shared by equal ones: whole numbers.
func doubledRanks(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch x, y := math.Abs(values[i]), math.Abs(values[j]); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	ranks := make([]int, len(values))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && math.Abs(values[order[to]]) == math.Abs(values[order[from]]) {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to
		}
		from = to
	}
	return ranks
}

// signedRankP is the two-sided probability of a sum of positive ranks at least as far from the middle, if every sign is as likely as the other.
func signedRankP(ranks []int, positive, total int) float64 {
	extreme := min(positive, total-positive)
	if len(ranks) > exactPairs {
		squares := 0.0
		for _, r := range ranks {
			squares += float64(r) * float64(r)
		}
		z := (float64(extreme) - float64(total)/2 + 1) / (math.Sqrt(squares) / 2) // 1: half a rank, for continuity
		return min(1, 2*distuv.UnitNormal.CDF(z))
	}
	return min(1, 2*sumDistribution(ranks)(extreme))
}

// sumDistribution is the distribution function of the sum of those of the numbers that a fair coin picks.
func sumDistribution(numbers []int) func(int) float64 {
	total := 0
	for _, n := range numbers {
		total += n
	}
	probability := make([]float64, total+1)
	probability[0] = 1
	reached := 0
	for _, n := range numbers {
		reached += n
		for sum := reached; sum >= 0; sum-- {
			p := probability[sum] / 2
			if sum >= n {
				p += probability[sum-n] / 2
			}
			probability[sum] = p
		}
	}
	return func(at int) float64 {
		cumulated := 0.0
		for sum := 0; sum <= min(at, total); sum++ {
			cumulated += probability[sum]
		}
		return cumulated
	}
}

// hodgesLehmann estimates the centre of the differences by the median of their Walsh averages, with the interval that the signed-rank test inverts to.
func hodgesLehmann(differences []float64) Estimate {
	n := len(differences)
	e := Estimate{N: n}
	if n == 0 {
		e.Warnings = []Warning{warn(NoneComplete, "there is no pair")}
		return e
	}
	var walsh []float64
	for i := range differences {
		for j := i; j < n; j++ {
			walsh = append(walsh, (differences[i]+differences[j])/2)
		}
	}
	slices.Sort(walsh)
	e.Value = new(middle(walsh))
	cut := signedRankCut(n)
	if cut < 0 {
		e.Warnings = []Warning{warn(TooFew, "%d pairs can show no difference at 95 %%, however large: it takes %d", n, leastPairs)}
		return e
	}
	e.Interval = &Interval{walsh[cut], walsh[len(walsh)-1-cut]}
	return e
}

// signedRankCut is the number of Walsh averages outside of the interval at each end; −1 if even the whole range covers less than 95 %.
func signedRankCut(n int) int {
	ranks := make([]int, n)
	sum, squares := 0, 0.0
	for i := range ranks {
		ranks[i] = i + 1
		sum += i + 1
		squares += float64(i+1) * float64(i+1)
	}
	cdf := func(w int) float64 {
		return distuv.UnitNormal.CDF((float64(w) + 0.5 - float64(sum)/2) / (math.Sqrt(squares) / 2))
	}
	if n <= exactPairs {
		cdf = sumDistribution(ranks)
	}
	return lastBelowTail(sum, cdf)
}

// lastBelowTail is the largest number up to limit at which a distribution function is at most 2.5 %; −1 if it is above already at 0.
func lastBelowTail(limit int, cdf func(int) float64) int {
	return sort.Search(limit, func(w int) bool { return cdf(w) > tail }) - 1
}

// middle is the median of sorted values; the mean of the middle two if their number is even.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// CompareUnpaired compares b with a by the test of Mann and Whitney (go-moremath: exact for small samples). It takes time and memory in proportion to
// the product of both sizes. Values that are not finite are left out.
func CompareUnpaired(a, b []float64) Comparison {
	a, b = finite(a), finite(b)
	c := Comparison{Test: MannWhitney, Difference: Estimate{N: min(len(a), len(b))}}
	if len(a) == 0 || len(b) == 0 {
		c.Difference.Warnings = []Warning{warn(NoneComplete, "a sample is empty")}
		return c
	}
	var differences []float64
	higher := 0.0
	for _, x := range a {
		for _, y := range b {
			differences = append(differences, y-x)
			switch {
			case y > x:
				higher++
			case y < x:
				higher--
			}
		}
	}
	slices.Sort(differences)
	c.Difference.Value = new(middle(differences))
	if a[0] == b[len(b)-1] && b[0] == a[len(a)-1] {
		c.Difference.Warnings = append(c.Difference.Warnings, warn(AllEqual, "no two values differ"))
		return c
	}
	c.P = mannWhitneyP(a, b)
	c.Effect = new(higher / float64(len(differences)))
	if cut := mannWhitneyCut(len(a), len(b)); cut >= 0 {
		c.Difference.Interval = &Interval{differences[cut], differences[len(differences)-1-cut]}
	} else {
		c.Difference.Warnings = append(c.Difference.Warnings, warn(TooFew,
			"samples of %d and %d can show no difference at 95 %%, however large: it takes 4 and 4, 3 and 5, or 2 and 8", len(a), len(b)))
	}
	return c
}

// mannWhitneyP is the two-sided p-value: twice the probability of a U at least as low, or at least as high, whichever is smaller. go-moremath's own
// takes the distribution of U for symmetric, which it is not where values are equal and one sample is larger: 9 against 1, 1 and 5 gave it p = 0.
func mannWhitneyP(a, b []float64) *float64 {
	low, err := stats.MannWhitneyUTest(a, b, stats.LocationLess)
	if err != nil {
		return nil
	}
	high, err := stats.MannWhitneyUTest(b, a, stats.LocationLess)
	if err != nil {
		return nil
	}
	return new(min(1, 2*min(low.P, high.P)))
}

// mannWhitneyCut is the number of differences outside of the interval at each end; −1 if even the whole range covers less than 95 %.
func mannWhitneyCut(n, m int) int {
	if n <= exactEach && m <= exactEach {
		if combin.GeneralizedBinomial(float64(n+m), float64(n)) < 1/tail {
			return -1
		}
		u := stats.UDist{N1: n, N2: m}
		return lastBelowTail(n*m, func(at int) float64 { return u.CDF(float64(at)) })
	}
	x, y := float64(n), float64(m)
	return lastBelowTail(n*m, func(at int) float64 {
		return distuv.UnitNormal.CDF((float64(at) + 0.5 - x*y/2) / math.Sqrt(x*y*(x+y+1)/12))
	})
}
