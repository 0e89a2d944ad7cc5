package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

func TestGolden(t *testing.T) {
	all := drawings()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			got := responsive(t, all[name])
			path := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, got) {
				t.Errorf("differs from %s (%v): look at it in a browser, then run go test -update", path, err)
			}
			if again := responsive(t, drawings()[name]); !bytes.Equal(got, again) {
				t.Error("the same data gave another plot")
			}
		})
	}
}

func responsive(t *testing.T, d drawing) []byte {
	t.Helper()
	got, err := Responsive(d.Options, d.draw)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestStandsInAPage: a plot is one element of XML that loads nothing and leaves its colours to the page.
func TestStandsInAPage(t *testing.T) {
	for name, d := range drawings() {
		svg, err := d.draw(d.Options)
		if err != nil {
			t.Fatal(err)
		}
		root := wellFormed(t, svg)
		if root.Name.Local != "svg" || !bytes.HasPrefix(svg, []byte("<svg ")) {
			t.Errorf("%s begins with %.40s", name, svg)
		}
		if !hasAttr(root, "role", "img") || !hasAttr(root, "aria-label", d.Title) {
			t.Errorf("%s has no name for those who cannot see it: %v", name, root.Attr)
		}
		for _, paint := range regexp.MustCompile(`(fill|stroke):[^;"]*`).FindAllString(string(svg), -1) {
			_, value, _ := strings.Cut(paint, ":")
			if value != "none" && value != "currentColor" && value != "stroke" && !strings.HasPrefix(value, "var(--mg-") {
				t.Errorf("%s: %s is not a colour of the page", name, paint)
			}
		}
		for _, forbidden := range []string{"href", "url(", "<script", " id=", "NaN", "Inf"} {
			if bytes.Contains(svg, []byte(forbidden)) {
				t.Errorf("%s has %q in it", name, forbidden)
			}
		}
		wellFormed(t, Document(svg))
	}
}

// TestNothingOutside: all text, at the width it is measured by, is within the picture.
func TestNothingOutside(t *testing.T) {
	for name, d := range drawings() {
		for _, width := range []float64{240, narrowWidth, defaultWidth} {
			d.Width = width
			svg, err := d.draw(d.Options)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range texts(t, svg) {
				if b.left < -1 || b.right > width+1 {
					t.Errorf("%s at %v px: %q goes from %.1f to %.1f", name, width, b.text, b.left, b.right)
				}
			}
		}
	}
}

// TestNoTextOnText: no two texts overlap.
func TestNoTextOnText(t *testing.T) {
	for name, d := range drawings() {
		for _, width := range []float64{narrowWidth, defaultWidth} {
			d.Width = width
			svg, err := d.draw(d.Options)
			if err != nil {
				t.Fatal(err)
			}
			all := texts(t, svg)
			for i, a := range all {
				for _, b := range all[:i] {
					if a.left < b.right && b.left < a.right && math.Abs(a.baseline-b.baseline) < textSize*0.9 {
						t.Errorf("%s at %v px: %q overlaps %q", name, width, a.text, b.text)
					}
				}
			}
		}
	}
}

// box is where a text is drawn.
type box struct {
	text                  string
	left, right, baseline float64
}

func texts(t *testing.T, svg []byte) []box {
	t.Helper()
	measure := newFigure(Options{})
	var all []box
	anchor, inside, at := "", false, box{}
	for _, token := range tokens(t, svg) {
		switch token := token.(type) {
		case xml.StartElement:
			switch token.Name.Local {
			case "g":
				_, anchor, _ = strings.Cut(attr(token, "style"), "text-anchor:")
			case "text":
				inside = true
				at = box{left: parse(t, attr(token, "x")), baseline: parse(t, attr(token, "y"))}
			}
		case xml.CharData:
			if !inside {
				continue
			}
			at.text = string(token)
			width := float64(measure.textWidth(at.text)) / slack
			at.left -= width * map[string]float64{"": 0, "middle": 0.5, "end": 1}[anchor]
			at.right = at.left + width
			all = append(all, at)
		case xml.EndElement:
			inside = false
		}
	}
	return all
}

func parse(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func hasAttr(e xml.StartElement, name, value string) bool { return attr(e, name) == value }

// wellFormed checks that there is one root element, and returns it.
func wellFormed(t *testing.T, document []byte) xml.StartElement {
	t.Helper()
	var roots []xml.StartElement
	depth := 0
	for _, token := range tokens(t, document) {
		switch token := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots = append(roots, token)
			}
			depth++
		case xml.EndElement:
			depth--
		}
	}
	if len(roots) != 1 {
		t.Fatalf("%d root elements in %s", len(roots), document)
	}
	return roots[0]
}

func tokens(t *testing.T, document []byte) []xml.Token {
	t.Helper()
	var all []xml.Token
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		all = append(all, xml.CopyToken(token))
	}
}

