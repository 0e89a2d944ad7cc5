package plot

import (
	"fmt"
	"image/color"
	"strings"
)

// Hue is a colour by what it stands for. Series of one arm have the same hue in all plots.
type Hue int

// The hues. The first five tell series apart.
const (
	Blue Hue = iota
	Orange
	Green
	Purple
	Olive
	// Grey is for what is in the background, Ink the colour of text.
	Grey
	Ink
	// Rule is for axes and grids.
	Rule
	// paper is what a plot is drawn on.
	paper
)

// series is how many hues tell series apart.
const series = 5

// Series is the hue of the i-th series. After five they begin again.
func Series(i int) Hue { return Hue((i%series + series) % series) }

// hue is how one looks in light and in dark. They are Okabe and Ito's colours (Color Universal Design, 2008), made darker or lighter until each has a
// contrast of 3:1 against its background, which WCAG 2.2 (1.4.11) asks of graphics.
type hue struct{ variable, light, dark string }

var hues = []hue{
	Blue:   {"--mg-blue", "#0072b2", "#56b4e9"},
	Orange: {"--mg-orange", "#d55e00", "#f0883e"},
	Green:  {"--mg-green", "#009e73", "#3ddc84"},
	Purple: {"--mg-purple", "#a3487f", "#e39bc4"},
	Olive:  {"--mg-olive", "#8a6d00", "#e6c229"},
	Grey:   {"--mg-grey", "#6e6e6e", "#9a9a9a"},
	Ink:    {"", "currentColor", "currentColor"},
	Rule:   {"--mg-rule", "#b8b8b8", "#555555"},
	paper:  {"--mg-paper", "#ffffff", "#16181c"},
}

// css is the CSS value of the hue; that of text for a hue that does not exist.
func (h Hue) css() string {
	if h < 0 || int(h) >= len(hues) || h == Ink {
		return "currentColor"
	}
	return fmt.Sprintf("var(%s,%s)", hues[h].variable, hues[h].light)
}

// paint is a hue as gonum/plot carries it to the canvas, which writes it as CSS.
type paint struct {
	Hue
	opacity float64
	// halo surrounds text and marks with the background, so that they stand out from lines.
	halo bool
}

// RGBA implements color.Color for a canvas that does not know hues: opaque black.
func (paint) RGBA() (r, g, b, a uint32) { return color.Black.RGBA() }

func (h Hue) solid() paint                { return paint{Hue: h, opacity: 1} }
func (h Hue) faded(opacity float64) paint { return paint{Hue: h, opacity: opacity} }
func (h Hue) over() paint                 { return paint{Hue: h, opacity: 1, halo: true} }

func (p paint) haloCSS() string {
	if !p.halo {
		return ""
	}
	return ";paint-order:stroke;stroke-linejoin:round;stroke-width:2.5px;stroke:" + paper.css()
}

// CSS defines the variables of the hues, for light, dark and print, and which drawing of Responsive is shown. --mg-paper is the background that the hues
// are chosen for.
func CSS() string {
	var light, dark strings.Builder
	for _, h := range hues {
		if h.variable != "" {
			fmt.Fprintf(&light, "%s:%s;", h.variable, h.light)
			fmt.Fprintf(&dark, "%s:%s;", h.variable, h.dark)
		}
	}
	return fmt.Sprintf(`:root{%s}
@media screen and (prefers-color-scheme:dark){:root{%s}}
.plot-narrow{display:none}
@media screen and (max-width:%dpx){.plot-wide{display:none}.plot-narrow{display:block}}
`, light.String(), dark.String(), narrowBelow)
}
