package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/agreement"
	"github.com/mirrorgap/mirrorgap/results/verdict"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// kubelets are how long those of a side take. Seconds.
type kubelets struct{ ready, loop float64 }

// timingTrace is the trace of a run of the timing experiment, by hand: 20 nodes of each start group, 3 of each storm group.
func timingTrace(t *testing.T, seed uint64, modelled, ofReal kubelets) []byte {
	t.Helper()
	var events []trace.Event
	add := func(seconds float64, source string, e trace.Event) {
		e.T, e.Source = time.Duration(seconds*float64(time.Second)), source
		events = append(events, e)
	}
	node := func(name string, registered float64, k kubelets) {
		room := trace.Resources{"cpu": 4000}
		add(registered, trace.SourceAPI, trace.Event{Kind: trace.NodeRegistered, Node: name, NodeUID: name + "-uid",
			NodeInfo: &trace.NodeInfo{Group: name[:strings.LastIndex(name, "-")], Allocatable: room, Capacity: room}})
		add(registered+k.ready, trace.SourceAPI, trace.Event{Kind: trace.NodeReady, Node: name, NodeUID: name + "-uid"})
	}
	static := func(name, pod string, started, mirrored float64) {
		add(started, trace.SourceKubelet, trace.Event{Kind: trace.StaticPodStarted, Node: name, Pod: pod + "-" + name, UID: pod + name})
		add(mirrored, trace.SourceAPI, trace.Event{Kind: trace.PodCreated, Node: name, Pod: pod + "-" + name, UID: "mirror-" + pod + name,
			PodInfo: &trace.PodInfo{Mirror: true, MirrorHash: pod + name, OwnerUID: name + "-uid"}})
	}
	pods := 0
	reject := func(name string, bound, failed float64) {
		pods++
		e := trace.Event{Pod: fmt.Sprintf("default/pod-%d", pods), UID: fmt.Sprint(pods), Node: name}
		created := e
		created.Kind, created.Node, created.PodInfo = trace.PodCreated, "", &trace.PodInfo{Workload: "fill"}
		add(bound, trace.SourceAPI, created)
		e.Kind = trace.PodBound
		add(bound, trace.SourceAPI, e)
		e.Kind, e.Reason = trace.PodRejected, "OutOfcpu"
		add(bound+0.01, trace.SourceKubelet, e)
		e.Kind = trace.PodFailed
		add(failed, trace.SourceAPI, e)
	}
	for side, k := range map[string]kubelets{"model": modelled, "real": ofReal} {
		for i := range 20 {
			name, start, late := fmt.Sprintf("start-%s-%d", side, i), float64(i), float64(i)/1000
			node(name, start, kubelets{ready: k.ready + late})
			static(name, "kube-system/proxy", start, start+0.02+late)
			reject(name, start+0.5, start+9.9+late)
		}
		for i := range 3 {
			name := fmt.Sprintf("storm-%s-%d", side, i)
			node(name, 60, k)
			static(name, "kube-system/agent", 60, 100)
			for bound := 75.0; bound < 95; bound += k.loop {
				reject(name, bound, bound+0.06)
			}
		}
	}
	slices.SortStableFunc(events, func(a, b trace.Event) int { return int(a.T - b.T) })
	add(110, trace.SourceRun, trace.Event{Kind: trace.RunEnded, Reason: trace.EndSettled})
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	header := trace.Header{
		Schema: trace.Schema, Experiment: timingExperiment, Arm: "ungated", Seed: seed, Engine: "live", Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Versions: map[string]string{"kubernetes": "v1.37.2"}, Machine: trace.Machine{OS: "linux", Arch: "amd64", CPUs: 2},
	}
	for _, line := range append([]any{header}, each(events)...) {
		if err := enc.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func each(events []trace.Event) []any {
	all := make([]any, len(events))
	for i := range events {
		all[i] = events[i]
	}
	return all
}

// validationFolder is a folder of mirrorgap validate-model with as many runs, and the counts of an admission test.
func validationFolder(t *testing.T, runs, planned int, modelled, ofReal kubelets, admission string) string {
	t.Helper()
	dir := t.TempDir()
	e, err := library.Get(timingExperiment)
	if err != nil {
		t.Fatal(err)
	}
	e.Spec.Seeds = e.Spec.Seeds[:planned]
	resolved, err := e.YAML()
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte, path ...string) {
		file := filepath.Join(append([]string{dir, "results"}, path...)...)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(resolved, timingFolder, "experiment.yaml")
	for seed := range uint64(runs) {
		write(timingTrace(t, seed+1, modelled, ofReal), timingFolder, "ungated", fmt.Sprintf("seed-%d", seed+1), results.TraceFile)
	}
	if admission != "" {
		write([]byte(admission), admissionFile)
	}
	return dir
}

// TestValidateModel: what a person reads, the exit code and the files, for a folder that there is.
func TestValidateModel(t *testing.T) {
	usual := kubelets{ready: 0.3, loop: 0.2}
	const counts = `{"seed": 1, "planned": 1000, "sequences": 1000, "pods": 7200, "decisions": {"admitted": 5000, "rejected": 1100}, "reasons": {"OutOfcpu": 1100}}`
	for name, c := range map[string]struct {
		args          string
		runs, planned int
		model         kubelets
		admission     string
		code          int
	}{
		"agree":         {"results", 6, 6, usual, counts, exitOK},
		"differ":        {"results", 6, 6, kubelets{ready: 0.5, loop: 0.4}, counts, exitFailed},
		"one-run":       {"results", 1, 6, usual, counts, exitInconclusive},
		"no-admission":  {"results", 6, 6, usual, "", exitInconclusive},
		"json":          {"results -o json", 6, 6, usual, counts, exitOK},
		"bad-counts":    {"results", 1, 1, usual, "[]", exitBadInput},
		"other-folder":  {".", 1, 1, usual, counts, exitBadInput},
		"flags-of-runs": {"results --seeds 3", 1, 1, usual, counts, exitBadInput},
		"no-seeds":      {"--seeds 0", 1, 1, usual, counts, exitBadInput},
	} {
		t.Run(name, func(t *testing.T) {
			dir := validationFolder(t, c.runs, c.planned, c.model, usual, c.admission)
			args := append([]string{"validate-model"}, strings.Fields(c.args)...)
			stdout, stderr, code := mirrorgap(t, dir, args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			golden(t, filepath.Join("testdata/validate-model", name+".golden"),
				fmt.Sprintf("$ mirrorgap %s\n%s--- stderr\n%s--- exit code %d\n", strings.Join(args, " "), stdout, stderr, code))
			for _, file := range []string{agreement.JSONFile, agreement.MarkdownFile, agreement.HTMLFile, agreement.CSVFile} {
				if _, err := os.Stat(filepath.Join(dir, "results", file)); (err == nil) != (c.code != exitBadInput) {
					t.Errorf("%s: %v", file, err)
				}
			}
		})
	}
}

// TestValidateModelIsInterrupted: Ctrl-C leaves a report of what there was, which is inconclusive, and no process.
func TestValidateModelIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "validate-model", "--out", "results", "--sequences", "10000", "--seeds", "1")
	p.stderr.awaitText(t, "admission: ")
	p.signal(t, os.Interrupt)
	if code := p.wait(t); code != exitInterrupted {
		t.Errorf("exit code %d, want %d\n%s", code, exitInterrupted, p.stderr)
	}
	p.checkNothingLeft(t)
	data, err := os.ReadFile(filepath.Join(dir, "results", agreement.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	r := &agreement.Report{}
	if err := json.Unmarshal(data, r); err != nil || r.Outcome != verdict.Inconclusive || r.Admission == nil || r.Admission.Sequences >= 10000 {
		t.Errorf("%v: %s", err, data)
	}
	if out := p.stdout.String(); !strings.HasPrefix(out, "INCONCLUSIVE") {
		t.Errorf("it says %s", out)
	}
}
