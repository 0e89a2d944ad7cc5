package results

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// The layout of a table, in characters. With two arms a table of 80 characters has columns of 26.
const (
	labelWidth     = 24
	columnGap      = 2
	minColumnWidth = 24
	// MinTableWidth is the least width of a table: the labels and one arm.
	MinTableWidth = labelWidth + columnGap + minColumnWidth
)

// absent stands for a figure that was not measured.
const absent = "–"

// row is one line of a table: a label, what it shows of an arm, and the name of the metric that this is, if it is one.
type row struct {
	label  string
	cell   func(*Arm) string
	metric string
}

// runRow shows a metric of runs, nodesRow a time of nodes, podsRow one of pods.
func runRow(label, metric string, key ...string) row {
	return row{label, runCell(metric, key...), metric}
}

func nodesRow(label, metric string) row {
	return row{label, timesCell(metric, func(f *Figure) *Distribution { return f.OverNodes }), metric}
}

func podsRow(label, metric string) row {
	return row{label, timesCell(metric, func(f *Figure) *Distribution { return f.OverPods }), metric}
}

// Table writes a summary for a person: one sentence that says what was found, then a row a metric and a column an arm, in plain text of at most
// width characters a line (at least MinTableWidth). Arms that do not fit side by side follow below. Of an arm that was over before it had any
// workload pod it says only how it ended.
func Table(w io.Writer, s *Summary, width int) error {
	width = max(width, MinTableWidth)
	var out strings.Builder
	begun := *s
	begun.Arms = slices.DeleteFunc(slices.Clone(s.Arms), func(a Arm) bool { return a.neverBegan() })
	for i := range s.Arms {
		if arm := &s.Arms[i]; arm.neverBegan() {
			writeText(&out, fmt.Sprintf("%s: %s (n = %s).", arm.Name, failure(arm), runs(len(arm.Runs))), width)
		}
	}
	if len(begun.Arms) > 0 {
		writeFigures(&out, &begun, width)
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// neverBegan tells whether the arm has nothing to show: none of its runs is conclusive, and none had a workload pod.
func (a *Arm) neverBegan() bool {
	return total(a, MetricPodsCreated) == "0" && !slices.ContainsFunc(a.Runs, func(r RunInfo) bool { return r.Conclusive })
}

// failure says how an arm ended that never began.
func failure(a *Arm) string {
	text := ends(a) + " before any workload pod existed"
	var messages []string
	for _, run := range a.Runs {
		if run.EndMessage != "" && !slices.Contains(messages, run.EndMessage) {
			messages = append(messages, run.EndMessage)
		}
	}
	if len(messages) > 0 {
		text += ": " + strings.Join(messages, "; ")
	}
	return text
}

// writeFigures writes the sentence, the table and its legend.
func writeFigures(out *strings.Builder, s *Summary, width int) {
	writeText(out, s.Sentence(), width)
	rows := rowsOf(s)
	for block := range slices.Chunk(s.Arms, (width-labelWidth)/(columnGap+minColumnWidth)) {
		out.WriteString("\n")
		writeBlock(out, rows, block, width)
	}
	out.WriteString("\n")
	writeText(out, legend(s), width)
}

func writeText(out *strings.Builder, text string, width int) {
	for _, line := range wrap(text, width) {
		fmt.Fprintln(out, line)
	}
}

// Sentence says what was found, with the size of the samples.
func (s *Summary) Sentence() string {
	arms := make([]string, len(s.Arms))
	sameRuns := true
	for i := range s.Arms {
		sameRuns = sameRuns && len(s.Arms[i].Runs) == len(s.Arms[0].Runs)
	}
	for i := range s.Arms {
		arm := &s.Arms[i]
		arms[i] = arm.Name + ": " + finding(arm)
		if !sameRuns {
			arms[i] += fmt.Sprintf(" (n = %s)", runs(len(arm.Runs)))
		}
	}
	text := strings.Join(arms, "; ")
	if sameRuns && len(s.Arms) > 0 {
		text += fmt.Sprintf(" (n = %s an arm)", runs(len(s.Arms[0].Runs)))
	}
	return text + "."
}

// finding says what was found in an arm, over all its runs.
func finding(arm *Arm) string {
	if arm.neverBegan() {
		return failure(arm)
	}
	text := fmt.Sprintf("%s of %s rejected pods", total(arm, MetricNewNodesWithRejection), nodes(arm, MetricNewNodes, "new")) + bound(arm)
	if initial := total(arm, MetricInitialNodesWithRejection); initial != "0" || total(arm, MetricNewNodes) == "0" {
		text += fmt.Sprintf(", %s of %s", initial, nodes(arm, MetricInitialNodes, "initial"))
	}
	if reasons := byKey(arm, MetricRejectedPodsByReason); len(reasons) > 0 {
		text += " (" + strings.Join(reasons, ", ") + ")"
	}
	if caveats := caveats(arm); len(caveats) > 0 {
		text += ", but " + strings.Join(caveats, " and ")
	}
	return text
}

// bound says what none of n new nodes means for others.
func bound(arm *Arm) string {
	if rate := arm.NoneRejected(); rate != nil {
		return fmt.Sprintf(" (at most %s %% at 95 %%)", percent(rate.Interval.High))
	}
	return ""
}

// NoneRejected is the rate of new nodes with a rejection if it is 0 and its bound means something: each of the nodes could be scheduled onto, and no
// run was cut short. Else nil.
func (a *Arm) NoneRejected() *Rate {
	f := a.Figure(MetricNewNodesWithRejection, "")
	if f == nil || f.Rate == nil || f.Rate.Interval == nil || f.Rate.Count > 0 || len(caveats(a)) > 0 {
		return nil
	}
	return f.Rate
}

func percent(share float64) string { return number(100 * share) }

// caveats says how many nodes were never put to the test, and how many runs do not carry a conclusion, or only a lower bound.
func caveats(arm *Arm) []string {
	inconclusive, unsettled := 0, 0
	for _, run := range arm.Runs {
		switch {
		case !run.Conclusive:
			inconclusive++
		case run.End == trace.EndTimeLimit:
			unsettled++
		}
	}
	var parts []string
	if never := total(arm, MetricNeverSchedulable); never != "0" {
		parts = append(parts, never+" of them never schedulable")
	}
	if inconclusive > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s inconclusive", inconclusive, runs(len(arm.Runs))))
	}
	if unsettled > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s not settled at the time limit", unsettled, runs(len(arm.Runs))))
	}
	return parts
}

