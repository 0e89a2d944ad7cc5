package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
)

// absent stands for what was not measured, or cannot be said.
const absent = "–"

// Estimate is a line of the table of estimates.
type Estimate struct {
	Arm, Metric, Over, Statistic, Value, Interval, N, Warnings string
	MachineDependent                                           bool
}

// Estimates are the rates and quantiles, but for those of which nothing more can be said because the sample is too small: FiguresFile has them all.
func (v view) Estimates() []Estimate {
	var all []Estimate
	for _, f := range v.figures() {
		if f.statistic == "mean" || f.statistic == "max" || f.interval == nil && (len(f.warnings) == 0 || f.warned(stats.TooFew)) {
			continue
		}
		all = append(all, Estimate{
			Arm: f.arm, Metric: strings.TrimSpace(f.Name + " " + f.Key), Over: f.over, Statistic: f.statistic, Value: f.quantity(f.value),
			Interval: f.bounds(), N: sizes(f.n, f.censored), Warnings: codes(f.warnings, ", "), MachineDependent: f.MachineDependent,
		})
	}
	return all
}

func (f figure) warned(code string) bool {
	return slices.ContainsFunc(f.warnings, func(w stats.Warning) bool { return w.Code == code })
}

func (f figure) quantity(x *float64) string {
	switch {
	case x == nil:
		return absent
	case f.statistic == "rate":
		return share(*x)
	}
	return results.Quantity(*x, f.Unit)
}

func (f figure) bounds() string {
	switch {
	case f.interval == nil:
		return absent
	case f.statistic == "rate" && f.interval.Low == 0:
		return "at most " + f.quantity(&f.interval.High)
	case f.statistic == "rate" && f.interval.High == 1:
		return "at least " + f.quantity(&f.interval.Low)
	}
	return f.quantity(&f.interval.Low) + " to " + f.quantity(&f.interval.High)
}

func sizes(n, censored int) string {
	if censored > 0 {
		return fmt.Sprintf("%s, and %s open", whole(n), whole(censored))
	}
	return whole(n)
}

func codes(warnings []stats.Warning, separator string) string {
	var all []string
	for _, w := range warnings {
		all = append(all, w.Code)
	}
	return strings.Join(all, separator)
}

// meanings explains the codes of warnings, whatever estimate they are of.
var meanings = map[string]string{
	stats.TooFew:             "the sample is too small for an interval",
	stats.OneCluster:         "all values are of one run: nothing is said about the variation between runs",
	stats.FewClusters:        "so few runs that the interval is likely too narrow",
	stats.NoneComplete:       "none had ended when it was last seen",
	stats.NotReached:         "so many had not ended that the quantile is beyond what was seen",
	results.WarnIndependent:  "the interval takes the nodes of a run to be independent of one another, which they are not entirely: they share a control plane",
	results.WarnInconclusive: "a run of the arm may not be judged: nothing bounds the rate",
}

// Meanings explains the codes that a table of estimates has, each once.
func (v view) Meanings(estimates []Estimate) []stats.Warning {
	used := map[string]bool{}
	for _, e := range estimates {
		for code := range strings.SplitSeq(e.Warnings, ", ") {
			used[code] = true
		}
	}
	var all []stats.Warning
	for _, code := range slices.Sorted(maps.Keys(used)) {
		if code != "" {
			all = append(all, stats.Warning{Code: code, Message: meanings[code]})
		}
	}
	return all
}

// Pairing compares two arms.
type Pairing struct {
	From, To string
	Lines    []Comparison
}

// Comparison is a line of the table of a pairing.
type Comparison struct {
	Metric, Difference, Interval, P, Effect, N, Result string
	MachineDependent                                   bool
	tooFew                                             string
}

// TooFew says why no line can show a difference; empty if one can.
func (p Pairing) TooFew() string {
	for _, line := range p.Lines {
		if line.tooFew == "" {
			return ""
		}
	}
	return p.Lines[0].tooFew
}

// Pairings compare arms by the metrics in which they differ in any pair.
func (v view) Pairings() []Pairing {
	var all []Pairing
	for i := range v.Summary.Comparisons {
		c := &v.Summary.Comparisons[i]
		if slices.ContainsFunc(c.Difference.Warnings, func(w stats.Warning) bool { return w.Code == stats.AllEqual }) {
			continue
		}
		if len(all) == 0 || all[len(all)-1].To != c.To {
			all = append(all, Pairing{From: c.From, To: c.To})
		}
		pairing := &all[len(all)-1]
		pairing.Lines = append(pairing.Lines, compared(c))
	}
	return all
}

func compared(c *results.Comparison) Comparison {
	line := Comparison{
		Metric: strings.TrimSpace(c.Name + " " + c.Key), Difference: signed(*c.Difference.Value, c.Unit), Interval: absent, P: absent, Effect: absent,
		N: fmt.Sprint(c.Difference.N), Result: "no difference shown", MachineDependent: c.MachineDependent, tooFew: tooFew(c.Comparison),
	}
	if i := c.Difference.Interval; i != nil {
		line.Interval = signed(i.Low, c.Unit) + " to " + signed(i.High, c.Unit)
	}
	if c.P != nil {
		line.P = fmt.Sprintf("%.3g", *c.P)
	}
	if c.Effect != nil {
		line.Effect = strings.Replace(fmt.Sprintf("%+.2f", *c.Effect), "-", "−", 1)
	}
	switch {
	case line.tooFew != "":
		line.Result = "too few pairs"
	case c.Shown():
		line.Result = "differs"
	}
	return line
}

// tooFew says why a comparison can show nothing; empty if it can.
func tooFew(c stats.Comparison) string {
	for _, w := range c.Difference.Warnings {
		if w.Code == stats.TooFew {
			return w.Message
		}
	}
	return ""
}

func signed(x float64, unit string) string {
	if x < 0 {
		return "−" + results.Quantity(-x, unit)
	}
	return "+" + results.Quantity(x, unit)
}
