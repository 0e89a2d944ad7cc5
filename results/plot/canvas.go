package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// canvas is a vg.Canvas that writes SVG with hues as CSS variables. gonum's own, vgsvg, writes fixed colours and fonts, and an element with all of its
// style for each line: three times as much for a timeline. Successive paths of one style become one element here.
type canvas struct {
	// Canvas is nil: plots of this package draw paths, and text through lettering. They need no transforms and no images.
	vg.Canvas
	body   bytes.Buffer
	height vg.Length
	paint  paint
	width  vg.Length
	dashes []vg.Length
	// style is that of the element that is open, end what closes it.
	style, end string
}

// SetColor implements vg.Canvas.
func (c *canvas) SetColor(clr color.Color) {
	var known bool
	if c.paint, known = clr.(paint); !known {
		c.paint = Ink.solid()
	}
}

// SetLineWidth implements vg.Canvas.
func (c *canvas) SetLineWidth(width vg.Length) { c.width = width }

// SetLineDash implements vg.Canvas.
func (c *canvas) SetLineDash(dashes []vg.Length, _ vg.Length) { c.dashes = dashes }

// Stroke implements vg.Canvas.
func (c *canvas) Stroke(path vg.Path) {
	if c.width <= 0 || c.paint.opacity <= 0 {
		return
	}
	style := fmt.Sprintf("fill:none;stroke:%s;stroke-width:%s", c.paint.css(), decimal(c.width))
	if c.paint.opacity < 1 {
		style += ";stroke-opacity:" + decimal(vg.Length(c.paint.opacity))
	}
	if len(c.dashes) > 0 {
		lengths := make([]string, len(c.dashes))
		for i, d := range c.dashes {
			lengths[i] = decimal(d)
		}
		style += ";stroke-dasharray:" + strings.Join(lengths, " ")
	}
	c.path(style, path)
}

// Fill implements vg.Canvas.
func (c *canvas) Fill(path vg.Path) {
	style := "fill:" + c.paint.css()
	if c.paint.opacity < 1 {
		style += ";fill-opacity:" + decimal(vg.Length(c.paint.opacity))
	}
	c.path(style+c.paint.haloCSS(), path)
}

func (c *canvas) path(style string, path vg.Path) {
	if len(path) == 0 {
		return
	}
	c.open(style, `<path style="%s" d="`, `"/>`)
	pen := pen{canvas: c}
	for _, component := range path {
		switch component.Type {
		case vg.MoveComp:
			pen.move(component.Pos)
		case vg.LineComp:
			pen.line(component.Pos)
		case vg.ArcComp:
			pen.arc(component)
		case vg.CloseComp:
			c.body.WriteString("z")
		}
	}
}

// open begins an element for a style, unless one of that style is open already.
func (c *canvas) open(style, start, end string) {
	if c.style == style && c.end == end {
		return
	}
	c.close()
	fmt.Fprintf(&c.body, start, style)
	c.style, c.end = style, end
}

func (c *canvas) close() {
	c.body.WriteString(c.end)
	c.style, c.end = "", ""
}

// text writes a line of text with its baseline at a point, which is its left end, middle or right end.
func (c *canvas) text(style text.Style, at vg.Point, s string) {
	p, known := style.Color.(paint)
	if !known {
		p = Ink.solid()
	}
	css := fmt.Sprintf("font-size:%spx;fill:%s%s", decimal(style.Font.Size), p.css(), p.haloCSS())
	switch style.XAlign {
	case text.XCenter:
		css += ";text-anchor:middle"
	case text.XRight:
		css += ";text-anchor:end"
	}
	c.open(css, `<g style="%s">`, `</g>`)
	x, y := decimal(at.X), decimal(c.height-at.Y)
	if style.Rotation == 0 {
		fmt.Fprintf(&c.body, `<text x="%s" y="%s">%s</text>`, x, y, escape(s))
		return
	}
	degrees := decimal(vg.Length(-style.Rotation * 180 / math.Pi))
	fmt.Fprintf(&c.body, `<text transform="translate(%s %s) rotate(%s)">%s</text>`, x, y, degrees, escape(s))
}

