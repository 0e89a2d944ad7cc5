package results

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mirrorgap/mirrorgap/results/stats"
)

// Findings are what a trace says about the race on the nodes that joined: whether it was open, whether anything fell into it, and how long things took.
// They need API events only.
type Findings struct {
	// Answer says it in a few sentences.
	Answer string `json:"answer"`
	// NewNodes joined. Of WithStaticPods of them static pods are known, of which Schedulable could be scheduled onto at some time, of which Exposed before
	// their last mirror pod appeared, of which Brief for less than InFlightWindow: the order of nodes and pods in the trace does not carry that.
	NewNodes       int `json:"newNodes"`
	WithStaticPods int `json:"withStaticPods"`
	Schedulable    int `json:"schedulable"`
	Exposed        int `json:"exposed"`
	Brief          int `json:"exposedBriefly"`
	// Rejected are the pods that new nodes rejected, RejectedBefore those that nodes rejected which were there before.
	Rejected       Rejections `json:"rejected"`
	RejectedBefore Rejections `json:"rejectedByInitialNodes"`
	// Delays are those of the new nodes.
	Delays Delays `json:"delays"`
	// KubeletEvidence: kubelets wrote events, so that static pods without mirror pods are known.
	KubeletEvidence bool `json:"kubeletEvidence"`
	// End is how the trace ended, Conclusive whether it may be judged.
	End        string `json:"end"`
	Conclusive bool   `json:"conclusive"`
	// LongestInterruption is Run.LongestInterruption in seconds.
	LongestInterruption float64 `json:"longestInterruptionSeconds"`
	// exposed describes the exposure of the exposed nodes only.
	exposed Distribution
}

// Rejections are pods that kubelets rejected.
type Rejections struct {
	Pods int `json:"pods"`
	// Hidden would have fitted but for static pods without a mirror pod, or with one younger than InFlightWindow, when they were bound.
	Hidden   int            `json:"hidden"`
	ByReason map[string]int `json:"byReason,omitempty"`
	ByCause  map[Cause]int  `json:"byCause,omitempty"`
}

// Findings looks at the new nodes of the run.
func (r *Run) Findings() *Findings {
	f := &Findings{
		KubeletEvidence: r.KubeletEvidence, End: r.End, Conclusive: r.Conclusive(), LongestInterruption: r.LongestInterruption().Seconds(),
		Delays: r.delays(),
	}
	var exposed []*Observation
	fresh := map[string]bool{}
	for _, n := range r.Nodes {
		if n.Initial {
			continue
		}
		fresh[n.UID] = true
		f.countNode(n)
		if n.Exposure != nil && n.Exposure.Duration > 0 {
			exposed = append(exposed, observe(n.Exposure))
		}
	}
	f.exposed = distribute(exposed)
	for _, p := range r.Pods {
		switch {
		case p.Rejection == nil:
		case fresh[p.NodeUID]:
			f.Rejected.count(p.Rejection)
		default:
			f.RejectedBefore.count(p.Rejection)
		}
	}
	f.Answer = f.answer()
	return f
}

func (f *Findings) countNode(n *Node) {
	f.NewNodes++
	if n.StaticPods == 0 {
		return
	}
	f.WithStaticPods++
	if n.Exposure == nil {
		return
	}
	f.Schedulable++
	if length := n.Exposure.Duration; length > 0 {
		f.Exposed++
		if length < InFlightWindow && !n.Exposure.Censored {
			f.Brief++
		}
	}
}

func (r *Rejections) count(rejection *Rejection) {
	if r.Pods == 0 {
		r.ByReason, r.ByCause = map[string]int{}, map[Cause]int{}
	}
	r.Pods++
	r.ByReason[rejection.Reason]++
	r.ByCause[rejection.Cause]++
	if rejection.Cause == CauseHiddenStaticPod || rejection.Cause == CauseMirrorInFlight {
		r.Hidden++
	}
}

// answer says what follows, and no more.
func (f *Findings) answer() string {
	sentences := []string{f.race()}
	if f.Schedulable > 0 {
		sentences = append(sentences, f.others()...)
	}
	switch {
	case f.Rejected.Pods > 0:
		sentences = append(sentences, f.Rejected.sentence("the new nodes"))
	case f.Exposed > 0:
		sentences = append(sentences, "No pod was rejected on the new nodes: the gap was open, and nothing fell into it.")
	case f.NewNodes > 0:
		sentences = append(sentences, "No pod was rejected on the new nodes.")
	}
	if f.RejectedBefore.Pods > 0 {
		sentences = append(sentences, f.RejectedBefore.sentence("nodes that were there before"))
	}
	if f.LongestInterruption > InFlightWindow.Seconds() {
		sentences = append(sentences, fmt.Sprintf("A watch was broken for up to %s: times may be wrong by as much.", duration(f.LongestInterruption)))
	}
	if !f.Conclusive {
		sentences = append(sentences, fmt.Sprintf("The trace ended as %s: what is not in it may have happened all the same.", f.End))
	}
	return strings.Join(sentences, " ")
}

