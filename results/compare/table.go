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
	metricWidth = 32
	sideWidth   = 14
)

// Table writes the comparison as benchstat does: a line a metric, and ~ where no difference is shown.
func (r *Result) Table(w io.Writer) error {
	var out strings.Builder
	paragraph := func(format string, args ...any) {
		out.WriteString(wordwrap.WrapString(fmt.Sprintf(format, args...), Width) + "\n")
	}
	paragraph("%s: %s → %s", r.Experiment, r.A, r.B)
	for _, d := range r.Differ {
		paragraph("  %s", d)
	}
	for _, w := range r.Warnings {
		paragraph("! %s", w.Message)
	}
	for i := range r.Arms {
		r.Arms[i].table(&out)
	}
	out.WriteString("\n")
	paragraph("Medians of the runs' figures. Difference: Hodges–Lehmann estimate, B − A. ~: no difference shown at p < 0.05. †: depends on the machine.")
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

func (arm *Arm) table(out *strings.Builder) {
	how := "as two samples"
	if arm.Pairs > 1 {
		how = fmt.Sprintf("in %d pairs of equal seeds", arm.Pairs)
	}
	fmt.Fprintf(out, "\n%s, compared %s\n", arm.Name, how)
	line(out, "", "A", "B", "difference")
	var equal []string
	for i := range arm.Metrics {
		m := &arm.Metrics[i]
		if m.Comparison != nil && has(m.Comparison, stats.AllEqual) {
			equal = append(equal, m.label())
			continue
		}
		line(out, m.label(), m.value(m.A), m.value(m.B), m.difference())
	}
	if len(equal) > 0 {
		out.WriteString(wordwrap.WrapString("equal in every run: "+strings.Join(equal, ", "), Width) + "\n")
	}
}

func line(out *strings.Builder, metric, a, b, difference string) {
	text := pad(metric, metricWidth) + pad(a, sideWidth) + pad(b, sideWidth) + difference
	out.WriteString(strings.TrimRight(text, " ") + "\n")
}

func pad(s string, width int) string {
	if n := utf8.RuneCountInString(s); n < width {
		return s + strings.Repeat(" ", width-n)
	}
	return string([]rune(s)[:width-2]) + "… "
}

func (m *Metric) label() string {
	label := m.Name
	if m.Key != "" {
		label = "rejected: " + m.Key
	}
	if m.MachineDependent {
		label += " †"
	}
	return label
}

func (m *Metric) value(d results.Description) string {
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
	case has(c, stats.TooFew):
		return fmt.Sprintf("n=%d: too few", c.Difference.N)
	case !c.Shown():
		return fmt.Sprintf("~ p=%.2g n=%d", *c.P, c.Difference.N)
	}
	return fmt.Sprintf("%s p=%.2g n=%d", m.change(*c.Difference.Value), *c.P, c.Difference.N)
}

// change is a difference in percent of A, or in its unit where A is 0.
func (m *Metric) change(by float64) string {
	sign := "+"
	if by < 0 {
		sign, by = "−", -by
	}
	if m.A.Median != nil && *m.A.Median != 0 {
		return fmt.Sprintf("%s%.3g %%", sign, 100*by / *m.A.Median)
	}
	return sign + results.Quantity(by, m.Unit)
}

func has(c *stats.Comparison, code string) bool {
	return slices.ContainsFunc(c.Difference.Warnings, func(w stats.Warning) bool { return w.Code == code })
}
