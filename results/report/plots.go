package report

import (
	"fmt"
	"time"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/plot"
)

// hue is the colour of an arm in all plots; the first arm, which others are compared with, has the colour of exposure.
func hue(arm int) plot.Hue {
	switch arm {
	case 0:
		return plot.Orange
	case 1:
		return plot.Blue
	}
	return plot.Series(arm)
}

const sinceStart = "time since the start of the run"

// rejections shows the pods that were rejected so far, in the run that stands for each arm.
func (r *Report) rejections() ([]byte, error) {
	return r.overTime(plot.Options{Title: "pods rejected so far, by arm", XLabel: sinceStart, YLabel: "pods"}, results.SeriesRejected)
}

func (r *Report) overTime(o plot.Options, name string) ([]byte, error) {
	var curves []plot.Curve
	for i, run := range r.shown {
		c := plot.Curve{
			Name: fmt.Sprintf("%s, seed %d", run.header.Arm, run.header.Seed), Hue: hue(i), Dashed: i%2 == 1, Steps: true, Points: run.points(name, 1),
		}
		if n := len(c.Points); n > 0 {
			c.Last = plot.Number(c.Points[n-1].Y)
		}
		curves = append(curves, c)
	}
	return curvesOverTime(o, curves...)
}

// curvesOverTime draws curves for wide pages and for phones.
func curvesOverTime(o plot.Options, curves ...plot.Curve) ([]byte, error) {
	return plot.Responsive(o, func(o plot.Options) ([]byte, error) { return plot.Curves(o, true, curves...) })
}

// points are those of a series of the run, its values divided.
func (s *shownRun) points(name string, by float64) []plot.Point {
	var points []plot.Point
	for _, series := range s.series {
		if series.Name == name {
			for _, p := range series.Points {
				points = append(points, plot.Point{X: p.At, Y: p.Value / by})
			}
		}
	}
	return points
}

// views shows what the scheduler saw of a run beside what its nodes had to run, in cores.
func (s *shownRun) views() ([]byte, error) {
	const cores = 1000
	return curvesOverTime(plot.Options{
		Title: "cpu requested on nodes as the scheduler sees it, and with hidden static pods: " + s.header.Arm, XLabel: sinceStart, YLabel: "cores",
	},
		plot.Curve{Name: "allocatable", Hue: plot.Grey, Steps: true, Points: s.points(results.SeriesAllocatable, cores)},
		plot.Curve{Name: "placed on nodes, hidden static pods included", Hue: plot.Orange, Steps: true, Points: s.points(results.SeriesPlaced, cores)},
		plot.Curve{Name: "seen by the scheduler", Hue: plot.Blue, Dashed: true, Steps: true, Points: s.points(results.SeriesSeen, cores)},
	)
}

// shares shows which share of new nodes had a time of at most so long, over all runs of each arm.
func (r *Report) shares(metric, label, empty string) ([]byte, error) {
	var curves []plot.Curve
	longest := 0.0
	for i := range r.Summary.Arms {
		f := r.Summary.Arms[i].Figure(metric, "")
		if f == nil {
			continue
		}
		survival := results.Survival(f.Nodes)
		if survival.N == 0 {
			continue
		}
		c := plot.Curve{Name: fmt.Sprintf("%s (n = %d, open %d)", r.Summary.Arms[i].Name, survival.N-survival.Censored, survival.Censored),
			Hue: hue(i), Dashed: i%2 == 1, Steps: true, Points: []plot.Point{{}}}
		for _, step := range survival.Steps {
			c.Points = append(c.Points, plot.Point{X: step.Time, Y: 1 - step.Survival})
			longest = max(longest, step.Time)
		}
		for _, run := range f.Nodes {
			for _, o := range run {
				if o != nil && o.Censored {
					c.Ticks = append(c.Ticks, o.Value)
					longest = max(longest, o.Value)
				}
			}
		}
		curves = append(curves, c)
	}
	for i := range curves { // a curve goes on at its last value
		c := &curves[i]
		c.Points = append(c.Points, plot.Point{X: max(longest, 1), Y: c.Points[len(c.Points)-1].Y})
	}
	return curvesOverTime(plot.Options{Title: "share of new nodes by " + label + ", by arm", XLabel: label,
		YLabel: "share of new nodes", Percent: true, Empty: empty}, curves...)
}

