package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
)

// Width is the width of a table, in columns.
const Width = 80

// The columns of a table: metric, A, B; the rest is the difference.
const (
	metricWidth = 33
	sideWidth   = 14
)

// noBreak is a space at which go-wordwrap breaks no line.
const noBreak = "\u00a0"

const legend = "Medians of the runs' figures. Difference: Hodges–Lehmann estimate of B − A, with its 95 % interval. ~: no difference shown at p < 0.05, which is not " +
	"to say that there is none. too few: even the largest difference could not be shown, it takes 6 pairs that differ, or 4 and 4 runs. Tests are not corrected for their " +
	"number: of 20 metrics that do not differ one may show a difference. †: depends on the machine."

// Table writes the comparison as benchstat does: a line a metric, and ~ where no difference is shown; below it the interval of the difference.
func (r *Result) Table(w io.Writer) error {
	var out strings.Builder
	paragraph(&out, "%s: %s → %s", r.Experiment, r.A, r.B)
	for _, d := range r.Differ {
		paragraph(&out, "  %s", d)
	}
	for _, w := range r.Warnings {
		paragraph(&out, "! %s", w.Message)
	}
	for i := range r.Arms {
		r.Arms[i].table(&out)
	}
	out.WriteString("\n")
	paragraph(&out, "%s", legend)
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

func paragraph(out *strings.Builder, format string, args ...any) {
	text := wordwrap.WrapString(fmt.Sprintf(format, args...), Width)
	out.WriteString(strings.ReplaceAll(text, noBreak, " ") + "\n")
}

func (arm *Arm) table(out *strings.Builder) {
	how, equally := fmt.Sprintf("as samples of %d and %d runs", arm.RunsA, arm.RunsB), "equal in every run: "
	if arm.Pairs > 1 {
		how, equally = fmt.Sprintf("in %d pairs of equal seeds", arm.Pairs), "equal in every pair: "
	}
	if arm.RunsA == 0 || arm.RunsB == 0 {
		fmt.Fprintf(out, "\n%s, not compared: one side has no run that may be judged\n", arm.Name)
		return
	}
	fmt.Fprintf(out, "\n%s, compared %s\n", arm.Name, how)
	line(out, "", "A", "B", "difference")
	var equal []string
	for i := range arm.Metrics {
		m := &arm.Metrics[i]
		if m.Comparison != nil && has(m.Comparison, stats.AllEqual) && m.A.Censored+m.B.Censored == 0 {
			equal = append(equal, m.label(noBreak))
			continue
		}
		line(out, m.label(" "), m.value(m.A), m.value(m.B), m.difference())
		for _, note := range []string{m.interval(), m.censored()} {
			if note != "" {
				fmt.Fprintf(out, "%*s\n", Width, note)
			}
		}
	}
	if len(equal) > 0 {
		paragraph(out, "%s", equally+strings.Join(equal, ", "))
	}
}

// line writes a row. A difference that is too long for its column begins before it, if B leaves room.
func line(out *strings.Builder, metric, a, b, difference string) {
	left := pad(metric, metricWidth) + pad(a, sideWidth) + b + " "
	start := min(metricWidth+2*sideWidth, Width-utf8.RuneCountInString(difference))
	fmt.Fprintf(out, "%-*s%s\n", start, left, difference)
}

func pad(s string, width int) string {
	if n := utf8.RuneCountInString(s); n < width {
		return s + strings.Repeat(" ", width-n)
	}
	return string([]rune(s)[:width-2]) + "… "
}

// label names the metric; space is what the mark of one that depends on the machine stands behind.
func (m *Metric) label(space string) string {
	label := m.Name
	if m.Key != "" {
		label = "rejected: " + m.Key
	}
	if m.MachineDependent {
		label += space + "†"
	}
	return label
}

func (m *Metric) value(d results.Distribution) string {
	if d.Median == nil {
		return "–"
	}
	return results.Quantity(*d.Median, m.Unit)
}

// difference is what the comparison shows, or why it shows nothing.
func (m *Metric) difference() string {
	c := m.Comparison
	switch {
	case c == nil || c.Difference.Value == nil:
		return "–"
	case has(c, stats.AllEqual):
		return fmt.Sprintf("n=%d: equal", c.Difference.N)
	case has(c, stats.TooFew):
		return fmt.Sprintf("n=%d: too few", c.Difference.N)
	case has(c, stats.FewDiffer):
		return fmt.Sprintf("n=%d: too few differ", c.Difference.N)
	case !c.Shown():
		return "~ " + probability(*c.P)
	}
	return m.change(*c.Difference.Value) + " " + probability(*c.P)
}

func probability(p float64) string {
	if p < 0.001 {
		return "p<0.001"
	}
	return fmt.Sprintf("p=%.3f", p)
}

// interval is where the difference is to be found, and by how many pairs; empty if there are too few to tell, or if all are equal, which leaves open how
// rare a difference is.
func (m *Metric) interval() string {
	if m.Comparison == nil || m.Comparison.Difference.Interval == nil || has(m.Comparison, stats.AllEqual) {
		return ""
	}
	d := &m.Comparison.Difference
	return fmt.Sprintf("95 %%: %s to %s, n=%d", m.change(d.Interval.Low), m.change(d.Interval.High), d.N)
}

// censored says how many runs have no more than a lower bound, and take no part; empty if none.
func (m *Metric) censored() string {
	if m.A.Censored+m.B.Censored == 0 {
		return ""
	}
	return fmt.Sprintf("lower bounds, left out: %d of %d in A, %d of %d in B", m.A.Censored, m.A.N+m.A.Censored, m.B.Censored, m.B.N+m.B.Censored)
}

// change is a difference in the metric's unit. It is no percentage: the estimate is not of medians, and can be more than all of A's.
func (m *Metric) change(by float64) string {
	switch {
	case by < 0:
		return "−" + results.Quantity(-by, m.Unit)
	case by > 0:
		return "+" + results.Quantity(by, m.Unit)
	}
	return results.Quantity(0, m.Unit)
}

func has(c *stats.Comparison, code string) bool {
	return slices.ContainsFunc(c.Difference.Warnings, func(w stats.Warning) bool { return w.Code == code })
}
