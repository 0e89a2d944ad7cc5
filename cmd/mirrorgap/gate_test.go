package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/verdict"
)

// gateFolder is a folder with the experiments of testdata/gate, and a results folder for each of some outcomes, made of the traces of package results.
func gateFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/gate")); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]map[string]string{
		"results":     {"experiment.yaml": "by-hand.yaml", "ungated": "ungated", "gated": "gated"},
		"strict":      {"experiment.yaml": "strict.yaml", "ungated": "ungated", "gated": "gated"},
		"no-race":     {"experiment.yaml": "by-hand.yaml", "ungated": "pinned", "gated": "gated"},
		"interrupted": {"experiment.yaml": "by-hand.yaml", "ungated": "ungated", "gated": "interrupted"},
		"time-limit":  {"experiment.yaml": "by-hand.yaml", "ungated": "ungated", "gated": "held-for-ever"},
		"truncated":   {"experiment.yaml": "by-hand.yaml", "ungated": "truncated", "gated": "gated"},
		"cut-short":   {"experiment.yaml": "by-hand.yaml", "ungated": "ungated"},
		"unjudged":    {"experiment.yaml": "no-thresholds.yaml", "ungated": "ungated", "gated": "gated"},
		"mixed-up":    {"experiment.yaml": "by-foot.yaml", "ungated": "ungated", "gated": "gated"},
		"recorded":    {"ungated": "ungated", "gated": "gated"},
		"empty":       {"experiment.yaml": "by-hand.yaml"},
		"broken":      {"experiment.yaml": "by-hand.yaml", "ungated": "summary"},
	} {
		for to, from := range files {
			if to == "experiment.yaml" {
				copyFile(t, filepath.Join("testdata/gate", from), filepath.Join(dir, name, to))
				continue
			}
			path := filepath.Join("../../results/testdata", from+".jsonl")
			if from == "summary" {
				path = "../../results/testdata/summary.json"
			}
			copyFile(t, path, filepath.Join(dir, name, to, "seed-1", results.TraceFile))
		}
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGate: what a person reads and the exit code, for runs that exist; and that files are written for every verdict, and for nothing else.
func TestGate(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		code int
	}{
		"passed":            {"results", exitOK},
		"passed-json":       {"results -o json", exitOK},
		"failed":            {"strict", exitFailed},
		"other-thresholds":  {"results --thresholds strict.yaml", exitFailed},
		"recorded":          {"recorded --thresholds by-hand.yaml", exitOK},
		"no-race":           {"no-race", exitInconclusive},
		"interrupted":       {"interrupted", exitInconclusive},
		"time-limit":        {"time-limit", exitInconclusive},
		"truncated":         {"truncated", exitInconclusive},
		"cut-short":         {"cut-short", exitInconclusive},
		"no-thresholds":     {"unjudged", exitBadInput},
		"no-experiment":     {"recorded", exitBadInput},
		"other-version":     {"results --thresholds other-version.yaml", exitBadInput},
		"bad-thresholds":    {"results --thresholds bad.yaml", exitBadInput},
		"unknown":           {"results --thresholds quik", exitBadInput},
		"mixed-up":          {"mixed-up", exitBadInput},
		"empty":             {"empty", exitBadInput},
		"broken":            {"broken", exitBadInput},
		"out-of-folder":     {"results --out elsewhere", exitBadInput},
		"run-no-thresholds": {"no-thresholds.yaml", exitBadInput},
		"run-bad":           {"bad.yaml", exitBadInput},
		"junit-nowhere":     {"results --junit nowhere/junit.xml", exitBadInput},
	} {
		t.Run(name, func(t *testing.T) {
			dir := gateFolder(t)
			args := append([]string{"gate"}, strings.Fields(c.args)...)
			stdout, stderr, code := mirrorgap(t, dir, args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			golden(t, filepath.Join("testdata/gate", name+".golden"),
				fmt.Sprintf("$ mirrorgap %s\n%s--- stderr\n%s--- exit code %d\n", strings.Join(args, " "), stdout, stderr, code))
			outcomes := map[int]verdict.Outcome{exitOK: verdict.Passed, exitFailed: verdict.Failed, exitInconclusive: verdict.Inconclusive}
			if want, judged := outcomes[c.code]; judged {
				checkVerdict(t, filepath.Join(dir, args[1]), want)
			} else if c.code == exitBadInput {
				checkNotJudged(t, filepath.Join(dir, args[1]))
			}
		})
	}
}

// checkVerdict fails the test unless a results folder has the files of a verdict of that outcome.
func checkVerdict(t *testing.T, dir string, want verdict.Outcome) *verdict.Verdict {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, verdict.File))
	if err != nil {
		t.Fatal(err)
	}
	var v verdict.Verdict
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if v.Outcome != want {
		t.Errorf("%s says %v, want %v", verdict.File, v.Outcome, want)
	}
	checkJUnit(t, filepath.Join(dir, verdict.JUnitFile), &v)
	return &v
}

