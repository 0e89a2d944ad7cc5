package results

import (
	"encoding/json"
	"math"
	"testing"
)

func TestDescribe(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[99-i] = float64(i + 1)
	}
	for _, tt := range []struct {
		name   string
		sample []float64
		want   string
	}{
		{"nothing", nil, `{"n":0}`},
		{"one", []float64{7}, `{"n":1,"mean":7,"median":7,"p90":7,"p99":7,"max":7}`},
		{"zeros", []float64{0, 0}, `{"n":2,"mean":0,"median":0,"p90":0,"p99":0,"max":0}`},
		{"lower middle, and the maximum as p90 below ten", []float64{4, 1, 3, 2}, `{"n":4,"mean":2.5,"median":2,"p90":4,"p99":4,"max":4}`},
		{"hundred", hundred, `{"n":100,"mean":50.5,"median":50,"p90":90,"p99":99,"max":100}`},
		{"no observations", []float64{math.NaN(), math.Inf(1)}, `{"n":0}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(Describe(tt.sample))
			if err != nil {
				t.Fatal(err)
			}
			check(t, "description", string(got), tt.want)
		})
	}
	check(t, "the sample is left in its order", hundred[0], 100)
}

func TestDistributeCountsCensoredApart(t *testing.T) {
	d := distribute([]*Observation{nil, {Value: 1}, {Value: 50, Censored: true}, {Value: 3}})
	check(t, "n", d.N, 2)
	check(t, "censored", d.Censored, 1)
	check(t, "max", *d.Max, 3)
}

// TestMedianOverCensoredNodesIsALowerBound: one that was cut off early may still be the shortest, so that the median of the others is no bound.
func TestMedianOverCensoredNodesIsALowerBound(t *testing.T) {
	m := Metric{ofNode: func(n *Node) *Observation { return observe(n.Exposure) }}
	run := &Run{Nodes: []*Node{
		{Exposure: &Span{Duration: s(5)}}, {Exposure: &Span{Duration: s(2), Censored: true}}, {}, {Exposure: &Span{Duration: s(6)}},
		{Exposure: &Span{Duration: s(3), Censored: true}},
	}}
	check(t, "median", *m.RunValue(run), Observation{Value: 3, Censored: true})
	check(t, "median of no node", m.RunValue(&Run{}), nil)
}
