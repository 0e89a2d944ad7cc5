package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// TestSweepGoesOn: an interrupted sweep leaves no process, says how to go on, and makes only the run that is left then.
func TestSweepGoesOn(t *testing.T) {
	dir := experimentsFolder(t)
	p := start(t, dir, "sweep", "small-sweep.yaml", "--out", "results", "--parallel", "1")
	p.stderr.awaitText(t, "1/2 runs")
	p.server(t, "kube-apiserver") // of the second run
	p.signal(t, os.Interrupt)
	if code := p.wait(t); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	p.checkNothingLeft(t)
	results := filepath.Join(dir, "results")
	checkEnding(t, filepath.Join(results, "cases/nodes=1/ungated/seed-1"), trace.EndSettled)
	const next = "mirrorgap sweep --out results results/sweep.yaml"
	if !strings.Contains(p.stderr.String(), next) {
		t.Errorf("does not say how to go on by %q:\n%s", next, p.stderr)
	}

	p = start(t, dir, strings.Fields(next)[1:]...)
	if code := p.wait(t); code != exitOK {
		t.Fatalf("exit code %d, want %d\n%s", code, exitOK, p.stderr)
	}
	p.checkNothingLeft(t)
	if text := p.stderr.String(); strings.Count(text, "took") != 1 || !strings.Contains(text, "2/2 runs") {
		t.Errorf("made other runs than the one that was left:\n%s", text)
	}
	checkEnding(t, filepath.Join(results, "cases/nodes=2/ungated/seed-1"), trace.EndSettled)
	checkFiles(t, results, "sweep.json", "sweep.csv", "sweep.txt", "sweep.html", "cases/nodes=1/summary.json", "cases/nodes=2/summary.json",
		"cases/nodes=2/ungated/seed-1/logs/etcd.log")
	if report := start(t, dir, "report", "results/cases/nodes=2"); report.wait(t) != exitOK {
		t.Errorf("the folder of a case has no report:\n%s", report.stderr)
	}
}

// TestKilledSweep: the processes of a sweep that was killed end too.
func TestKilledSweep(t *testing.T) {
	p := start(t, experimentsFolder(t), "sweep", "small-sweep.yaml", "--parallel", "2")
	p.server(t, "kube-apiserver")
	p.signal(t, os.Kill)
	p.wait(t)
	eventually(t, "end of all processes", func() (bool, any) {
		left := p.descendants(t)
		return len(left) == 0, left
	})
}
