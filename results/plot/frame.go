package plot

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Options are those of every plot.
type Options struct {
	// Title says what the plot shows, to those who cannot see it.
	Title string
	// XLabel and YLabel name the axes, with their units.
	XLabel, YLabel string
	// Width and Height are in CSS pixels at full size. Defaults: 720 and 280.
	Width, Height float64
	// Empty is what stands in the place of a plot without data.
	Empty string
}

const (
	defaultWidth, defaultHeight = 720, 280
	// textSize is of all text, in pixels at full size.
	textSize = 12
	// ticks is about how many an axis has.
	ticks = 7
)

func (o Options) withDefaults() Options {
	if o.Width == 0 {
		o.Width = defaultWidth
	}
	if o.Height == 0 {
		o.Height = defaultHeight
	}
	if o.Empty == "" {
		o.Empty = "no data"
	}
	o.Title, o.XLabel, o.YLabel, o.Empty = printable(o.Title), printable(o.XLabel), printable(o.YLabel), printable(o.Empty)
	return o
}

// printable drops what XML cannot have: names come from files of others.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// textStyle is that of text in a hue.
func textStyle(h Hue) text.Style {
	return text.Style{
		Color:   h.sentinel(1),
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, textSize),
		Handler: plot.DefaultTextHandler,
	}
}

func newPlot(o Options) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = o.XLabel, o.YLabel
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color = Rule.sentinel(1)
		style := textStyle(Ink)
		style.XAlign, style.YAlign = axis.Label.TextStyle.XAlign, axis.Label.TextStyle.YAlign
		style.Rotation = axis.Label.TextStyle.Rotation
		axis.Label.TextStyle = style
		style = textStyle(Ink)
		style.XAlign, style.YAlign = axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Tick.Label = style
		axis.Tick.Color = Rule.sentinel(1)
		axis.Tick.Marker = plot.TickerFunc(niceTicks)
		axis.Padding = 0
	}
	return p
}

// niceTicks are at multiples of 1, 2 or 5 times a power of ten.
func niceTicks(low, high float64) []plot.Tick { return ticksAt(low, high, niceStep((high-low)/ticks)) }

func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least {
			return factor * power
		}
	}
	return 10 * power
}

// timeTicks are at steps that clocks have, in seconds.
func timeTicks(low, high float64) []plot.Tick {
	for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600} {
		if (high-low)/step <= ticks+2 && high-low > 4 {
			return ticksAt(low, high, step)
		}
	}
	return niceTicks(low, high)
}

func ticksAt(low, high, step float64) []plot.Tick {
	var all []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9); i++ {
		all = append(all, plot.Tick{Value: i * step, Label: Number(i * step)})
		if len(all) > 100 { // an axis without extent
			break
		}
	}
	return all
}

// Number writes a number with at most three decimals, and commas between thousands.
func Number(x float64) string {
	text := strconv.FormatFloat(math.Abs(x), 'f', 3, 64)
	text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	whole, fraction, cut := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if cut {
		whole += "." + fraction
	}
	if x < 0 && whole != "0" {
		whole = "−" + whole
	}
	return whole
}

// grid draws a line at each tick of an axis.
type grid struct{ vertical, horizontal bool }

// Plot implements plot.Plotter.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := draw.LineStyle{Color: Rule.sentinel(0.45), Width: 0.6}
	if g.horizontal {
		for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			c.StrokeLine2(style, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
	if g.vertical {
		for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			c.StrokeLine2(style, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
		}
	}
}

// entry is one in a legend: what is drawn in a box of 22 × 10 pixels, and its name.
type entry struct {
	name string
	draw func(draw.Canvas)
}

// render draws a plot below its legend.
func render(o Options, legend []entry, p *plot.Plot) ([]byte, error) {
	canvas := vgsvg.NewWith(vgsvg.UseWH(vg.Length(o.Width), vg.Length(o.Height)))
	whole := draw.New(canvas)
	p.Draw(drawLegend(whole, legend))
	return finish(canvas, o)
}

func finish(canvas *vgsvg.Canvas, o Options) ([]byte, error) {
	var document bytes.Buffer
	if _, err := canvas.WriteTo(&document); err != nil {
		return nil, fmt.Errorf("draw plot %s: %w", o.Title, err)
	}
	return rewrite(document.Bytes(), o)
}

// drawLegend draws the legend along the top and returns the rest of the canvas, with room for the last label of the axis.
func drawLegend(c draw.Canvas, legend []entry) draw.Canvas {
	const box, gap, line = 22, 6, 18
	style := textStyle(Ink)
	style.YAlign = text.YCenter
	x, y := c.Min.X, c.Max.Y-line/2
	for _, e := range legend {
		width := box + gap + style.Width(e.name) + 3*gap
		if x > c.Min.X && x+width > c.Max.X {
			x, y = c.Min.X, y-line
		}
		e.draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y - 5}, Max: vg.Point{X: x + box, Y: y + 5}}})
		c.FillText(style, vg.Point{X: x + box + gap, Y: y}, e.name)
		x += width
	}
	used := c.Max.Y - y + line/2 + gap
	if len(legend) == 0 {
		used = gap
	}
	return draw.Crop(c, 2, -14, 2, -used)
}

// nothing is a plot without data.
func nothing(o Options) ([]byte, error) {
	o.Height = 60
	canvas := vgsvg.NewWith(vgsvg.UseWH(vg.Length(o.Width), vg.Length(o.Height)))
	style := textStyle(Grey)
	style.XAlign, style.YAlign = text.XCenter, text.YCenter
	c := draw.New(canvas)
	c.FillText(style, c.Center(), o.Empty)
	return finish(canvas, o)
}
