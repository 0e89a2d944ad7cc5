package fleet

import (
	"math"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

func seconds(s ...float64) []time.Duration {
	var list []time.Duration
	for _, x := range s {
		list = append(list, time.Duration(x*float64(time.Second)))
	}
	return list
}

func TestArrivals(t *testing.T) {
	span := &metav1.Duration{Duration: 10 * time.Second}
	for name, c := range map[string]struct {
		arrival sim.Arrival
		n       int
		want    []time.Duration
	}{
		"all at once":               {sim.Arrival{}, 3, seconds(2, 2, 2)},
		"evenly, from end to end":   {sim.Arrival{Evenly: span}, 5, seconds(2, 4.5, 7, 9.5, 12)},
		"evenly, two":               {sim.Arrival{Evenly: span}, 2, seconds(2, 12)},
		"evenly, one, at the start": {sim.Arrival{Evenly: span}, 1, seconds(2)},
		"evenly over no time":       {sim.Arrival{Evenly: &metav1.Duration{}}, 2, seconds(2, 2)},
		"a list of times": {sim.Arrival{Times: []metav1.Duration{{}, {Duration: time.Second}, {Duration: time.Minute}}}, 3,
			seconds(2, 3, 62)},
		"none": {sim.Arrival{Evenly: span}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := arrivals("pool", &sim.ScaleUp{After: metav1.Duration{Duration: 2 * time.Second}, Arrival: c.arrival}, c.n, 1)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestPoisson: distances are exponential with the given mean, the same for the same seed, and others for another group or seed.
func TestPoisson(t *testing.T) {
	const n = 10000
	mean := 3 * time.Second
	s := &sim.ScaleUp{After: metav1.Duration{Duration: time.Minute}, Arrival: sim.Arrival{Poisson: &metav1.Duration{Duration: mean}}}
	times := arrivals("pool", s, n, 1)
	if !slices.IsSorted(times) || times[0] <= time.Minute {
		t.Error("arrivals are not in ascending order after the reference point")
	}
	var sum, squares float64
	for i, at := range times {
		distance := at - time.Minute
		if i > 0 {
			distance = at - times[i-1]
		}
		sum += distance.Seconds()
		squares += distance.Seconds() * distance.Seconds()
	}
	// For an exponential distribution the standard deviation is the mean. The seed is fixed; the bounds are five standard errors, and more.
	average := sum / n
	deviation := math.Sqrt(squares/n - average*average)
	if tolerance := 5 * mean.Seconds() / math.Sqrt(n); math.Abs(average-mean.Seconds()) > tolerance || math.Abs(deviation-mean.Seconds()) > 2*tolerance {
		t.Errorf("distances have mean %.3f s and standard deviation %.3f s, want %v for both", average, deviation, mean)
	}
	if !slices.Equal(times, arrivals("pool", s, n, 1)) {
		t.Error("the same seed and group give other arrivals the second time")
	}
	if !slices.Equal(times[:10], arrivals("pool", s, 10, 1)) {
		t.Error("the first arrivals depend on how many there are")
	}
	for what, other := range map[string][]time.Duration{"group": arrivals("other", s, n, 1), "seed": arrivals("pool", s, n, random.Seed(2))} {
		if slices.Equal(times, other) {
			t.Errorf("another %s gives the same arrivals", what)
		}
	}
}
