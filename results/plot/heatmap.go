package plot

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Heatmap draws a table of values, a column for each of x and a row for each of y, the first at the bottom. The stronger the colour, the higher the value,
// which stands in the cell. A nil value was not measured.
func Heatmap(o Options, x, y []string, values [][]*float64) ([]byte, error) {
	o = o.withDefaults()
	if len(x) == 0 || len(y) == 0 {
		return nothing(o)
	}
	const row, rest = 36, 70
	o.Height = row*float64(len(y)) + rest
	p := newPlot(o)
	p.Add(cells{values})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(len(x))-0.5, -0.5, float64(len(y))-0.5
	for axis, names := range map[*plot.Axis][]string{&p.X: x, &p.Y: y} {
		axis.LineStyle.Width, axis.Tick.LineStyle.Width, axis.Tick.Length = 0, 0, 0
		axis.Tick.Marker = plot.ConstantTicks(ticksOf(names))
	}
	return render(o, nil, p)
}

func ticksOf(names []string) []plot.Tick {
	all := make([]plot.Tick, len(names))
	for i, name := range names {
		all[i] = plot.Tick{Value: float64(i), Label: clip(name)}
	}
	return all
}

type cells struct{ values [][]*float64 }

// Plot implements plot.Plotter.
func (h cells) Plot(c draw.Canvas, p *plot.Plot) {
	const strongest = 0.6 // text stays readable on it
	x, y := p.Transforms(&c)
	style := textStyle(Ink)
	style.XAlign, style.YAlign = text.XCenter, text.YCenter
	highest := 0.0
	for _, row := range h.values {
		for _, v := range row {
			if v != nil {
				highest = max(highest, math.Abs(*v))
			}
		}
	}
	for i, row := range h.values {
		for j, v := range row {
			r := vg.Rectangle{
				Min: vg.Point{X: x(float64(j)-0.5) + 1, Y: y(float64(i)-0.5) + 1}, Max: vg.Point{X: x(float64(j)+0.5) - 1, Y: y(float64(i)+0.5) - 1},
			}
			label := "–"
			if v != nil {
				label = Number(*v)
				opacity := 0.04
				if highest > 0 {
					opacity = max(opacity, strongest*math.Abs(*v)/highest)
				}
				fill(c, Blue, opacity, r)
			}
			c.FillText(style, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, label)
		}
	}
}
