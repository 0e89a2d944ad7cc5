package agreement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
	"github.com/mirrorgap/mirrorgap/results/verdict"
)

// absent stands for what was not measured.
const absent = "–"

var words = map[verdict.Outcome]string{verdict.Inconclusive: "inconclusive", verdict.Passed: "agree", verdict.Failed: "DIFFER"}

// word says how a part came out.
func word(o verdict.Outcome) string { return words[o] }

// Sentence says how the report came out, and by what.
func (r *Report) Sentence() string {
	text := map[verdict.Outcome]string{
		verdict.Inconclusive: "INCONCLUSIVE: it is not shown that kubelet model and real kubelet agree, nor that they differ",
		verdict.Passed:       "AGREE: kubelet model and real kubelet agree within the criteria",
		verdict.Failed:       "DIFFER: kubelet model and real kubelet differ",
	}[r.Outcome]
	var why []string
	for _, part := range r.parts() {
		if part.outcome == r.Outcome && r.Outcome != verdict.Passed {
			why = append(why, part.label)
		}
	}
	if len(why) > 0 {
		text += " (" + strings.Join(slices.Compact(why), ", ") + ")"
	}
	return text + "."
}

// part is one thing that is judged.
type part struct {
	label, reason string
	outcome       verdict.Outcome
}

// parts are all that is judged.
func (r *Report) parts() []part {
	parts := []part{{"admission", r.Admission.Summary(), outcomeOf(r.Admission)}}
	if r.Timing == nil {
		return append(parts, part{"timing", "not measured", verdict.Inconclusive})
	}
	for _, doubt := range r.Timing.Doubts {
		parts = append(parts, part{"runs", doubt, verdict.Inconclusive})
	}
	for i := range r.Timing.Delays {
		d := &r.Timing.Delays[i]
		parts = append(parts, part{d.Label(), d.Reason, d.Outcome})
	}
	return append(parts, part{"replacement storm", r.Timing.Storm.Reason, r.Timing.Storm.Outcome})
}

func outcomeOf(a *Admission) verdict.Outcome {
	if a == nil {
		return verdict.Inconclusive
	}
	return a.Outcome
}

// Summary says in one line what the admission test found.
func (a *Admission) Summary() string {
	if a == nil {
		return "not compared"
	}
	text := fmt.Sprintf("%s of %s random sequences, %s pods, %s decisions: %s sequences with a disagreement",
		whole(a.Sequences), whole(a.Planned), whole(a.Pods), whole(a.decisions()), whole(a.Disagreements))
	if a.Flaky > 0 {
		text += fmt.Sprintf(" (%s of them not when played again)", whole(a.Flaky))
	}
	switch i := a.Rate.Interval; {
	case i == nil:
		return text
	case a.Disagreements == 0:
		return text + fmt.Sprintf(", at most %.2g %% of such sequences at 95 %%", 100*i.High)
	default:
		return text + fmt.Sprintf(", %.2g–%.2g %% of such sequences at 95 %%", 100*i.Low, 100*i.High)
	}
}

// Details are the verdicts and reasons of the decisions, and what was not exercised.
func (a *Admission) Details() string {
	text := "Decisions of the real kubelet: " + counts(a.Decisions) + ". Reasons of rejections: " + counts(a.Reasons) + "."
	if a.Repeated > 0 {
		text += fmt.Sprintf(" Played a second time, because on one side something did not come in time: %s.", whole(a.Repeated))
	}
	if len(a.NotExercised) > 0 {
		text += " In no sequence, so that nothing is known of it: " + strings.Join(a.NotExercised, ", ") + "."
	}
	return text
}

// counts lists numbers by what they are of.
func counts(all map[string]int) string {
	if len(all) == 0 {
		return "none"
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, fmt.Sprintf("%s %s", name, whole(all[name])))
	}
	return strings.Join(texts, ", ")
}

// labels are what people call the delays.
var labels = map[string]string{
	DelayReady:       "registration to Ready",
	DelayMirror:      "registration to mirror pod",
	DelayFailedEarly: "bind to Failed, early",
	DelayFailed:      "bind to Failed",
}

// Label is what people call it.
func (d *Delay) Label() string {
	if d.StaticPod != "" {
		return labels[d.Name] + " " + d.StaticPod
	}
	return labels[d.Name]
}

// Size says how many values there are, of how many nodes.
func (s *Sample) Size() string {
	text := whole(s.N)
	if s.N != s.Nodes {
		text += fmt.Sprintf(" on %s nodes", whole(s.Nodes))
	}
	if s.Open > 0 {
		text += fmt.Sprintf(", %s open", whole(s.Open))
	}
	return text
}

// Middle is the median with its interval, in words.
func (s *Sample) Middle() string { return estimate(s.Median, seconds) }

// Ends are the 10th and 90th percentile, in words.
func (s *Sample) Ends() string {
	if s.P10 == nil {
		return absent
	}
	return seconds(*s.P10) + ", " + seconds(*s.P90)
}

// RatioText is the ratio of the rates with its interval, in words.
func (s *Storm) RatioText() string {
	return estimate(s.Ratio, func(x float64) string { return fmt.Sprintf("%.2f", x) })
}

func estimate(e stats.Estimate, write func(float64) string) string {
	switch {
	case e.Value == nil:
		return absent
	case e.Interval == nil:
		return write(*e.Value)
	}
	return fmt.Sprintf("%s (%s–%s)", write(*e.Value), write(e.Interval.Low), write(e.Interval.High))
}

// seconds writes a time; below a second in milliseconds, since the delays here are from a few of them to minutes.
func seconds(x float64) string {
	if x < 1 {
		return fmt.Sprintf("%.0f ms", 1000*x)
	}
	return results.Quantity(x, "s")
}

func whole(n int) string { return results.Quantity(float64(n), "") }

// share writes a distance or a probability.
func share(x *float64) string {
	switch {
	case x == nil:
		return absent
	case *x < 0.001:
		return "<0.001"
	case *x < 0.01:
		return fmt.Sprintf("%.3f", *x)
	}
	return fmt.Sprintf("%.2f", *x)
}
