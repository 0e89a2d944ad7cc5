package plot

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Options are those of every plot.
type Options struct {
	// Title says what the plot shows, to those who cannot see it; Description, what there is to be seen in it. Neither is drawn.
	Title, Description string
	// XLabel and YLabel name the axes, with their units. ZLabel names what the cells of a heat map hold.
	XLabel, YLabel, ZLabel string
	// LogX and LogY make the axis of curves logarithmic. Values that are not positive have no place on it and are left out, but for X of steps: what
	// was reached by then holds at the left edge.
	LogX, LogY bool
	// Percent writes the Y of curves, which goes from 0 to 1, in percent. LogY overrides it.
	Percent bool
	// XNames name the X values 0, 1, … of curves over something that is no number. LogX is then ignored.
	XNames []string
	// XGuides and YGuides are lines across the plot, at values of the axis: instants of a run, limits.
	XGuides, YGuides []Guide
	// Width is in CSS pixels at full size, Height likewise, without the legend. Defaults: 720 and 260. Bars, timelines and heat maps are as high as
	// they have rows. Widths are from 240 to 10,000.
	Width, Height float64
	// Empty says why there may be nothing to show.
	Empty string
}

// Guide is a labelled line across a plot.
type Guide struct {
	At    float64
	Label string
}

const (
	defaultWidth, defaultHeight = 720, 260
	leastWidth, mostWidth       = 240, 10_000
	// narrowWidth is that of phones, less a margin. Pages narrower than narrowBelow show it.
	narrowWidth, narrowBelow = 350, 600
	// textSize is of all text, in pixels at full size, lineHeight that of a line of a legend.
	textSize, lineHeight = 12, 18
)

func (o Options) withDefaults() Options {
	if !finite(o.Width) || o.Width <= 0 {
		o.Width = defaultWidth
	}
	o.Width = min(max(o.Width, leastWidth), mostWidth)
	if !finite(o.Height) || o.Height <= 0 {
		o.Height = defaultHeight
	}
	if o.Empty == "" {
		o.Empty = "no data"
	}
	return o
}

// Responsive draws a plot twice: as wide as o says, and for narrow screens. A page that includes CSS shows the one that fits, so that text is as large as
// the page's on a phone, too.
func Responsive(o Options, draw func(Options) ([]byte, error)) ([]byte, error) {
	wide, err := draw(o)
	if err != nil {
		return nil, err
	}
	o.Width = narrowWidth
	narrow, err := draw(o)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(`<div class="plot-wide">`), wide, []byte("</div>\n"+`<div class="plot-narrow">`), narrow, []byte("</div>\n")), nil
}

// Document makes a file of a plot: an SVG document with its own colours for light and dark, and a background.
func Document(svg []byte) []byte {
	const style = `svg{background:%p;color:#1b1b1b}
@media screen and (prefers-color-scheme:dark){svg{color:#e6e6e6}}`
	end := slices.Index(svg, '>') + 1 // attributes have no ">" that is not escaped
	css := "<style>" + CSS() + strings.Replace(style, "%p", paper.css(), 1) + "</style>"
	return slices.Concat([]byte(`<?xml version="1.0" encoding="UTF-8"?>`+"\n"), svg[:end], []byte(css), svg[end:])
}

// figure is a plot in the making.
type figure struct {
	Options
	plot   *plot.Plot
	canvas *canvas
	legend []entry
	// above is the height of what stands right above the plot.
	above vg.Length
}

// entry is one in a legend: what is drawn in a box of boxWidth × 10 pixels, and its name.
type entry struct {
	name string
	draw func(draw.Canvas)
}

const boxWidth = 22

func newFigure(o Options) *figure {
	f := &figure{Options: o.withDefaults(), plot: plot.New(), canvas: &canvas{}}
	f.plot.BackgroundColor = nil
	f.plot.X.Label.Text = f.shorten(f.XLabel, f.Width-60)
	f.plot.X.Label.Padding = 4
	for _, axis := range []*plot.Axis{&f.plot.X, &f.plot.Y} {
		axis.Color = Rule.solid()
		axis.Width = 1
		axis.Padding = 0
		axis.Tick.Color = Rule.solid()
		axis.Tick.Width = 1
		axis.Tick.Length = 4
		for _, style := range []*text.Style{&axis.Label.TextStyle, &axis.Tick.Label} {
			own := f.canvas.textStyle(Ink.solid())
			own.XAlign, own.YAlign, own.Rotation = style.XAlign, style.YAlign, style.Rotation
			*style = own
		}
	}
	return f
}

// setTicks gives the axes ticks as many as have room.
func (f *figure) setTicks(x, y ticks) {
	f.plot.X.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick { return x(low, high, f.Width/80) })
	f.plot.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick { return y(low, high, f.Height/45) })
}

