package agreement

import (
	"html/template"
	"slices"
	"strconv"

	"github.com/mirrorgap/mirrorgap/results/plot"
)

// hues are the colours of the sides.
var hues = [...]plot.Hue{model: plot.Orange, realKubelet: plot.Blue}

// titles are what the sides are called in plots.
var titles = [...]string{model: "kubelet model", realKubelet: "real kubelet"}

// Shares draws, over all times, which share of the values was done by then: the two distributions that the distance is between.
func (d *Delay) Shares() (template.HTML, error) {
	var curves []plot.Curve
	for side, name := range titles {
		values := slices.Sorted(slices.Values(slices.Concat(slices.Concat(d.values[side].runs...)...)))
		c := plot.Curve{Name: name + " (n = " + whole(len(values)) + ")", Hue: hues[side], Dashed: side == model, Steps: true}
		for i, x := range values {
			c.Points = append(c.Points, plot.Point{X: x, Y: float64(i+1) / float64(len(values))})
		}
		curves = append(curves, c)
	}
	o := plot.Options{Title: d.Label(), XLabel: "seconds", YLabel: "share of " + d.Of + "s", Percent: true, LogX: d.Name == DelayFailedEarly || d.Name == DelayFailed,
		Empty: "no values"}
	return drawn(plot.Responsive(o, func(o plot.Options) ([]byte, error) { return plot.Curves(o, true, curves...) }))
}

// StormPlot draws the rates of the storms by run.
func (v view) StormPlot() (template.HTML, error) {
	o := plot.Options{Title: "rejections per node and second, by run", XLabel: "seed of the run", YLabel: "per node and second", Empty: "no run had a storm"}
	curves := make([]plot.Curve, len(titles))
	for side, name := range titles {
		curves[side] = plot.Curve{Name: name, Hue: hues[side], Dashed: side == model}
	}
	for i, r := range v.Timing.Storm.Runs {
		o.XNames = append(o.XNames, strconv.FormatUint(v.Timing.Runs[i].Seed, 10))
		if r != nil {
			curves[model].Points = append(curves[model].Points, plot.Point{X: float64(i), Y: r.Model})
			curves[realKubelet].Points = append(curves[realKubelet].Points, plot.Point{X: float64(i), Y: r.Real})
		}
	}
	return drawn(plot.Responsive(o, func(o plot.Options) ([]byte, error) { return plot.Curves(o, false, curves...) }))
}

// drawn passes on a plot, which is markup of our own.
func drawn(svg []byte, err error) (template.HTML, error) {
	return template.HTML(svg), err //nolint:gosec // package plot escapes what comes from others
}
