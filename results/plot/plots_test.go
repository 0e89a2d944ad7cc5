package plot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// draw is a plot that can be drawn at any width.
type drawing struct {
	Options
	draw func(Options) ([]byte, error)
}

func number(x float64) *float64 { return &x }

const nodes, mirrorDelay = 17, 80.0

// storm is a run of 3 to 20 nodes whose mirror pods come after about 80 s: on each node the scheduler is wrong for all that time, and places another pod
// about every 0.9 s.
func storm() (rows []Row, rejected []Point) {
	stream := rand.New(rand.NewPCG(1, 2))
	var at []float64
	for i := range nodes {
		registered := stream.Float64() * 2
		ready := registered + 0.5 + stream.Float64()
		mirror := registered + mirrorDelay + 10*stream.Float64()
		r := Row{Name: fmt.Sprintf("pool-%d", i+3), Spans: []Span{{From: registered, To: ready}, {From: ready, To: mirror, Kind: 2}},
			Marks: []Mark{{At: ready}, {At: mirror, Kind: 1}, {At: ready + 0.2, Kind: 3}}}
		for t := ready + 0.3; t < mirror; t += 0.4 + stream.ExpFloat64()*0.5 {
			r.Marks = append(r.Marks, Mark{At: t, Kind: 4})
			at = append(at, t)
		}
		r.Note = fmt.Sprintf("%d rejected", len(r.Marks)-3)
		rows = append(rows, r)
	}
	slices.Sort(at)
	rejected = []Point{{}}
	for i, t := range at {
		rejected = append(rejected, Point{X: t, Y: float64(i + 1)})
	}
	return rows, append(rejected, Point{X: 110, Y: float64(len(at))})
}

// held is the same with a gate: nodes wait, and nothing is rejected.
func held() []Row {
	stream := rand.New(rand.NewPCG(1, 2))
	var rows []Row
	for i := range nodes {
		registered := stream.Float64() * 2
		ready := registered + 0.5 + stream.Float64()
		mirror := registered + mirrorDelay + 10*stream.Float64()
		r := Row{Name: fmt.Sprintf("pool-%d", i+3), Spans: []Span{{From: registered, To: ready}, {From: ready, To: mirror + 1.5, Kind: 1}},
			Marks: []Mark{{At: ready}, {At: mirror, Kind: 1}, {At: mirror + 1.5, Kind: 2}, {At: mirror + 1.9, Kind: 3}}}
		if i == 5 {
			r.Name, r.Note = "a-node-group-with-a-very-long-name-5.example.internal", "still held"
			r.Spans[1], r.Marks = Span{From: ready, To: 110, Kind: 1, Open: true}, r.Marks[:1]
		}
		rows = append(rows, r)
	}
	return rows
}

var kinds = TimelineKinds{
	Spans: []Kind{{"not Ready", Grey}, {"held by the gate", Blue}, {"exposed", Orange}},
	Marks: []Kind{{"Ready", Ink}, {"last mirror pod", Green}, {"released", Blue}, {"first bind", Purple}, {"pod rejected", Ink}},
}

// shares is a distribution with an interval at each step.
func shares(values []float64, n int) []Point {
	points := []Point{{}}
	for i, v := range values {
		p := float64(i+1) / float64(n)
		half := 1.96 * math.Sqrt(p*(1-p)/float64(n))
		points = append(points, Point{X: v, Y: p, Low: number(max(0, p-half)), High: number(min(1, p+half))})
	}
	return points
}

