package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// storm is the number of failed pods over time, such as a run of 17 nodes has it.
func storm() []Point {
	var points []Point
	for i := range 1577 {
		points = append(points, Point{X: 3 + 87*math.Sqrt(float64(i)/1577), Y: float64(i)})
	}
	return points
}

var kinds = TimelineKinds{
	Spans: []Kind{{"not Ready", Grey}, {"held", Blue}, {"exposed", Orange}},
	Marks: []Kind{{"Ready", Ink}, {"last mirror pod", Green}, {"released", Blue}, {"first bind", Ink}, {"pod rejected", Ink}},
}

// plots are one of each kind, as reports have them.
var plots = map[string]func() ([]byte, error){
	"steps": func() ([]byte, error) {
		return Curves(Options{Title: "pods rejected", XLabel: "seconds since the start of the run", YLabel: "pods"}, true,
			Curve{Name: "ungated", Hue: Orange, Steps: true, Points: storm()},
			Curve{Name: "gated", Hue: Blue, Steps: true, Dashed: true, Points: []Point{{X: 0}, {X: 110}}})
	},
	"ecdf": func() ([]byte, error) {
		return Curves(Options{Title: "exposure", XLabel: "seconds", YLabel: "share of nodes"}, true,
			Curve{Name: "ungated (n = 4)", Hue: Orange, Steps: true, Ticks: []float64{83},
				Points: []Point{{X: 0}, {X: 61, Y: 0.25}, {X: 79, Y: 0.5}, {X: 84, Y: 0.75}, {X: 89, Y: 1}}},
			Curve{Name: "gated (n = 4)", Hue: Blue, Dashed: true, Steps: true, Points: []Point{{X: 0, Y: 1}, {X: 89, Y: 1}}})
	},
	"lines": func() ([]byte, error) {
		low, high := 20.0, 60.0
		return Curves(Options{Title: "rejected pods", XLabel: "nodes", YLabel: "pods"}, false,
			Curve{Name: "ungated", Hue: Orange, Points: []Point{{X: 5, Y: 30, Low: &low, High: &high}, {X: 10, Y: 65}, {X: 20, Y: 140}}})
	},
	"bars": func() ([]byte, error) {
		return Bars(Options{Title: "parts of the hold", XLabel: "seconds, median over nodes"},
			Bar{"gated", []Part{{"mirror pods created", 79, "79 s"}, {"checker noticed", 3, "3 s"}, {"controller released", 0.1, "0.1 s"}}},
			Bar{"poll interval 10 s, a name that is too long", []Part{{"mirror pods created", 79, "79 s"}, {"checker noticed", 8, "8 s"}}})
	},
	"timeline": func() ([]byte, error) {
		var list []Row
		for i := range 6 {
			r := Row{Name: fmt.Sprintf("pool-%d", i), Spans: []Span{{0, 2, 0}, {2, 80 + float64(i), 2 - i%2}}, Marks: []Mark{{2, 0}, {80 + float64(i), 1}}}
			for j := range 90 * (1 - i%2) {
				r.Marks = append(r.Marks, Mark{3 + float64(j)*0.8, 4})
			}
			list = append(list, r)
		}
		return Timeline(Options{Title: "nodes", XLabel: "seconds since the start of the run"}, kinds, 0, 110, list)
	},
	"heatmap": func() ([]byte, error) {
		a, b, c := 0.0, 12.5, 1234.0
		return Heatmap(Options{Title: "rejected pods", XLabel: "mirror delay", YLabel: "nodes"}, []string{"1 s", "60 s"}, []string{"5", "20"},
			[][]*float64{{&a, &b}, {&c, nil}})
	},
	"nothing": func() ([]byte, error) {
		return Curves(Options{Title: "hold", Empty: "no node was held"}, true, Curve{Name: "x"})
	},
}

func TestPlots(t *testing.T) {
	for name, draw := range plots {
		got, err := draw()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wellFormed(t, name, got)
		if again, _ := draw(); !bytes.Equal(again, got) {
			t.Errorf("%s: the same data gave another plot", name)
		}
		path := filepath.Join("testdata", name+".svg")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s differs from %s: look at it, then run go test with -update", name, path)
		}
	}
}

