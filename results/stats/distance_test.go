package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// each makes every value a cluster of its own.
func each(values ...float64) [][]float64 {
	clusters := make([][]float64, len(values))
	for i, x := range values {
		clusters[i] = []float64{x}
	}
	return clusters
}

// TestDistanceOfEight holds the permutation test to the exact distribution for two samples of 8 (Gnedenko and Korolyuk, On the Maximum Discrepancy between
// Two Empirical Distributions, 1951): a distance of k/8 or more has the probability 2 C(16, 8+k) / C(16, 8), which is 8.70 % for 5 and 1.86 % for 6.
func TestDistanceOfEight(t *testing.T) {
	for k, want := range map[int]float64{5: 0.0870, 6: 0.0186} {
		var a, b []float64
		for i := range 8 {
			a, b = append(a, float64(i)), append(b, float64(i+k)-0.5)
		}
		d := KolmogorovSmirnov("eight", []Stratum{{each(a...), each(b...)}})
		near(t, "distance", *d.Value, float64(k)/8, 1e-12)
		near(t, "p", *d.P, want, 0.012)
		near(t, "critical", *d.Critical, 5.0/8, 1e-12)
		if d.Shown() != (want < 0.05) {
			t.Errorf("%d/8: p = %v, shown: %v", k, *d.P, d.Shown())
		}
	}
}

// TestDistanceIsThatOfTheDefinition: on ties as on others it is the most by which shares differ.
func TestDistanceIsThatOfTheDefinition(t *testing.T) {
	draws := stream("definition")
	for range 200 {
		var a, b []float64
		for range 1 + draws.IntN(20) {
			a = append(a, float64(draws.IntN(8)))
		}
		for range 1 + draws.IntN(20) {
			b = append(b, float64(draws.IntN(8)))
		}
		most := 0.0
		for x := range 8 {
			most = max(most, math.Abs(shareUpTo(a, float64(x))-shareUpTo(b, float64(x))))
		}
		near(t, "distance", *KolmogorovSmirnov("definition", []Stratum{{each(a...), each(b...)}}).Value, most, 1e-12)
	}
}

func shareUpTo(sample []float64, x float64) float64 {
	n := 0
	for _, y := range sample {
		if y <= x {
			n++
		}
	}
	return float64(n) / float64(len(sample))
}

// TestDistanceHeedsClusters: where clusters of one distribution share a part, the test is wrong about as often as it says, and the table for independent
// values is far more often. Of 300 samples, more than 8 % have a probability below 1 % if the test is wrong in 5 %.
func TestDistanceHeedsClusters(t *testing.T) {
	draws := stream("clusters of one distribution")
	const samples = 300
	wrong, byTable := 0, 0
	for range samples {
		var runs []Stratum
		for range 3 {
			shared := draws.NormFloat64()
			of := func() [][]float64 {
				clusters := clustered(draws, 4, 10)
				for i := range clusters {
					for j := range clusters[i] {
						clusters[i][j] += 3 * shared
					}
				}
				return clusters
			}
			runs = append(runs, Stratum{of(), of()})
		}
		d := KolmogorovSmirnov("clusters", runs)
		if d.Shown() {
			wrong++
		}
		if *d.Value > 1.358*math.Sqrt(2.0/120) {
			byTable++
		}
	}
	if share := float64(wrong) / samples; share > 0.08 {
		t.Errorf("a difference where there is none in %.1f %% of samples, want about 5 %%", 100*share)
	}
	if byTable < samples/4 {
		t.Errorf("the table is wrong in %d of %d samples: the samples of this test are not clustered", byTable, samples)
	}
}

// TestDistanceShowsWhatIsThere: 100 against 100 values show a shift by three quarters of a standard deviation, also if runs differ by much more.
func TestDistanceShowsWhatIsThere(t *testing.T) {
	draws := stream("shift")
	runs := make([]Stratum, 5)
	for i := range runs {
		for range 20 {
			runs[i].A = append(runs[i].A, []float64{draws.NormFloat64()})
			runs[i].B = append(runs[i].B, []float64{draws.NormFloat64() + 0.75})
		}
	}
	d := KolmogorovSmirnov("shift", runs)
	if !d.Shown() {
		t.Errorf("the shift does not show: %+v", d)
	}
	near(t, "critical distance of 100 and 100", *d.Critical, 1.358*math.Sqrt(2.0/100), 0.02)
	if again := KolmogorovSmirnov("shift", runs); *again.P != *d.P || *again.Critical != *d.Critical {
		t.Error("the same samples gave another result")
	}
}

func TestDistanceNeedsEnough(t *testing.T) {
	few := KolmogorovSmirnov("few", []Stratum{{each(1, 2, 3), each(4, 5, 6)}})
	if few.Value == nil || *few.Value != 1 || few.P != nil || few.Shown() || !warned(few.Warnings, TooFew) {
		t.Errorf("3 and 3 show nothing, however far they are apart, got %+v", few)
	}
	if d := KolmogorovSmirnov("four", []Stratum{{each(1, 2, 3, 4), each(5, 6, 7, 8)}}); !d.Shown() {
		t.Errorf("4 and 4 that do not overlap show a difference, got %+v", d)
	}
	for _, runs := range [][]Stratum{nil, {{A: each(1)}}, {{A: each(1), B: [][]float64{{}, {math.NaN()}}}}} {
		if d := KolmogorovSmirnov("empty", runs); d.Value != nil || d.P != nil || !warned(d.Warnings, NoneComplete) {
			t.Errorf("%v: an empty sample has no distance, got %+v", runs, d)
		}
	}
}

func FuzzDistance(f *testing.F) {
	f.Add(1.0, 2.0, 2.0, math.NaN(), uint64(1))
	f.Add(0.0, math.Inf(1), -1e308, 5e-324, uint64(77))
	f.Fuzz(func(t *testing.T, w, x, y, z float64, seed uint64) {
		draws := rand.New(rand.NewPCG(seed, 0))
		runs := make([]Stratum, 1+draws.IntN(3))
		for i := range runs {
			for _, sample := range []*[][]float64{&runs[i].A, &runs[i].B} {
				for range draws.IntN(5) {
					*sample = append(*sample, slices.Repeat([]float64{w, x, y, z}, 2)[draws.IntN(8):])
				}
			}
		}
		d := KolmogorovSmirnov("fuzz", runs)
		for _, share := range []*float64{d.Value, d.Critical, d.P} {
			if share != nil && !(*share >= 0 && *share <= 1+1e-9) {
				t.Errorf("%v: %+v", runs, d)
			}
		}
	})
}
