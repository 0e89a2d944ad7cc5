package experiments

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDifferences(t *testing.T) {
	a, err := Load("testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load("testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Differences(a, b); err != nil || len(got) > 0 {
		t.Errorf("equal experiments: got %v, %v", got, err)
	}
	b.Spec.Description = "another"
	b.Spec.TimeLimit.Duration = 7 * time.Minute
	b.Spec.Seeds = append(b.Spec.Seeds, 99)
	got, err := Differences(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"spec.seeds[" + string(rune('0'+len(a.Spec.Seeds))) + "]: not set → 99", "spec.timeLimit: " + text(t, a.Spec.TimeLimit) + " → 7m0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func text(t *testing.T, d interface{ MarshalJSON() ([]byte, error) }) string {
	t.Helper()
	data, err := d.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data[1 : len(data)-1])
}
