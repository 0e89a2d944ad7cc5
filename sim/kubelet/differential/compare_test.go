package differential

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestCompare(t *testing.T) {
	rejected := func() Fate {
		return Fate{
			Verdict: Rejected, Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "m", Status: []string{"qosClass: Burstable"},
			Events: []Event{{Type: "Warning", Reason: "OutOfcpu", Message: "m", Component: "kubelet", OfNode: true}},
		}
	}
	if got := Compare(Outcome{"a": rejected(), "b": {Verdict: Admitted}}, Outcome{"a": rejected(), "b": {Verdict: Admitted}}); got != nil {
		t.Errorf("equal outcomes differ: %v", got)
	}
	for name, change := range map[string]func(*Fate){
		"verdict":          func(f *Fate) { f.Verdict = Admitted },
		"phase":            func(f *Fate) { f.Phase = corev1.PodPending },
		"reason":           func(f *Fate) { f.Reason = "OutOfmemory" },
		"message":          func(f *Fate) { f.Message = "n" },
		"status":           func(f *Fate) { f.Status[0] = "qosClass: Guaranteed" },
		"mirror":           func(f *Fate) { f.Mirror = true },
		"event's type":     func(f *Fate) { f.Events[0].Type = "Normal" },
		"event's source":   func(f *Fate) { f.Events[0].OfNode = false },
		"number of events": func(f *Fate) { f.Events = nil },
	} {
		other := rejected()
		change(&other)
		if got := Compare(Outcome{"a": other}, Outcome{"a": rejected()}); len(got) != 1 || got[0].Pod != "a" || got[0].Detail == "" {
			t.Errorf("another %s: differences %v, want one about a", name, got)
		}
	}
	if got := Compare(Outcome{"a": rejected()}, Outcome{"b": rejected()}); len(got) != 2 || got[0].Pod != "a" || got[1].Pod != "b" {
		t.Errorf("outcomes of different pods: differences %v, want one about each", got)
	}
}

func TestShrink(t *testing.T) {
	var asked int
	// The artificial fault: a sidecar of a pod that comes after the static pod s.
	faulty := func(s *Sequence) bool {
		asked++
		static := false
		for _, p := range s.all() {
			static = static || strings.HasPrefix(p.Name, "s")
			for _, c := range p.Init {
				if static && c.Sidecar && p.Name[0] != 's' {
					return true
				}
			}
		}
		return false
	}
	s := Generate(1, 0)
	for i := 1; !faulty(s) || len(s.all()) < 6; i++ {
		s = Generate(1, i)
	}
	asked = 0
	before := len(s.all())
	small := Shrink(s, 1000, faulty)
	if !faulty(small) {
		t.Error("what is left does not show the fault")
	}
	if got := len(small.all()); got != 2 {
		t.Errorf("%d of %d pods are left, want 2: %v", got, before, small)
	}
	if got := len(s.all()); got != before {
		t.Errorf("the sequence itself has %d pods after it, and had %d", got, before)
	}
	asked = 0
	if Shrink(s, 5, faulty); asked > 5 {
		t.Errorf("it was asked %d times, want 5 at most", asked)
	}
}

func TestReadAll(t *testing.T) {
	dir := t.TempDir()
	s := Generate(1, 3)
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := ReadAll(dir)
	if err != nil || len(got) != 1 || got[0].Name != s.Name {
		t.Fatalf("read %v, %v; want %s", got, err, s.Name)
	}
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