// race says whether it was open.
func (f *Findings) race() string {
	switch {
	case f.NewNodes == 0:
		return "No node joined: nothing can be said about the race. Record during a scale-up."
	case f.WithStaticPods == 0 && f.KubeletEvidence:
		return fmt.Sprintf("%s joined, and none runs a static pod: there is no gap on them.", plural(f.NewNodes, "node"))
	case f.WithStaticPods == 0:
		return fmt.Sprintf("%s joined, and no mirror pod was seen on any: either none runs a static pod, or their mirror pods had not come yet. "+
			"Which of both, the API does not tell.", plural(f.NewNodes, "node"))
	case f.Schedulable == 0:
		return fmt.Sprintf("%s joined with static pods, and none became schedulable: nothing can be said about the race. Record until they run pods.",
			plural(f.WithStaticPods, "node"))
	case f.Exposed == 0:
		return fmt.Sprintf("%s joined with static pods, and none could be scheduled onto before its mirror pods were there%s.",
			plural(f.Schedulable, "node"), f.bound())
	}
	return fmt.Sprintf("%d of %s that joined with static pods could be scheduled onto before their mirror pods were there, %s.%s",
		f.Exposed, plural(f.Schedulable, "node"), f.length(), f.brief())
}

// bound says what none of the nodes means for others, if all were put to the test.
func (f *Findings) bound() string {
	if f.Schedulable < f.NewNodes || !f.Conclusive {
		return ""
	}
	rate := stats.Proportion(0, f.Schedulable)
	return fmt.Sprintf(" (at most %s %% at 95 %%, if nodes are independent)", percent(rate.Interval.High))
}

// length says how long nodes were exposed.
func (f *Findings) length() string {
	d := f.exposed
	if d.N == 0 {
		return "which had not ended"
	}
	open := ""
	if d.Censored > 0 {
		open = fmt.Sprintf("; %d more had not ended", d.Censored)
	}
	return fmt.Sprintf("for %s (median/p90/max%s)", duration3(*d.Median, *d.P90, *d.Max), open)
}

func (f *Findings) brief() string {
	if f.Brief == 0 {
		return ""
	}
	return fmt.Sprintf(" For %d of these it was less than %s, which is too short for the order in which two watches arrive.", f.Brief, duration(InFlightWindow.Seconds()))
}

// others says what became of the new nodes that were not put to the test.
func (f *Findings) others() []string {
	var sentences []string
	if held := f.WithStaticPods - f.Schedulable; held > 0 {
		sentences = append(sentences, fmt.Sprintf("%d more never became schedulable.", held))
	}
	unseen := f.NewNodes - f.WithStaticPods
	switch {
	case unseen > 0 && f.KubeletEvidence:
		sentences = append(sentences, fmt.Sprintf("%d more joined without static pods.", unseen))
	case unseen > 0:
		sentences = append(sentences, fmt.Sprintf("%d more joined without a mirror pod: without a static pod, or before its mirror pod came.", unseen))
	}
	return sentences
}

func (r *Rejections) sentence(where string) string {
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(r.ByReason)) {
		reasons = append(reasons, strings.TrimSpace(reason+" "+commas(strconv.Itoa(r.ByReason[reason]))))
	}
	were, part := "were", commas(strconv.Itoa(r.Hidden))+" of these"
	switch {
	case r.Pods == 1:
		were = "was"
	case r.Hidden == r.Pods:
		part = "all of these"
	}
	return fmt.Sprintf("%s %s rejected on %s (%s); %s would have fitted but for static pods whose mirror pods were missing, or less than %s old, at the bind.",
		plural(r.Pods, "pod"), were, where, strings.Join(reasons, ", "), part, duration(InFlightWindow.Seconds()))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return commas(strconv.Itoa(n)) + " " + what + "s"
}

// Table writes the findings for a person, in at most TableWidth characters a line.
func (f *Findings) Table(w io.Writer) error {
	var out strings.Builder
	writeText(&out, f.Answer, TableWidth)
	if f.NewNodes > 0 {
		out.WriteString("\n")
		f.Delays.write(&out)
	}
	if !f.KubeletEvidence {
		out.WriteString("\n")
		writeText(&out, "Seen through the API only: a static pod is known by its mirror pod, and taken to run from the registration of its node. "+
			"One whose mirror pod had not come is not seen.", TableWidth)
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}
