package results

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestIntervals(t *testing.T) {
	a := union([]interval{{5, 7}, {1, 3}, {2, 4}, {9, 9}, {4, 5}})
	opts := cmp.AllowUnexported(interval{})
	if diff := cmp.Diff(intervals{{1, 7}}, a, opts); diff != "" {
		t.Errorf("union (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(intervals{{1, 2}, {3, 6}}, a.minus(intervals{{0, 1}, {2, 3}, {6, forever}}), opts); diff != "" {
		t.Errorf("minus (-want +got):\n%s", diff)
	}
	check(t, "length", intervals{{1, 2}, {3, forever}}.lengthUntil(10), 8)
}

// TestIntervalsAgainstInstants compares the operations with sets of single instants.
func TestIntervalsAgainstInstants(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() intervals {
		var list []interval
		for range r.IntN(5) {
			from := time.Duration(r.IntN(20))
			list = append(list, interval{from, from + time.Duration(r.IntN(6))})
		}
		return union(list)
	}
	has := func(s intervals, at time.Duration) bool {
		n := 0
		for _, i := range s {
			if i.from <= at && at < i.to {
				n++
			}
		}
		if n > 1 {
			t.Errorf("%v holds %d more than once", s, at)
		}
		return n == 1
	}
	for range 2000 {
		a, b := random(), random()
		rest, both := a.minus(b), a.intersect(b)
		for at := range time.Duration(27) {
			check(t, "minus", has(rest, at), has(a, at) && !has(b, at))
			check(t, "intersect", has(both, at), has(a, at) && has(b, at))
		}
		if t.Failed() {
			t.Fatalf("a %v, b %v", a, b)
		}
	}
}
