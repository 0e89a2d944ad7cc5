package agreement

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"

	"github.com/mirrorgap/mirrorgap/results"
)

// The columns of the table: what is compared, model, real kubelet, distance; the rest is the outcome.
const (
	labelWidth    = 28
	sideWidth     = 12
	distanceWidth = 16
)

const legend = "Medians. Distance: Kolmogorov–Smirnov, and in brackets what chance alone makes of two samples of one distribution in 95 of 100 cases, by permuting nodes " +
	"within runs. A delay agrees if the distance is at most 0.2, or the model's 10th, 50th and 90th percentile are within 20 % or 20 ms of the real kubelet's, and chance " +
	"alone makes no distance of more than 0.2; the storm, if the 95 % interval of model/real is within 0.8–1.2. Intervals are over runs; of fewer than 10 they are likely " +
	"too narrow."

// Table writes the report for a person, in plain text of at most results.TableWidth columns.
func (r *Report) Table(w io.Writer) error {
	var out strings.Builder
	paragraph(&out, "", r.Sentence())
	out.WriteString("\nadmission: " + word(outcomeOf(r.Admission)) + "\n")
	paragraph(&out, "  ", r.Admission.Summary())
	if r.Admission != nil {
		for _, example := range r.Admission.Examples {
			paragraph(&out, "  ! ", example)
		}
	}
	if t := r.Timing; t != nil {
		t.table(&out)
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write agreement: %w", err)
	}
	return nil
}

func (t *Timing) table(out *strings.Builder) {
	fmt.Fprintf(out, "\ntiming, runs: %d: %s\n", len(t.Runs), word(t.Outcome))
	for _, doubt := range t.Doubts {
		paragraph(out, "  ! ", doubt)
	}
	line(out, "", "model", "real", "distance", "")
	for i := range t.Delays {
		d := &t.Delays[i]
		line(out, d.Label(), middle(&d.Model), middle(&d.Real), fmt.Sprintf("%s (%s)", share(d.Distance.Value), share(d.Distance.Critical)), word(d.Outcome))
		paragraph(out, "    ", fmt.Sprintf("n = %s; %s. %s", d.Model.Size(), d.Real.Size(), d.Reason))
	}
	modelled, ofReal := t.Storm.Rates()
	line(out, "replacement storm", modelled, ofReal, "", word(t.Storm.Outcome))
	paragraph(out, "    ", t.Storm.Reason)
	out.WriteString("\n")
	paragraph(out, "", legend)
}

func middle(s *Sample) string {
	if s.Median.Value == nil {
		return absent
	}
	return seconds(*s.Median.Value)
}

// Rates are the mean rates of all runs, in words: rejections per node and second.
func (s *Storm) Rates() (modelled, ofReal string) {
	var sums [2]float64
	n := 0.0
	for _, r := range s.Runs {
		if r != nil {
			sums[model], sums[realKubelet], n = sums[model]+r.Model, sums[realKubelet]+r.Real, n+1
		}
	}
	if n == 0 {
		return absent, absent
	}
	return results.Quantity(sums[model]/n, "1/s"), results.Quantity(sums[realKubelet]/n, "1/s")
}

// line writes a row. A label that is too long for its column has a line of its own.
func line(out *strings.Builder, label, modelled, ofReal, distance, outcome string) {
	if utf8.RuneCountInString(label) >= labelWidth {
		out.WriteString(label + "\n")
		label = ""
	}
	row := pad(label, labelWidth) + pad(modelled, sideWidth) + pad(ofReal, sideWidth) + pad(distance, distanceWidth) + outcome
	out.WriteString(strings.TrimRight(row, " ") + "\n")
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(s)))
}

// paragraph writes a text behind a margin.
func paragraph(out *strings.Builder, margin, text string) {
	text = wordwrap.WrapString(strings.Join(strings.Fields(text), " "), uint(results.TableWidth-utf8.RuneCountInString(margin)))
	for row := range strings.SplitSeq(text, "\n") {
		out.WriteString(margin + row + "\n")
		margin = strings.Repeat(" ", utf8.RuneCountInString(margin))
	}
}