// byKey lists the totals of a metric that has keys, without the zeros.
func byKey(arm *Arm, name string) []string {
	var parts []string
	for i := range arm.Figures {
		if f := &arm.Figures[i]; f.Name == name {
			if all := total(arm, name, f.Key); all != "0" {
				parts = append(parts, f.Key+" "+all)
			}
		}
	}
	return parts
}

// rowsOf lists the rows that have something to say about one of the arms.
func rowsOf(s *Summary) []row {
	rows := []row{
		{"runs", func(a *Arm) string { return strconv.Itoa(len(a.Runs)) }, ""},
		{"how it ended", ends, ""},
		{"nodes a run", func(a *Arm) string {
			return runCell(MetricInitialNodes)(a) + " initial + " + runCell(MetricNewNodes)(a) + " new"
		}, ""},
		runRow("pods created", MetricPodsCreated),
		runRow("pods rejected", MetricRejectedPods),
	}
	rows = append(rows, keyRows(s, MetricRejectedPodsByReason, "  ")...)
	rows = append(rows, keyRows(s, MetricRejectedPodsByCause, "  by ")...)
	rows = append(rows,
		runRow("  not shown by the API", MetricNotShownByAPI),
		row{"nodes with a rejection", func(a *Arm) string {
			return fmt.Sprintf("%s/%s new, %s/%s initial", total(a, MetricNewNodesWithRejection), total(a, MetricNewNodes),
				total(a, MetricInitialNodesWithRejection), total(a, MetricInitialNodes))
		}, MetricNewNodesWithRejection},
		runRow("first-wave rejections", MetricFirstWaveRejections),
		row{"  closed form / seen", func(a *Arm) string {
			return fmt.Sprintf("%s / %s on %s/%s nodes", total(a, MetricClosedFormRejections), total(a, MetricClosedFormObserved),
				total(a, MetricClosedFormNodes), total(a, MetricNewNodes))
		}, MetricClosedFormObserved},
		runRow("storm rejections", MetricStormRejections),
		runRow("  rate, all nodes", MetricStormRate),
		runRow("  measured over", MetricStormSpan),
		runRow("  rate, an exposed node", MetricStormRatePerNode),
		nodesRow("exposure", MetricExposure),
	)
	if slices.ContainsFunc(s.Arms, func(a Arm) bool { return a.Gate != nil }) {
		rows = append(rows,
			nodesRow("hold", MetricHold),
			nodesRow("  of it after Ready", MetricHoldBeyondReady),
			nodesRow("  mirrors created", MetricHoldMirrors),
			nodesRow("  checker noticed", MetricHoldChecker),
			nodesRow("  controller released", MetricHoldController),
			nodesRow("  then scheduler used it", MetricSchedulerUse),
		)
	}
	return append(rows,
		podsRow("pod start, p50/p90/max", MetricPodStart),
		runRow("failed pods", MetricFailed),
		runRow("extra pods created", MetricExtraPods),
		runRow("peak overcommit", MetricPeakOvercommit),
		runRow("held beyond Ready", MetricHeldNodes),
		runRow("  idle meanwhile", MetricIdle),
		runRow("unused at the end", MetricUnusedAtEnd),
		runRow("nodes needed", MetricNodesNeeded),
		runRow("all Running: scale-up +", MetricRunningAfterScaleUp),
		runRow("  workload +", MetricRunningAfterWorkload),
		runRow("Running at the end", MetricRunningAtEnd),
		runRow("Pending, unschedulable", MetricUnschedulableAtEnd),
		runRow("Pending, other", MetricPendingAtEnd),
		runRow("wall time", MetricWall),
		runRow("  after last mirror", MetricWallBeyondLastMirror),
	)
}