// drawings are plots as reports and sweeps have them.
func drawings() map[string]drawing {
	ungated, rejected := storm()
	gated := held()
	return map[string]drawing{
		"steps": {Options{
			Title: "pods rejected so far, by arm", XLabel: "time since the scale-up began", YLabel: "rejected pods",
			XGuides: []Guide{{78, "first mirror pod"}},
		}, func(o Options) ([]byte, error) {
			return Curves(o, true, Curve{Name: "ungated", Hue: Orange, Steps: true, Points: rejected, Last: Number(rejected[len(rejected)-1].Y)},
				Curve{Name: "gated", Hue: Blue, Steps: true, Dashed: true, Points: []Point{{X: 0}, {X: 104}}, Last: "0"})
		}},
		"views": {Options{Title: "what the scheduler saw and what was there", XLabel: "time since the start of the run", YLabel: "requested CPU, cores"},
			func(o Options) ([]byte, error) {
				return Curves(o, true,
					Curve{Name: "allocatable", Hue: Grey, Steps: true, Points: []Point{{X: 0, Y: 12}, {X: 30, Y: 80}, {X: 200, Y: 80}}},
					Curve{Name: "placed on nodes, hidden static pods included", Hue: Orange, Steps: true,
						Points: []Point{{X: 0, Y: 12}, {X: 30, Y: 29}, {X: 31, Y: 97}, {X: 110, Y: 80}, {X: 200, Y: 80}}},
					Curve{Name: "seen by the scheduler", Hue: Blue, Dashed: true, Steps: true,
						Points: []Point{{X: 0, Y: 12}, {X: 31, Y: 80}, {X: 110, Y: 80}, {X: 200, Y: 80}}})
			}},
		"ecdf": {Options{Title: "hold time of new nodes, by arm", XLabel: "hold time", YLabel: "share of new nodes", Percent: true},
			func(o Options) ([]byte, error) {
				return Curves(o, true,
					Curve{Name: "poll 1 s (n = 15, open 2)", Hue: Orange, Steps: true, Ticks: []float64{83, 88},
						Points: shares([]float64{80.1, 80.8, 81, 82, 82.5, 84, 85, 85.5, 86, 86.4, 87, 88.2, 89, 90, 91}, 17)},
					Curve{Name: "poll 10 s (n = 17, open 0)", Hue: Blue, Dashed: true, Steps: true,
						Points: shares([]float64{81, 83, 84, 86, 87, 87, 88, 89, 90, 91, 93, 94, 95, 96, 97, 98, 99}, 17)})
			}},
		"lines": {Options{Title: "rejected pods by mirror delay", XLabel: "mirror delay, seconds", YLabel: "rejected pods, mean over 5 seeds with 95 % interval"},
			func(o Options) ([]byte, error) {
				return Curves(o, false,
					Curve{Name: "ungated", Hue: Orange, Points: []Point{
						{X: 1, Y: 31, Low: number(27), High: number(36)}, {X: 5, Y: 110, Low: number(90), High: number(130)},
						{X: 20, Y: 402, Low: number(361), High: number(455)}, {X: 80, Y: 1577, Low: number(1480), High: number(1702)}}},
					Curve{Name: "gated", Hue: Blue, Dashed: true, Points: []Point{{X: 1}, {X: 5}, {X: 20}, {X: 80}}})
			}},
		"lines-log": {Options{Title: "rejected pods by mirror delay", XLabel: "mirror delay, seconds", YLabel: "rejected pods", LogX: true, LogY: true,
			YGuides: []Guide{{17, "closed form: 17"}}},
			func(o Options) ([]byte, error) {
				return Curves(o, false,
					Curve{Name: "ungated", Hue: Orange, Points: []Point{{X: 0.5, Y: 17}, {X: 1, Y: 31}, {X: 5, Y: 110}, {X: 20, Y: 402}, {X: 80, Y: 1577}}},
					Curve{Name: "never on the axis", Hue: Blue, Points: []Point{{X: 1}, {X: 5}}})
			}},
		"lines-names": {Options{Title: "hold time by version", XLabel: "Kubernetes version", YLabel: "hold time, seconds", XNames: []string{"1.35", "1.36", "1.37"}},
			func(o Options) ([]byte, error) {
				return Curves(o, false, Curve{Name: "gated", Hue: Blue, Points: []Point{
					{X: 0, Y: 84, Low: number(80), High: number(87)}, {X: 1, Y: 83}, {X: 2, Y: 85, Low: number(84), High: number(88)}}})
			}},
		"bars": {Options{Title: "parts of the hold", XLabel: "time since registration, median over new nodes"}, func(o Options) ([]byte, error) {
			return Bars(o,
				Bar{Name: "gated", Note: "n = 17", Parts: []Part{{Name: "mirror pods created", Value: 79}, {Name: "checker noticed", Value: 3},
					{Name: "controller released", Value: 0.1, Label: "100 ms"}, {Name: "scheduler used it", Value: 0.4, Label: "400 ms"}}},
				Bar{Name: "poll interval 10 s", Note: "n = 16, 1 open", Parts: []Part{{Name: "mirror pods created", Value: 61}, {Name: "checker noticed", Value: 12},
					{Name: "controller released", Value: 9, Label: "9 s"}}})
		}},
		"timeline": {Options{Title: "timeline of new nodes: ungated", XLabel: "time since the scale-up began"}, func(o Options) ([]byte, error) {
			return Timeline(o, kinds, 0, 110, ungated)
		}},
		"timeline-gated": {Options{Title: "timeline of new nodes: gated", XLabel: "time since the scale-up began",
			XGuides: []Guide{{3, "scale-up"}, {6, "no room for this"}, {60, "a minute"}}}, func(o Options) ([]byte, error) {
			return Timeline(o, kinds, 0, 110, append(slices.Clone(gated), gated...))
		}},
		"heatmap": {Options{Title: "rejected pods", XLabel: "mirror delay", YLabel: "new nodes", ZLabel: "rejected pods, mean over 5 seeds"},
			func(o Options) ([]byte, error) {
				return Heatmap(o, []string{"0 s", "1 s", "5 s", "20 s", "80 s", "160 s"}, []string{"1", "5", "20", "100"}, [][]*float64{
					{number(0), number(1), number(3), number(9.4), number(92), number(177)}, {number(0), number(8), number(28), number(109), number(460), number(911)},
					{number(0), number(31), number(110), number(402.6), number(1577), nil}, {number(0), number(140), number(711), number(2402), number(12345), nil}})
			}},
		"heatmap-difference": {Options{Title: "gated less ungated", XLabel: "mirror delay", ZLabel: "pods"}, func(o Options) ([]byte, error) {
			return Heatmap(o, []string{"1 s", "5 s"}, []string{"with a long name of its parameter", "b"}, [][]*float64{{number(-12.5), number(3)}, {number(0), number(-40)}})
		}},
		"nothing": {Options{Title: "hold", Empty: "no node was held: no arm has a readiness gate, so that there was nothing that could have held one"},
			func(o Options) ([]byte, error) {
				return Curves(o, true, Curve{Name: "x", Points: []Point{{X: math.NaN()}}})
			}},
	}
}
