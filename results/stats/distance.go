package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
)

// Stratum is what one run has of two samples: the values of each, by cluster. Values of a cluster, a node say, belong together.
type Stratum struct {
	A, B [][]float64
}

// Distance is the distance of Kolmogorov and Smirnov between two samples: the most by which the shares of their values up to a number differ, over all
// numbers. It is from 0 (equal) to 1 (one lies wholly below the other).
type Distance struct {
	// Value is the distance; nil if a sample is empty.
	Value *float64 `json:"value,omitempty"`
	// Critical is the distance that 95 of 100 samples of these sizes stay within if they are drawn from one distribution: smaller differences than
	// that do not show. P is the p-value of "no difference". Both nil if the samples cannot be tested.
	Critical *float64  `json:"critical,omitempty"`
	P        *float64  `json:"p,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
}

// Shown tells whether the samples show a difference at Level.
func (d Distance) Shown() bool { return d.P != nil && *d.P < 1-Level }

// KolmogorovSmirnov is the distance between the values of A and B of all runs, pooled. Whether it shows a difference is tested by permutation (Good,
// Permutation, Parametric and Bootstrap Tests of Hypotheses, 2005): within each run it is drawn anew which clusters are of A, so that neither what a run's
// clusters share, nor what a cluster's values share, counts as evidence; 2,000 draws. The table of the test, which takes all values for independent, would
// find differences where there are none. Name seeds the draws. Values that are not finite, and clusters without a value, are left out.
func KolmogorovSmirnov(name string, runs []Stratum) Distance {
	p := pool(runs)
	var d Distance
	if p.sizes[0] == 0 || p.sizes[1] == 0 {
		d.Warnings = []Warning{warn(NoneComplete, "a sample is empty")}
		return d
	}
	d.Value = new(p.distance())
	if arrangements := p.arrangements(); arrangements*(1-Level) < 2 {
		d.Warnings = []Warning{warn(TooFew, "%.0f ways to share out so few clusters can show no difference at 95 %%: it takes 40, as of 4 and 4", arrangements)}
		return d
	}
	draws := stream(name)
	distances := make([]float64, resamples)
	further := 1 // the samples themselves are one of the ways
	for i := range distances {
		p.shuffle(draws)
		distances[i] = p.distance()
		if distances[i] >= *d.Value-rounding {
			further++
		}
	}
	slices.Sort(distances)
	d.Critical = new(stat.Quantile(Level, stat.Empirical, distances, nil))
	d.P = new(float64(further) / (resamples + 1))
	return d
}

// rounding is by how much equal distances may differ: weights are added in another order.
const rounding = 1e-9

// pooled are the values of both samples in ascending order, and which of them are of A: those of the clusters that are.
type pooled struct {
	values []float64
	// cluster is that of each value; inA says of each cluster whether it is of A.
	cluster []int
	inA     []bool
	// runs are the clusters of each run: from each bound to the next.
	runs []int
	// sizes are the numbers of values of A and B as given; a and b are the weights of the values in the distance.
	sizes [2]int
	a, b  []float64
}

func pool(runs []Stratum) *pooled {
	p := &pooled{runs: []int{0}}
	add := func(clusters [][]float64, inA bool) (n int) {
		for _, c := range clusters {
			c = finite(c)
			if len(c) == 0 {
				continue
			}
			for _, x := range c {
				p.values, p.cluster = append(p.values, x), append(p.cluster, len(p.inA))
			}
			p.inA = append(p.inA, inA)
			n += len(c)
		}
		return n
	}
	for _, run := range runs {
		p.sizes[0] += add(run.A, true)
		p.sizes[1] += add(run.B, false)
		p.runs = append(p.runs, len(p.inA))
	}
	order := make([]int, len(p.values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p.values[i], p.values[j]) })
	values, cluster := make([]float64, len(order)), make([]int, len(order))
	for at, i := range order {
		values[at], cluster[at] = p.values[i], p.cluster[i]
	}
	p.values, p.cluster = values, cluster
	p.a, p.b = make([]float64, len(order)), make([]float64, len(order))
	return p
}

// distance is that between the values of the clusters that are of A now and of the others, 0 if either has none.
func (p *pooled) distance() float64 {
	for i, c := range p.cluster {
		p.a[i], p.b[i] = 0, 1
		if p.inA[c] {
			p.a[i], p.b[i] = 1, 0
		}
	}
	return stat.KolmogorovSmirnov(p.values, p.a, p.values, p.b)
}

// shuffle draws anew which clusters of each run are of A; as many as before.
func (p *pooled) shuffle(draws *rand.Rand) {
	for i, from := range p.runs[:len(p.runs)-1] {
		run := p.inA[from:p.runs[i+1]]
		draws.Shuffle(len(run), func(i, j int) { run[i], run[j] = run[j], run[i] })
	}
}

// arrangements is in how many ways the clusters can be shared out.
func (p *pooled) arrangements() float64 {
	log := 0.0
	for i, from := range p.runs[:len(p.runs)-1] {
		run := p.inA[from:p.runs[i+1]]
		ofA := 0
		for _, inA := range run {
			if inA {
				ofA++
			}
		}
		log += combin.LogGeneralizedBinomial(float64(len(run)), float64(ofA))
	}
	return math.Round(math.Exp(log))
}
