package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Point is one of a curve. Low and High bound its value, where it has an interval.
type Point struct {
	X, Y      float64
	Low, High *float64
}

// Curve is a series of points. A grey one is thin: something to compare others with.
type Curve struct {
	Name string
	Hue  Hue
	// Dashed tells it from another curve.
	Dashed bool
	// Steps: a value holds until the next point, and intervals are drawn as a band. Else points are marked and joined by straight lines, and intervals
	// are whiskers.
	Steps  bool
	Points []Point
	// Ticks are values of X that are marked on a curve of steps: where an observation was censored.
	Ticks []float64
	// Last is written at the end of the curve.
	Last string

	style look
}

// look is what tells a curve from the others, beside its hue.
type look struct {
	dashes []vg.Length
	width  vg.Length
	marker draw.GlyphDrawer // nil for none
}

// markers are the shapes of points of a curve, and of marks of a timeline.
var markers = []draw.GlyphDrawer{
	draw.CircleGlyph{},
	polygon{{X: -1.1, Y: -0.9}, {X: 1.1, Y: -0.9}, {Y: 1.2}},
	polygon{{X: -0.9, Y: -0.9}, {X: 0.9, Y: -0.9}, {X: 0.9, Y: 0.9}, {X: -0.9, Y: 0.9}},
	polygon{{X: -1.2}, {Y: -1.2}, {X: 1.2}, {Y: 1.2}},
	polygon{{X: -1.1, Y: 0.9}, {X: 1.1, Y: 0.9}, {Y: -1.2}},
}

// polygon is a glyph, for a radius of 1.
type polygon []vg.Point

// DrawGlyph implements draw.GlyphDrawer.
func (p polygon) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	var path vg.Path
	path.Move(at.Add(p[0].Scale(style.Radius)))
	for _, corner := range p[1:] {
		path.Line(at.Add(corner.Scale(style.Radius)))
	}
	path.Close()
	c.Fill(path)
}

// Curves draws curves over seconds (if time is set) or over a number. The Y axis begins at 0, unless it is logarithmic or there are negative values.
// Points, ticks and intervals that are not finite are left out. A curve of more points than can be told apart is thinned; its extremes stay.
func Curves(o Options, time bool, curves ...Curve) ([]byte, error) {
	o.LogX = o.LogX && o.XNames == nil
	curves = o.drawable(curves)
	if !slices.ContainsFunc(curves, Curve.visible) {
		return nothing(o)
	}
	f := newFigure(o)
	f.setRange(curves, time)
	f.setScales(time)
	f.plot.Add(grid{horizontal: true, vertical: o.XNames == nil})
	giveLooks(curves)
	for _, c := range curves {
		f.legend = append(f.legend, entry{c.Name, c.sample})
	}
	curves = slices.DeleteFunc(curves, func(c Curve) bool { return !c.visible() })
	for _, c := range curves {
		f.plot.Add(band{c})
	}
	for _, c := range curves {
		f.plot.Add(c)
	}
	f.plot.Add(ends{f, curves})
	return f.render()
}

// drawable has of each curve those points only that have a place on the axes, in ascending order of X. The name says what is missing.
func (o Options) drawable(curves []Curve) []Curve {
	all := slices.Clone(curves)
	for i := range all {
		c := &all[i]
		given := len(c.Points)
		c.Points = slices.DeleteFunc(slices.Clone(c.Points), func(p Point) bool { return !finite(p.X, p.Y) })
		measured := len(c.Points)
		c.Points = slices.DeleteFunc(c.Points, func(p Point) bool { return o.LogY && p.Y <= 0 || o.LogX && p.X <= 0 && !c.Steps })
		switch shown := len(c.Points); {
		case measured == 0:
			c.Name += " (no values)"
		case shown == 0:
			c.Name += " (no value above 0)"
		case shown < given:
			c.Name += fmt.Sprintf(" (without %s that cannot be drawn)", Number(float64(given-shown)))
		}
		for i, p := range c.Points {
			if p.Low == nil || p.High == nil || !finite(*p.Low, *p.High) || o.LogY && *p.Low <= 0 {
				c.Points[i].Low, c.Points[i].High = nil, nil
			}
		}
		c.Ticks = slices.DeleteFunc(slices.Clone(c.Ticks), func(x float64) bool { return !finite(x) })
		slices.SortStableFunc(c.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
	}
	return all
}

// setRange makes the axes cover the points, intervals and limits.
func (f *figure) setRange(curves []Curve, time bool) {
	var xs, ys []float64
	for _, c := range curves {
		for _, p := range c.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
			if p.Low != nil {
				ys = append(ys, *p.Low, *p.High)
			}
		}
		xs = append(xs, c.Ticks...)
	}
	for _, g := range f.YGuides {
		if finite(g.At) {
			ys = append(ys, g.At)
		}
	}
	if time && !f.LogX {
		xs = append(xs, 0)
	}
	if !f.LogY {
		ys = append(ys, 0)
	}
	f.plot.X.Min, f.plot.X.Max = axisRange(xs, f.LogX)
	f.plot.Y.Min, f.plot.Y.Max = axisRange(ys, f.LogY)
	if f.XNames != nil {
		f.plot.X.Min, f.plot.X.Max = -0.5, float64(len(f.XNames))-0.5
	}
	switch {
	case f.LogY:
	case f.Percent:
		f.plot.Y.Min, f.plot.Y.Max = min(f.plot.Y.Min, 0), max(f.plot.Y.Max, 1)
	default:
		f.plot.Y.Max += (f.plot.Y.Max - f.plot.Y.Min) * 0.04 // room for the line itself
	}
}

