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
		writeEntry(&out, c.word("holds", "DOES NOT"), c.Message, width)
	}
	out.WriteString("\nthresholds\n")
	for i := range v.Thresholds {
		c := &v.Thresholds[i]
		writeEntry(&out, c.word("passed", "inconclusive"), c.Message, width)
		c.writeDetails(&out, width)
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}

// Sentence says how the verdict came out, and by what.
func (v *Verdict) Sentence() string {
	failed, open, broken := 0, 0, 0
	for i := range v.Thresholds {
		switch v.Thresholds[i].Outcome {
		case Failed:
			failed++
		case Inconclusive:
			open++
		}
	}
	for i := range v.Assumptions {
		if !v.Assumptions[i].Holds() {
			broken++
		}
	}
	all := count(len(v.Thresholds), "threshold")
	text := oneLine(v.Experiment) + ": "
	switch {
	case v.Outcome == Passed:
		return text + "PASSED: " + all + " met, every assumption holds."
	case v.Outcome == Failed:
		return text + fmt.Sprintf("FAILED: %d of %s not met.", failed, all)
	case broken > 0:
		return text + fmt.Sprintf("INCONCLUSIVE: %d of %s not as it must be for the thresholds to mean anything.", broken, count(len(v.Assumptions), "assumption"))
	}
	return text + fmt.Sprintf("INCONCLUSIVE: %d of %s cannot be judged.", open, all)
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
	if c.Outcome != Passed && c.Threshold.Why != "" {
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
	for line := range strings.SplitSeq(wordwrap.WrapString(text, uint(width-indent)), "\n") {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%-*s%s", indent, word, line), " "))
		word = ""
	}
}
