package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Span is a stretch of time on a row, in seconds.
type Span struct {
	From, To float64
	// Kind is an index of TimelineKinds.Spans.
	Kind int
}

// Mark is an instant on a row, in seconds. Kind is an index of TimelineKinds.Marks.
type Mark struct {
	At   float64
	Kind int
}

// Row is one of a timeline.
type Row struct {
	Name  string
	Spans []Span
	Marks []Mark
}

// TimelineKinds are the kinds of spans and marks, as the legend has them.
type TimelineKinds struct{ Spans, Marks []Kind }

// Kind is how spans or marks of a kind look. Marks of different kinds have different shapes.
type Kind struct {
	Name string
	Hue  Hue
}

// markShapes are those of the kinds of marks, in their order.
var markShapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{}}

// Timeline draws one row for each of rows, the first on top, from the instant from to the instant to.
func Timeline(o Options, kinds TimelineKinds, from, to float64, list []Row) ([]byte, error) {
	o = o.withDefaults()
	if len(list) == 0 {
		return nothing(o)
	}
	const row, rest = 17, 86
	o.Height = row*float64(len(list)) + rest
	p := newPlot(o)
	p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	p.Add(grid{vertical: true}, timeline{kinds, list})
	p.X.Min, p.X.Max = from, max(to, from+1)
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = clip(r.Name)
	}
	rows(p, names)
	var legend []entry
	for _, k := range kinds.Spans {
		legend = append(legend, entry{printable(k.Name), func(box draw.Canvas) { fill(box, k.Hue, 0.6, box.Rectangle) }})
	}
	for i, k := range kinds.Marks {
		legend = append(legend, entry{printable(k.Name), func(box draw.Canvas) { box.DrawGlyph(k.glyph(i), box.Center()) }})
	}
	return render(o, legend, p)
}

func (k Kind) glyph(i int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: k.Hue.sentinel(1), Radius: 3.2, Shape: markShapes[i%len(markShapes)]}
}

type timeline struct {
	kinds TimelineKinds
	rows  []Row
}

// Plot implements plot.Plotter.
func (t timeline) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, row := range t.rows {
		top, bottom := y(-float64(i)+0.32), y(-float64(i)-0.32)
		for _, s := range row.Spans {
			left, right := x(max(s.From, p.X.Min)), x(min(s.To, p.X.Max))
			if right > left {
				fill(c, t.kinds.Spans[s.Kind].Hue, 0.6, vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: right, Y: top}})
			}
		}
		last := map[int]vg.Length{}
		for _, m := range row.Marks {
			at := x(m.At)
			if before, drawn := last[m.Kind]; drawn && at-before < 2.5 || m.At < p.X.Min || m.At > p.X.Max {
				continue // nobody could tell it from the one before
			}
			last[m.Kind] = at
			c.DrawGlyph(t.kinds.Marks[m.Kind].glyph(m.Kind), vg.Point{X: at, Y: y(-float64(i))})
		}
	}
}
