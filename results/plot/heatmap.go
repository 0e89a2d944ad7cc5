package plot

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Heatmap draws a table of values, a column for each of x and a row for each of y, the first at the bottom: values[i][j] is that of y[i] and x[j]. The
// stronger the colour, the farther is the value from 0 (by its square root: small ones shall differ, too); negative ones have another hue. The value stands in the cell, in few places (1.6k) where there is
// little room. A nil value was not measured, nor is one that is not finite. It is an error if values has not the size of x and y.
func Heatmap(o Options, x, y []string, values [][]*float64) ([]byte, error) {
	if len(values) != len(y) {
		return nil, fmt.Errorf("draw heat map %q: %d rows of values for %d names", o.Title, len(values), len(y))
	}
	for i, row := range values {
		if len(row) != len(x) {
			return nil, fmt.Errorf("draw heat map %q: %d values in row %q for %d names", o.Title, len(row), y[i], len(x))
		}
	}
	m := newCells(values)
	if len(m.measured) == 0 {
		return nothing(o)
	}
	const row, rest = 34, 44
	o.Height = row*float64(len(y)) + rest
	m.f = newFigure(o)
	m.f.plot.X.Min, m.f.plot.X.Max, m.f.plot.Y.Min, m.f.plot.Y.Max = -0.5, float64(len(x))-0.5, -0.5, float64(len(y))-0.5
	m.f.named(&m.f.plot.X, x, m.f.Width*0.8/float64(len(x)))
	m.f.named(&m.f.plot.Y, y, m.f.Width*0.3)
	m.f.plot.X.Width, m.f.plot.Y.Width = 0, 0
	m.f.plot.Add(m)
	m.f.legend = m.scale()
	return m.f.render()
}

// cells draws a heat map.
type cells struct {
	f        *figure
	values   [][]*float64
	measured []float64
	strength float64 // the largest size of a value
	gaps     bool    // something was not measured
}

func newCells(values [][]*float64) *cells {
	m := &cells{values: values}
	for _, row := range values {
		for _, v := range row {
			if v == nil || !finite(*v) {
				m.gaps = true
				continue
			}
			m.measured = append(m.measured, *v)
			m.strength = max(m.strength, math.Abs(*v))
		}
	}
	return m
}

// strongest leaves text readable on a cell: 4.5:1 in light and in dark.
const strongest = 0.5

func (m *cells) paint(v float64) paint {
	h, part := Blue, 0.0
	if v < 0 {
		h = Orange
	}
	if m.strength > 0 {
		part = math.Sqrt(math.Abs(v) / m.strength)
	}
	return h.faded(math.Round(100*(0.05+(strongest-0.05)*part)) / 100)
}

// scale is the legend: the lowest and the highest value, and what they are.
func (m *cells) scale() []entry {
	low, high := slices.Min(m.measured), slices.Max(m.measured)
	all := []entry{{brief(low), m.sample(low)}}
	if low < high {
		all = append(all, entry{brief(high), m.sample(high)})
	}
	if m.f.ZLabel != "" {
		all[len(all)-1].name += " " + m.f.ZLabel
	}
	if m.gaps {
		all = append(all, entry{"not measured", func(box draw.Canvas) { gap(box, box.Rectangle) }})
	}
	return all
}

func (m *cells) sample(v float64) func(draw.Canvas) {
	return func(box draw.Canvas) {
		fill(box, m.paint(v), box.Rectangle)
		outline(box, Rule.solid(), box.Rectangle)
	}
}

func gap(c draw.Canvas, r vg.Rectangle) {
	hatch(c, Rule.faded(0.6), slopes{up: true}, r)
	outline(c, Rule.faded(0.6), r)
}

// Plot implements plot.Plotter.
func (m *cells) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, row := range m.values {
		for j, v := range row {
			r := vg.Rectangle{
				Min: vg.Point{X: x(float64(j)-0.5) + 1, Y: y(float64(i)-0.5) + 1}, Max: vg.Point{X: x(float64(j)+0.5) - 1, Y: y(float64(i)+0.5) - 1},
			}
			if v == nil || !finite(*v) {
				gap(c, r)
				continue
			}
			fill(c, m.paint(*v), r)
		}
	}
	for i, row := range m.values {
		for j, v := range row {
			m.writeValue(c, v, vg.Point{X: x(float64(j)), Y: y(float64(i))}, x(1)-x(0)-4)
		}
	}
}

func (m *cells) writeValue(c draw.Canvas, v *float64, at vg.Point, room vg.Length) {
	if v == nil || !finite(*v) {
		m.f.write(c, Ink.over(), text.XCenter, at, "–")
		return
	}
	for _, label := range []string{brief(*v), short(*v)} {
		if m.f.textWidth(label) <= room {
			m.f.write(c, Ink.solid(), text.XCenter, at, label)
			return
		}
	}
}
