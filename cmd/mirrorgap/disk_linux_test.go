package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// TestDiskFull: a run whose trace can no longer be written ends as an error that names the file, and keeps what was written. What stands for the
// full disk is a limit on the size of mirrorgap's files, set once its servers, which would inherit it, are there.
func TestDiskFull(t *testing.T) {
	dir := experimentsFolder(t)
	p := start(t, dir, "run", "storm.yaml", "--out", "results")
	p.stderr.awaitText(t, "scale-up: ")
	results := filepath.Join(dir, "results")
	run := filepath.Join(results, "ungated/seed-1")
	const limit = 150_000 // bytes: seconds of the storm; the results are smaller
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitError {
		t.Errorf("exit code %d, want %d", code, exitError)
	}
	p.checkNothingLeft(t)
	for _, want := range []string{"write trace", "trace.jsonl", unix.EFBIG.Error()} {
		if !strings.Contains(p.stderr.String(), want) {
			t.Errorf("standard error lacks %q", want)
		}
	}
	events, err := readTrace(t, run)
	if !errors.Is(err, trace.ErrTruncated) || count(events, trace.PodBound) == 0 {
		t.Errorf("the trace has %d events and ends with %v", len(events), err)
	}
	checkFiles(t, run, "summary.json", "nodes.csv")
	checkFiles(t, results, "summary.json", "summary.txt")
}