// TableRow is a line of a table: a label, indented by two spaces if it is a part of the one above, and a cell for each arm.
type TableRow struct {
	Label string
	Cells []string
	// MachineDependent is the metric's.
	MachineDependent bool
}

// Rows are the lines of the table that Table writes.
func (s *Summary) Rows() []TableRow {
	var rows []TableRow
	for _, r := range rowsOf(s) {
		row := TableRow{Label: r.label, MachineDependent: slices.ContainsFunc(s.Arms[0].Figures, func(f Figure) bool {
			return f.Name == r.metric && f.MachineDependent
		})}
		for i := range s.Arms {
			row.Cells = append(row.Cells, r.cell(&s.Arms[i]))
		}
		rows = append(rows, row)
	}
	return rows
}

// Legend explains the cells.
func (s *Summary) Legend() string { return legend(s) }

// Quantity writes a value of that unit for a person.
func Quantity(value float64, unit string) string { return quantity(value, unit) }

// keyRows makes a row for every key of a metric.
func keyRows(s *Summary, name, indent string) []row {
	var rows []row
	for i := range s.Arms[0].Figures { // every arm has the same
		if f := &s.Arms[0].Figures[i]; f.Name == name {
			rows = append(rows, runRow(indent+f.Key, name, f.Key))
		}
	}
	return rows
}

// legend explains the cells.
func legend(s *Summary) string {
	text := "Times of nodes: median/p90/max over new nodes (n); with few nodes p90 equals max; \"open\" had not ended, and is in none of the three."
	if slices.ContainsFunc(s.Arms, func(a Arm) bool { return len(a.Runs) > 1 }) {
		text += " Other figures: median over runs (max); nodes with a rejection and closed form: totals over runs."
	}
	return text + " " + absent + " not measured."
}

// ends says how the runs ended, and what died.
func ends(a *Arm) string {
	var parts []string
	for _, end := range []string{trace.EndSettled, trace.EndTimeLimit, trace.EndStopped, trace.EndInterrupted, trace.EndError, EndTruncated} {
		n := 0
		for _, run := range a.Runs {
			if run.End == end {
				n++
			}
		}
		switch {
		case n == 0:
		case n == len(a.Runs):
			parts = append(parts, end)
		default:
			parts = append(parts, fmt.Sprintf("%s %d", end, n))
		}
	}
	for _, run := range a.Runs {
		for _, death := range run.Died {
			parts = append(parts, death.Component+" died")
		}
	}
	return strings.Join(parts, ", ")
}

// runCell shows a metric of runs.
func runCell(name string, key ...string) func(*Arm) string {
	return func(a *Arm) string {
		f := a.Figure(name, strings.Join(key, ""))
		if f == nil {
			return absent
		}
		if f.allEqual() {
			return observed(f.Runs[0], f.Unit)
		}
		return over(f.OverSeeds, len(f.Runs), f.Unit)
	}
}

// allEqual tells whether every run has the same to say.
func (f *Figure) allEqual() bool {
	for _, o := range f.Runs[1:] {
		if (o == nil) != (f.Runs[0] == nil) || o != nil && *o != *f.Runs[0] {
			return false
		}
	}
	return true
}

// observed shows one value; a lower bound as "> ".
func observed(o *Observation, unit string) string {
	switch {
	case o == nil:
		return absent
	case o.Censored:
		return "> " + quantity(o.Value, unit)
	}
	return quantity(o.Value, unit)
}

// over shows the figures of several runs.
func over(d Distribution, runs int, unit string) string {
	text := absent
	if d.N > 0 {
		median := quantity(*d.Median, unit)
		text = fmt.Sprintf("%s (max %s)", median, strings.TrimSuffix(quantity(*d.Max, unit), unitOf(median)))
	}
	if d.N < runs {
		text += sizes(d)
	}
	return text
}

