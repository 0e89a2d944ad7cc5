package plot

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Span is a stretch of time on a row, in seconds.
type Span struct {
	From, To float64
	// Kind is an index of TimelineKinds.Spans.
	Kind int
	// Open: it was not over at To. An arrow says so.
	Open bool
}

// Mark is an instant on a row, in seconds. Kind is an index of TimelineKinds.Marks.
type Mark struct {
	At   float64
	Kind int
}

// Row is one of a timeline. Note stands at its right end.
type Row struct {
	Name  string
	Spans []Span
	Marks []Mark
	Note  string
}

// TimelineKinds are the kinds of spans and marks, as the legend has them. Spans of the first kind are thin, of the second pale, of the third solid, and
// so on again. The first kinds of marks have a shape of their own each; the last kind is a stroke across the row, for what happens often.
type TimelineKinds struct{ Spans, Marks []Kind }

// Kind is what spans or marks stand for.
type Kind struct {
	Name string
	Hue  Hue
}

const (
	timelineRow = 18
	// manyRows have a time axis above, too.
	manyRows = 25
)

// Timeline draws one row for each of rows, the first on top, from the instant from to the instant to. What is not within is cut off; marks of a kind
// that are closer than a pixel are drawn as one. A Kind that is not in kinds is an error.
func Timeline(o Options, kinds TimelineKinds, from, to float64, rows []Row) ([]byte, error) {
	for _, r := range rows {
		if err := r.check(kinds); err != nil {
			return nil, fmt.Errorf("draw timeline %q: %w", o.Title, err)
		}
	}
	if len(rows) == 0 || !finite(from, to) {
		return nothing(o)
	}
	const axis = 44
	o.Height = timelineRow*float64(len(rows)) + axis
	if len(o.XGuides) > 0 {
		o.Height += lineHeight
	}
	t := timeline{newFigure(o), kinds, rows}
	t.f.setTicks(timeTicks, numberTicks)
	t.f.plot.X.Min, t.f.plot.X.Max = extent(from, max(from, to))
	if len(rows) >= manyRows {
		t.f.above = lineHeight
		t.f.Height += lineHeight
	}
	t.nameRows()
	t.f.legend = t.entries()
	t.f.plot.Add(grid{vertical: true}, t)
	return t.f.render()
}

func (r Row) check(kinds TimelineKinds) error {
	for _, s := range r.Spans {
		if s.Kind < 0 || s.Kind >= len(kinds.Spans) {
			return fmt.Errorf("row %q: no kind %d of spans, there are %d", r.Name, s.Kind, len(kinds.Spans))
		}
	}
	for _, m := range r.Marks {
		if m.Kind < 0 || m.Kind >= len(kinds.Marks) {
			return fmt.Errorf("row %q: no kind %d of marks, there are %d", r.Name, m.Kind, len(kinds.Marks))
		}
	}
	return nil
}

// timeline draws rows.
type timeline struct {
	f     *figure
	kinds TimelineKinds
	rows  []Row
}

// nameRows makes the Y axis one of the rows, the first on top.
func (t timeline) nameRows() {
	t.f.plot.Y.Min, t.f.plot.Y.Max = 0.5-float64(len(t.rows)), 0.5
	ticks := make([]plot.Tick, len(t.rows))
	for i, r := range t.rows {
		ticks[i] = plot.Tick{Value: -float64(i), Label: t.f.shorten(r.Name, t.f.Width*0.28)}
	}
	t.f.plot.Y.Tick.Marker = plot.ConstantTicks(ticks)
	t.f.plot.Y.Tick.Color, t.f.plot.Y.Width = Rule.faded(0), 0
}

func (t timeline) entries() []entry {
	var all []entry
	for i, k := range t.kinds.Spans {
		all = append(all, entry{k.Name, func(box draw.Canvas) { t.span(box, i, box.Rectangle, false) }})
	}
	for i, k := range t.kinds.Marks {
		all = append(all, entry{k.Name, func(box draw.Canvas) { t.mark(box, i, box.Center().X, box.Center().X, box.Center().Y) }})
	}
	return all
}

// Plot implements plot.Plotter. It goes by kinds, not by rows, so that what looks alike is one element of the picture.
func (t timeline) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for kind := range t.kinds.Spans {
		for i, row := range t.rows {
			t.plotSpans(c, row, kind, y(-float64(i)))
		}
	}
	for _, kind := range t.drawingOrder() {
		for i, row := range t.rows {
			t.plotMarks(c, row, kind, y(-float64(i)))
		}
	}
	for i, row := range t.rows {
		t.f.write(c, Ink.solid(), text.XLeft, vg.Point{X: c.Max.X + 6, Y: y(-float64(i))}, t.note(row))
	}
	t.plotUpperAxis(c, p)
}

