package results

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// writeTrace writes the script's trace as dir/arm/seed/trace.jsonl, begun at that minute.
func writeTrace(t *testing.T, dir, run string, b *script, minute int) {
	t.Helper()
	b.header.Start = time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)
	writeFile(t, filepath.Join(dir, run, TraceFile), b.bytes())
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFolderIsReadInTheOrderInWhichItsRunsBegan(t *testing.T) {
	dir := t.TempDir()
	writeTrace(t, dir, "gated/seed-1", gated(t), 2)
	writeTrace(t, dir, "ungated/seed-1", ungated(t), 1)
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := folder.Summary()
	if err != nil {
		t.Fatal(err)
	}
	check(t, "arms", len(summary.Arms), 2)
	check(t, "first arm", summary.Arms[0].Name, "ungated")
	check(t, "rejected", summary.Arms[0].Figure(MetricRejectedPods, "").Runs[0].Value, 5)

	one, err := OpenFolder(folder.Traces[1])
	if err != nil {
		t.Fatal(err)
	}
	check(t, "a single trace", len(one.Traces), 1)
	check(t, "its folder", one.Path, filepath.Join(dir, "gated", "seed-1"))
}

// TestFolderRefuses: what is no results folder is bad input, with all that is wrong in one error.
func TestFolderRefuses(t *testing.T) {
	header := string(ungated(t).bytes()[:strings.IndexByte(string(ungated(t).bytes()), '\n')+1])
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"an empty folder", nil, []string{"is not a results folder"}},
		{"a foreign file", map[string]string{"a/trace.jsonl": "hello\n", "b/trace.jsonl": ""}, []string{"a/trace.jsonl:1: not a trace", "b/trace.jsonl: empty file"}},
		{"one that is empty", map[string]string{"a/trace.jsonl": "", "b/trace.jsonl": header}, []string{"a/trace.jsonl: empty file, not a trace"}},
		{"another schema", map[string]string{"trace.jsonl": `{"schema":"mirrorgap.trace/v9"}`}, []string{`trace.jsonl:1: trace of schema "mirrorgap.trace/v9"`}},
		{"a line that is no event", map[string]string{"trace.jsonl": header + "{\n{}\n"}, []string{"trace.jsonl:2: "}},
		{"two experiments", map[string]string{"a/trace.jsonl": header, "b/trace.jsonl": strings.Replace(header, "by-hand", "another", 1)},
			[]string{`b/trace.jsonl is of experiment "another"`}},
		{"one run twice", map[string]string{"a/trace.jsonl": header, "b/trace.jsonl": header}, []string{"two runs of seed"}},
	} {
		dir := t.TempDir()
		for name, content := range tt.files {
			writeFile(t, filepath.Join(dir, name), []byte(content))
		}
		folder, err := OpenFolder(dir)
		if err == nil {
			_, err = folder.Summary()
		}
		if !errors.As(err, new(*InputError)) {
			t.Errorf("%s: got %v, want an InputError", tt.name, err)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want it to say %q", tt.name, err, want)
			}
		}
	}
}

// TestFolderOfAKilledRunIsInconclusive: a trace that was cut is read, and judged by nobody.
func TestFolderOfAKilledRunIsInconclusive(t *testing.T) {
	dir := t.TempDir()
	b := newScript(t, "ungated", nil)
	b.phase(trace.PhaseScaleUp)
	writeTrace(t, dir, "ungated/seed-1", b, 1)
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := folder.Summary()
	if err != nil {
		t.Fatal(err)
	}
	check(t, "end", summary.Arms[0].Runs[0].End, EndTruncated)
	check(t, "conclusive", summary.Arms[0].Runs[0].Conclusive, false)
}