func axisRange(values []float64, log bool) (low, high float64) {
	if !log {
		return extent(slices.Min(values), slices.Max(values))
	}
	values = slices.DeleteFunc(values, func(v float64) bool { return v <= 0 })
	if len(values) == 0 {
		return 1, 10
	}
	low, high = slices.Min(values), slices.Max(values)
	if high < low*1.01 {
		return low / 2, high * 2
	}
	return low, high
}

// setScales chooses the scales of the axes, and their ticks.
func (f *figure) setScales(time bool) {
	x, y, unit := ticks(numberTicks), ticks(numberTicks), ""
	if time {
		x, unit = timeTicks, " s"
	}
	if f.Percent {
		y = percentTicks
	}
	if f.LogX {
		f.plot.X.Scale, x = plot.LogScale{}, logTicks(unit)
	}
	if f.LogY {
		f.plot.Y.Scale, y = plot.LogScale{}, logTicks("")
	}
	f.setTicks(x, y)
	if f.XNames != nil {
		f.named(&f.plot.X, f.XNames, f.Width/float64(len(f.XNames))*0.85)
	}
}

// giveLooks makes each curve look different without its colour: by dashes first, then by markers.
func giveLooks(curves []Curve) {
	seen := map[string]bool{}
	for i := range curves {
		c := &curves[i]
		c.style = look{width: 2}
		key := "solid"
		if c.Hue == Grey {
			key, c.style.width = "thin", 1.2
		}
		if c.Dashed {
			key, c.style.dashes = key+" dashed", []vg.Length{6, 3}
		}
		if seen[key] || !c.Steps {
			c.style.marker = markers[i%len(markers)]
		}
		seen[key] = true
	}
}

func (c Curve) visible() bool { return len(c.Points) > 0 }

func (c Curve) line() draw.LineStyle {
	return draw.LineStyle{Color: c.Hue.solid(), Width: c.style.width, Dashes: c.style.dashes}
}

func (c Curve) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: c.Hue.solid(), Radius: 3.5, Shape: c.style.marker}
}

// sample shows the curve in a legend.
func (c Curve) sample(box draw.Canvas) {
	middle := box.Center()
	box.StrokeLine2(c.line(), box.Min.X, middle.Y, box.Max.X, middle.Y)
	box.DrawGlyph(c.glyph(), middle)
}

// Plot implements plot.Plotter.
func (c Curve) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := transforms(&canvas, p)
	line := make([]vg.Point, len(c.Points))
	for i, point := range c.Points {
		line[i] = vg.Point{X: x(point.X), Y: y(point.Y)}
	}
	if c.Steps {
		c.plotSteps(canvas, line, x)
		return
	}
	canvas.StrokeLines(c.line(), thinned(line))
	for i, point := range c.Points {
		if point.Low != nil {
			c.whisker(canvas, line[i].X, y(*point.Low), y(*point.High))
		}
	}
	for _, pt := range line {
		canvas.DrawGlyphNoClip(c.glyph(), pt)
	}
}

func (c Curve) plotSteps(canvas draw.Canvas, line []vg.Point, x func(float64) vg.Length) {
	canvas.StrokeLines(c.line(), stairs(thinned(line)))
	height := func(at vg.Length) vg.Length { return line[indexAt(line, at)].Y }
	for _, at := range c.Ticks {
		canvas.StrokeLine2(draw.LineStyle{Color: c.Hue.solid(), Width: 1.5}, x(at), height(x(at))-5, x(at), height(x(at))+5)
	}
	if c.style.marker == nil {
		return
	}
	const apart = 70
	for at := line[0].X + apart/2; at < line[len(line)-1].X; at += apart {
		canvas.DrawGlyphNoClip(c.glyph(), vg.Point{X: at, Y: height(at)})
	}
}

