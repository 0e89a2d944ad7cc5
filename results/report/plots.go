package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
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

// sinceWhen names the time axis of plots over time.
func (s *shownRun) sinceWhen() string {
	if s.scaled {
		return "time since the scale-up"
	}
	return "time since the start of the trace"
}

// quantity is a series that is shown by arm.
type quantity struct {
	series string
	// by is what its values are divided by.
	by float64
	// cumulative: it only grows. Then its last value is written, and a band shows how far the arm's other runs lie around it; where a quantity goes up
	// and down, bands of several runs would hide one another.
	cumulative bool
}

// overTime shows a quantity in the runs that stand for the arms, without those of which it is not known.
func (r *Report) overTime(o plot.Options, q quantity, known func(arm int) bool) ([]byte, error) {
	var curves []plot.Curve
	for i, run := range r.shown {
		o.XLabel = run.sinceWhen()
		if known(i) {
			curves = append(curves, run.curve(i, q))
		}
	}
	return curvesOverTime(o, curves...)
}

func (s *shownRun) curve(arm int, q quantity) plot.Curve {
	c := plot.Curve{Name: runName(s.header.Arm, s.header.Seed), Hue: hue(arm), Dashed: arm%2 == 1, Steps: true, Points: points(s.series, q.series, q.by)}
	if n := len(c.Points); n > 0 && q.cumulative {
		c.Last = plot.Number(c.Points[n-1].Y)
	}
	if len(s.others) > 0 && q.cumulative {
		c.Name += fmt.Sprintf(" (band: all %d)", len(s.others)+1)
		others := make([][]plot.Point, len(s.others))
		for i, series := range s.others {
			others[i] = points(series, q.series, q.by)
		}
		c.Points = envelope(c.Points, others)
	}
	return c
}

// curvesOverTime draws curves for wide pages and for phones.
func curvesOverTime(o plot.Options, curves ...plot.Curve) ([]byte, error) {
	for i := range curves {
		curves[i].Points = sampled(curves[i].Points)
	}
	return plot.Responsive(o, func(o plot.Options) ([]byte, error) { return plot.Curves(o, true, curves...) })
}

// points are those of a series, its values divided.
func points(all []results.Series, name string, by float64) []plot.Point {
	var points []plot.Point
	for _, series := range all {
		if series.Name == name {
			for _, p := range series.Points {
				points = append(points, plot.Point{X: p.At, Y: p.Value / by})
			}
		}
	}
	return points
}

// instants is at how many instants a band is drawn: about one a pixel.
const instants = 600

// envelope has the values of a step function, and as their interval the lowest and highest of that and of others. It goes to the end of the longest.
func envelope(first []plot.Point, others [][]plot.Point) []plot.Point {
	all := append([][]plot.Point{first}, others...)
	from, to := math.Inf(1), math.Inf(-1)
	for _, points := range all {
		if n := len(points); n > 0 {
			from, to = min(from, points[0].X), max(to, points[n-1].X)
		}
	}
	return spread(from, to, func(x float64) (p plot.Point, ok bool) {
		low, high := math.Inf(1), math.Inf(-1)
		for _, points := range all {
			if q, begun := at(points, x); begun {
				low, high = min(low, q.Y), max(high, q.Y)
			}
		}
		p, ok = at(first, x)
		return plot.Point{Y: p.Y, Low: &low, High: &high}, ok
	})
}

// sampled leaves of a step function with an interval what can be seen of it.
func sampled(points []plot.Point) []plot.Point {
	if len(points) <= instants || !slices.ContainsFunc(points, func(p plot.Point) bool { return p.Low != nil }) {
		return points
	}
	return spread(points[0].X, points[len(points)-1].X, func(x float64) (plot.Point, bool) { return at(points, x) })
}

// spread are the values of a function at evenly spread instants, where it has one.
func spread(from, to float64, value func(x float64) (plot.Point, bool)) []plot.Point {
	var points []plot.Point
	for i := range instants + 1 {
		x := from + (to-from)*float64(i)/instants
		if p, ok := value(x); ok {
			p.X = x
			points = append(points, p)
		}
	}
	return points
}

// at is the value of a step function; false before its first point.
func at(points []plot.Point, x float64) (plot.Point, bool) {
	i, exact := slices.BinarySearchFunc(points, x, func(p plot.Point, x float64) int { return cmp.Compare(p.X, x) })
	for exact && i+1 < len(points) && points[i+1].X == x {
		i++
	}
	if !exact {
		i--
	}
	if i < 0 {
		return plot.Point{}, false
	}
	return points[i], true
}

// views shows what the scheduler saw of a run beside what its nodes had to run, in cores.
func (s *shownRun) views() ([]byte, error) {
	return curvesOverTime(plot.Options{
		Title: "cpu requested on nodes as the scheduler sees it, and with hidden static pods: " + s.header.Arm, XLabel: s.sinceWhen(), YLabel: "cores",
	},
		plot.Curve{Name: "allocatable", Hue: plot.Grey, Steps: true, Points: points(s.series, results.SeriesAllocatable, millis)},
		plot.Curve{Name: "placed on nodes, hidden static pods included", Hue: plot.Orange, Steps: true, Points: points(s.series, results.SeriesPlaced, millis)},
		plot.Curve{Name: "seen by the scheduler", Hue: plot.Blue, Dashed: true, Steps: true, Points: points(s.series, results.SeriesSeen, millis)},
	)
}

