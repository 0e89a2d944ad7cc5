package results

import (
	"cmp"
	"encoding/csv"
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
	// Answer says it in a sentence or two.
	Answer string `json:"answer"`
	// NewNodes joined; WithStaticPods of them have static pods that are known; Exposed of these were schedulable before their last mirror pod appeared.
	NewNodes       int `json:"newNodes"`
	WithStaticPods int `json:"withStaticPods"`
	Exposed        int `json:"exposed"`
	// Rejected counts pods that new nodes rejected, Hidden those that would have fitted beside what the API showed.
	Rejected int `json:"rejected"`
	Hidden   int `json:"hidden"`
	// Ready is from registration to Ready, Mirrors from registration to the mirror pod of each static pod, in order of their names, Exposure as the metric.
	Ready    Distribution  `json:"ready"`
	Mirrors  []MirrorDelay `json:"mirrors"`
	Exposure Distribution  `json:"exposure"`
	// KubeletEvidence: kubelets wrote events, so that static pods without mirror pods are known.
	KubeletEvidence bool `json:"kubeletEvidence"`
	// exposed describes the exposure of the exposed nodes only.
	exposed Distribution
}

// MirrorDelay is the delay of the mirror pods of one static pod.
type MirrorDelay struct {
	// StaticPod is namespace/name, without the name of the node.
	StaticPod string `json:"staticPod"`
	Distribution
	// Without is the number of new nodes on which no mirror pod of it was seen: it does not run there, or its mirror pod had not come. In the latter case
	// the distribution is too short.
	Without int `json:"nodesWithout"`
	// samples are the delays, in ascending order.
	samples []mirrorSample
}

type mirrorSample struct {
	node    string
	seconds float64
}

// Findings looks at the new nodes of the run.
func (r *Run) Findings() *Findings {
	f := &Findings{KubeletEvidence: r.KubeletEvidence}
	fresh := map[string]*Node{}
	var ready, exposure, exposed []*Observation
	for _, n := range r.Nodes {
		if n.Initial {
			continue
		}
		fresh[n.UID] = n
		f.NewNodes++
		if n.Ready != nil {
			ready = append(ready, observe(&Span{Duration: *n.Ready - n.Registered}))
		}
		exposure = append(exposure, observe(n.Exposure))
		if n.StaticPods > 0 {
			f.WithStaticPods++
		}
		if n.Exposure != nil && n.Exposure.Duration > 0 {
			f.Exposed++
			exposed = append(exposed, observe(n.Exposure))
		}
	}
	f.Ready, f.Exposure, f.exposed = distribute(ready), distribute(exposure), distribute(exposed)
	f.Mirrors = r.mirrorDelays(fresh)
	for _, p := range r.Pods {
		if p.Rejection != nil && fresh[p.NodeUID] != nil {
			f.Rejected++
			if p.Rejection.Cause == CauseHiddenStaticPod || p.Rejection.Cause == CauseMirrorInFlight {
				f.Hidden++
			}
		}
	}
	f.Answer = f.answer()
	return f
}

// mirrorDelays are the delays of the first mirror pod of each static pod on each new node.
func (r *Run) mirrorDelays(fresh map[string]*Node) []MirrorDelay {
	first := map[string]map[string]mirrorSample{} // by static pod and UID of the node
	for _, p := range r.Pods {
		n := fresh[p.NodeUID]
		if p.Role != RoleMirror || p.Created == nil || n == nil || *p.Created < n.Registered {
			continue
		}
		name := strings.TrimSuffix(p.Name, "-"+n.Name)
		if first[name] == nil {
			first[name] = map[string]mirrorSample{}
		}
		if _, again := first[name][n.UID]; !again {
			first[name][n.UID] = mirrorSample{n.Name, (*p.Created - n.Registered).Seconds()}
		}
	}
	var delays []MirrorDelay
	for _, name := range slices.Sorted(maps.Keys(first)) {
		d := MirrorDelay{StaticPod: name, samples: slices.SortedFunc(maps.Values(first[name]), func(a, b mirrorSample) int {
			return cmp.Or(cmp.Compare(a.seconds, b.seconds), cmp.Compare(a.node, b.node))
		})}
		var observations []*Observation
		for _, s := range d.samples {
			observations = append(observations, &Observation{Value: s.seconds})
		}
		d.Distribution, d.Without = distribute(observations), len(fresh)-len(d.samples)
		delays = append(delays, d)
	}
	return delays
}

