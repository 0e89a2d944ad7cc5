package plot

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
)

// TestContrast: each hue has 3:1 against its background (WCAG 2.2, 1.4.11), and grey, in which notes are written, 4.5:1 (1.4.3).
func TestContrast(t *testing.T) {
	for i, h := range hues {
		if h.variable == "" || Hue(i) == Rule || Hue(i) == paper { // rules are decoration
			continue
		}
		least := 3.0
		if Hue(i) == Grey {
			least = 4.5
		}
		if c := contrast(rgb(h.light), rgb(hues[paper].light)); c < least {
			t.Errorf("%s: %.2f:1 in light, want %v:1", h.variable, c, least)
		}
		if c := contrast(rgb(h.dark), rgb(hues[paper].dark)); c < least {
			t.Errorf("%s: %.2f:1 in dark, want %v:1", h.variable, c, least)
		}
	}
}

// TestTextOnCells: text is readable (4.5:1) on the strongest cell of a heat map and on parts of bars, whose colours are mixed with the background.
func TestTextOnCells(t *testing.T) {
	const lightText, darkText = "#1b1b1b", "#e6e6e6" // those of Document
	for _, h := range []Hue{Blue, Orange} {
		if c := contrast(mixed(hues[h].light, hues[paper].light, strongest), rgb(lightText)); c < 4.5 {
			t.Errorf("%s in light: %.2f:1", hues[h].variable, c)
		}
		if c := contrast(mixed(hues[h].dark, hues[paper].dark, strongest), rgb(darkText)); c < 4.5 {
			t.Errorf("%s in dark: %.2f:1", hues[h].variable, c)
		}
	}
}

// TestColourBlind: the hues of the first series differ for those who lack a kind of cone, too.
func TestColourBlind(t *testing.T) {
	for name, matrix := range deficiencies {
		for _, dark := range []bool{false, true} {
			for a := range Hue(3) {
				for b := range a {
					if d := distance(seen(matrix, of(a, dark)), seen(matrix, of(b, dark))); d < 15 {
						t.Errorf("%s, dark %v: %s and %s differ by %.1f only (CIE76)", name, dark, hues[a].variable, hues[b].variable, d)
					}
				}
			}
		}
	}
}

func of(h Hue, dark bool) [3]float64 {
	if dark {
		return rgb(hues[h].dark)
	}
	return rgb(hues[h].light)
}

// deficiencies turn linear RGB into what is seen without a kind of cone: Machado, Oliveira and Fernandes, A Physiologically-based Model for Simulation
// of Color Vision Deficiency (2009), severity 1.
var deficiencies = map[string][3][3]float64{
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func seen(matrix [3][3]float64, c [3]float64) (out [3]float64) {
	for i, row := range matrix {
		for j, weight := range row {
			out[i] += weight * linear(c[j])
		}
		out[i] = min(1, max(0, out[i]))
	}
	return out
}

// distance is the Euclidean one in CIE L*a*b* (D65) of two colours in linear RGB; 2.3 is just noticeable.
func distance(a, b [3]float64) float64 {
	x, y := lab(a), lab(b)
	return math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
}

func lab(c [3]float64) [3]float64 {
	f := func(t float64) float64 {
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (24389.0/27*t + 16) / 116
	}
	x := f((0.4124564*c[0] + 0.3575761*c[1] + 0.1804375*c[2]) / 0.95047)
	y := f(0.2126729*c[0] + 0.7151522*c[1] + 0.0721750*c[2])
	z := f((0.0193339*c[0] + 0.1191920*c[1] + 0.9503041*c[2]) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func contrast(a, b [3]float64) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(c [3]float64) float64 {
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

func linear(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

// mixed is a colour with an opacity on another, as browsers mix them.
func mixed(over, under string, opacity float64) (out [3]float64) {
	a, b := rgb(over), rgb(under)
	for i := range out {
		out[i] = opacity*a[i] + (1-opacity)*b[i]
	}
	return out
}

func rgb(hex string) (c [3]float64) {
	var r, g, b int
	if n, err := fmt.Sscanf(hex, "#%02x%02x%02x", &r, &g, &b); n != 3 || err != nil {
		panic(hex)
	}
	return [3]float64{float64(r) / 255, float64(g) / 255, float64(b) / 255}
}

// TestCSS: what plots refer to is defined, for light and for dark; in print it is light.
func TestCSS(t *testing.T) {
	css := CSS()
	for name, d := range drawings() {
		svg, err := d.draw(d.Options)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`var\((--[a-z-]+),`).FindAllStringSubmatch(string(svg), -1) {
			if strings.Count(css, m[1]+":") != 2 {
				t.Errorf("%s: %s is not defined for light and dark", name, m[1])
			}
		}
	}
	for _, want := range []string{"@media screen and (prefers-color-scheme:dark)", ".plot-narrow{display:none}"} {
		if !strings.Contains(css, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestHuesThatAreNone: a hue that does not exist is the colour of text, not a panic.
func TestHuesThatAreNone(t *testing.T) {
	for _, h := range []Hue{-1, 99, Ink} {
		if got := h.css(); got != "currentColor" {
			t.Errorf("%d: %s", h, got)
		}
	}
	if Series(-1) != Olive || Series(5) != Blue || Series(6) != Orange {
		t.Error("hues of series do not begin again after five")
	}
}
