package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/mirrorgap/mirrorgap/results"
)

// FuzzReport makes the report of whatever can be read as a trace.
func FuzzReport(f *testing.F) {
	traces, err := filepath.Glob("../testdata/*.jsonl")
	if err != nil || len(traces) == 0 {
		f.Fatalf("traces %q: %v", traces, err)
	}
	for _, path := range traces {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, results.TraceFile), data)
		folder, err := results.OpenFolder(dir)
		if err != nil {
			return
		}
		r, err := Build(folder, Source{})
		if err != nil {
			return
		}
		visible(t, pageOf(t, r))
		if err := r.Markdown(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
		if err := r.writeFigures(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
		if err := r.writeSeries(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	})
}
