package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
)

// figure is one line of FiguresFile.
type figure struct {
	arm string
	results.Metric
	// over is runs, nodes or pods; statistic is mean, median, p90, p99, max or rate.
	over, statistic string
	value           *float64
	interval        *stats.Interval
	n, censored     int
	warnings        []stats.Warning
}

// figures lists every figure of the summary.
func (r *Report) figures() []figure {
	var all []figure
	for i := range r.Summary.Arms {
		arm := &r.Summary.Arms[i]
		for j := range arm.Figures {
			f := &arm.Figures[j]
			all = append(all, distribution(arm.Name, f.Metric, "runs", &f.OverSeeds)...)
			all = append(all, distribution(arm.Name, f.Metric, "nodes", f.OverNodes)...)
			all = append(all, distribution(arm.Name, f.Metric, "pods", f.OverPods)...)
			if f.Rate != nil {
				all = append(all, figure{arm: arm.Name, Metric: f.Metric, over: "nodes", statistic: "rate",
					value: f.Rate.Value, interval: f.Rate.Interval, n: f.Rate.N, warnings: f.Rate.Warnings})
			}
		}
	}
	return all
}

func distribution(arm string, m results.Metric, over string, d *results.Distribution) []figure {
	if d == nil || d.N+d.Censored == 0 {
		return nil
	}
	estimates := d.Estimates
	if estimates == nil {
		estimates = &results.Estimates{Median: stats.Estimate{Value: d.Median}, P90: stats.Estimate{Value: d.P90}, P99: stats.Estimate{Value: d.P99}}
	}
	var all []figure
	for _, s := range []struct {
		name string
		stats.Estimate
	}{
		{"mean", stats.Estimate{Value: d.Mean}}, {"median", estimates.Median}, {"p90", estimates.P90}, {"p99", estimates.P99},
		{"max", stats.Estimate{Value: d.Max}},
	} {
		all = append(all, figure{arm: arm, Metric: m, over: over, statistic: s.name, value: s.Value, interval: s.Interval,
			n: d.N, censored: d.Censored, warnings: s.Warnings})
	}
	return all
}

func (r *Report) writeFigures(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"arm", "metric", "key", "unit", "over", "statistic", "value", "low", "high", "n", "censored", "warnings"}) // Error has it
	for _, f := range r.figures() {
		var low, high *float64
		if f.interval != nil {
			low, high = &f.interval.Low, &f.interval.High
		}
		_ = out.Write([]string{f.arm, f.Name, f.Key, f.unit(), f.over, f.statistic, cell(f.value), cell(low), cell(high),
			strconv.Itoa(f.n), strconv.Itoa(f.censored), codes(f.warnings, " ")})
	}
	out.Flush()
	return out.Error()
}

// unit is that of the value: a rate has none.
func (f figure) unit() string {
	if f.statistic == "rate" {
		return ""
	}
	return f.Unit
}

// cell writes a number in full; nothing if it is not there.
func cell(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', 9, 64)
}

// writeSeries writes what the runs that stand for their arms looked like over time.
func (r *Report) writeSeries(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"arm", "seed", "series", "unit", "seconds", "value"}) // Error has it
	for _, run := range r.shown {
		for _, s := range run.series {
			for _, p := range s.Points {
				at := p.At + run.zero // as in the trace and the other tables
				_ = out.Write([]string{run.header.Arm, strconv.FormatUint(run.header.Seed, 10), s.Name, s.Unit, cell(&at), cell(&p.Value)})
			}
		}
	}
	out.Flush()
	return out.Error()
}
