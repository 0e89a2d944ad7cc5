package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"io"
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
)

// Series is the hue of the i-th series.
func Series(i int) Hue { return Hue(i % 5) }

// hue is how one looks in light and in dark. They are Okabe and Ito's colours (Color Universal Design, 2008), made darker or lighter until each has a
// contrast of 3:1 against its background, which WCAG 2.2 (1.4.11) asks of graphics.
type hue struct{ variable, light, dark string }

var hues = []hue{
	Blue:   {"--mg-blue", "#0072b2", "#56b4e9"},
	Orange: {"--mg-orange", "#d55e00", "#f0883e"},
	Green:  {"--mg-green", "#00855f", "#2cc295"},
	Purple: {"--mg-purple", "#a3487f", "#e39bc4"},
	Olive:  {"--mg-olive", "#8a6d00", "#e6c229"},
	Grey:   {"--mg-grey", "#767676", "#9a9a9a"},
	Ink:    {"", "currentColor", "currentColor"},
	Rule:   {"--mg-rule", "#b8b8b8", "#555555"},
}

// sentinel is the colour that a hue is drawn in, to be found again in the SVG: it says which hue, and how opaque in percent. The canvas' own opacity would
// change the colour. It is never pure black, which the canvas does not write.
func (h Hue) sentinel(opacity float64) color.Color {
	return color.NRGBA{R: uint8(100 * opacity), G: sentinelGreen, B: uint8(h) + 1, A: 255}
}

const sentinelGreen = 2

// css is the CSS value of the hue.
func (h Hue) css() string {
	if hues[h].variable == "" {
		return hues[h].light
	}
	return fmt.Sprintf("var(%s,%s)", hues[h].variable, hues[h].light)
}

// CSS defines the variables, for light, dark and print.
func CSS() string {
	var light, dark strings.Builder
	for _, h := range hues {
		if h.variable != "" {
			fmt.Fprintf(&light, "%s:%s;", h.variable, h.light)
			fmt.Fprintf(&dark, "%s:%s;", h.variable, h.dark)
		}
	}
	return fmt.Sprintf(":root{%s}\n@media screen and (prefers-color-scheme:dark){:root{%s}}\n", light.String(), dark.String())
}

// rewrite makes of the canvas' document one compact <svg> element, with the hues as CSS and a name for those who cannot see it.
func rewrite(document []byte, o Options) ([]byte, error) {
	tokens := xml.NewDecoder(bytes.NewReader(document))
	var out bytes.Buffer
	for {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("rewrite plot %s: %w", o.Title, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local == "svg" {
				fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" role="img" aria-label="%s" class="plot"><title>%s</title>`,
					o.Width, o.Height, escape(o.Title), escape(o.Title))
				continue
			}
			writeStart(&out, t)
		case xml.EndElement:
			fmt.Fprintf(&out, "</%s>", t.Name.Local)
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); text != "" {
				out.WriteString(escape(text))
			}
		}
	}
}

func writeStart(out *bytes.Buffer, t xml.StartElement) {
	fmt.Fprintf(out, "<%s", t.Name.Local)
	for _, a := range t.Attr {
		value := a.Value
		if a.Name.Local == "style" {
			value = restyle(value)
		}
		fmt.Fprintf(out, ` %s="%s"`, a.Name.Local, escape(value))
	}
	out.WriteString(">")
}

// restyle puts hues in the place of their sentinels and leaves the font to the page.
func restyle(style string) string {
	var kept []string
	for declaration := range strings.SplitSeq(style, ";") {
		property, value, _ := strings.Cut(declaration, ":")
		switch property {
		case "", "font-family", "font-variant", "font-style":
			continue
		case "font-weight":
			if value == "normal" {
				continue
			}
		case "fill", "stroke":
			kept = append(kept, paint(property, value)...)
			continue
		}
		kept = append(kept, property+":"+value)
	}
	return strings.Join(kept, ";")
}

// paint puts a hue in the place of its sentinel.
func paint(property, value string) []string {
	var percent, green, index int
	if n, err := fmt.Sscanf(value, "#%02x%02x%02x", &percent, &green, &index); n != 3 || err != nil || green != sentinelGreen || index < 1 || index > len(hues) {
		return []string{property + ":" + value}
	}
	painted := []string{property + ":" + Hue(index-1).css()}
	if percent < 100 {
		painted = append(painted, fmt.Sprintf("%s-opacity:%.2g", property, float64(percent)/100))
	}
	return painted
}

func escape(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a buffer takes everything
	return out.String()
}
