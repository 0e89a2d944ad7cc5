package plot

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Point is one of a curve. Low and High bound its value, where it has an interval.
type Point struct {
	X, Y      float64
	Low, High *float64
}

// Curve is a series of points in ascending order of X.
type Curve struct {
	Name string
	Hue  Hue
	// Dashed tells it from another curve of its hue.
	Dashed bool
	// Steps: a value holds until the next point. Else points are marked and joined by straight lines.
	Steps  bool
	Points []Point
	// Ticks are values of X that are marked on a curve of steps: where an observation was censored.
	Ticks []float64
}

// Curves draws curves over seconds (Steps, if time is set) or over a number. The Y axis begins at 0. Values that are not finite are left out.
func Curves(o Options, time bool, curves ...Curve) ([]byte, error) {
	o = o.withDefaults()
	p := newPlot(o)
	if time {
		p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	}
	p.Add(grid{horizontal: true})
	var legend []entry
	high := 0.0
	low := math.Inf(1)
	drawn := false
	for i, c := range curves {
		c.Points = finite(c.Points)
		if len(c.Points) == 0 {
			continue
		}
		drawn = true
		for _, point := range c.Points {
			high = max(high, point.Y)
			low = min(low, point.X)
			if point.High != nil {
				high = max(high, *point.High)
			}
		}
		shape := shapes[i%len(shapes)]
		p.Add(curve{c, shape})
		legend = append(legend, entry{printable(c.Name), func(box draw.Canvas) { sample(c, shape, box) }})
	}
	if !drawn {
		return nothing(o)
	}
	p.Y.Min, p.Y.Max = 0, high*1.05
	if high == 0 {
		p.Y.Max = 1
	}
	p.X.Min = low
	if time {
		p.X.Min = min(low, 0)
	}
	if p.X.Max <= p.X.Min {
		p.X.Max = p.X.Min + 1
	}
	return render(o, legend, p)
}

func finite(points []Point) []Point {
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
		return math.IsNaN(p.X) || math.IsNaN(p.Y) || math.IsInf(p.X, 0) || math.IsInf(p.Y, 0)
	})
}

var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.SquareGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}}

func (c Curve) line() draw.LineStyle {
	style := draw.LineStyle{Color: c.Hue.sentinel(1), Width: 1.8}
	if c.Dashed {
		style.Dashes = []vg.Length{5, 3}
	}
	return style
}

func (c Curve) glyph(shape draw.GlyphDrawer) draw.GlyphStyle {
	return draw.GlyphStyle{Color: c.Hue.sentinel(1), Radius: 3.5, Shape: shape}
}

// sample shows the curve in a legend.
func sample(c Curve, shape draw.GlyphDrawer, box draw.Canvas) {
	middle := box.Center()
	box.StrokeLine2(c.line(), box.Min.X, middle.Y, box.Max.X, middle.Y)
	if !c.Steps {
		box.DrawGlyph(c.glyph(shape), middle)
	}
}

// curve draws a Curve.
type curve struct {
	Curve
	shape draw.GlyphDrawer
}

// Plot implements plot.Plotter.
func (c curve) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	var line []vg.Point
	for i, point := range c.Points {
		if c.Steps && i > 0 {
			line = append(line, vg.Point{X: x(point.X), Y: y(c.Points[i-1].Y)})
		}
		line = append(line, vg.Point{X: x(point.X), Y: y(point.Y)})
	}
	canvas.StrokeLines(c.line(), simplified(line))
	for _, at := range c.Ticks {
		height := y(valueAt(c.Points, at))
		canvas.StrokeLine2(draw.LineStyle{Color: c.Hue.sentinel(1), Width: 1.2}, x(at), height-4, x(at), height+4)
	}
	for _, point := range c.Points {
		if point.Low != nil && point.High != nil {
			canvas.StrokeLine2(draw.LineStyle{Color: c.Hue.sentinel(1), Width: 1.2}, x(point.X), y(*point.Low), x(point.X), y(*point.High))
		}
		if !c.Steps {
			canvas.DrawGlyph(c.glyph(c.shape), vg.Point{X: x(point.X), Y: y(point.Y)})
		}
	}
}

// DataRange implements plot.DataRanger.
func (c curve) DataRange() (xmin, xmax, ymin, ymax float64) {
	points := make(plotter.XYs, len(c.Points))
	for i, p := range c.Points {
		points[i] = plotter.XY{X: p.X, Y: p.Y}
	}
	return plotter.XYRange(points)
}

func valueAt(points []Point, x float64) float64 {
	value := 0.0
	for _, p := range points {
		if p.X > x {
			break
		}
		value = p.Y
	}
	return value
}

// simplified drops points that nobody could see: those within a third of a pixel of the one before.
func simplified(line []vg.Point) []vg.Point {
	const visible = 0.3
	var kept []vg.Point
	for i, point := range line {
		if last := len(kept) - 1; last >= 0 && i < len(line)-1 &&
			math.Abs(float64(point.X-kept[last].X)) < visible && math.Abs(float64(point.Y-kept[last].Y)) < visible {
			continue
		}
		kept = append(kept, point)
	}
	return kept
}
