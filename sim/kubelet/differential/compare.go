package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// Outcome is what became of the pods of a sequence, by the names in it.
type Outcome map[string]Fate

// Verdict is what the kubelet decided about a pod.
type Verdict string

// The verdicts. The zero value is none.
const (
	Admitted Verdict = "admitted"
	Rejected Verdict = "rejected"
	// Preempted pods were admitted, and evicted for a critical one.
	Preempted Verdict = "preempted"
	// Skipped pods had finished before the kubelet came to see them.
	Skipped Verdict = "skipped"
)

// Fate is what became of a pod.
type Fate struct {
	Verdict Verdict
	// Mirror tells of a static pod whether it ever had a mirror pod.
	Mirror bool
	// Reason and Message are those of the status, Phase is that of a pod that has ended, and Status has the rest of it, line by line.
	Phase           corev1.PodPhase
	Reason, Message string
	Status          []string
	Events          []Event
}

// Event is an event of a kubelet. OfNode: its source has the name of the node.
type Event struct {
	Type, Reason, Message, Component, Kind string
	OfNode                                 bool
	Count                                  int32
}

func (p *play) outcome() Outcome {
	o := Outcome{}
	static := map[string]bool{}
	for i := range p.Static {
		static[p.Static[i].Name] = true
	}
	for _, s := range p.Steps {
		if s.PutStatic != nil {
			static[s.PutStatic.Name] = true
		}
	}
	for _, pod := range p.all() {
		name := pod.Name
		if static[name] {
			name = p.mirror(name)
		}
		fate := p.fate(name, pod.Phase != "")
		fate.Mirror = static[pod.Name] && p.view.pod(name) != nil
		o[pod.Name] = fate
	}
	return o
}

func (p *play) fate(name string, finished bool) Fate {
	f := Fate{Events: p.view.admissionEvents(name)}
	for i := range f.Events {
		f.Events[i].Message = p.anonymous(f.Events[i].Message)
	}
	pod := p.view.pod(name)
	switch {
	case finished:
		f.Verdict = Skipped
	case slices.ContainsFunc(f.Events, func(e Event) bool { return e.Reason == preempting }):
		f.Verdict = Preempted
	case len(f.Events) > 0, pod != nil && pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		f.Verdict = Rejected
	default:
		f.Verdict = Admitted
	}
	if pod == nil || !podutil.IsPodPhaseTerminal(pod.Status.Phase) || pod.DeletionTimestamp != nil { // what ends by being deleted ends in its own way
		return f
	}
	f.Phase, f.Reason, f.Message = pod.Status.Phase, pod.Status.Reason, p.anonymous(pod.Status.Message)
	switch f.Verdict {
	case Rejected:
		f.Status = complete(&pod.Status)
		if kubetypes.IsMirrorPod(pod) {
			f.Status = slices.DeleteFunc(f.Status, func(line string) bool { return strings.HasPrefix(line, more) })
		}
	case Preempted:
		if _, c := podutil.GetPodCondition(&pod.Status, corev1.DisruptionTarget); c != nil {
			f.Status = []string{describe(c) + " " + c.Message}
		}
	}
	return f
}

// more begins the line with what else there is in a status.
const more = "more: "

// complete is a status beyond phase, reason and message, line by line.
func complete(s *corev1.PodStatus) []string {
	lines := []string{
		fmt.Sprintf("qosClass: %s", s.QOSClass), fmt.Sprintf("observedGeneration: %d", s.ObservedGeneration), fmt.Sprintf("startTime: %t", s.StartTime != nil),
	}
	for i := range s.Conditions {
		lines = append(lines, "condition: "+describe(&s.Conditions[i]))
	}
	slices.Sort(lines[3:]) // the order of conditions says nothing
	rest := s.DeepCopy()
	rest.Phase, rest.Reason, rest.Message, rest.QOSClass, rest.ObservedGeneration, rest.StartTime, rest.Conditions = "", "", "", "", 0, nil, nil
	if diff := cmp.Diff(corev1.PodStatus{}, *rest); diff != "" {
		lines = append(lines, more+rest.String())
	}
	return lines
}

func describe(c *corev1.PodCondition) string {
	return fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
}

// anonymous replaces the name of the node, which is the namespace's too.
func (p *play) anonymous(message string) string { return strings.ReplaceAll(message, p.node, "NODE") }

// Difference is a pod about which model and real kubelet do not agree.
type Difference struct {
	Pod string `json:"pod"` // empty: one side could not play the sequence to its end
	// Detail shows both sides: what only the real kubelet says begins with -, what only the model says with +.
	Detail string `json:"detail"`
}

// Compare lists the pods about which two outcomes of one sequence differ, in the order of their names. Nil: they agree.
func Compare(model, actual Outcome) []Difference {
	names := maps.Clone(model)
	maps.Copy(names, actual)
	var differences []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if diff := cmp.Diff(actual[name], model[name]); diff != "" {
			differences = append(differences, Difference{Pod: name, Detail: diff})
		}
	}
	return differences
}