// TestNothingToShow: without data a plot says so, and why.
func TestNothingToShow(t *testing.T) {
	o := Options{Title: "hold", Empty: "no arm has a gate"}
	nan := math.NaN()
	for name, draw := range map[string]func() ([]byte, error){
		"no curves":       func() ([]byte, error) { return Curves(o, true) },
		"no finite point": func() ([]byte, error) { return Curves(o, true, Curve{Points: []Point{{X: 1, Y: math.Inf(1)}}}) },
		"no value above 0": func() ([]byte, error) {
			return Curves(Options{Empty: o.Empty, LogY: true}, true, Curve{Points: []Point{{X: 1}}})
		},
		"no bars":             func() ([]byte, error) { return Bars(o) },
		"bars of nothing":     func() ([]byte, error) { return Bars(o, Bar{Parts: []Part{{Value: 0}, {Value: nan}}}) },
		"no rows":             func() ([]byte, error) { return Timeline(o, TimelineKinds{}, 0, 1, nil) },
		"a time without end":  func() ([]byte, error) { return Timeline(o, TimelineKinds{}, 0, math.Inf(1), []Row{{}}) },
		"no cells":            func() ([]byte, error) { return Heatmap(o, nil, nil, nil) },
		"nothing measured":    func() ([]byte, error) { return Heatmap(o, []string{"x"}, []string{"y"}, [][]*float64{{nil}}) },
		"no finite cell":      func() ([]byte, error) { return Heatmap(o, []string{"x"}, []string{"y"}, [][]*float64{{&nan}}) },
		"narrow, without why": func() ([]byte, error) { return Curves(Options{Width: 1}, false) },
	} {
		svg, err := draw()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wellFormed(t, svg)
		if !bytes.Contains(svg, []byte("nothing to show: no ")) {
			t.Errorf("%s: %s", name, svg)
		}
	}
}

func TestErrors(t *testing.T) {
	for want, draw := range map[string]func() ([]byte, error){
		`bar "gated": part "checker" is -1`: func() ([]byte, error) {
			return Bars(Options{}, Bar{Name: "gated", Parts: []Part{{Name: "checker", Value: -1}}})
		},
		`row "a": no kind 1 of spans`: func() ([]byte, error) {
			return Timeline(Options{}, kindless, 0, 1, []Row{{Name: "a", Spans: []Span{{Kind: 1}}}})
		},
		`row "b": no kind -1 of marks`: func() ([]byte, error) {
			return Timeline(Options{}, kindless, 0, 1, []Row{{Name: "b", Marks: []Mark{{Kind: -1}}}})
		},
		`1 rows of values for 2 names`: func() ([]byte, error) {
			return Heatmap(Options{}, []string{"x"}, []string{"1", "2"}, [][]*float64{{nil}})
		},
		`2 values in row "1" for 1 names`: func() ([]byte, error) {
			return Heatmap(Options{}, []string{"x"}, []string{"1"}, [][]*float64{{nil, nil}})
		},
		`draw heat map "t": 0 rows of values`: func() ([]byte, error) { return Heatmap(Options{Title: "t"}, nil, []string{"1"}, nil) },
	} {
		if svg, err := draw(); err == nil || !strings.Contains(err.Error(), want) || svg != nil {
			t.Errorf("got %v and %d bytes, want an error with %q", err, len(svg), want)
		}
	}
}

var kindless = TimelineKinds{Spans: []Kind{{"s", Blue}}, Marks: []Kind{{"m", Blue}}}

