package stats

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > within {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func warned(warnings []Warning, code string) bool {
	return slices.ContainsFunc(warnings, func(w Warning) bool { return w.Code == code })
}

// TestProportion: R's documented example of binom.test, 682 of 925 (Conover, Practical Nonparametric Statistics, 1971, p. 97), and the bounds of
// Hanley and Lippman-Hand, If Nothing Goes Wrong, Is Everything All Right?, JAMA 1983: 0 of 10 is at most 26 %, 0 of 20 14 %, 0 of 50 5.8 %, 0 of 100 3.0 %.
func TestProportion(t *testing.T) {
	e := Proportion(682, 925)
	near(t, "682 of 925", *e.Value, 0.7372973, 1e-7)
	near(t, "its low end", e.Interval.Low, 0.7076683, 1e-7)
	near(t, "its high end", e.Interval.High, 0.7654066, 1e-7)
	for n, want := range map[int]float64{10: 0.259, 20: 0.139, 50: 0.058, 100: 0.030} {
		none, all := Proportion(0, n), Proportion(n, n)
		near(t, "0 of n", none.Interval.High, want, 0.0005)
		near(t, "n of n", all.Interval.Low, 1-want, 0.0005)
		near(t, "0 of n from", none.Interval.Low, 0, 0)
		near(t, "n of n to", all.Interval.High, 1, 0)
	}
	if e := Proportion(0, 0); e.Value != nil || e.Interval != nil || !warned(e.Warnings, NoneComplete) {
		t.Errorf("0 of 0 is no rate, got %+v", e)
	}
}

// TestWilcoxon: R's documented example of wilcox.test, depression scores of nine patients (Hollander and Wolfe, Nonparametric Statistical Methods, 1973,
// p. 29): V = 40, one-sided p = 0.01953.
func TestWilcoxon(t *testing.T) {
	first := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	second := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	c := ComparePaired(second, first)
	near(t, "p", *c.P, 0.0390625, 1e-12)
	near(t, "rank-biserial (40 − 5) / 45", *c.Effect, 35.0/45, 1e-12)
	near(t, "Hodges–Lehmann, as in Hollander and Wolfe p. 35", *c.Difference.Value, 0.46, 1e-9)
	near(t, "low end, R's conf.int", c.Difference.Interval.Low, 0.010, 1e-9)
	near(t, "high end, R's conf.int", c.Difference.Interval.High, 0.786, 1e-9)
	if !c.Shown() || ComparePaired(first, second).Shown() != c.Shown() {
		t.Error("the difference is shown, in either direction")
	}
}

// TestWilcoxonWithTies: three pairs of one difference and one of another have the sums of ranks 2+2+2 and 4; of the 16 ways to choose signs, 2 give
// 0 or 10, and so on: P(W ≤ 0) = 1/16.
func TestWilcoxonWithTies(t *testing.T) {
	c := ComparePaired([]float64{0, 0, 0, 0, 5}, []float64{1, 1, 1, 9, 5})
	near(t, "p", *c.P, 2.0/16, 1e-12)
	if c.Difference.Interval != nil || !warned(c.Difference.Warnings, TooFew) {
		t.Errorf("five pairs have no interval, got %+v", c.Difference)
	}
	most := ComparePaired(make([]float64, 8), []float64{0, 0, 0, 0, 0, 0, 1, 2})
	if most.Shown() || *most.P != 0.5 || !warned(most.Difference.Warnings, FewDiffer) {
		t.Errorf("two pairs of eight that differ show nothing, got %+v", most)
	}
	equal := ComparePaired([]float64{3, 3}, []float64{3, 3})
	if equal.P != nil || equal.Shown() || !warned(equal.Difference.Warnings, AllEqual) {
		t.Errorf("equal pairs cannot be tested, got %+v", equal)
	}
}

// TestApproximationMeetsTheExactTest where one follows the other.
func TestApproximationMeetsTheExactTest(t *testing.T) {
	draws := stream("approximation")
	a, b := make([]float64, exactPairs+1), make([]float64, exactPairs+1)
	for i := range a {
		a[i], b[i] = draws.NormFloat64(), draws.NormFloat64()+0.25
	}
	exact, approximate := ComparePaired(a[1:], b[1:]), ComparePaired(a, b)
	near(t, "p of 101 pairs, and of 100 of them", *approximate.P, *exact.P, 0.02)
	near(t, "low end", approximate.Difference.Interval.Low, exact.Difference.Interval.Low, 0.02)
}

// TestMannWhitney: R's documented example of wilcox.test, permeability of the human chorioamnion (Hollander and Wolfe 1973, p. 69): W = 35, one-sided
// p = 0.1272.
func TestMannWhitney(t *testing.T) {
	atTerm := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	earlier := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	c := CompareUnpaired(earlier, atTerm)
	near(t, "p", *c.P, 2*0.1272, 0.0001)
	near(t, "Cliff's delta 2·35/50 − 1", *c.Effect, 0.4, 1e-12)
	near(t, "Hodges–Lehmann, as in Hollander and Wolfe p. 75", *c.Difference.Value, 0.305, 1e-9)
	near(t, "low end, R's conf.int", c.Difference.Interval.Low, -0.15, 1e-9)
	near(t, "high end, R's conf.int", c.Difference.Interval.High, 0.76, 1e-9)
	few := CompareUnpaired([]float64{1, 2}, []float64{8, 9})
	if few.Shown() || few.Difference.Interval != nil || !warned(few.Difference.Warnings, TooFew) {
		t.Errorf("two and two show nothing, got %+v", few)
	}
	if same := CompareUnpaired([]float64{1, 1}, []float64{1, 1}); same.P != nil || !warned(same.Difference.Warnings, AllEqual) {
		t.Errorf("equal samples cannot be tested, got %+v", same)
	}
	if empty := CompareUnpaired(nil, []float64{1}); empty.P != nil || !warned(empty.Difference.Warnings, NoneComplete) {
		t.Errorf("an empty sample cannot be compared, got %+v", empty)
	}
}

// TestMannWhitneyWithTies: the p-value is that of all ways to choose one sample's values from both, also where values are equal.
func TestMannWhitneyWithTies(t *testing.T) {
	draws := stream("ties")
	sample := func() []float64 {
		values := make([]float64, 1+draws.IntN(6))
		for i := range values {
			values[i] = float64(draws.IntN(4))
		}
		return values
	}
	for range 300 {
		a, b := sample(), sample()
		if c := CompareUnpaired(a, b); c.P != nil {
			near(t, fmt.Sprintf("p of %v and %v", a, b), *c.P, permutationP(a, b), 1e-9)
		}
	}
}

// permutationP counts in how many ways the sample's U is as extreme as that of a.
func permutationP(a, b []float64) float64 {
	all := slices.Concat(a, b)
	statistic := func(chosen int) (u float64) {
		for i, x := range all {
			for j, y := range all {
				switch inFirst, inSecond := chosen>>i&1 == 1, chosen>>j&1 == 0; {
				case inFirst && inSecond && x > y:
					u++
				case inFirst && inSecond && x == y:
					u += 0.5
				}
			}
		}
		return u
	}
	observed := statistic(1<<len(a) - 1)
	low, high, ways := 0, 0, 0
	for chosen := range 1 << len(all) {
		if bits.OnesCount(uint(chosen)) != len(a) {
			continue
		}
		ways++
		if u := statistic(chosen); u <= observed {
			low++
		}
		if u := statistic(chosen); u >= observed {
			high++
		}
	}
	return min(1, 2*float64(min(low, high))/float64(ways))
}

// TestKaplanMeier: remission times of leukaemia patients under 6-mercaptopurine, in weeks (Freireich et al., Blood 1963), with the estimates and standard
// errors of Kleinbaum and Klein, Survival Analysis, and Kalbfleisch and Prentice; the median is 23 weeks.
func TestKaplanMeier(t *testing.T) {
	var patients []Observation
	for _, ended := range []float64{6, 6, 6, 7, 10, 13, 16, 22, 23} {
		patients = append(patients, Observation{Value: ended})
	}
	for _, censored := range []float64{6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35} {
		patients = append(patients, Observation{Value: censored, Censored: true})
	}
	s := KaplanMeier(patients)
	want := []Step{
		{Time: 6, AtRisk: 21, Ended: 3, Survival: 0.8571, StandardError: 0.0764},
		{Time: 7, AtRisk: 17, Ended: 1, Survival: 0.8067, StandardError: 0.0869},
		{Time: 10, AtRisk: 15, Ended: 1, Survival: 0.7529, StandardError: 0.0963},
		{Time: 13, AtRisk: 12, Ended: 1, Survival: 0.6902, StandardError: 0.1068},
		{Time: 16, AtRisk: 11, Ended: 1, Survival: 0.6275, StandardError: 0.1141},
		{Time: 22, AtRisk: 7, Ended: 1, Survival: 0.5378, StandardError: 0.1282},
		{Time: 23, AtRisk: 6, Ended: 1, Survival: 0.4482, StandardError: 0.1346},
	}
	if len(s.Steps) != len(want) || s.N != 21 || s.Censored != 12 {
		t.Fatalf("got %+v", s)
	}
	for i, step := range s.Steps {
		if step.Time != want[i].Time || step.AtRisk != want[i].AtRisk || step.Ended != want[i].Ended {
			t.Errorf("step %d: got %+v, want %+v", i, step, want[i])
		}
		near(t, "survival", step.Survival, want[i].Survival, 0.00006)
		near(t, "standard error", step.StandardError, want[i].StandardError, 0.00006)
	}
	median := s.Quantile(0.5)
	near(t, "median", *median.Value, 23, 0)
	if median.Interval != nil || !warned(median.Warnings, TooFew) {
		t.Errorf("the median has no upper bound (Kalbfleisch and Prentice), got %+v", median)
	}
	if p90 := s.Quantile(0.9); p90.Value != nil || !warned(p90.Warnings, NotReached) {
		t.Errorf("p90 is beyond the last remission, got %+v", p90)
	}
}

// TestSurvivalWithoutCensoring is the empirical distribution.
func TestSurvivalWithoutCensoring(t *testing.T) {
	var all []Observation
	for i := range 20 {
		all = append(all, Observation{Value: float64(i + 1)})
	}
	s := KaplanMeier(all)
	near(t, "after the 5th of 20", s.Steps[4].Survival, 0.75, 1e-12)
	near(t, "after the last", s.Steps[19].Survival, 0, 0)
	near(t, "median", *s.Quantile(0.5).Value, 10, 0)
	near(t, "the empirical median", *Quantile([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 0.5).Value, 10, 0)
}

func TestQuantileNeedsEnough(t *testing.T) {
	for _, tt := range []struct {
		p     float64
		least int
	}{{0.5, 6}, {0.9, 36}, {0.99, 368}} {
		enough := make([]float64, tt.least)
		for i := range enough {
			enough[i] = float64(i)
		}
		if e := Quantile(enough, tt.p); e.Interval == nil || len(e.Warnings) > 0 {
			t.Errorf("p = %v has an interval at n = %d, got %+v", tt.p, tt.least, e)
		}
		if e := Quantile(enough[1:], tt.p); e.Value == nil || e.Interval != nil || !warned(e.Warnings, TooFew) {
			t.Errorf("p = %v has none below n = %d, got %+v", tt.p, tt.least, e)
		}
	}
	if e := Quantile([]float64{math.NaN(), math.Inf(1)}, 0.5); e.Value != nil || e.N != 0 {
		t.Errorf("what is no number is no value, got %+v", e)
	}
}

// TestOrderInterval: the 95 % interval of a median lies between the 6th and 15th of 20, the 4th and 12th of 15 values (Conover, Practical Nonparametric
// Statistics, table of the sign test), and between the 1st and 6th of 6.
func TestOrderInterval(t *testing.T) {
	for n, want := range map[int]Interval{6: {1, 6}, 15: {4, 12}, 20: {6, 15}} {
		var sample []float64
		for i := range n {
			sample = append(sample, float64(i+1))
		}
		if got := Quantile(sample, 0.5).Interval; *got != want {
			t.Errorf("median of %d: got %v, want %v", n, *got, want)
		}
	}
}

// trials is the number of samples of a test of coverage: with a true coverage of 95 %, fewer than 92 % of 600 have a probability of 0.1 %.
const trials = 600

func coverage(t *testing.T, what string, interval func(draws *rand.Rand) (*Interval, float64)) {
	t.Helper()
	draws := stream(what)
	covered := 0
	for range trials {
		if i, truth := interval(draws); i.Low <= truth && truth <= i.High {
			covered++
		}
	}
	if share := float64(covered) / trials; share < 0.92 {
		t.Errorf("%s: the interval covers the truth in %.1f %% of %d samples, want 95 %%", what, 100*share, trials)
	}
}

// TestCoverage: intervals hold the truth as often as they say, on samples whose truth is known.
func TestCoverage(t *testing.T) {
	sample := func(draws *rand.Rand, n int) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = draws.ExpFloat64()
		}
		return values
	}
	coverage(t, "median of 30", func(draws *rand.Rand) (*Interval, float64) {
		return Quantile(sample(draws, 30), 0.5).Interval, math.Ln2
	})
	coverage(t, "p90 of 100", func(draws *rand.Rand) (*Interval, float64) {
		return Quantile(sample(draws, 100), 0.9).Interval, math.Log(10)
	})
	coverage(t, "2 % of 60", func(draws *rand.Rand) (*Interval, float64) {
		k := 0
		for range 60 {
			if draws.Float64() < 0.02 {
				k++
			}
		}
		return Proportion(k, 60).Interval, 0.02
	})
	coverage(t, "shift of 12 pairs", func(draws *rand.Rand) (*Interval, float64) {
		a, b := sample(draws, 12), sample(draws, 12)
		for i := range b {
			b[i] += 3
		}
		return ComparePaired(a, b).Difference.Interval, 3
	})
	coverage(t, "shift of 9 and 11", func(draws *rand.Rand) (*Interval, float64) {
		a, b := sample(draws, 9), sample(draws, 11)
		for i := range b {
			b[i] += 3
		}
		return CompareUnpaired(a, b).Difference.Interval, 3
	})
	coverage(t, "median survival of 60, a third censored", func(draws *rand.Rand) (*Interval, float64) {
		var all []Observation
		for range 60 {
			life, seen := draws.ExpFloat64(), 2*draws.ExpFloat64()
			all = append(all, Observation{Value: min(life, seen), Censored: seen < life})
		}
		return KaplanMeier(all).Quantile(0.5).Interval, math.Ln2
	})
}

