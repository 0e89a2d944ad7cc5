package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/sweeper"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// TestSweepProgress: what a person sees of a sweep on a terminal, and what stays in a log.
func TestSweepProgress(t *testing.T) {
	run := experiments.SweepRun{Case: &experiments.Case{Name: "nodes=4"}, Run: experiments.Run{Arm: experiments.Arm{Name: "gated"}, Seed: 7}}
	now := sweeper.Progress{
		Finished: 3, Planned: 12, Elapsed: 61 * time.Second, Left: new(183*time.Second + 400*time.Millisecond), Running: []experiments.SweepRun{run, run},
	}
	var terminal, log bytes.Buffer
	live, plain := &progress{out: &terminal, terminal: true, columns: 200}, &progress{out: &log}
	live.sweep(now)
	plain.sweep(now)
	now.Running, now.Ended, now.Took, now.Finished = nil, &run, 20*time.Second, 12
	live.sweep(now)
	plain.sweep(now)
	const wantTerminal = "\r\x1b[K[#####...............] 3/12 runs, 1m1s, about 3m3s left: nodes=4 gated seed 7\r\x1b[K[####################] 12/12 runs, 1m1s"
	if got := terminal.String(); got != wantTerminal {
		t.Errorf("on a terminal %q, want %q", got, wantTerminal)
	}
	if got, want := log.String(), "12/12 runs, 1m1s: nodes=4 gated seed 7 took 20s\n"; got != want {
		t.Errorf("in a log %q, want %q", got, want)
	}
}

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