// TestWhatIsLeftOutIsSaid: a curve that cannot be drawn in full says so in the legend.
func TestWhatIsLeftOutIsSaid(t *testing.T) {
	svg, err := Curves(Options{LogY: true}, false,
		Curve{Name: "whole", Points: []Point{{X: 1, Y: 1}}}, Curve{Name: "zeros", Points: []Point{{X: 1}}}, Curve{Name: "none"},
		Curve{Name: "mixed", Points: []Point{{X: 1}, {X: 2, Y: 2}, {X: 3, Y: math.NaN()}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">whole<", ">zeros (no value above 0)<", ">none (no values)<", ">mixed (without 2 that cannot be drawn)<"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("no %s in the legend", want)
		}
	}
}

// TestThinned: what is dropped from a long curve is not to be seen: each column of pixels keeps its first, lowest, highest and last point.
func TestThinned(t *testing.T) {
	var line []vg.Point
	for i := range 100_000 {
		y := 100 + 50*math.Sin(float64(i)/777) + float64(i*7919%13)
		if i == 54_321 {
			y = 999 // one outlier
		}
		line = append(line, vg.Point{X: vg.Length(float64(i) * 600 / 100_000), Y: vg.Length(y)})
	}
	kept := thinned(line)
	if len(kept) > 4*601 {
		t.Errorf("%d points are left, want at most 4 for each of 600 pixels", len(kept))
	}
	type column struct{ first, low, high, last vg.Length }
	columns := func(line []vg.Point) map[int]column {
		all := map[int]column{}
		for _, p := range line {
			c, known := all[int(p.X)]
			if !known {
				c = column{p.Y, p.Y, p.Y, p.Y}
			}
			all[int(p.X)] = column{c.first, min(c.low, p.Y), max(c.high, p.Y), p.Y}
		}
		return all
	}
	if got, want := columns(kept), columns(line); !maps.Equal(got, want) {
		t.Error("the columns of the thinned line differ from those of the whole")
	}
	if short := line[:thinAbove]; len(thinned(short)) != len(short) {
		t.Error("a short line was thinned")
	}
}

// TestSizes: reports of many nodes must stay what a browser opens and a mail carries.
func TestSizes(t *testing.T) {
	timeline := func(rows, marks int) []byte {
		var list []Row
		for i := range rows {
			r := Row{Name: "node-" + strconv.Itoa(i), Spans: []Span{{To: 2}, {From: 2, To: 60, Kind: 1}, {From: 60, To: 90, Kind: 2}}}
			for j := range marks {
				r.Marks = append(r.Marks, Mark{At: 90 * float64(j) / float64(marks), Kind: j % len(kinds.Marks)})
			}
			list = append(list, r)
		}
		svg, err := Timeline(Options{}, kinds, 0, 100, list)
		if err != nil {
			t.Fatal(err)
		}
		return svg
	}
	if got := len(timeline(200, 20)); got > 300_000 {
		t.Errorf("200 rows with 20 marks each have %d bytes, want at most 300,000", got)
	}
	// Marks closer than a pixel are one: ten times as many take no more.
	if dense, denser := len(timeline(5, 20_000)), len(timeline(5, 200_000)); float64(denser) > 1.05*float64(dense) {
		t.Errorf("200,000 marks in a row have %d bytes, 20,000 have %d", denser, dense)
	}
	var points []Point
	for i := range 50_000 {
		points = append(points, Point{X: float64(i), Y: float64(i * 7919 % 1000)})
	}
	svg, err := Curves(Options{}, true, Curve{Steps: true, Points: points})
	if err != nil {
		t.Fatal(err)
	}
	if len(svg) > 60_000 {
		t.Errorf("a curve of 50,000 points has %d bytes, want at most 60,000", len(svg))
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		ticks     ticks
		low, high float64
		want      string
	}{
		{timeTicks, 0, 110, "0 s|15 s|30 s|45 s|60 s|75 s|90 s|105 s"},
		{timeTicks, 0, 250, "0 min|1 min|2 min|3 min|4 min"},
		{timeTicks, 0, 7200, "0 min|15 min|30 min|45 min|60 min|75 min|90 min|105 min|120 min"},
		{timeTicks, 0, 86400, "0 h|3 h|6 h|9 h|12 h|15 h|18 h|21 h|24 h"},
		{timeTicks, 0, 864000, "0 h|50 h|100 h|150 h|200 h"},
		{timeTicks, 0, 0.25, "0.00 s|0.05 s|0.10 s|0.15 s|0.20 s|0.25 s"},
		{timeTicks, 7.3, 9.6, "7.5 s|8.0 s|8.5 s|9.0 s|9.5 s"},
		{numberTicks, 0, 1577, "0|200|400|600|800|1,000|1,200|1,400"},
		{numberTicks, -1, 1, "−1.0|−0.5|0.0|0.5|1.0"},
		{percentTicks, 0, 1, "0 %|20 %|40 %|60 %|80 %|100 %"},
		{logTicks(""), 1, 1577, "1|10|100|1,000"},
		{logTicks(" s"), 0.5, 20, "0.5 s|1 s|2 s|5 s|10 s|20 s"},
		{logTicks(""), 1, 1e24, "1|1,000|1,000,000|1,000,000,000|1,000,000,000,000|1e+15|1e+18|1e+21|1e+24"},
		{numberTicks, 1e15, 1e15 + 1, ""},
	} {
		var got []string
		for _, tick := range c.ticks(c.low, c.high, 8) {
			if !tick.IsMinor() {
				got = append(got, tick.Label)
			}
		}
		if joined := strings.Join(got, "|"); joined != c.want && c.want != "" || len(got) > 100 {
			t.Errorf("from %v to %v: %s, want %s", c.low, c.high, joined, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64][2]string{
		0: {"0", "0"}, 0.25: {"0.25", "0.25"}, 0.0345678: {"0.035", "0.0346"}, 1577: {"1,577", "1,577"}, 1577.25: {"1,577.25", "1,577"}, 12.5: {"12.5", "12.5"},
		-1234567.5: {"−1,234,567.5", "−1,234,568"}, 9.999: {"9.999", "10"}, 77.6391: {"77.639", "77.6"}, 100: {"100", "100"}, 0.0004321: {"0.000432", "0.000432"},
		0.00001: {"1e-05", "1e-05"}, 1e15: {"1e+15", "1e+15"}, -1.5e20: {"-1.5e+20", "-1.5e+20"}, math.Inf(1): {"–", "–"}, math.NaN(): {"–", "–"},
	} {
		if got := [2]string{Number(x), brief(x)}; got != want {
			t.Errorf("%v: got %q, want %q", x, got, want)
		}
	}
	for x, want := range map[float64]string{999: "999", 1577: "1.6k", 2e6: "2M", -3.25e9: "−3.2G", 12345: "12.3k"} {
		if got := short(x); got != want {
			t.Errorf("short %v: got %q, want %q", x, got, want)
		}
	}
}

// TestLooks: curves differ in more than their colour: of four usual ones no two have the same dashes, width and marker.
func TestLooks(t *testing.T) {
	for _, steps := range []bool{true, false} {
		curves := []Curve{{Steps: steps}, {Steps: steps, Hue: Orange}, {Steps: steps, Hue: Green, Dashed: true}, {Steps: steps, Hue: Grey}}
		giveLooks(curves)
		for i, a := range curves {
			for _, b := range curves[:i] {
				if reflect.DeepEqual(a.style, b.style) {
					t.Errorf("steps %v: curves of hue %d and %d look alike", steps, a.Hue, b.Hue)
				}
			}
		}
	}
}

// FuzzNames: whatever names and values are, a plot is well-formed.
func FuzzNames(f *testing.F) {
	f.Add("<script>alert(1)</script>", "\x00\xff&\"'", 1.5, 2.5)
	f.Add("", "\u202e]]>", math.Inf(1), math.NaN())
	f.Add("ein sehr langer Name, 長い名前, \U0001f4a5\n\r\t", "-->", 1e308, -1e308)
	f.Add("a", "b", 5e-324, 0.0)
	f.Add("a", "b", 1e15, 1e15+0.125)
	f.Fuzz(func(t *testing.T, name, label string, x, y float64) {
		points := []Point{{X: x, Y: y, Low: &x, High: &y}, {X: y, Y: x, Low: &y, High: &x}, {X: 1, Y: 1}}
		for i := range 16 {
			o := Options{Title: name, Description: label, XLabel: label, YLabel: name, ZLabel: label, Empty: name, Width: x, Height: 300,
				LogX: i&1 > 0, LogY: i&2 > 0, Percent: i&4 > 0, XGuides: []Guide{{x, name}, {y, label}}, YGuides: []Guide{{y, name}}}
			if i == 15 {
				o.XNames = []string{name, label}
			}
			check(t)(Curves(o, i&8 > 0, Curve{Name: name, Hue: Hue(i), Steps: i&8 > 0, Points: points, Ticks: []float64{x, y}, Last: label}, Curve{Name: label, Points: points[2:]}))
		}
		o := Options{Title: name, XLabel: label, XGuides: []Guide{{x, name}}, Width: y}
		check(t)(Bars(o, Bar{Name: name, Note: label, Parts: []Part{{Name: label, Value: math.Abs(x), Label: name}, {Name: name, Value: math.Abs(y)}}}))
		check(t)(Timeline(o, TimelineKinds{Spans: []Kind{{name, Blue}}, Marks: []Kind{{label, Ink}}}, x, y,
			[]Row{{Name: name, Note: label, Spans: []Span{{From: x, To: y, Open: true}}, Marks: []Mark{{At: x}, {At: y}}}}))
		check(t)(Heatmap(o, []string{name, label}, []string{label}, [][]*float64{{&x, &y}}))
	})
}

func check(t *testing.T) func(svg []byte, err error) {
	return func(svg []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, svg)
		for _, bad := range []string{"NaN", "Inf"} {
			if bytes.Contains(regexp.MustCompile(`>[^<]*<|aria-label="[^"]*"`).ReplaceAll(svg, nil), []byte(bad)) {
				t.Fatalf("%s in %s", bad, svg)
			}
		}
	}
}

func BenchmarkTimeline(b *testing.B) { benchmark(b, "timeline") }
func BenchmarkSteps(b *testing.B)    { benchmark(b, "steps") }
func BenchmarkBars(b *testing.B)     { benchmark(b, "bars") }
func BenchmarkHeatmap(b *testing.B)  { benchmark(b, "heatmap") }

func benchmark(b *testing.B, name string) {
	b.Helper()
	d := drawings()[name]
	b.ReportAllocs()
	for b.Loop() {
		svg, err := d.draw(d.Options)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(svg)))
	}
}
