package results

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Delays are how long things took on the new nodes of a run, in seconds.
type Delays struct {
	// Ready and Schedulable are from registration to the first time that the node was Ready, and that no blocking taint was left.
	Ready       Distribution `json:"ready"`
	Schedulable Distribution `json:"schedulable"`
	// Mirrors are from registration to the first mirror pod of each static pod, in order of their names.
	Mirrors []MirrorDelay `json:"mirrors"`
	// AfterReady is from Ready to the last mirror pod, negative if that came first. Nodes without mirror pods are left out.
	AfterReady Distribution `json:"lastMirrorAfterReady"`
	// Exposure is the metric of this name.
	Exposure Distribution `json:"exposure"`
	// nodes are in order of registration.
	nodes []nodeDelays
}

// MirrorDelay is the delay of the mirror pods of one static pod.
type MirrorDelay struct {
	// StaticPod is namespace/name, without the name of the node.
	StaticPod string `json:"staticPod"`
	Distribution
	// Without is the number of new nodes on which no mirror pod of it was seen: it does not run there, or its mirror pod had not come. In the latter case
	// the distribution is too short.
	Without int `json:"nodesWithout"`
}

// nodeDelays are those of one node. Nil is "not seen".
type nodeDelays struct {
	node               string
	ready, schedulable *time.Duration
	mirrors            map[string]time.Duration // by static pod
}

// delays looks at the new nodes of the run.
func (r *Run) delays() Delays {
	var d Delays
	var ready, schedulable, afterReady, exposure []*Observation
	mirrors := r.FirstMirrors()
	for _, n := range r.Nodes {
		if n.Initial {
			continue
		}
		own := nodeDelays{n.Name, since(n.Registered, n.Ready), since(n.Registered, n.Schedulable), mirrors[n.UID]}
		d.nodes = append(d.nodes, own)
		ready, schedulable = append(ready, r.orOpen(n, own.ready)), append(schedulable, r.orOpen(n, own.schedulable))
		if n.Ready != nil && n.MirrorsVisible != nil {
			afterReady = append(afterReady, &Observation{Value: (*n.MirrorsVisible - *n.Ready).Seconds()})
		}
		exposure = append(exposure, observe(n.Exposure))
	}
	d.Ready, d.Schedulable, d.AfterReady, d.Exposure = distribute(ready), distribute(schedulable), distribute(afterReady), distribute(exposure)
	d.Mirrors = []MirrorDelay{}
	for _, pod := range d.staticPods() {
		d.Mirrors = append(d.Mirrors, d.mirror(pod))
	}
	return d
}

// FirstMirrors are the times from registration to the first mirror pod of each static pod (namespace/name, without the name of the node), by the UID of the
// node. A mirror pod that was there before its node is none.
func (r *Run) FirstMirrors() map[string]map[string]time.Duration {
	nodes, first := map[string]*Node{}, map[string]map[string]time.Duration{}
	for _, n := range r.Nodes {
		nodes[n.UID], first[n.UID] = n, map[string]time.Duration{}
	}
	for _, p := range r.Pods {
		n := nodes[p.NodeUID]
		if p.Role != RoleMirror || p.Created == nil || n == nil || *p.Created < n.Registered {
			continue
		}
		name := strings.TrimSuffix(p.Name, "-"+n.Name)
		if _, again := first[n.UID][name]; !again {
			first[n.UID][name] = *p.Created - n.Registered
		}
	}
	return first
}

func since(start time.Duration, at *time.Duration) *time.Duration {
	if at == nil {
		return nil
	}
	return new(*at - start)
}

// orOpen observes a delay; one that was not over when the node went, or the trace ended, is censored.
func (r *Run) orOpen(n *Node, delay *time.Duration) *Observation {
	if delay != nil {
		return &Observation{Value: delay.Seconds()}
	}
	end := r.Wall
	if n.Gone != nil {
		end = *n.Gone
	}
	return &Observation{Value: (end - n.Registered).Seconds(), Censored: true}
}

// staticPods are those with a mirror pod, sorted.
func (d *Delays) staticPods() []string {
	names := map[string]bool{}
	for _, n := range d.nodes {
		for pod := range n.mirrors {
			names[pod] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (d *Delays) mirror(pod string) MirrorDelay {
	var seen []*Observation
	for _, n := range d.nodes {
		if delay, ok := n.mirrors[pod]; ok {
			seen = append(seen, &Observation{Value: delay.Seconds()})
		}
	}
	return MirrorDelay{StaticPod: pod, Distribution: distribute(seen), Without: len(d.nodes) - len(seen)}
}

// The widths of the table of delays.
const (
	delayLabel = 40
	delayCell  = TableWidth - delayLabel - columnGap
)

// write writes a line for each.
func (d *Delays) write(out *strings.Builder) {
	line := func(label, cell string) {
		labels, cells := wrap(label, delayLabel), wrap(cell, delayCell)
		for i := range max(len(labels), len(cells)) {
			text := ""
			if i < len(labels) {
				text = labels[i]
			}
			if i < len(cells) {
				text = fmt.Sprintf("%-*s%s", delayLabel+columnGap, text, cells[i])
			}
			fmt.Fprintln(out, strings.TrimRight(text, " "))
		}
	}
	line("delays of the new nodes", "median/p90/max")
	line("registration to Ready", delayText(d.Ready))
	line("registration to schedulable", delayText(d.Schedulable))
	if len(d.Mirrors) > 0 {
		line("registration to mirror pod of", "")
	}
	for i := range d.Mirrors {
		m := &d.Mirrors[i]
		cell := delayText(m.Distribution)
		if m.Without > 0 {
			cell += fmt.Sprintf(", on %d none", m.Without)
		}
		line("  "+m.StaticPod, cell)
	}
	line("Ready to last mirror pod", delayText(d.AfterReady))
	line("exposed, in all", delayText(d.Exposure))
}

func delayText(d Distribution) string {
	if d.N == 0 {
		return absent + sizes(d)
	}
	return duration3(*d.Median, *d.P90, *d.Max) + sizes(d)
}

// The columns of what WriteCSV writes, besides one for each static pod, named after it.
const (
	ColumnNode        = "node"
	ColumnReady       = "ready"
	ColumnSchedulable = "schedulable"
)

// WriteCSV writes a row for each new node: the delays from its registration, in seconds, as CSV from which an experiment takes an empirical distribution by
// the name of a column. What was not seen is an empty cell. From says where they were seen.
func (d *Delays) WriteCSV(w io.Writer, from string) error {
	if _, err := fmt.Fprintf(w, "# Seconds from the registration of each new node (n=%d); empty: not seen.\n# Seen in %s.\n",
		len(d.nodes), strings.Join(strings.Fields(from), " ")); err != nil {
		return fmt.Errorf("write delays: %w", err)
	}
	pods := d.staticPods()
	out := csv.NewWriter(w)
	_ = out.Write(append([]string{ColumnNode, ColumnReady, ColumnSchedulable}, pods...)) // Error has it
	for _, n := range d.nodes {
		row := []string{n.node, secondsCell(n.ready), secondsCell(n.schedulable)}
		for _, pod := range pods {
			cell := ""
			if delay, ok := n.mirrors[pod]; ok {
				cell = secondsCell(&delay)
			}
			row = append(row, cell)
		}
		_ = out.Write(row)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write delays: %w", err)
	}
	return nil
}

func secondsCell(delay *time.Duration) string {
	if delay == nil {
		return ""
	}
	return strconv.FormatFloat(delay.Seconds(), 'f', 6, 64)
}