// wellFormed checks that a plot can stand in a page: XML with one root, no sentinel left, nothing to load, no font but the page's.
func wellFormed(t *testing.T, name string, svg []byte) {
	t.Helper()
	tokens := xml.NewDecoder(strings.NewReader(string(svg)))
	depth, roots := 0, 0
	for {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, svg)
		}
		switch token.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth++
		case xml.EndElement:
			depth--
		}
	}
	if roots != 1 || !strings.HasPrefix(string(svg), "<svg ") {
		t.Errorf("%s: %d root elements", name, roots)
	}
	for _, forbidden := range []string{"fill:#", "stroke:#", "font-family", "href", "<?xml", "<!DOCTYPE"} {
		if strings.Contains(strings.ToLower(string(svg)), strings.ToLower(forbidden)) {
			t.Errorf("%s has %q in it", name, forbidden)
		}
	}
}

// TestContrast: each hue has 3:1 against a white and a dark background (WCAG 2.2, 1.4.11).
func TestContrast(t *testing.T) {
	for _, h := range hues {
		if h.variable == "" || h.variable == hues[Rule].variable {
			continue
		}
		if c := contrast(h.light, "#ffffff"); c < 3 {
			t.Errorf("%s: %.2f on white", h.variable, c)
		}
		if c := contrast(h.dark, "#16181c"); c < 3 {
			t.Errorf("%s: %.2f on dark", h.variable, c)
		}
	}
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(hex string) float64 {
	var rgb [3]int
	_, _ = fmt.Sscanf(hex, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2])
	weights, sum := []float64{0.2126, 0.7152, 0.0722}, 0.0
	for i, v := range rgb {
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weights[i] * c
	}
	return sum
}

func TestCSSDefinesEveryHue(t *testing.T) {
	for _, h := range hues {
		if h.variable != "" && strings.Count(CSS(), h.variable+":") != 2 {
			t.Errorf("%s is not defined for light and dark", h.variable)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.25: "0.25", 1577: "1,577", -1234567.5: "−1,234,567.5", 0.0001: "0", 100: "100"} {
		if got := Number(x); got != want {
			t.Errorf("%v: got %q, want %q", x, got, want)
		}
	}
}

// TestLargePlotsStaySmall: a report of thousands of nodes must stay one that a browser opens.
func TestLargePlotsStaySmall(t *testing.T) {
	var list []Row
	for range 200 {
		r := Row{Name: "node", Spans: []Span{{0, 2, 0}, {2, 90, 2}}}
		for j := range 1000 {
			r.Marks = append(r.Marks, Mark{float64(j) / 11, 4})
		}
		list = append(list, r)
	}
	svg, err := Timeline(Options{}, kinds, 0, 100, list)
	if err != nil {
		t.Fatal(err)
	}
	if limit := 200 * 400 * 200; len(svg) > limit {
		t.Errorf("a timeline of 200 rows with 1000 marks each has %d bytes, want at most %d", len(svg), limit)
	}
}

// FuzzNames: whatever names, labels and values are, a plot is well-formed.
func FuzzNames(f *testing.F) {
	f.Add("<script>alert(1)</script>", "\x00\xff&\"'", 1.5, 2.5)
	f.Add("", "\u202e", math.Inf(1), math.NaN())
	f.Fuzz(func(t *testing.T, name, label string, x, y float64) {
		if math.Abs(x) > 1e12 || math.Abs(y) > 1e12 {
			return
		}
		svg, err := Curves(Options{Title: name, XLabel: label}, true, Curve{Name: name, Steps: true, Points: []Point{{X: x, Y: y}, {X: x + 1, Y: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, "curves", svg)
		svg, err = Bars(Options{Title: label}, Bar{name, []Part{{label, 1, name}}})
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, "bars", svg)
	})
}

func BenchmarkTimeline(b *testing.B) {
	for b.Loop() {
		if _, err := plots["timeline"](); err != nil {
			b.Fatal(err)
		}
	}
}
