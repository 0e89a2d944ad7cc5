package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/plot"
)

// Plot shows a metric over the parameters.
type Plot struct {
	// File is the name of its file.
	File string
	// Title says what it shows.
	Title string
	// inPage is the drawing for a page, document that for a file.
	inPage, document []byte
}

// Plots shows each metric of Show over the parameters: over one as a curve an arm, over two as a heat map an arm. Of more parameters the first two span
// the heat maps, and there is one for each combination of the values of the others. What no run has measured is left out, and what is the same everywhere.
func (s *Sweep) Plots() ([]Plot, error) {
	draw := s.heatmaps
	if len(s.Parameters) == 1 {
		draw = s.curves
	}
	var plots []Plot
	for _, name := range s.Show {
		drawn, err := draw(metric(name))
		if err != nil {
			return nil, err
		}
		plots = append(plots, drawn...)
	}
	return plots, nil
}

// newPlot makes the plot of a metric; of distinguishes it from others of this metric.
func newPlot(m results.Metric, of string, o plot.Options, draw func(plot.Options) ([]byte, error)) (Plot, error) {
	p := Plot{File: m.Name + ".svg", Title: title(m)}
	if of != "" {
		p.File = strings.Map(plainOrHyphen, m.Name+","+of) + ".svg"
		p.Title += ": " + of
	}
	o.Title = p.Title
	wide, err := draw(o)
	if err != nil {
		return p, fmt.Errorf("plot %s: %w", p.Title, err)
	}
	p.document = plot.Document(wide)
	if p.inPage, err = plot.Responsive(o, draw); err != nil {
		return p, fmt.Errorf("plot %s: %w", p.Title, err)
	}
	return p, nil
}

// plainOrHyphen keeps characters that mean nothing to any shell or file system.
func plainOrHyphen(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._+%=,", r) {
		return r
	}
	return '-'
}

// curves shows a metric over the only parameter.
func (s *Sweep) curves(m results.Metric) ([]Plot, error) {
	var curves []plot.Curve
	var seen []float64
	for i, arm := range s.Arms {
		c := plot.Curve{Name: arm, Hue: hue(i), Dashed: i%2 == 1}
		for x := range s.Cases {
			f := s.Cases[x].Arms[i].Figure(m.Name)
			if f == nil || f.measured() == 0 {
				continue
			}
			middle, low, high := f.Middle()
			point := plot.Point{X: float64(x), Y: middle.Value}
			if low < high {
				point.Low, point.High = &low, &high
			}
			c.Points = append(c.Points, point)
			seen = append(seen, middle.Value)
		}
		if len(c.Points) > 0 {
			curves = append(curves, c)
		}
	}
	if !differ(seen) {
		return nil, nil
	}
	p := s.Parameters[0]
	o := plot.Options{XNames: p.Values, XLabel: p.Name + " (the distance of values means nothing)", YLabel: m.Unit,
		Description: "Median over runs; whiskers from the least to the largest."}
	drawn, err := newPlot(m, "", o, func(o plot.Options) ([]byte, error) { return plot.Curves(o, false, curves...) })
	return []Plot{drawn}, err
}

// hue is the colour of an arm, as in reports.
func hue(arm int) plot.Hue {
	switch arm {
	case 0:
		return plot.Orange
	case 1:
		return plot.Blue
	}
	return plot.Series(arm)
}

// heatmaps shows a metric over the first two parameters, a map for each arm and each combination of the values of the others.
func (s *Sweep) heatmaps(m results.Metric) ([]Plot, error) {
	var plots []Plot
	x, y := s.Parameters[0], s.Parameters[1]
	inner := 1 // cases that differ in the others only are beside each other
	for _, p := range s.Parameters[2:] {
		inner *= len(p.Values)
	}
	for arm := range s.Arms {
		for rest := range inner {
			values := make([][]*float64, len(y.Values))
			var seen []float64
			for j := range y.Values {
				values[j] = make([]*float64, len(x.Values))
				for i := range x.Values {
					f := s.Cases[(i*len(y.Values)+j)*inner+rest].Arms[arm].Figure(m.Name)
					if f != nil && f.measured() > 0 {
						middle, _, _ := f.Middle()
						values[j][i] = &middle.Value
						seen = append(seen, middle.Value)
					}
				}
			}
			if !differ(seen) {
				continue
			}
			o := plot.Options{XLabel: x.Name, YLabel: y.Name, ZLabel: m.Unit, Description: "Medians over runs."}
			drawn, err := newPlot(m, s.nameOf(arm, rest), o, func(o plot.Options) ([]byte, error) { return plot.Heatmap(o, x.Values, y.Values, values) })
			if err != nil {
				return nil, err
			}
			plots = append(plots, drawn)
		}
	}
	return plots, nil
}

// differ tells whether there are values, and not only one.
func differ(values []float64) bool { return len(values) > 0 && slices.Min(values) < slices.Max(values) }

// nameOf names a heat map: the arm, if there are several, and the values of the parameters that it does not show.
func (s *Sweep) nameOf(arm, rest int) string {
	var parts []string
	for _, p := range slices.Backward(s.Parameters[2:]) {
		parts = append(parts, p.Name+"="+p.Values[rest%len(p.Values)])
		rest /= len(p.Values)
	}
	if len(s.Arms) > 1 {
		parts = append(parts, s.Arms[arm])
	}
	slices.Reverse(parts)
	return strings.Join(parts, ",")
}