// pen writes path data. It works in hundredths of a pixel, so that rounding does not add up along a line.
type pen struct {
	*canvas
	x, y int
}

func (p *pen) at(pt vg.Point) (x, y int) { return hundredths(pt.X), hundredths(p.height - pt.Y) }

func (p *pen) move(pt vg.Point) {
	p.x, p.y = p.at(pt)
	p.numbers("M", p.x, p.y)
}

func (p *pen) line(pt vg.Point) {
	x, y := p.at(pt)
	switch dx, dy := x-p.x, y-p.y; {
	case dx == 0 && dy == 0:
		return
	case dy == 0:
		p.numbers("h", dx)
	case dx == 0:
		p.numbers("v", dy)
	default:
		p.numbers("l", dx, dy)
	}
	p.x, p.y = x, y
}

// arc draws in two halves: SVG cannot draw a full circle in one.
func (p *pen) arc(a vg.PathComp) {
	on := func(angle float64) vg.Point {
		sin, cos := math.Sincos(angle)
		return a.Pos.Add(vg.Point{X: a.Radius * vg.Length(cos), Y: a.Radius * vg.Length(sin)})
	}
	p.line(on(a.Start))
	sweep := 0
	if a.Angle < 0 {
		sweep = 100
	}
	for _, half := range []float64{0.5, 1} {
		x, y := p.at(on(a.Start + half*a.Angle))
		p.numbers("a", hundredths(a.Radius), hundredths(a.Radius), 0, 0, sweep, x-p.x, y-p.y)
		p.x, p.y = x, y
	}
}

func (p *pen) numbers(command string, all ...int) {
	p.body.WriteString(command)
	for i, n := range all {
		if i > 0 && n >= 0 { // a minus sign separates, too
			p.body.WriteByte(' ')
		}
		p.body.Write(appendHundredths(nil, n))
	}
}

func hundredths(l vg.Length) int { return int(math.Round(float64(l) * 100)) }

func decimal(l vg.Length) string { return string(appendHundredths(nil, hundredths(l))) }

func appendHundredths(to []byte, n int) []byte {
	return strconv.AppendFloat(to, float64(n)/100, 'f', -1, 64)
}

// fontFamily are fonts of the widths that text is measured by, and whatever there is.
const fontFamily = "Arial,Helvetica,'Liberation Sans',sans-serif"

// svg is all that was drawn as one element, with a name for those who cannot see it.
func (c *canvas) svg(o Options, width vg.Length) []byte {
	c.close()
	var out bytes.Buffer
	w, h := decimal(width), decimal(c.height)
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 %s %s" width="%s" height="%s" style="max-width:100%%;height:auto;font-family:%s"`, w, h, w, h, fontFamily)
	fmt.Fprintf(&out, ` role="img" aria-label="%s"><title>%s</title>`, escape(o.Title), escape(o.Title))
	if o.Description != "" {
		fmt.Fprintf(&out, `<desc>%s</desc>`, escape(o.Description))
	}
	out.Write(c.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// escape is text for XML, on one line.
func escape(s string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(printable(s))) // a buffer takes everything
	return out.String()
}

// printable drops what XML cannot have, and what would break a line or turn its direction: names come from files of others.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// lettering measures text by Liberation Sans, which has the widths of Arial and Helvetica, and leaves it to the viewer to align it, whose font may be
// another one.
type lettering struct {
	text.Plain
	*canvas
}

// Draw implements text.Handler.
func (l lettering) Draw(_ vg.Canvas, txt string, style text.Style, at vg.Point) {
	at.Y += vg.Length(style.YAlign) * style.Height(txt)
	l.text(style, at, txt)
}

// slack is how much wider the viewer's font may be: DejaVu Sans, where there is no other, is by that.
const slack = 1.15

// Box implements text.Handler.
func (l lettering) Box(txt string, fnt font.Font) (width, height, depth vg.Length) {
	width, height, depth = l.Plain.Box(txt, fnt)
	return width * slack, height, depth
}

// textStyle is that of text in a paint.
func (c *canvas) textStyle(p paint) text.Style {
	return text.Style{
		Color:   p,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, textSize),
		Handler: lettering{text.Plain{Fonts: plot.DefaultTextHandler.Cache()}, c},
	}
}