// drawingOrder has the strokes, which are of the last kind, below the shapes.
func (t timeline) drawingOrder() []int {
	last := len(t.kinds.Marks) - 1
	order := make([]int, 0, last+1)
	for kind := last; kind >= 0; kind-- {
		order = append(order, kind)
	}
	return order
}

func (t timeline) plotSpans(c draw.Canvas, row Row, kind int, y vg.Length) {
	x, _ := t.f.plot.Transforms(&c)
	const half = timelineRow/2 - 3
	for _, s := range row.Spans {
		from, to := max(s.From, t.f.plot.X.Min), min(s.To, t.f.plot.X.Max)
		if s.Kind == kind && finite(s.From, s.To) && from < to {
			t.span(c, kind, vg.Rectangle{Min: vg.Point{X: x(from), Y: y - half}, Max: vg.Point{X: x(to), Y: y + half}}, s.Open)
		}
	}
}

// span draws a stretch of a kind: thin, pale with an edge, or solid.
func (t timeline) span(c draw.Canvas, kind int, r vg.Rectangle, open bool) {
	h := t.kinds.Spans[kind].Hue
	middle := (r.Min.Y + r.Max.Y) / 2
	switch kind % 3 {
	case 0:
		fill(c, h.solid(), vg.Rectangle{Min: vg.Point{X: r.Min.X, Y: middle - 1.5}, Max: vg.Point{X: r.Max.X, Y: middle + 1.5}})
	case 1:
		fill(c, h.faded(0.25), r)
		outline(c, h.solid(), r)
	default:
		fill(c, h.faded(0.7), r)
	}
	if open {
		c.SetColor(h.solid())
		var arrow vg.Path
		arrow.Move(vg.Point{X: r.Max.X, Y: r.Max.Y})
		arrow.Line(vg.Point{X: r.Max.X + 5, Y: middle})
		arrow.Line(vg.Point{X: r.Max.X, Y: r.Min.Y})
		arrow.Close()
		c.Fill(arrow)
	}
}

func (t timeline) plotMarks(c draw.Canvas, row Row, kind int, y vg.Length) {
	x, _ := t.f.plot.Transforms(&c)
	var at []vg.Length
	for _, m := range row.Marks {
		if m.Kind == kind && m.At >= t.f.plot.X.Min && m.At <= t.f.plot.X.Max {
			at = append(at, x(m.At))
		}
	}
	slices.Sort(at)
	for i := 0; i < len(at); {
		last := i
		for last+1 < len(at) && at[last+1]-at[last] < 1 {
			last++
		}
		t.mark(c, kind, at[i], at[last], y)
		i = last + 1
	}
}

// isStroke is whether marks of a kind are strokes across the row.
func (t timeline) isStroke(kind int) bool { return kind == len(t.kinds.Marks)-1 }

// mark draws one or more instants of a kind, from the first to the last.
func (t timeline) mark(c draw.Canvas, kind int, first, last, y vg.Length) {
	h := t.kinds.Marks[kind].Hue
	const half = timelineRow/2 - 3
	if t.isStroke(kind) {
		fill(c, h.solid(), vg.Rectangle{Min: vg.Point{X: first - 0.5, Y: y - half}, Max: vg.Point{X: last + 0.5, Y: y + half}})
		return
	}
	c.DrawGlyphNoClip(draw.GlyphStyle{Color: h.over(), Radius: 3.4, Shape: markers[kind%len(markers)]}, vg.Point{X: first, Y: y})
}

func (t timeline) plotUpperAxis(c draw.Canvas, p *plot.Plot) {
	if t.f.above == 0 {
		return
	}
	x, _ := p.Transforms(&c)
	for _, tick := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		t.f.write(c, Ink.solid(), text.XCenter, vg.Point{X: x(tick.Value), Y: c.Max.Y + 11}, tick.Label)
	}
}

func (t timeline) note(row Row) string { return t.f.shorten(row.Note, t.f.Width*0.26) }

// GlyphBoxes implements plot.GlyphBoxer: room for the notes, and for the axis above.
func (t timeline) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	widest := vg.Length(0)
	for _, row := range t.rows {
		if note := t.note(row); note != "" {
			widest = max(widest, t.f.textWidth(note)+8)
		}
	}
	return []plot.GlyphBox{beside(max(widest, 6)), above(t.f.above)}
}
