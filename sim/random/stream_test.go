package random

import (
	"math"
	"testing"
)

func TestStreamIsReproducible(t *testing.T) {
	a, b := Seed(42).Stream("fleet", "pool-3"), Seed(42).Stream("fleet", "pool-3")
	for range 100 {
		if x, y := a.Uint64(), b.Uint64(); x != y {
			t.Fatalf("same seed, component and object: %d and %d", x, y)
		}
	}
	// The numbers themselves are part of the product: an experiment repeated with the next version must see the same delays.
	if got, want := Seed(42).Stream("fleet", "pool-3").Uint64(), uint64(9911112527479733392); got != want {
		t.Errorf("first number is %d, want %d: a changed stream changes every experiment; say so in the changelog", got, want)
	}
}

// TestStreamsDiffer also covers names that would collide if they were only joined.
func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for seed := range Seed(20) {
		for _, name := range [][2]string{{"fleet", "a"}, {"fleet", "b"}, {"kubelet", "a"}, {"fleeta", ""}, {"", "fleeta"}, {"1:a", "b"}, {"1", "a1:b"}} {
			x := seed.Stream(name[0], name[1]).Uint64()
			if other, ok := seen[x]; ok {
				t.Errorf("streams %v and %s begin alike", name, other)
			}
			seen[x] = name[0] + "/" + name[1]
		}
	}
}

// TestStreamsAreUncorrelated compares neighbouring streams: with 10,000 pairs a right generator exceeds 4/√n once in 16,000 seeds.
func TestStreamsAreUncorrelated(t *testing.T) {
	const n = 10000
	a, b := Seed(1).Stream("kubelet", "pool-1"), Seed(1).Stream("kubelet", "pool-2")
	var sum float64
	for range n {
		sum += (a.Float64() - 0.5) * (b.Float64() - 0.5) * 12
	}
	if r := sum / n; math.Abs(r) > 4/math.Sqrt(n) {
		t.Errorf("correlation %.4f", r)
	}
}
