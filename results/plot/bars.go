package plot

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Part is a piece of a bar. Parts of one name have one hue in all bars.
type Part struct {
	Name  string
	Value float64
	// Label is what is written for the value. Default: the value in seconds.
	Label string
}

// Bar is a horizontal bar made of parts, from the left. Its name stands above it, Note beside the name.
type Bar struct {
	Name  string
	Parts []Part
	Note  string
}

func (p Part) label() string {
	if p.Label != "" {
		return p.Label
	}
	return brief(p.Value) + " s"
}

// bar heights, in pixels from the top of its row: its name, the bar itself, a line for values that have no room in it.
const (
	barName, barHeight, barValues, barGap = 20, 24, 18, 8
	barRow                                = barName + barHeight + barValues + barGap
)

// Bars draws stacked horizontal bars over seconds, the first on top. Parts that are not finite are left out; negative ones are an error.
func Bars(o Options, bars ...Bar) ([]byte, error) {
	longest := 0.0
	bars = slices.Clone(bars)
	var kinds []string
	for i := range bars {
		b := &bars[i]
		b.Parts = slices.DeleteFunc(slices.Clone(b.Parts), func(p Part) bool { return !finite(p.Value) })
		total := 0.0
		for _, part := range b.Parts {
			if part.Value < 0 {
				return nil, fmt.Errorf("draw bar %q: part %q is %v: the parts of a bar cannot be negative", b.Name, part.Name, part.Value)
			}
			total += part.Value
			if !slices.Contains(kinds, part.Name) {
				kinds = append(kinds, part.Name)
			}
		}
		longest = max(longest, total)
	}
	if longest == 0 {
		return nothing(o)
	}
	const axis = 44
	o.Height = barRow*float64(len(bars)) + axis
	f := newFigure(o)
	f.setTicks(timeTicks, numberTicks)
	f.plot.X.Min, f.plot.X.Max = 0, longest
	f.plot.Y.Min, f.plot.Y.Max = 0, float64(len(bars))
	f.plot.Y.Tick.Marker = plot.ConstantTicks(nil)
	f.plot.Y.Width = 0
	for i, name := range kinds {
		f.legend = append(f.legend, entry{name, func(box draw.Canvas) { piece(box, i, box.Rectangle) }})
	}
	f.plot.Add(grid{vertical: true}, stack{f, bars, kinds})
	return f.render()
}

// piece draws the i-th kind of part: pale, so that text is readable on it, with an edge and a hatch of its own.
func piece(c draw.Canvas, i int, r vg.Rectangle) {
	h := Series(i)
	fill(c, h.faded(0.3), r)
	hatch(c, h.faded(0.75), hatches[i%len(hatches)], r)
	outline(c, h.solid(), r)
}

// slopes are the directions of lines of a hatch.
type slopes struct{ up, down, upright bool }

var hatches = []slopes{{}, {up: true}, {down: true}, {upright: true}, {up: true, down: true}}

// hatch draws lines across a rectangle.
func hatch(c draw.Canvas, p paint, s slopes, r vg.Rectangle) {
	const apart = 7
	c.SetLineStyle(draw.LineStyle{Color: p, Width: 1})
	w, h := r.Size().X, r.Size().Y
	var path vg.Path
	line := func(x0, y0, x1, y1 vg.Length) {
		path.Move(r.Min.Add(vg.Point{X: x0, Y: y0}))
		path.Line(r.Min.Add(vg.Point{X: x1, Y: y1}))
	}
	for at := -h + apart; at < w; at += apart {
		from, to := max(at, 0), min(at+h, w)
		if s.up {
			line(from, from-at, to, to-at)
		}
		if s.down {
			line(from, h-(from-at), to, h-(to-at))
		}
		if s.upright && at > 0 {
			line(at, 0, at, h)
		}
	}
	c.Stroke(path)
}

// stack draws bars.
type stack struct {
	f     *figure
	bars  []Bar
	kinds []string
}

// Plot implements plot.Plotter.
func (s stack) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, b := range s.bars {
		top := y(float64(len(s.bars) - i))
		s.writeName(c, b, top-barName/2)
		from := 0.0
		var outside []outsider
		for _, part := range b.Parts {
			r := vg.Rectangle{Min: vg.Point{X: x(from), Y: top - barName - barHeight}, Max: vg.Point{X: x(from + part.Value), Y: top - barName}}
			from += part.Value
			kind := slices.Index(s.kinds, part.Name)
			piece(c, kind, r)
			label := s.f.shorten(part.label(), s.f.Width/4)
			if s.f.textWidth(label)+8 > r.Size().X {
				outside = append(outside, outsider{kind, label, r.Min.X})
				continue
			}
			s.f.write(c, Ink.over(), text.XCenter, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, label)
		}
		s.writeOutside(c, outside, top-barName-barHeight-barValues/2-1)
	}
}

func (s stack) writeName(c draw.Canvas, b Bar, y vg.Length) {
	name := s.f.shorten(b.Name, s.f.Width*0.6)
	s.f.write(c, Ink.solid(), text.XLeft, vg.Point{X: c.Min.X, Y: y}, name)
	left := c.Min.X + s.f.textWidth(name) + 10
	s.f.write(c, Grey.solid(), text.XLeft, vg.Point{X: left, Y: y}, s.f.shorten(b.Note, float64(c.Max.X-left)))
}

// outsider is a value that has no room in its part, which begins at x.
type outsider struct {
	kind  int
	label string
	x     vg.Length
}

const outsideSample, outsideGap = 10, 10

func (s stack) outsideWidth(v outsider) vg.Length {
	return outsideSample + 4 + s.f.textWidth(v.label) + outsideGap
}

// writeOutside writes values in a line below the bar, each after a sample of its part: below it, or as far to the left as the others need.
func (s stack) writeOutside(c draw.Canvas, values []outsider, y vg.Length) {
	needed := vg.Length(0)
	for _, v := range values {
		needed += s.outsideWidth(v)
	}
	free := c.Min.X
	for _, v := range values {
		left := max(free, min(v.x, c.Max.X-needed+outsideGap))
		sample := vg.Rectangle{Min: vg.Point{X: left, Y: y - outsideSample/2}, Max: vg.Point{X: left + outsideSample, Y: y + outsideSample/2}}
		piece(c, v.kind, sample)
		s.f.write(c, Ink.solid(), text.XLeft, vg.Point{X: sample.Max.X + 4, Y: y}, v.label)
		free = left + s.outsideWidth(v)
		needed -= s.outsideWidth(v)
	}
}

// GlyphBoxes implements plot.GlyphBoxer: room for half of the first label of the axis.
func (s stack) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	return []plot.GlyphBox{{Y: 1, Rectangle: vg.Rectangle{Min: vg.Point{X: -s.f.textWidth("0 s") / 2}}}}
}