// checkJUnit fails the test unless the file tells CI systems the same as the verdict does.
func checkJUnit(t *testing.T, path string, v *verdict.Verdict) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var junit struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
	}
	if err := xml.Unmarshal(data, &junit); err != nil {
		t.Fatal(err)
	}
	if junit.Tests != len(v.Assumptions)+len(v.Thresholds) {
		t.Errorf("%d tests, want one for each of %d assumptions and %d thresholds", junit.Tests, len(v.Assumptions), len(v.Thresholds))
	}
	if green := junit.Failures+junit.Errors == 0; green != (v.Outcome == verdict.Passed) {
		t.Errorf("%d failures and %d errors of a verdict that is %v", junit.Failures, junit.Errors, v.Outcome)
	}
}

func checkNotJudged(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{verdict.File, verdict.JUnitFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("there is a %s though nothing was judged", name)
		}
	}
}

// TestGateJUnitElsewhere: the file of --junit is the one in the folder.
func TestGateJUnitElsewhere(t *testing.T) {
	dir := gateFolder(t)
	if _, stderr, code := mirrorgap(t, dir, "gate", "results", "--junit", "mine.xml"); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	one, err := os.ReadFile(filepath.Join(dir, "mine.xml"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(dir, "results", verdict.JUnitFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, other) {
		t.Error("they differ")
	}
}

// TestGateOnRunsThatEndBadly: runs that fail or are interrupted are judged all the same, as inconclusive, also when their folder is judged again.
func TestGateOnRunsThatEndBadly(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*testing.T, *process)
		code int
	}{
		"interrupted": {func(t *testing.T, p *process) { p.signal(t, syscall.SIGINT) }, exitInterrupted},
		"a server dies": {func(t *testing.T, p *process) {
			if err := p.server(t, "etcd").KillWithContext(t.Context()); err != nil {
				t.Error(err)
			}
		}, exitError},
	} {
		t.Run(name, func(t *testing.T) {
			dir := experimentsFolder(t)
			appendFile(t, filepath.Join(dir, "storm.yaml"),
				"  thresholds: [{arm: ungated, metric: initialNodesWithRejection, statistic: max, operator: <=, value: 0}]\n")
			p := start(t, dir, "gate", "storm.yaml", "--out", "results")
			p.stderr.awaitText(t, "scale-up: ")
			c.end(t, p)
			if code := p.wait(t); code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, p.stderr)
			}
			p.checkNothingLeft(t)
			checkVerdict(t, filepath.Join(dir, "results"), verdict.Inconclusive)
			if !strings.HasPrefix(p.stdout.String(), "storm: INCONCLUSIVE: ") {
				t.Errorf("it says:\n%s", p.stdout)
			}
			if stdout, _, code := mirrorgap(t, dir, "gate", "results"); code != exitInconclusive || stdout != p.stdout.String() {
				t.Errorf("judged again: exit code %d, and it says\n%s", code, stdout)
			}
		})
	}
}

// TestGateQuick: what the library says of its experiment is so.
func TestGateQuick(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "gate", "quick", "--out", "results")
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d, want %d\n%s\n%s", code, exitOK, p.stdout, p.stderr)
	}
	p.checkNothingLeft(t)
	v := checkVerdict(t, filepath.Join(dir, "results"), verdict.Passed)
	for _, c := range v.Assumptions {
		if c.Waived != "" {
			t.Errorf("not checked: %s", c.Message)
		}
	}
}

func appendFile(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, text...), 0o644); err != nil {
		t.Fatal(err)
	}
}
