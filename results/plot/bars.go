package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Part is a piece of a bar. Parts of one name have one hue in all bars.
type Part struct {
	Name  string
	Value float64
	// Label is written into the piece where there is room for it.
	Label string
}

// Bar is a horizontal bar made of parts, from the left.
type Bar struct {
	Name  string
	Parts []Part
}

// Bars draws stacked horizontal bars over seconds, the first on top.
func Bars(o Options, bars ...Bar) ([]byte, error) {
	o = o.withDefaults()
	const row, rest = 44, 80
	o.Height = row*float64(len(bars)) + rest
	p := newPlot(o)
	p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	longest := 0.0
	var names []string
	hueOf := map[string]Hue{}
	var legend []entry
	for _, b := range bars {
		names = append(names, clip(b.Name))
		total := 0.0
		for _, part := range b.Parts {
			total += part.Value
			if _, known := hueOf[part.Name]; known {
				continue
			}
			h := Series(len(hueOf))
			hueOf[part.Name] = h
			legend = append(legend, entry{printable(part.Name), func(box draw.Canvas) { fill(box, h, 0.85, box.Rectangle) }})
		}
		longest = max(longest, total)
	}
	if longest == 0 {
		return nothing(o)
	}
	p.Add(grid{vertical: true}, stack{bars, hueOf})
	p.X.Min, p.X.Max = 0, longest*1.02
	rows(p, names)
	return render(o, legend, p)
}

// rows makes the Y axis one of named rows, from the top.
func rows(p *plot.Plot, names []string) {
	p.Y.Min, p.Y.Max = -float64(len(names))+0.5, 0.5
	p.Y.LineStyle.Width, p.Y.Tick.LineStyle.Width, p.Y.Tick.Length = 0, 0, 0
	named := make([]plot.Tick, len(names))
	for i, name := range names {
		named[i] = plot.Tick{Value: -float64(i), Label: name}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(named)
}

// clip shortens a name to what fits beside a plot.
func clip(name string) string {
	const longest = 22
	if runes := []rune(printable(name)); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return printable(name)
}

// fill fills a rectangle.
func fill(c draw.Canvas, h Hue, opacity float64, r vg.Rectangle) {
	c.SetColor(h.sentinel(opacity))
	c.Fill(r.Path())
}

type stack struct {
	bars  []Bar
	hueOf map[string]Hue
}

// Plot implements plot.Plotter.
func (s stack) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := textStyle(Ink)
	style.XAlign, style.YAlign = text.XCenter, text.YCenter
	for i, b := range s.bars {
		from := 0.0
		top, bottom := y(-float64(i)+0.33), y(-float64(i)-0.33)
		for _, part := range b.Parts {
			r := vg.Rectangle{Min: vg.Point{X: x(from), Y: bottom}, Max: vg.Point{X: x(from + part.Value), Y: top}}
			from += part.Value
			fill(c, s.hueOf[part.Name], 0.45, r)
			c.StrokeLines(draw.LineStyle{Color: s.hueOf[part.Name].sentinel(1), Width: 1}, []vg.Point{
				r.Min, {X: r.Min.X, Y: r.Max.Y}, r.Max, {X: r.Max.X, Y: r.Min.Y}, r.Min,
			})
			if label := printable(part.Label); style.Width(label)+6 < r.Size().X {
				c.FillText(style, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (bottom + top) / 2}, label)
			}
		}
	}
}