// timesCell shows a time of nodes or pods.
func timesCell(name string, distribution func(*Figure) *Distribution) func(*Arm) string {
	return func(a *Arm) string {
		f := a.Figure(name, "")
		if f == nil || distribution(f) == nil {
			return absent
		}
		d := distribution(f)
		switch {
		case d.N == 0 && d.Censored == 0:
			return absent
		case d.N == 0:
			return absent + sizes(*d)
		}
		return duration3(*d.Median, *d.P90, *d.Max) + sizes(*d)
	}
}

// duration3 writes three lengths of time in seconds, in the unit of the last one where they have that too.
func duration3(median, p90, longest float64) string {
	last := duration(longest)
	short := func(x float64) string {
		if x == 0 {
			return "0"
		}
		return strings.TrimSuffix(duration(x), unitOf(last))
	}
	return short(median) + "/" + short(p90) + "/" + last
}

func sizes(d Distribution) string {
	if d.Censored > 0 {
		return fmt.Sprintf(" (n=%d, %d open)", d.N, d.Censored)
	}
	return fmt.Sprintf(" (n=%d)", d.N)
}

// total shows the sum of a metric over all runs of the arm.
func total(a *Arm, name string, key ...string) string {
	if f := a.Figure(name, strings.Join(key, "")); f != nil {
		return number(sum(f.Runs))
	}
	return number(0)
}

func nodes(a *Arm, name, kind string) string {
	n := total(a, name)
	if n == "1" {
		return "1 " + kind + " node"
	}
	return n + " " + kind + " nodes"
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// quantity writes a number with its unit; pods and nodes are named by the row.
func quantity(x float64, unit string) string {
	switch unit {
	case "s":
		return duration(x)
	case "1/s":
		return number(x) + "/s"
	case "mCPU":
		return number(x/1000) + " cores"
	case "mCPU·s":
		return number(x/1000) + " core·s"
	case "node·s":
		return number(x) + " node·s"
	}
	return number(x)
}

// unitOf is what follows the digits of a quantity.
func unitOf(quantity string) string { return strings.TrimLeft(quantity, "-0123456789.,") }

// duration writes a length of time in seconds; one below 0.1 s in milliseconds, of which two digits are all that means something.
func duration(seconds float64) string {
	if seconds > 0 && seconds < 0.1 {
		return significant(seconds*1000, 2) + " ms"
	}
	return number(seconds) + " s"
}

// number writes a number in three significant digits.
func number(x float64) string { return significant(x, 3) }

// significant writes a number in that many significant digits and at most four decimals; whole numbers and those above 100 in full, with commas.
func significant(x float64, digits int) string {
	if math.Abs(x) >= 100 || x == math.Trunc(x) {
		return commas(strconv.FormatFloat(x, 'f', 0, 64))
	}
	decimals := max(0, digits-1-int(math.Floor(math.Log10(math.Abs(x)))))
	return strconv.FormatFloat(x, 'f', min(decimals, 4), 64)
}

func commas(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// writeBlock writes the rows for some of the arms, side by side.
func writeBlock(out *strings.Builder, rows []row, arms []Arm, width int) {
	column := (width-labelWidth)/len(arms) - columnGap
	names := func(a *Arm) string { return a.Name }
	for _, r := range append([]row{{"", names, ""}}, rows...) {
		cells := [][]string{wrap(r.label, labelWidth)}
		height := len(cells[0])
		for i := range arms {
			cell := wrap(r.cell(&arms[i]), column)
			cells = append(cells, cell)
			height = max(height, len(cell))
		}
		for line := range height {
			var text strings.Builder
			for i, cell := range cells {
				start := 0
				if i > 0 {
					start = labelWidth + columnGap + (i-1)*(column+columnGap)
				}
				if line < len(cell) {
					text.WriteString(strings.Repeat(" ", start-utf8.RuneCountInString(text.String())))
					text.WriteString(cell[line])
				}
			}
			fmt.Fprintln(out, text.String())
		}
	}
}

// wrap breaks text at spaces into lines of at most width characters, keeping its indent; a longer word is broken.
func wrap(text string, width int) []string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var lines []string
	line := []rune(indent)
	for _, word := range strings.Fields(text) {
		rest := []rune(word)
		if len(line) > len(indent) {
			if len(line)+1+len(rest) <= width {
				line = append(append(line, ' '), rest...)
				continue
			}
			lines, line = append(lines, string(line)), []rune(indent)
		}
		for len(line)+len(rest) > width {
			cut := width - len(line)
			lines, line, rest = append(lines, string(line)+string(rest[:cut])), []rune(indent), rest[cut:]
		}
		line = append(line, rest...)
	}
	return append(lines, string(line))
}