// answer says what follows, and no more.
func (f *Findings) answer() string {
	switch {
	case f.NewNodes == 0:
		return "No node joined: nothing can be said about the race. Record during a scale-up."
	case f.WithStaticPods == 0 && f.KubeletEvidence:
		return fmt.Sprintf("%s joined, and none runs a static pod: there is no gap on them.", plural(f.NewNodes, "node"))
	case f.WithStaticPods == 0:
		return fmt.Sprintf("%s joined, and no mirror pod was seen on any: either none runs a static pod, or their mirror pods had not come yet. "+
			"Which of both, the API does not tell.", plural(f.NewNodes, "node"))
	case f.Exposed == 0:
		bound := stats.Proportion(0, f.WithStaticPods).Interval.High
		return fmt.Sprintf("%s joined with static pods, and none could be scheduled onto before its mirror pods were there (at most %s %% at 95 %%, if nodes are independent). %s",
			plural(f.WithStaticPods, "node"), number(100*bound), f.rejections())
	}
	length := "which had not ended"
	if d := f.exposed; d.N > 0 {
		length = fmt.Sprintf("for %s (median/p90/max", duration3(*d.Median, *d.P90, *d.Max))
		if d.Censored > 0 {
			length += fmt.Sprintf("; %d more had not ended", d.Censored)
		}
		length += ")"
	}
	return fmt.Sprintf("%d of %s that joined with static pods could be scheduled onto before their mirror pods were there, %s. %s",
		f.Exposed, plural(f.WithStaticPods, "node"), length, f.rejections())
}

func (f *Findings) rejections() string {
	if f.Rejected == 0 {
		return "No pod was rejected on them."
	}
	return fmt.Sprintf("%s rejected on them; %d of these would have fitted but for static pods that the API did not show.", plural(f.Rejected, "pod")+were(f.Rejected), f.Hidden)
}

func were(n int) string {
	if n == 1 {
		return " was"
	}
	return " were"
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
		fmt.Fprintf(&out, "\n%-42s median/p90/max\n", "from the registration of a new node to")
		writeDelay(&out, "Ready", f.Ready, "")
		for i := range f.Mirrors {
			m := &f.Mirrors[i]
			note := ""
			if m.Without > 0 {
				note = fmt.Sprintf(", on %d none", m.Without)
			}
			writeDelay(&out, "mirror pod of "+m.StaticPod, m.Distribution, note)
		}
		out.WriteString("\n")
		writeDelay(&out, "exposed, in all", f.Exposure, "")
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

func writeDelay(out *strings.Builder, label string, d Distribution, note string) {
	cell := absent
	if d.N > 0 {
		cell = duration3(*d.Median, *d.P90, *d.Max)
	}
	for i, text := range wrap(label, 40) {
		if i == 0 {
			text = fmt.Sprintf("%-42s %s%s%s", text, cell, sizes(d), note)
		}
		fmt.Fprintln(out, text)
	}
}

// DelaysColumn is the column of the delays in what WriteDelays writes.
const DelaysColumn = "seconds"

// WriteDelays writes the mirror delays as CSV, which an experiment takes for an empirical distribution: a row a mirror pod. From says where they were seen.
func (f *Findings) WriteDelays(w io.Writer, from string) error {
	if _, err := fmt.Fprintf(w, "# Mirror delays: from the registration of a node to the appearance of a static pod's mirror pod. Seen in %s.\n",
		strings.Join(strings.Fields(from), " ")); err != nil {
		return fmt.Errorf("write delays: %w", err)
	}
	out := csv.NewWriter(w)
	_ = out.Write([]string{"staticPod", "node", DelaysColumn}) // Error has it
	for _, m := range f.Mirrors {
		for _, s := range m.samples {
			_ = out.Write([]string{m.StaticPod, s.node, strconv.FormatFloat(s.seconds, 'f', 6, 64)})
		}
	}
	out.Flush()
	return out.Error()
}