// millis is how many millicores are a core.
const millis = 1000

// shares shows which share of new nodes had a time of at most so long, over all runs of each arm. A curve ends where nothing more is known: at the
// longest time seen in its arm, unless all of its nodes had ended by then.
func (r *Report) shares(metric, label, empty string) ([]byte, error) {
	var curves []plot.Curve
	longest := 1.0
	for i := range r.Summary.Arms {
		if c, last, ok := r.share(i, metric); ok {
			curves, longest = append(curves, c), max(longest, last)
		}
	}
	for i := range curves {
		c := &curves[i]
		if last := c.Points[len(c.Points)-1]; last.Y == 1 {
			c.Points = append(c.Points, plot.Point{X: longest, Y: 1})
		}
	}
	return curvesOverTime(plot.Options{Title: "share of new nodes by " + label + ", by arm", XLabel: label,
		YLabel: "share of new nodes", Percent: true, Empty: empty}, curves...)
}

// share is the curve of an arm, and the longest time in it; false if no node of it has such a time.
func (r *Report) share(arm int, metric string) (c plot.Curve, longest float64, ok bool) {
	f := r.Summary.Arms[arm].Figure(metric, "")
	if f == nil {
		return c, 0, false
	}
	survival := results.Survival(f.Nodes)
	if survival.N == 0 {
		return c, 0, false
	}
	c = plot.Curve{Name: fmt.Sprintf("%s (n = %s, %s open)", r.Summary.Arms[arm].Name, whole(survival.N), whole(survival.Censored)),
		Hue: hue(arm), Dashed: arm%2 == 1, Steps: true, Points: []plot.Point{{}}}
	for _, step := range survival.Steps {
		p := plot.Point{X: step.Time, Y: 1 - step.Survival}
		if step.Interval != nil {
			p.Low, p.High = new(1-step.Interval.High), new(1-step.Interval.Low)
		}
		c.Points = append(c.Points, p)
	}
	for _, o := range slices.Concat(f.Nodes...) {
		if o != nil {
			longest = max(longest, o.Value)
			if o.Censored {
				c.Ticks = append(c.Ticks, o.Value)
			}
		}
	}
	if last := c.Points[len(c.Points)-1]; last.X < longest {
		last.X = longest
		c.Points = append(c.Points, last)
	}
	return c, longest, true
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
		var sizes []string
		for _, part := range holdParts {
			if f := arm.Figure(part.metric, ""); f != nil && f.OverNodes != nil && f.OverNodes.Mean != nil {
				bar.Parts = append(bar.Parts, plot.Part{Name: part.name, Value: *f.OverNodes.Mean, Label: results.Quantity(*f.OverNodes.Mean, "s")})
				sizes = append(sizes, whole(f.OverNodes.N))
			}
		}
		if len(bar.Parts) > 0 {
			bar.Note = "n = " + strings.Join(sizes, ", ") + " nodes"
			if len(slices.Compact(sizes)) == 1 {
				bar.Note = "n = " + sizes[0] + " nodes each"
			}
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
		{Name: "pod rejected", Hue: plot.Ink},
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
	markRejected
)

// timeline shows one row a node of a run, all of them over the same time: from shortly before the first node registered to the end of the longest run.
func (r *Report) timeline(s *shownRun) ([]byte, error) {
	from, to := math.Inf(1), 0.0
	for _, run := range r.shown {
		to = max(to, run.wall-run.zero)
		for _, n := range run.rows {
			from = min(from, n.Registered.Seconds()-run.zero)
		}
	}
	from -= 0.02 * (to - from)
	rows := make([]plot.Row, len(s.rows))
	for i, n := range s.rows {
		rows[i] = n.row(s.zero, s.wall)
	}
	return plot.Responsive(plot.Options{Title: "timeline of new nodes: " + s.header.Arm, XLabel: s.sinceWhen(), Empty: "no new node"},
		func(o plot.Options) ([]byte, error) { return plot.Timeline(o, timelineKinds, from, to, rows) })
}

// row is the node's, in seconds since zero; end is that of the trace.
func (n nodeRow) row(zero, end float64) plot.Row {
	row := plot.Row{Name: n.Name, Note: plot.Number(float64(len(n.rejections))) + " rejected"}
	registered := n.Registered.Seconds()
	if n.Gone != nil {
		end = n.Gone.Seconds()
	}
	ready := end
	if n.Ready != nil {
		ready = n.Ready.Seconds()
	}
	span := func(from, to float64, kind int, open bool) {
		row.Spans = append(row.Spans, plot.Span{From: from - zero, To: to - zero, Kind: kind, Open: open})
	}
	mark := func(at float64, kind int) { row.Marks = append(row.Marks, plot.Mark{At: at - zero, Kind: kind}) }
	span(registered, ready, spanNotReady, false)
	if n.Hold != nil {
		span(max(registered, ready), registered+n.Hold.Total.Duration.Seconds(), spanHeld, n.Hold.Total.Censored)
	}
	for i, p := range n.Exposed {
		span(p.From.Seconds(), p.To.Seconds(), spanExposed, n.Exposure.Censored && i == len(n.Exposed)-1)
	}
	for _, at := range n.rejections {
		mark(at, markRejected)
	}
	for kind, at := range []*time.Duration{markReady: n.Ready, markMirrors: n.MirrorsVisible, markReleased: n.Released} {
		if at != nil {
			mark(at.Seconds(), kind)
		}
	}
	return row
}