// clustered draws runs whose values share a part.
func clustered(draws *rand.Rand, runs, each int) [][]float64 {
	clusters := make([][]float64, runs)
	for i := range clusters {
		shared := draws.NormFloat64()
		for range each {
			clusters[i] = append(clusters[i], shared+0.3*draws.NormFloat64())
		}
	}
	return clusters
}

// TestClustersCoverWhatPoolingDoesNot: where runs differ, an interval that takes all nodes for independent is far too narrow.
func TestClustersCoverWhatPoolingDoesNot(t *testing.T) {
	coverage(t, "median of 20 runs of 50", func(draws *rand.Rand) (*Interval, float64) {
		return ClusterQuantile("test", clustered(draws, 20, 50), 0.5).Interval, 0
	})
	draws, covered := stream("pooled"), 0
	for range trials {
		if i := Quantile(slices.Concat(clustered(draws, 20, 50)...), 0.5).Interval; i.Low <= 0 && 0 <= i.High {
			covered++
		}
	}
	if covered > trials/2 {
		t.Errorf("pooled values cover the truth in %d of %d samples: the samples of this test are not clustered", covered, trials)
	}
}

func TestClusterQuantile(t *testing.T) {
	runs := clustered(stream("runs"), 3, 40)
	e := ClusterQuantile("name", runs, 0.5)
	if e.N != 120 || e.Interval == nil || !warned(e.Warnings, FewClusters) {
		t.Errorf("three runs have an interval and a warning, got %+v", e)
	}
	if again := ClusterQuantile("name", runs, 0.5); *again.Interval != *e.Interval {
		t.Errorf("the same sample gave %v and %v", *e.Interval, *again.Interval)
	}
	one := ClusterQuantile("name", runs[:1], 0.5)
	if one.Interval == nil || !warned(one.Warnings, OneCluster) {
		t.Errorf("one run has an interval of its own nodes, and a warning, got %+v", one)
	}
	if none := ClusterQuantile("name", nil, 0.5); none.Value != nil || !warned(none.Warnings, NoneComplete) {
		t.Errorf("no run has no quantile, got %+v", none)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, math.Inf(1), uint8(3))
	f.Add(0.0, 0.0, 0.0, 0.0, uint8(8))
	f.Fuzz(func(t *testing.T, w, x, y, z float64, n uint8) {
		values := []float64{w, x, y, z}
		var a, b []float64
		for i := range int(n % 16) {
			a, b = append(a, values[i%4]), append(b, values[(i+i/4)%4])
		}
		for _, c := range []Comparison{ComparePaired(a, b), CompareUnpaired(a, b)} {
			if c.P != nil && !(*c.P >= 0 && *c.P <= 1) || c.Effect != nil && !(*c.Effect >= -1 && *c.Effect <= 1) {
				t.Errorf("%v against %v: %+v", a, b, c)
			}
			if i := c.Difference.Interval; i != nil && !(i.Low <= i.High) {
				t.Errorf("%v against %v: interval %+v", a, b, *i)
			}
		}
	})
}

