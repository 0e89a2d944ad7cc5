package sweeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/sweep"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// The test binary is also the process that makes a run, and one that makes a sweep, when these variables are set.
const (
	childVariable = "SWEEPER_TEST_CHILD"   // what the child does
	parentVar     = "SWEEPER_TEST_PARENT"  // the results folder
	journalVar    = "SWEEPER_TEST_JOURNAL" // the file to which each child adds the name of its run
	pipeVar       = "SWEEPER_TEST_PIPE"    // a named pipe, of which a child that waits holds the end to write to, if there is one
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(parentVar) != "":
		os.Exit(parent(os.Getenv(parentVar)))
	case os.Getenv(childVariable) != "":
		os.Exit(child(os.Getenv(childVariable), os.Args[1], os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// child stands in for a process that makes a run: it writes the trace that such a process would leave. Behaviour is what it does, a word, followed by the
// name of the only run that does it, if not all do: "fail a=1,b=x/gated/seed-2". The others end as they should.
func child(behaviour, dir, arm, seed string) int {
	behaviour, only, limited := strings.Cut(behaviour, " ")
	run := filepath.Base(dir) + "/" + arm + "/seed-" + seed
	if limited && run != only {
		behaviour = "settle"
	}
	if err := record(behaviour, dir, arm, seed, run); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	return 0
}

func record(behaviour, dir, arm, seed, run string) error {
	if err := note(run); err != nil {
		return err
	}
	e, err := experiments.Load(filepath.Join(dir, experiments.ResolvedFile))
	if err != nil {
		return err
	}
	number, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, arm, "seed-"+seed)
	file, err := os.Create(filepath.Join(dir, results.TraceFile))
	if err != nil {
		return err
	}
	w, err := trace.NewWriter(file, trace.Header{Experiment: e.Metadata.Name, Labels: e.Metadata.Labels, Arm: arm, Seed: number, Engine: "live", Start: time.Now()})
	if err != nil {
		return err
	}
	w.Record(trace.Event{Kind: trace.NodeRegistered, Source: trace.SourceAPI, Node: "n-0", NodeUID: "u", NodeInfo: &trace.NodeInfo{Group: "n"}})
	end := trace.Event{Kind: trace.RunEnded, Source: trace.SourceRun, Reason: trace.EndSettled}
	switch behaviour {
	case "fail":
		return errors.New("the disk is full")
	case "quit":
		return w.Flush()
	case "limit":
		end.Reason = trace.EndTimeLimit
	case "wait":
		if err := wait(w); err != nil {
			return err
		}
		end.Reason = trace.EndInterrupted
	}
	w.Record(end)
	if err := errors.Join(w.Flush(), file.Close()); err != nil {
		return err
	}
	read, err := results.ReadTrace(file.Name())
	if err != nil {
		return err
	}
	_, err = results.WriteRun(dir, read)
	return err
}

// held is a child's end of the pipe, which it closes by ending: it may still write files after it has waited.
var held *os.File

// wait waits for the end of the standard input. From then on the child holds the pipe.
func wait(w *trace.Writer) error {
	if path := os.Getenv(pipeVar); path != "" {
		var err error
		if held, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// note adds a line to the journal.
func note(line string) error {
	journal, err := os.OpenFile(os.Getenv(journalVar), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(journal, line)
	return errors.Join(err, journal.Close())
}

// parent makes a sweep in a process of its own.
func parent(dir string) int {
	s, err := parse()
	if err := os.Unsetenv(parentVar); err != nil { // its children are none
		return 1
	}
	if err == nil {
		_, err = Run(context.Background(), s, Options{Dir: dir, Parallel: 2, Child: []string{os.Args[0]}})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

const sweepText = `apiVersion: mirrorgap.dev/v1alpha1
kind: Sweep
metadata: {name: test}
spec:
  experiment:
    spec:
      nodeGroups: [{name: pool, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]
      arms: [{name: ungated}, {name: gated, gate: true}]
  seeds: [2, 7]
  parameters:
    - {name: initial, fields: ["spec.nodeGroups[0].initial"], values: [1, 2]}
    - {name: cpu, fields: ["spec.nodeGroups[0].capacity.cpu"], values: [4]}
`

func parse() (*experiments.Sweep, error) {
	return experiments.ParseSweep(experiments.Source{Name: "test.yaml", Data: []byte(sweepText)}, nil)
}

// all are the runs of the sweep in the order in which they are to be made.
var all = []string{
	"initial=1,cpu=4/ungated/seed-2", "initial=1,cpu=4/gated/seed-2", "initial=2,cpu=4/ungated/seed-2", "initial=2,cpu=4/gated/seed-2",
	"initial=1,cpu=4/ungated/seed-7", "initial=1,cpu=4/gated/seed-7", "initial=2,cpu=4/ungated/seed-7", "initial=2,cpu=4/gated/seed-7",
}

// fixture is a sweep with a results folder to be, and a journal of what its children did.
type fixture struct {
	sweep   *experiments.Sweep
	options Options
	journal string
	seen    int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{sweep: s, journal: filepath.Join(t.TempDir(), "journal")}
	if err := os.WriteFile(f.journal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(journalVar, f.journal)
	f.options = Options{Dir: filepath.Join(t.TempDir(), "out"), Parallel: 1, Child: []string{os.Args[0]}}
	return f
}

// run makes the sweep with children of that behaviour.
func (f *fixture) run(t *testing.T, ctx context.Context, behaviour string) (*sweep.Sweep, error) { //nolint:revive // t comes first in tests
	t.Helper()
	t.Setenv(childVariable, behaviour)
	return Run(ctx, f.sweep, f.options)
}

// made are the runs that children have begun since the last call.
func (f *fixture) made(t *testing.T) []string {
	t.Helper()
	file, err := os.Open(f.journal)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var lines []string
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	made := lines[f.seen:]
	f.seen = len(lines)
	return made
}

func (f *fixture) checkMade(t *testing.T, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, f.made(t), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("runs made (-want +got):\n%s", diff)
	}
}

// checkWhole fails the test unless the sweep is finished and all its files are there.
func (f *fixture) checkWhole(t *testing.T, result *sweep.Sweep, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if finished, planned, _ := result.Finished(); finished != len(all) || planned != len(all) {
		t.Errorf("%d of %d runs are finished", finished, planned)
	}
	for _, name := range []string{
		SweepFile, sweep.JSONFile, sweep.TableFile, "cases/initial=2,cpu=4/experiment.yaml", "cases/initial=2,cpu=4/summary.json",
		"cases/initial=2,cpu=4/gated/seed-7/trace.jsonl", "cases/initial=2,cpu=4/gated/seed-7/logs/mirrorgap.log",
	} {
		if _, err := os.Stat(filepath.Join(f.options.Dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestParallel: several at a time make the same. A run that ended by its time limit is finished, and the result says that it did not settle.
func TestParallel(t *testing.T) {
	f := newFixture(t)
	f.options.Parallel = 5
	result, err := f.run(t, t.Context(), "limit "+all[2])
	f.checkWhole(t, result, err)
	made := f.made(t)
	slices.Sort(made)
	if diff := cmp.Diff(slices.Sorted(slices.Values(all)), made); diff != "" {
		t.Errorf("runs made (-want +got):\n%s", diff)
	}
	if _, _, notSettled := result.Finished(); notSettled != 1 {
		t.Errorf("%d runs did not settle", notSettled)
	}
}

// TestFailure: no run is begun after one that failed, and what it said is in the error.
func TestFailure(t *testing.T) {
	for behaviour, want := range map[string]string{
		"fail": "case initial=2,cpu=4, arm ungated, seed 2: exit status 4\n--- ",
		"quit": "its process ended without an error, but left no whole trace",
	} {
		t.Run(behaviour, func(t *testing.T) {
			f := newFixture(t)
			result, err := f.run(t, t.Context(), behaviour+" "+all[2])
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if behaviour == "fail" && !strings.Contains(err.Error(), "the disk is full") {
				t.Errorf("the error does not have what the process said: %v", err)
			}
			if finished, planned, _ := result.Finished(); finished != 2 || planned != len(all) {
				t.Errorf("%d of %d runs are finished", finished, planned)
			}
			f.checkMade(t, all[:3])
		})
	}
}

// TestFailedRunIsMadeAgain: with all that follow it.
func TestFailedRunIsMadeAgain(t *testing.T) {
	f := newFixture(t)
	if _, err := f.run(t, t.Context(), "fail "+all[5]); err == nil {
		t.Error("no error")
	}
	f.checkMade(t, all[:6])
	result, err := f.run(t, t.Context(), "settle")
	f.checkWhole(t, result, err)
	f.checkMade(t, all[5:])
}

// TestResume: whole comparisons are made first, and nothing twice; but of a run that is not finished, whatever is left of it, everything is made again.
func TestResume(t *testing.T) {
	f := newFixture(t)
	result, err := f.run(t, t.Context(), "settle")
	f.checkWhole(t, result, err)
	f.checkMade(t, all)
	if label := result.Cases[1].Arms[0].Runs[0].Labels["initial"]; label != "2" {
		t.Errorf("a run of the second case has the label %q", label)
	}
	result, err = f.run(t, t.Context(), "fail")
	f.checkWhole(t, result, err)
	f.checkMade(t, nil)
	run := func(i int, name string) string { return filepath.Join(f.options.Dir, "cases", all[i], name) }
	text, err := os.ReadFile(run(0, results.TraceFile))
	if err != nil {
		t.Fatal(err)
	}
	broken := map[int]func() error{
		0: func() error { return os.WriteFile(run(0, results.TraceFile), text[:len(text)-20], 0o600) }, // cut in its last line
		1: func() error { return os.Remove(run(1, results.SummaryFile)) },                              // before it was evaluated
		2: func() error { return os.Remove(run(2, results.TraceFile)) },
		3: func() error { return os.RemoveAll(run(3, "")) },
		4: func() error { return os.WriteFile(run(4, results.TraceFile), text, 0o600) }, // another seed's
		6: func() error { return os.WriteFile(run(6, results.TraceFile), []byte("nonsense\n"), 0o600) },
	}
	want := []string{}
	for _, i := range slices.Sorted(maps.Keys(broken)) {
		if err := broken[i](); err != nil {
			t.Fatal(err)
		}
		want = append(want, all[i])
	}
	if err := os.WriteFile(run(0, "left-over"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, done := Finished(f.options.Dir, f.sweep); !slices.Equal(done, []bool{false, false, false, false, false, true, false, true}) {
		t.Errorf("finished: %v", done)
	}
	result, err = f.run(t, t.Context(), "settle")
	f.checkWhole(t, result, err)
	f.checkMade(t, want)
	if _, err := os.Stat(run(0, "left-over")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left of a run is still there (%v)", err)
	}
}

// TestInterruption: at the end of its context a sweep tells the runs that are being made to stop, waits for them, keeps what is finished, and goes on later.
func TestInterruption(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.options.Parallel = 2
	var once sync.Once
	f.options.Progress = func(p Progress) {
		// The second run waits; the others go past it until there is none left.
		if p.Finished == len(all)-1 && len(p.Running) == 1 {
			once.Do(cancel)
		}
	}
	result, err := f.run(t, ctx, "wait "+all[1])
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "7 of 8 runs are finished") {
		t.Errorf("got %v", err)
	}
	if finished, _, _ := result.Finished(); finished != 7 {
		t.Errorf("%d runs are finished", finished)
	}
	if data, err := os.ReadFile(filepath.Join(f.options.Dir, "cases", all[1], results.TraceFile)); err != nil || !strings.Contains(string(data), trace.EndInterrupted) {
		t.Errorf("the run was not told to stop, or not waited for (%v):\n%s", err, data)
	}
	f.made(t)
	f.options.Progress = nil
	result, err = f.run(t, t.Context(), "settle")
	f.checkWhole(t, result, err)
	f.checkMade(t, all[1:2])
}

// TestKilled: when the process that makes the sweep is killed, those that make runs end.
func TestKilled(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(pipeVar, path)
	t.Setenv(childVariable, "wait "+all[1])
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), parentVar+"="+f.options.Dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.Open(path) // returns when the child has opened it too
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()                                       // it was killed
	if _, err := io.Copy(io.Discard, pipe); err != nil { // ends when the child is gone
		t.Fatal(err)
	}
}

// TestFoldersOfOthers: a folder is taken only if it is empty or of the same sweep, and by one process at a time.
func TestFoldersOfOthers(t *testing.T) {
	check := func(t *testing.T, f *fixture, want string) {
		t.Helper()
		_, err := f.run(t, t.Context(), "settle")
		var bad *experiments.BadInput
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a BadInput with %q", err, want)
		}
		f.checkMade(t, nil)
	}
	t.Run("of something else", func(t *testing.T) {
		f := newFixture(t)
		f.options.Dir = filepath.Dir(f.journal)
		check(t, f, "is in use: name another")
	})
	t.Run("a file", func(t *testing.T) {
		f := newFixture(t)
		f.options.Dir = f.journal
		check(t, f, "not a directory")
	})
	t.Run("of another state", func(t *testing.T) {
		f := newFixture(t)
		held, err := open(f.options.Dir, f.sweep)
		if err != nil {
			t.Fatal(err)
		}
		check(t, f, "in use by another mirrorgap sweep")
		if err := held.close(); err != nil {
			t.Fatal(err)
		}
		f.sweep.Spec.Seeds = experiments.Seeds{2, 8}
		check(t, f, `has "- 7", and not "- 8": results folder`)
	})
}

// TestLeft: the estimate takes runs of the same case and arm where there are some, else any.
func TestLeft(t *testing.T) {
	f := newFixture(t)
	runs := f.sweep.Runs()
	at := func(b *board, want string) {
		t.Helper()
		got := "unknown"
		if left := b.left(b.begun.Add(10 * time.Second)); left != nil {
			got = left.String()
		}
		if got != want {
			t.Errorf("left is %s, want %s", got, want)
		}
	}
	took, done := make([]time.Duration, len(runs)), make([]bool, len(runs))
	at(newBoard(runs, took, done, 2), "unknown")
	took[0], done[0] = 40*time.Second, true
	at(newBoard(runs, took, done, 1), "4m40s") // seven as the one
	took[1], done[1] = 80*time.Second, true
	b := newBoard(runs, took, done, 2)
	at(b, "3m0s") // 60 + 60 + (40 + 80 + 60 + 60) seconds, by two
	running := b.next(t.Context())
	running.started = b.begun
	at(b, "2m55s") // of 60 seconds 10 are over
	b.waiting = nil
	at(b, "50s") // of one that is left nothing is shared
	if p := b.progress(); p.Finished != 2 || p.Planned != 8 || len(p.Running) != 1 || p.Running[0].Case.Name != "initial=2,cpu=4" {
		t.Errorf("progress is %+v", p)
	}
}