func (c Curve) whisker(canvas draw.Canvas, x, low, high vg.Length) {
	const half = 4
	style := draw.LineStyle{Color: c.Hue.solid(), Width: 1.3}
	canvas.StrokeLines(style, []vg.Point{{X: x, Y: low}, {X: x, Y: high}},
		[]vg.Point{{X: x - half, Y: low}, {X: x + half, Y: low}}, []vg.Point{{X: x - half, Y: high}, {X: x + half, Y: high}})
}

// transforms are those of the plot, but what is left of a logarithmic axis stands at its edge.
func transforms(c *draw.Canvas, p *plot.Plot) (x, y func(float64) vg.Length) {
	trX, y := p.Transforms(c)
	return func(v float64) vg.Length { return trX(max(v, p.X.Min)) }, y
}

// indexAt is the last point at or before x, or the first point.
func indexAt(line []vg.Point, x vg.Length) int {
	i, _ := slices.BinarySearchFunc(line, x, func(p vg.Point, x vg.Length) int {
		if p.X <= x {
			return -1
		}
		return 1
	})
	return max(0, i-1)
}

// stairs joins points by a step up at the second.
func stairs(line []vg.Point) []vg.Point {
	var all []vg.Point
	for i, pt := range line {
		if i > 0 {
			all = append(all, vg.Point{X: pt.X, Y: line[i-1].Y})
		}
		all = append(all, pt)
	}
	return all
}

// thinAbove is how many points a curve may have before those are dropped that no pixel shows.
const thinAbove = 1500

// thinned keeps of each column of pixels the first, lowest, highest and last point, which draws the same picture (M4: Jugel and others, M4: A
// Visualization-Oriented Time Series Data Aggregation, VLDB 2014).
func thinned(line []vg.Point) []vg.Point {
	if len(line) <= thinAbove {
		return line
	}
	var kept []vg.Point
	for from := 0; from < len(line); {
		to := from + 1
		for to < len(line) && math.Floor(float64(line[to].X)) == math.Floor(float64(line[from].X)) {
			to++
		}
		low, high := from, from
		for i := from; i < to; i++ {
			if line[i].Y < line[low].Y {
				low = i
			}
			if line[i].Y > line[high].Y {
				high = i
			}
		}
		column := []int{from, low, high, to - 1}
		slices.Sort(column)
		for _, i := range slices.Compact(column) {
			kept = append(kept, line[i])
		}
		from = to
	}
	return kept
}

// band draws the intervals of a curve of steps. Where a step has none, the band has a gap.
type band struct{ Curve }

// Plot implements plot.Plotter.
func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	if !b.Steps {
		return
	}
	x, y := transforms(&c, p)
	c.SetColor(b.Hue.faded(0.18))
	var path vg.Path
	for i, point := range b.Points[:len(b.Points)-1] {
		if next := b.Points[i+1].X; point.Low != nil {
			r := vg.Rectangle{Min: vg.Point{X: x(point.X), Y: y(*point.Low)}, Max: vg.Point{X: x(next), Y: y(*point.High)}}
			if r.Max.X > r.Min.X {
				path = append(path, r.Path()...)
			}
		}
	}
	c.Fill(path)
}

// ends writes what stands at the ends of curves, one above the other where they would overlap.
type ends struct {
	f      *figure
	curves []Curve
}

// Plot implements plot.Plotter.
func (e ends) Plot(c draw.Canvas, p *plot.Plot) {
	type label struct {
		Curve
		at vg.Point
	}
	x, y := transforms(&c, p)
	var labels []label
	for _, curve := range e.curves {
		if last := curve.Points[len(curve.Points)-1]; curve.Last != "" {
			labels = append(labels, label{curve, vg.Point{X: x(last.X) + 5, Y: y(last.Y)}})
		}
	}
	slices.SortStableFunc(labels, func(a, b label) int { return cmp.Compare(a.at.Y, b.at.Y) })
	for i, l := range labels {
		if i > 0 {
			l.at.Y = max(l.at.Y, labels[i-1].at.Y+textSize+1)
			labels[i] = l
		}
		e.f.write(c, Ink.over(), text.XLeft, l.at, l.short(e.f))
	}
}

// GlyphBoxes implements plot.GlyphBoxer: room for the text to the right.
func (e ends) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	widest := vg.Length(0)
	for _, curve := range e.curves {
		if curve.Last != "" {
			widest = max(widest, e.f.textWidth(curve.short(e.f))+6)
		}
	}
	return []plot.GlyphBox{beside(widest)}
}

func (c Curve) short(f *figure) string { return f.shorten(c.Last, f.Width/4) }
