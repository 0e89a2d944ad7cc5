package verdict

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mirrorgap/mirrorgap/results"
)

var infinite = math.Inf(1)

// TestOperators: a lower bound decides only what it can.
func TestOperators(t *testing.T) {
	exactly := func(x float64) span { return span{x, x} }
	atLeast := func(x float64) span { return span{x, infinite} }
	for _, tt := range []struct {
		s     span
		o     Operator
		value float64
		want  Outcome
	}{
		{exactly(1), Less, 1, Failed}, {exactly(0.9), Less, 1, Passed},
		{exactly(1), LessOrEqual, 1, Passed}, {exactly(1.1), LessOrEqual, 1, Failed},
		{exactly(1), Equal, 1, Passed}, {exactly(0.9), Equal, 1, Failed}, {exactly(1.1), Equal, 1, Failed},
		{exactly(1), GreaterOrEqual, 1, Passed}, {exactly(0.9), GreaterOrEqual, 1, Failed},
		{exactly(1), Greater, 1, Failed}, {exactly(1.1), Greater, 1, Passed},

		{atLeast(1), Less, 1, Failed}, {atLeast(0.9), Less, 1, Inconclusive},
		{atLeast(1), LessOrEqual, 1, Inconclusive}, {atLeast(1.1), LessOrEqual, 1, Failed},
		{atLeast(1), Equal, 1, Inconclusive}, {atLeast(0.9), Equal, 1, Inconclusive}, {atLeast(1.1), Equal, 1, Failed},
		{atLeast(1), GreaterOrEqual, 1, Passed}, {atLeast(0.9), GreaterOrEqual, 1, Inconclusive},
		{atLeast(1), Greater, 1, Inconclusive}, {atLeast(1.1), Greater, 1, Passed},

		{exactly(math.NaN()), LessOrEqual, 1, Inconclusive}, {exactly(0), "=", 0, Inconclusive},
	} {
		if got := tt.o.outcome(tt.s, tt.value); got != tt.want {
			t.Errorf("%v %s %v: got %v, want %v", tt.s, tt.o, tt.value, got, tt.want)
		}
	}
}

func TestStatistics(t *testing.T) {
	five := []*results.Observation{{Value: 3}, {Value: 1}, {Value: 2, Censored: true}, {Value: 4}, {Value: 5}}
	for s, want := range map[Statistic]span{
		Min: {1, 1}, Max: {5, infinite}, Mean: {3, infinite}, Total: {15, infinite}, Median: {3, 4}, P90: {5, infinite}, P99: {5, infinite},
	} {
		if got := s.of(five); got != want {
			t.Errorf("%s: got %v, want %v", s, got, want)
		}
	}
	late := []*results.Observation{{Value: 1}, {Value: 2}, {Value: 9, Censored: true}}
	if got := Median.of(late); got != (span{2, 2}) {
		t.Errorf("what is cut off above the median does not move it: got %v", got)
	}
}

// TestStatisticsAreTheOnesThatAreShown: the table of a run and its verdict must not differ.
func TestStatisticsAreTheOnesThatAreShown(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var sample []float64
		for range 1 + random.IntN(120) {
			sample = append(sample, math.Round(random.ExpFloat64()*100)/10)
		}
		d := results.Describe(sample)
		for s, want := range map[Statistic]*float64{Max: d.Max, Median: d.Median, Mean: d.Mean, P90: d.P90, P99: d.P99} {
			if got := s.of(at(sample...)); !got.exact() || math.Abs(got.low-*want) > 1e-9 {
				t.Errorf("%s of %v: got %v, want %v", s, sample, got, *want)
			}
		}
	}
}

// TestCensoredBoundsHold: whatever the lengths turn out to be that were cut off, the statistic lies in its span, and a decision stays true.
func TestCensoredBoundsHold(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var seen, truth []*results.Observation
		for range 1 + random.IntN(30) {
			value := math.Round(random.ExpFloat64() * 10)
			o := &results.Observation{Value: value}
			if random.IntN(3) == 0 {
				o = &results.Observation{Value: math.Floor(value * random.Float64()), Censored: true}
			}
			seen, truth = append(seen, o), append(truth, &results.Observation{Value: value})
		}
		for _, s := range Statistics() {
			bounds, exact := s.of(seen), s.of(truth)
			if exact.low < bounds.low-1e-9 || exact.low > bounds.high+1e-9 {
				t.Fatalf("%s is %v, outside of %v", s, exact.low, bounds)
			}
			for _, o := range Operators() {
				limit := math.Round(random.ExpFloat64() * 10)
				if got, want := o.outcome(bounds, limit), o.outcome(exact, limit); s != Mean && got != Inconclusive && got != want {
					t.Fatalf("%s %s %v: said %v, is %v", s, o, limit, got, want)
				}
			}
		}
	}
}

func TestListsAreComplete(t *testing.T) {
	if slices.Contains(Statistics(), "") || len(Statistics()) != 7 || len(Operators()) != 5 {
		t.Error("a statistic or an operator is missing")
	}
	for _, s := range Statistics() {
		if math.IsNaN(s.of(at(1, 2)).low) {
			t.Errorf("%s is not computed", s)
		}
	}
}

func TestClosest(t *testing.T) {
	for mistyped, want := range map[string]string{
		"newNodesRejecting": "newNodesWithRejection", "HOLDSECONDS": "holdSeconds", "holdsecond": "holdSeconds", "rejectdPods": "rejectedPods",
	} {
		if got := closest(mistyped, metricNames()); got != want {
			t.Errorf("%s: got %s, want %s", mistyped, got, want)
		}
	}
}
