package results

import (
	"strings"
	"testing"
)

// Messages from public reports of the race, and of a v1.37.2 kubelet.
func TestParseShortage(t *testing.T) {
	for _, tt := range []struct {
		message string
		want    shortage
	}{
		{"Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 3500, capacity: 4000", shortage{"cpu", 1000, 3500, 4000}},
		{"Pod Node didn't have enough resource: cpu, requested: 120, used: 3803, capacity: 3920", shortage{"cpu", 120, 3803, 3920}},
		{"Node didn't have enough resource: memory, requested: 16000000000, used: 31946743808, capacity: 37634150400",
			shortage{"memory", 16000000000, 31946743808, 37634150400}},
		{"Node didn't have enough resource: pods, requested: 1, used: 32, capacity: 32", shortage{"pods", 1, 32, 32}},
		{"Node didn't have enough resource: example.com/gpu, requested: 2, used: 0, capacity: 1", shortage{"example.com/gpu", 2, 0, 1}},
	} {
		got, ok := parseShortage(tt.message)
		if !ok || got != tt.want {
			t.Errorf("%s: got %v, %v, want %v", tt.message, got, ok, tt.want)
		}
		if got.missing() <= 0 {
			t.Errorf("%s: nothing is missing (%d)", tt.message, got.missing())
		}
	}
	for _, message := range []string{
		"", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		"Node didn't have enough resource: cpu, requested: 1000, used: 3500",
		"Node didn't have enough resource: cpu, requested: 99999999999999999999, used: 0, capacity: 1",
		"Node didn't have enough resource: , requested: 1, used: 3, capacity: 4",
	} {
		if got, ok := parseShortage(message); ok {
			t.Errorf("%q: got %v, want no shortage", message, got)
		}
	}
}

func FuzzParseShortage(f *testing.F) {
	f.Add("Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 3500, capacity: 4000")
	f.Add("Node didn't have enough resource: pods, requested: 1, used: 32, capacity: 32")
	f.Fuzz(func(t *testing.T, message string) {
		short, ok := parseShortage(message)
		if !ok {
			return
		}
		_, again := outOf(short.resource, short.requested, short.used, short.capacity)
		if got, ok := parseShortage(again); !ok || got != short {
			t.Errorf("%q was read as %v, which reads back as %v, %v", message, short, got, ok)
		}
		if short.resource == "" || strings.ContainsAny(short.resource, ", \t\n") {
			t.Errorf("%q: resource %q", message, short.resource)
		}
	})
}

func TestIsRejection(t *testing.T) {
	for _, tt := range []struct {
		reason, message string
		want            bool
	}{
		{"OutOfcpu", "", true},
		{"OutOfephemeral-storage", "", true},
		{"NodeAffinity", "", true},
		{"NodeShutdown", "", true},
		{"SomethingNew", "Pod was rejected: of a reason that is not known here", true},
		{"Evicted", "The node was low on resource: memory.", false},
		{"Preempting", "Preempted in order to admit critical pod", false},
		{"Terminated", "Pod was terminated in response to imminent node shutdown.", false},
		{"", "", false},
	} {
		check(t, tt.reason+" "+tt.message, IsRejection(tt.reason, tt.message), tt.want)
	}
}
