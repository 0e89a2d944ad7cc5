package sweep

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"

	"github.com/mirrorgap/mirrorgap/results"
)

// The layout of the table, in characters.
const (
	columnGap = 2
	// headingWidth is what a heading is broken to; a column is wider where its cells are.
	headingWidth = 12
	// metricWidth is what labels leave at least for metrics; labels are cut to what is left, and to maxLabelWidth.
	metricWidth, maxLabelWidth = 26, 16
)

// absent stands for a figure that was not measured.
const absent = "–"

// Sentence says what was found.
func (s *Sweep) Sentence() string {
	parts := make([]string, len(s.Arms))
	for i, name := range s.Arms {
		measured, rejected := 0, 0
		for _, arm := range s.arms {
			if arm.Name != name {
				continue
			}
			if f := arm.Figure(results.MetricNewNodesWithRejection); f != nil && f.measured() > 0 {
				measured++
				if _, _, high := f.Middle(); high > 0 {
					rejected++
				}
			}
		}
		parts[i] = fmt.Sprintf("%s: new nodes rejected pods in %d of %d cases", name, rejected, measured)
		if i > 0 {
			parts[i] = fmt.Sprintf("%s: in %d of %d", name, rejected, measured)
		}
	}
	return fmt.Sprintf("%s (n = %s of each arm in each case).", strings.Join(parts, "; "), s.runs())
}

// runs says how many runs of each arm of each case are finished.
func (s *Sweep) runs() string {
	fewest, most := len(s.Seeds), 0
	for _, arm := range s.arms {
		fewest, most = min(fewest, len(arm.Runs)), max(most, len(arm.Runs))
	}
	switch {
	case fewest < most:
		return fmt.Sprintf("%d to %d runs", fewest, most)
	case most == 1:
		return "1 run"
	}
	return fmt.Sprintf("%d runs", most)
}

// Table writes the sweep for a person: one sentence that says what was found, warnings, and the metrics to show in a line for each arm of each case,
// in plain text of at most results.TableWidth characters a line. Metrics that do not fit side by side follow below.
func (s *Sweep) Table(w io.Writer) error {
	var out strings.Builder
	paragraph := func(text string) { fmt.Fprintln(&out, wordwrap.WrapString(text, results.TableWidth)) }
	paragraph(s.Sentence())
	for _, warning := range s.Warnings {
		paragraph("! " + warning.Message)
	}
	labels := clipped(s.labelColumns())
	for _, block := range fitting(s.metricColumns(), results.TableWidth-width(labels)) {
		out.WriteString("\n")
		writeColumns(&out, slices.Concat(labels, block))
	}
	out.WriteString("\n")
	paragraph(Legend)
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// Legend explains the cells of the table.
const Legend = "Median over runs (least–largest, where they differ). >: a lower bound. " + absent + ": not measured. n: runs that have the figure, where not all have."

// Column is a column of the table.
type Column struct {
	Heading string
	// Cells has a cell for each arm of each case.
	Cells []string
}

// labelColumns are what tells the lines apart: a column for each parameter, and the arm's.
func (s *Sweep) labelColumns() []Column {
	columns := make([]Column, len(s.Parameters)+1)
	for i, p := range s.Parameters {
		columns[i].Heading = p.Name
	}
	columns[len(s.Parameters)].Heading = "arm"
	for c, arm := range s.arms {
		for i, label := range append(slices.Clone(c.Labels), arm.Name) {
			columns[i].Cells = append(columns[i].Cells, label)
		}
	}
	return columns
}

// clipped are the columns with texts cut so that all of them together leave room for a metric.
func clipped(columns []Column) []Column {
	most := min((results.TableWidth-metricWidth)/len(columns)-columnGap, maxLabelWidth)
	for i := range columns {
		c := &columns[i]
		c.Heading = clip(c.Heading, most)
		for j := range c.Cells {
			c.Cells[j] = clip(c.Cells[j], most)
		}
	}
	return columns
}

// clip cuts a text to a number of characters, at least 2.
func clip(text string, most int) string {
	runes := []rune(text)
	if most = max(most, 2); len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// metricColumns are the metrics to show.
func (s *Sweep) metricColumns() []Column {
	columns := make([]Column, len(s.Show))
	for i, name := range s.Show {
		columns[i].Heading = title(metric(name))
		for _, arm := range s.arms {
			columns[i].Cells = append(columns[i].Cells, cell(arm.Figure(name), len(s.Seeds)))
		}
	}
	return columns
}

// metric is the metric of that name, without a key; one that is not known has a name only.
func metric(name string) results.Metric {
	for _, m := range results.Metrics() {
		if m.Name == name {
			return m
		}
	}
	return results.Metric{Name: name}
}

// cell shows a figure of as many planned runs.
func cell(f *Figure, planned int) string {
	if f == nil || f.measured() == 0 {
		return absent
	}
	middle, low, high := f.Middle()
	text := results.Quantity(middle.Value, f.Unit)
	if low < high {
		unit := strings.TrimLeft(text, "0123456789.,")
		bare := func(x float64) string { return strings.TrimSuffix(results.Quantity(x, f.Unit), unit) }
		text += fmt.Sprintf(" (%s–%s)", bare(low), bare(high))
	}
	if middle.Censored {
		text = "> " + text
	}
	if n := f.measured(); n < planned {
		text += fmt.Sprintf(" n=%d", n)
	}
	return text
}

// lines is the heading, broken.
func (c Column) lines() []string {
	var lines []string
	for _, word := range c.Words() {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last]+word) <= headingWidth {
			lines[last] += word
		} else {
			lines = append(lines, word)
		}
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// Words are the parts of the heading where it may be broken: before capital letters and spaces.
func (c Column) Words() []string {
	var all []string
	start := 0
	for i, r := range c.Heading {
		if i > start && (unicode.IsUpper(r) || r == ' ') {
			all = append(all, c.Heading[start:i])
			start = i
		}
	}
	return append(all, c.Heading[start:])
}

// width is that of the column, with the gap after it.
func (c Column) width() int {
	widest := 0
	for _, text := range append(c.lines(), c.Cells...) {
		widest = max(widest, utf8.RuneCountInString(text))
	}
	return widest + columnGap
}

func width(columns []Column) int {
	total := 0
	for _, c := range columns {
		total += c.width()
	}
	return total
}

// fitting divides columns into blocks that fit into a width. A block has one column at least.
func fitting(columns []Column, room int) [][]Column {
	var blocks [][]Column
	left := 0
	for _, c := range columns {
		need := c.width()
		if len(blocks) == 0 || need-columnGap > left {
			blocks, left = append(blocks, nil), room
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], c)
		left -= need
	}
	return blocks
}

func writeColumns(out *strings.Builder, columns []Column) {
	height := 0
	for _, c := range columns {
		height = max(height, len(c.lines()))
	}
	for line := range height {
		writeLine(out, columns, func(c Column) string {
			lines := c.lines()
			if at := line - (height - len(lines)); at >= 0 {
				return lines[at]
			}
			return ""
		})
	}
	for i := range columns[0].Cells {
		writeLine(out, columns, func(c Column) string { return c.Cells[i] })
	}
}

func writeLine(out *strings.Builder, columns []Column, cell func(Column) string) {
	var line strings.Builder
	for _, c := range columns {
		text := cell(c)
		line.WriteString(text + strings.Repeat(" ", c.width()-utf8.RuneCountInString(text)))
	}
	fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
}
