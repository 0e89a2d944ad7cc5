package fleet

import (
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

// arrivals are the times at which n nodes of a group join, in ascending order, from the start of the scale-up phase.
func arrivals(group string, s *sim.ScaleUp, n int, seed random.Seed) []time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = s.After.Duration
	}
	switch a := s.Arrival; {
	case len(a.Times) > 0:
		for i := range times {
			times[i] += a.Times[i].Duration
		}
	case a.Evenly != nil && n > 1:
		for i := range times {
			times[i] += time.Duration(float64(a.Evenly.Duration) * float64(i) / float64(n-1))
		}
	case a.Poisson != nil:
		distance := distuv.Exponential{Rate: 1 / a.Poisson.Seconds(), Src: seed.Stream("fleet/arrivals", group)}
		var at float64
		for i := range times {
			at += distance.Rand()
			times[i] += time.Duration(at * float64(time.Second))
		}
	}
	return times
}