// named makes an axis one of names at 0, 1 and so on.
func (f *figure) named(axis *plot.Axis, names []string, widest float64) {
	ticks := make([]plot.Tick, len(names))
	for i, name := range names {
		ticks[i] = plot.Tick{Value: float64(i), Label: f.shorten(name, widest)}
	}
	axis.Tick.Marker = plot.ConstantTicks(ticks)
	axis.Tick.Color = Rule.faded(0) // no ticks, but their distance
}

func (f *figure) textWidth(s string) vg.Length { return f.canvas.textStyle(Ink.solid()).Width(s) }

// shorten cuts a name to a width, and shows that it was cut.
func (f *figure) shorten(name string, widest float64) string {
	name = strings.TrimSpace(printable(name))
	if f.textWidth(name) <= vg.Length(widest) {
		return name
	}
	runes := []rune(name)
	most := sort.Search(len(runes), func(n int) bool { return f.textWidth(string(runes[:n])+"…") > vg.Length(widest) })
	runes = runes[:max(0, most-1)]
	return strings.TrimSpace(string(runes)) + "…"
}

// render draws the legend, the name of the Y axis below it, and the plot below that.
func (f *figure) render() ([]byte, error) {
	f.addGuides()
	lines := f.legendLines()
	top := vg.Length(lineHeight*len(lines) + 10)
	if f.YLabel != "" {
		top += lineHeight
	}
	f.canvas.height = top + vg.Length(f.Height)
	whole := draw.NewCanvas(f.canvas, vg.Length(f.Width), f.canvas.height)
	for i, line := range lines {
		f.drawLegend(whole, line, whole.Max.Y-vg.Length(lineHeight*i)-lineHeight/2)
	}
	if f.YLabel != "" {
		f.write(whole, Ink.solid(), text.XLeft, vg.Point{X: 2, Y: whole.Max.Y - top + lineHeight/2 + 6}, f.shorten(f.YLabel, f.Width))
	}
	f.plot.Draw(draw.Crop(whole, 2, -4, 2, -top))
	return f.canvas.svg(f.Options, vg.Length(f.Width)), nil
}

// write writes text around a point, in the middle of the height of its capitals.
func (f *figure) write(c draw.Canvas, p paint, align text.XAlignment, at vg.Point, s string) {
	style := f.canvas.textStyle(p)
	style.XAlign = align
	c.FillText(style, vg.Point{X: at.X, Y: at.Y - 0.36*textSize}, printable(s))
}

// legendLines breaks the legend into lines.
func (f *figure) legendLines() [][]entry {
	var lines [][]entry
	x := vg.Length(0)
	for _, e := range f.legend {
		width := f.entryWidth(e)
		if len(lines) == 0 || x+width > vg.Length(f.Width) {
			lines, x = append(lines, nil), 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], e)
		x += width
	}
	return lines
}

const legendGap = 6

func (f *figure) entryWidth(e entry) vg.Length {
	return boxWidth + legendGap + f.textWidth(f.legendName(e)) + 2*legendGap
}

func (f *figure) legendName(e entry) string { return f.shorten(e.name, f.Width-boxWidth-3*legendGap) }

func (f *figure) drawLegend(c draw.Canvas, line []entry, y vg.Length) {
	x := c.Min.X + 2
	for _, e := range line {
		e.draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y - 5}, Max: vg.Point{X: x + boxWidth, Y: y + 5}}})
		f.write(c, Ink.solid(), text.XLeft, vg.Point{X: x + boxWidth + legendGap, Y: y}, f.legendName(e))
		x += f.entryWidth(e)
	}
}

// nothing is a plot without data.
func nothing(o Options) ([]byte, error) {
	f := newFigure(o)
	lines := f.wrapped("nothing to show: " + f.Empty)
	f.canvas.height = vg.Length(lineHeight*len(lines) + 24)
	whole := draw.NewCanvas(f.canvas, vg.Length(f.Width), f.canvas.height)
	for i, line := range lines {
		f.write(whole, Grey.solid(), text.XLeft, vg.Point{X: 2, Y: whole.Max.Y - 12 - vg.Length(lineHeight*i) - lineHeight/2}, line)
	}
	return f.canvas.svg(f.Options, vg.Length(f.Width)), nil
}

