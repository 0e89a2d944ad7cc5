package agreement

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/mirrorgap/mirrorgap/results/verdict"
)

const (
	docsPage = "../../docs/model-agreement.md"
	begin    = "<!-- begin: results/agreement/committed/agreement.json, as mirrorgap writes it into agreement.md -->\n"
	end      = "<!-- end -->"
)

// TestDocumented: docs/model-agreement.md shows the embedded report as it is; -update writes it there.
func TestDocumented(t *testing.T) {
	r, err := Committed()
	if err != nil {
		t.Fatal(err)
	}
	var markdown bytes.Buffer
	if err := r.Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(data), begin)
	shown, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("%s has not the lines between which the report stands", docsPage)
	}
	if *update {
		if err := os.WriteFile(docsPage, []byte(before+begin+markdown.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if shown != markdown.String() {
		t.Errorf("%s does not show the embedded report: run go test with -update", docsPage)
	}
}

// TestCommittedIsWhole: the embedded report is one that was written by this version of the format, of both parts, and says what it was made with.
func TestCommittedIsWhole(t *testing.T) {
	r, err := Committed()
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != Version || r.Command == "" || r.Start.IsZero() || r.Versions["kubernetes"] == "" || r.Machine.CPUs == 0 {
		t.Errorf("it does not say what it was made with: %+v", r)
	}
	if r.Admission == nil || r.Timing == nil || len(r.Timing.Delays) < 4 || len(r.Timing.Doubts) > 0 {
		t.Errorf("it is not of both parts, or in doubt: %s", r.Sentence())
	}
	judged := *r
	judged.Judge()
	if judged.Outcome != r.Outcome || r.Outcome == verdict.Failed {
		t.Errorf("it says %v, and is judged %v", r.Outcome, judged.Outcome)
	}
}