// FuzzEstimates: whatever the values are, an estimate is a number within its interval, and an interval within what was observed.
func FuzzEstimates(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, math.NaN(), uint8(40), 0.5)
	f.Add(0.0, 0.0, math.Inf(-1), 0.0, uint8(8), 0.99)
	f.Add(-1e308, 1e308, 5e-324, 0.0, uint8(250), 0.001)
	f.Fuzz(func(t *testing.T, w, x, y, z float64, n uint8, p float64) {
		if !(p > 0 && p < 1) {
			return
		}
		var observations []Observation
		runs := make([][]float64, 3)
		for i := range int(n) {
			value := []float64{w, x, y, z}[i%4]
			runs[i%3] = append(runs[i%3], value)
			observations = append(observations, Observation{Value: value, Censored: i%5 == 0})
		}
		all := finite(slices.Concat(runs...))
		curve := KaplanMeier(observations)
		for name, e := range map[string]Estimate{
			"quantile": Quantile(all, p), "of runs": ClusterQuantile("fuzz", runs, p), "survival": curve.Quantile(p),
		} {
			switch {
			case e.Interval == nil && len(e.Warnings) == 0:
				t.Errorf("%s: no interval, and no warning: %+v", name, e)
			case e.Value == nil && e.Interval != nil:
				t.Errorf("%s: an interval of nothing: %+v", name, e)
			case e.Interval != nil && !(all[0] <= e.Interval.Low && e.Interval.Low <= *e.Value && *e.Value <= e.Interval.High && e.Interval.High <= all[len(all)-1]):
				t.Errorf("%s: %v in %v of %v", name, *e.Value, *e.Interval, all)
			}
		}
		last := 1.0
		for _, step := range curve.Steps {
			if !(step.Survival >= 0 && step.Survival < last) || math.IsNaN(step.StandardError) {
				t.Errorf("%+v after %v", step, last)
			}
			last = step.Survival
		}
	})
}

func BenchmarkClusterQuantile(b *testing.B) {
	runs := clustered(stream("bench"), 10, 5000)
	for b.Loop() {
		ClusterQuantile("bench", runs, 0.9)
	}
}