// wrapped breaks text into lines as wide as the plot.
func (f *figure) wrapped(s string) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(printable(s)) {
		last := &lines[len(lines)-1]
		if joined := strings.TrimSpace(*last + " " + word); f.textWidth(joined) <= vg.Length(f.Width)-4 {
			*last = joined
			continue
		}
		lines = append(lines, f.shorten(word, f.Width-4))
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// grid draws a line at each tick of an axis that has a label.
type grid struct{ vertical, horizontal bool }

// Plot implements plot.Plotter.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := draw.LineStyle{Color: Rule.faded(0.45), Width: 1}
	if g.horizontal {
		for _, at := range labelled(p.Y) {
			c.StrokeLine2(style, c.Min.X, y(at), c.Max.X, y(at))
		}
	}
	if g.vertical {
		for _, at := range labelled(p.X) {
			c.StrokeLine2(style, x(at), c.Min.Y, x(at), c.Max.Y)
		}
	}
}

// labelled are the values of an axis that have a label and are in its range.
func labelled(axis plot.Axis) []float64 {
	var all []float64
	for _, t := range axis.Tick.Marker.Ticks(axis.Min, axis.Max) {
		if !t.IsMinor() && t.Value >= axis.Min && t.Value <= axis.Max {
			all = append(all, t.Value)
		}
	}
	return all
}

// guides draws the lines across a plot. Labels of vertical ones stand above it, of horizontal ones on the line.
type guides struct{ f *figure }

var guideLine = draw.LineStyle{Color: Ink.faded(0.7), Width: 1, Dashes: []vg.Length{2, 3}}

func (f *figure) addGuides() {
	inside := func(axis plot.Axis) func(Guide) bool {
		return func(g Guide) bool { return !(g.At >= axis.Min && g.At <= axis.Max) }
	}
	f.XGuides = slices.DeleteFunc(slices.Clone(f.XGuides), inside(f.plot.X))
	f.YGuides = slices.DeleteFunc(slices.Clone(f.YGuides), inside(f.plot.Y))
	slices.SortStableFunc(f.XGuides, func(a, b Guide) int { return cmp.Compare(a.At, b.At) })
	if len(f.XGuides)+len(f.YGuides) > 0 {
		f.plot.Add(guides{f})
	}
}

// Plot implements plot.Plotter.
func (g guides) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, guide := range g.f.YGuides {
		c.StrokeLine2(guideLine, c.Min.X, y(guide.At), c.Max.X, y(guide.At))
	}
	for _, guide := range g.f.XGuides {
		c.StrokeLine2(guideLine, x(guide.At), c.Min.Y, x(guide.At), c.Max.Y+g.f.above+4)
	}
	for _, guide := range g.f.YGuides {
		g.f.write(c, Ink.over(), text.XRight, vg.Point{X: c.Max.X - 4, Y: y(guide.At) + 8}, g.f.shorten(guide.Label, g.f.Width/2))
	}
	free := c.Min.X // what is left of the line above the plot
	for _, guide := range g.f.XGuides {
		label := g.f.shorten(guide.Label, g.f.Width/2)
		left := max(min(x(guide.At), c.Max.X-g.f.textWidth(label)), c.Min.X)
		if left < free {
			continue // the line stays; a label over another would tell nothing
		}
		g.f.write(c, Ink.over(), text.XLeft, vg.Point{X: left, Y: c.Max.Y + g.f.above + 11}, label)
		free = left + g.f.textWidth(label) + legendGap
	}
}

// GlyphBoxes implements plot.GlyphBoxer: room for the labels above the plot.
func (g guides) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	if len(g.f.XGuides) == 0 {
		return nil
	}
	return []plot.GlyphBox{above(g.f.above + lineHeight)}
}

// above is room above a plot, beside a room to its right.
func above(height vg.Length) plot.GlyphBox {
	return plot.GlyphBox{X: 1, Y: 1, Rectangle: vg.Rectangle{Max: vg.Point{Y: height}}}
}

func beside(width vg.Length) plot.GlyphBox {
	return plot.GlyphBox{X: 1, Y: 1, Rectangle: vg.Rectangle{Max: vg.Point{X: width}}}
}

// fill fills a rectangle; outline draws its edge.
func fill(c draw.Canvas, p paint, r vg.Rectangle) {
	c.SetColor(p)
	c.Fill(r.Path())
}

func outline(c draw.Canvas, p paint, r vg.Rectangle) {
	c.SetLineStyle(draw.LineStyle{Color: p, Width: 1})
	c.Stroke(r.Path())
}

// finite is whether all values can be drawn: beyond 1e100 their differences overflow.
func finite(all ...float64) bool {
	return !slices.ContainsFunc(all, func(x float64) bool { return !(math.Abs(x) < 1e100) })
}

// extent makes a range one that has ticks.
func extent(low, high float64) (float64, float64) {
	if size := max(math.Abs(low), math.Abs(high)); high-low <= 1e-9*size {
		return low, low + max(1, size/2)
	}
	return low, high
}
