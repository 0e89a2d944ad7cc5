package verdict

import (
	"fmt"
	"io"
	"strings"

	"github.com/mitchellh/go-wordwrap"
)

// The layout of a table, in characters.
const (
	outcomeWidth = 14
	noBreak      = "\u00a0" // a space at which go-wordwrap breaks no line
	// MinTableWidth is the least width of a table.
	MinTableWidth = 60
)

// Table writes a verdict for a person: one sentence that says how it came out, then a line for each assumption and each threshold, in plain text of at
// most width characters a line (at least MinTableWidth; a longer word is not broken).
func (v *Verdict) Table(w io.Writer, width int) error {
	width = max(width, MinTableWidth)
	var out strings.Builder
	writeEntry(&out, "", v.Sentence(), width)
	out.WriteString("\nassumptions\n")
	for i := range v.Assumptions {
		c := &v.Assumptions[i]
		text := c.Message
		if c.Waived != "" {
			text = c.Name + ": " + c.Waived
		}
		writeEntry(&out, c.word("holds", "DOES NOT HOLD"), text, width)
	}
	out.WriteString("\nthresholds\n")
	for i := range v.Thresholds {
		c := &v.Thresholds[i]
		want := "want " + c.Want // an operator must not stand at the end of a line
		writeEntry(&out, c.word("passed", "inconclusive"), strings.ReplaceAll(c.Message, want, strings.ReplaceAll(want, " ", noBreak)), width)
		c.writeDetails(&out, width)
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}

// Sentence says how the verdict came out, and by what.
func (v *Verdict) Sentence() string {
	text := oneLine(v.Experiment) + ": " + strings.ToUpper(v.Outcome.String()) + ": "
	broken := countChecks(v.Assumptions, func(c *Check) bool { return !c.Holds() })
	waived := countChecks(v.Assumptions, func(c *Check) bool { return c.Waived != "" })
	judged := func(o Outcome) int { return countChecks(v.Thresholds, func(c *Check) bool { return c.Outcome == o }) }
	thresholds := count(len(v.Thresholds), "threshold")
	switch {
	case v.Outcome == Failed:
		return text + fmt.Sprintf("%d of %s not met.", judged(Failed), thresholds)
	case broken == 1:
		return text + "an assumption does not hold, so that nothing is concluded."
	case broken > 0:
		return text + fmt.Sprintf("%d assumptions do not hold, so that nothing is concluded.", broken)
	case v.Outcome == Inconclusive:
		return text + fmt.Sprintf("%d of %s cannot be judged.", judged(Inconclusive), thresholds)
	case waived > 0:
		return text + fmt.Sprintf("%s met; %s not checked.", thresholds, count(waived, "assumption"))
	}
	return text + thresholds + " met."
}

func countChecks(checks []Check, which func(*Check) bool) int {
	n := 0
	for i := range checks {
		if which(&checks[i]) {
			n++
		}
	}
	return n
}

// word is the outcome of a check in a table.
func (c *Check) word(passed, inconclusive string) string {
	switch {
	case c.Waived != "":
		return "not checked"
	case c.Outcome == Passed:
		return passed
	case c.Outcome == Failed:
		return "FAILED"
	}
	return inconclusive
}

// writeDetails writes what a threshold's line does not say.
func (c *Check) writeDetails(out *strings.Builder, width int) {
	for _, note := range c.Notes {
		writeEntry(out, " ", note, width)
	}
	if c.Outcome == Failed && c.Threshold.Why != "" {
		writeEntry(out, " ", "why: "+oneLine(c.Threshold.Why), width)
	}
}

// writeEntry writes a text behind a word; without a word from the margin on.
func writeEntry(out *strings.Builder, word, text string, width int) {
	indent := 0
	if word != "" {
		indent = outcomeWidth + 2
		word = "  " + word
	}
	text = strings.ReplaceAll(text, " %", noBreak+"%")
	for line := range strings.SplitSeq(wordwrap.WrapString(text, uint(width-indent)), "\n") {
		line = strings.ReplaceAll(line, noBreak, " ")
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%-*s%s", indent, word, line), " "))
		word = ""
	}
}