// holdParts are the parts of a hold, in order.
var holdParts = []struct{ metric, name string }{
	{results.MetricHoldMirrors, "mirror pods created"},
	{results.MetricHoldChecker, "checker noticed"},
	{results.MetricHoldController, "controller released"},
	{results.MetricSchedulerUse, "then: scheduler used it"},
}

// parts shows what nodes were held for, a bar for each gated arm. Means add up, other than medians.
func (r *Report) parts() ([]byte, error) {
	var bars []plot.Bar
	for i := range r.Summary.Arms {
		arm := &r.Summary.Arms[i]
		bar := plot.Bar{Name: arm.Name}
		for _, part := range holdParts {
			if f := arm.Figure(part.metric, ""); f != nil && f.OverNodes != nil && f.OverNodes.Mean != nil {
				bar.Parts = append(bar.Parts, plot.Part{Name: part.name, Value: *f.OverNodes.Mean, Label: results.Quantity(*f.OverNodes.Mean, "s")})
			}
		}
		if len(bar.Parts) > 0 {
			bars = append(bars, bar)
		}
	}
	return plot.Responsive(plot.Options{Title: "parts of the hold, mean over new nodes", XLabel: "time since registration, means over new nodes",
		Empty: "no node was held to its end"}, func(o plot.Options) ([]byte, error) { return plot.Bars(o, bars...) })
}

// timelineKinds are the spans and marks of a node.
var timelineKinds = plot.TimelineKinds{
	Spans: []plot.Kind{{Name: "not Ready", Hue: plot.Grey}, {Name: "held by the gate", Hue: plot.Blue}, {Name: "exposed", Hue: plot.Orange}},
	Marks: []plot.Kind{
		{Name: "Ready", Hue: plot.Ink}, {Name: "last mirror pod", Hue: plot.Green}, {Name: "released", Hue: plot.Blue},
		{Name: "first bind", Hue: plot.Purple}, {Name: "pod rejected", Hue: plot.Ink},
	},
}

const (
	spanNotReady = iota
	spanHeld
	spanExposed
)

const (
	markReady = iota
	markMirrors
	markReleased
	markFirstBind
	markRejected
)

// timeline shows one row a node, from shortly before the first of them registered.
func (s *shownRun) timeline() ([]byte, error) {
	from := s.wall
	rows := make([]plot.Row, len(s.rows))
	for i, n := range s.rows {
		rows[i] = n.row(s.wall)
		from = min(from, n.Registered.Seconds())
	}
	from = max(0, from-0.02*(s.wall-from))
	return plot.Responsive(plot.Options{Title: "timeline of new nodes: " + s.header.Arm, XLabel: sinceStart, Empty: "no new node"},
		func(o plot.Options) ([]byte, error) { return plot.Timeline(o, timelineKinds, from, s.wall, rows) })
}

func (n nodeRow) row(end float64) plot.Row {
	row := plot.Row{Name: n.Name}
	if len(n.rejections) > 0 {
		row.Note = plot.Number(float64(len(n.rejections))) + " rejected"
	}
	registered := n.Registered.Seconds()
	if n.Gone != nil {
		end = n.Gone.Seconds()
	}
	ready := end
	if n.Ready != nil {
		ready = n.Ready.Seconds()
	}
	row.Spans = append(row.Spans, plot.Span{From: registered, To: ready, Kind: spanNotReady})
	if n.Hold != nil {
		row.Spans = append(row.Spans, plot.Span{From: max(registered, ready), To: registered + n.Hold.Total.Duration.Seconds(), Kind: spanHeld,
			Open: n.Hold.Total.Censored})
	}
	for i, p := range n.Exposed {
		row.Spans = append(row.Spans, plot.Span{From: p.From.Seconds(), To: p.To.Seconds(), Kind: spanExposed,
			Open: n.Exposure.Censored && i == len(n.Exposed)-1})
	}
	for _, at := range n.rejections {
		row.Marks = append(row.Marks, plot.Mark{At: at, Kind: markRejected})
	}
	for kind, at := range []*time.Duration{markReady: n.Ready, markMirrors: n.MirrorsVisible, markReleased: n.Released, markFirstBind: n.FirstBind} {
		if at != nil {
			row.Marks = append(row.Marks, plot.Mark{At: at.Seconds(), Kind: kind})
		}
	}
	return row
}
