package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gopsutil "github.com/shirou/gopsutil/v4/process"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

const (
	// deadline bounds every wait. It says nothing about speed: a loaded machine may need a good part of it.
	deadline = 5 * time.Minute
	// look is the period at which is asked for what cannot be waited on: files and processes.
	look = 50 * time.Millisecond
)

// process is a mirrorgap that runs, with a folder for temporary files of its own.
type process struct {
	cmd            *exec.Cmd
	temp           string
	stdin          io.WriteCloser
	stdout, stderr *captured
	exited         chan struct{}
}

// start starts mirrorgap in a folder. What is left of it at the end of the test is a failure of the test.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{temp: t.TempDir(), exited: make(chan struct{})}
	p.stdout, p.stderr = newCaptured(p.exited), newCaptured(p.exited)
	p.cmd = exec.CommandContext(t.Context(), executable(t), args...)
	p.cmd.Dir, p.cmd.Env = dir, environment(t.TempDir(), p.temp)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) } // a test that failed half-way leaves nothing either
	p.cmd.WaitDelay = deadline
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code says it
		close(p.exited)
	}()
	t.Cleanup(func() { <-p.exited })
	return p
}

// wait waits for the end of mirrorgap and returns its exit code, -1 when a signal ended it.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(deadline):
		t.Fatalf("it has not ended within %s\n%s", deadline, p.stderr)
		return 0
	}
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// descendants are all processes that mirrorgap has started, directly or not, whoever their parent is now: they inherit its TMPDIR.
func (p *process) descendants(t *testing.T) (found []*gopsutil.Process) {
	t.Helper()
	all, err := gopsutil.ProcessesWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range all {
		variables, err := other.EnvironWithContext(t.Context())
		if err != nil { // it has just ended, or is somebody else's
			continue
		}
		if int(other.Pid) != p.cmd.Process.Pid && slices.Contains(variables, "TMPDIR="+p.temp) {
			found = append(found, other)
		}
	}
	return found
}

// server waits until etcd or kube-apiserver has been started.
func (p *process) server(t *testing.T, name string) (server *gopsutil.Process) {
	t.Helper()
	eventually(t, "start of "+name, func() (bool, any) {
		all := p.descendants(t)
		for _, d := range all {
			if n, err := d.NameWithContext(t.Context()); err == nil && n == name {
				server = d
			}
		}
		return server != nil, all
	})
	return server
}

// checkNothingLeft fails the test if a process or a temporary file is still there.
func (p *process) checkNothingLeft(t *testing.T) {
	t.Helper()
	for _, d := range p.descendants(t) {
		line, _ := d.CmdlineWithContext(t.Context()) // only a hint
		t.Errorf("process %d is left: %s", d.Pid, line)
	}
	if left := list(t, p.temp); len(left) > 0 {
		t.Errorf("left in the folder for temporary files: %q", left)
	}
}

// eventually waits for something that can only be asked for. What was seen is shown if it never comes.
func eventually(t *testing.T, what string, done func() (done bool, seen any)) {
	t.Helper()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	limit := time.After(deadline)
	for {
		ok, seen := done()
		if ok {
			return
		}
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatalf("not within %s: %s; but:\n%v", deadline, what, seen)
		}
	}
}

// captured is what a program has written so far.
type captured struct {
	ended <-chan struct{} // no more will come

	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{} // closed at the next write
}

func newCaptured(ended <-chan struct{}) *captured {
	return &captured{ended: ended, grown: make(chan struct{})}
}

// Write implements io.Writer.
func (o *captured) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.grown)
	o.grown = make(chan struct{})
	return o.text.Write(data)
}

// String implements fmt.Stringer.
func (o *captured) String() string {
	text, _ := o.now()
	return text
}

func (o *captured) now() (text string, grown <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.grown
}

// await waits until a condition holds for what was written.
func (o *captured) await(t *testing.T, what string, holds func(text string) bool) {
	t.Helper()
	limit := time.After(deadline)
	for {
		text, grown := o.now()
		if holds(text) {
			return
		}
		select {
		case <-grown:
		case <-o.ended:
			if !holds(o.String()) {
				t.Fatalf("the program ended without %s:\n%s", what, o)
			}
			return
		case <-limit:
			t.Fatalf("no %s within %s:\n%s", what, deadline, text)
		}
	}
}

// awaitText waits until a text was written.
func (o *captured) awaitText(t *testing.T, text string) {
	t.Helper()
	o.await(t, text, func(all string) bool { return strings.Contains(all, text) })
}

// readTrace returns a run's events, and the error with which they end: nil if the trace is complete.
func readTrace(t *testing.T, run string) (events []trace.Event, err error) {
	t.Helper()
	file, err := os.Open(filepath.Join(run, "trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader, err := trace.NewReader("trace.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// checkEnding fails the test unless a run's trace is complete and ends for the reason given. It returns the events.
func checkEnding(t *testing.T, run, reason string) []trace.Event {
	t.Helper()
	events, err := readTrace(t, run)
	if err != nil {
		t.Fatal(err)
	}
	if end := events[len(events)-1]; end.Kind != trace.RunEnded || end.Reason != reason {
		t.Errorf("the trace ends with %s %q (%s), want %s %q", end.Kind, end.Reason, end.Message, trace.RunEnded, reason)
	}
	return events
}

func count(events []trace.Event, kind trace.Kind) (n int) {
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// readCSV reads a file of a run as rows of cells by the names of their columns.
func readCSV(t *testing.T, path string) (rows []map[string]string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// checkFiles fails the test unless the files are there and not empty.
func checkFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("no file %s, or an empty one, in %s (%v)", name, dir, err)
		}
	}
}

// TestRunQuick: the race shows on every new node without the readiness gate, and on none with it, in what a user finds in the results folder.
func TestRunQuick(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "run", "quick", "--out", "results")
	if code := p.wait(t); code != exitOK {
		t.Fatalf("exit code %d, want %d\n%s", code, exitOK, p.stderr)
	}
	p.checkNothingLeft(t)

	results := filepath.Join(dir, "results")
	checkFiles(t, results, "experiment.yaml", "summary.json", "summary.txt", "report.html", "report.md", "verdict.json", "junit.xml")
	table, err := os.ReadFile(filepath.Join(results, "summary.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if want := string(table) + "\nresults: results\nreport:  results/report.html\n"; p.stdout.String() != want {
		t.Errorf("standard output is not the table and the folder (-want +got):\n%s", cmp.Diff(want, p.stdout.String()))
	}
	if _, stderr, code := mirrorgap(t, results, "validate", "experiment.yaml"); code != exitOK {
		t.Errorf("the resolved experiment is not valid: exit code %d\n%s", code, stderr)
	}

	newNodes := []string{"pool-3", "pool-4", "pool-5"}
	for arm, want := range map[string][]string{"ungated": newNodes, "gated": nil} {
		run := filepath.Join(results, arm, "seed-1")
		checkFiles(t, run, "trace.jsonl", "nodes.csv", "pods.csv", "summary.json", "logs/etcd.log", "logs/kube-apiserver.log",
			"logs/kube-scheduler.log", "logs/kube-controller-manager.log", "logs/kubelet.log", "logs/kubernetes.log")
		checkEnding(t, run, trace.EndSettled)
		if got := column(readCSV(t, filepath.Join(run, "nodes.csv")), "node", "initial", "false"); !slices.Equal(got, newNodes) {
			t.Errorf("%s: new nodes %q, want %q", arm, got, newNodes)
		}
		pods := readCSV(t, filepath.Join(run, "pods.csv"))
		if got := column(pods, "node", "reason", "OutOfcpu"); !slices.Equal(got, want) {
			t.Errorf("%s: nodes with OutOfcpu %q, want %q", arm, got, want)
		}
		if other := column(pods, "pod", "reason", "OutOfcpu"); len(other)+len(column(pods, "pod", "reason", "")) != len(pods) {
			t.Errorf("%s: pods were rejected for other reasons than OutOfcpu", arm)
		}
	}
}

// column returns the different cells of a column in the rows in which another one has a value, sorted.
func column(rows []map[string]string, name, where, value string) (cells []string) {
	for _, row := range rows {
		if row[where] == value {
			cells = append(cells, row[name])
		}
	}
	slices.Sort(cells)
	return slices.Compact(cells)
}

// TestTimeLimit: a run that does not settle is reported, with its own exit code.
func TestTimeLimit(t *testing.T) {
	dir := experimentsFolder(t)
	p := start(t, dir, "run", "time-limit.yaml", "--out", "results")
	if code := p.wait(t); code != exitInconclusive {
		t.Errorf("exit code %d, want %d", code, exitInconclusive)
	}
	p.checkNothingLeft(t)
	if !strings.Contains(p.stderr.String(), "did not settle") || !strings.Contains(p.stdout.String(), "results: results") {
		t.Errorf("it says:\n%s\n%s", p.stdout, p.stderr)
	}
	checkEnding(t, filepath.Join(dir, "results/ungated/seed-1"), trace.EndTimeLimit)
}

// TestInterrupt: at whatever moment it is interrupted, mirrorgap stops everything, keeps what was recorded, and says that it was interrupted.
func TestInterrupt(t *testing.T) {
	moments := map[string]struct {
		experiment string
		// The moment is when a server has been started, or when the progress shows something.
		server, progress string
		signals          []os.Signal
		// recorded must be in the trace.
		recorded trace.Kind
	}{
		"etcd starts":           {"storm.yaml", "etcd", "", []os.Signal{os.Interrupt}, trace.RunEnded},
		"kube-apiserver starts": {"storm.yaml", "kube-apiserver", "", []os.Signal{os.Interrupt}, trace.RunEnded},
		"initial nodes start":   {"never-ready.yaml", "", "initial: 0 rejected, 0 running, 0 pending; nodes 0/1 ready", []os.Signal{os.Interrupt}, trace.NodeRegistered},
		"scale-up":              {"storm.yaml", "", "scale-up: ", []os.Signal{syscall.SIGTERM}, trace.PodBound},
		"scale-up, impatiently": {"storm.yaml", "", "scale-up: ", []os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, trace.PodBound},
	}
	for name, m := range moments {
		t.Run(name, func(t *testing.T) {
			dir := experimentsFolder(t)
			p := start(t, dir, "run", m.experiment, "--out", "results")
			if m.server != "" {
				p.server(t, m.server)
			} else {
				p.stderr.awaitText(t, m.progress)
			}
			for _, s := range m.signals {
				p.signal(t, s)
			}
			if code := p.wait(t); code != exitInterrupted {
				t.Errorf("exit code %d, want %d", code, exitInterrupted)
			}
			p.checkNothingLeft(t)
			if !strings.Contains(p.stderr.String(), "mirrorgap: interrupted") {
				t.Errorf("standard error does not say that it was interrupted:\n%s", p.stderr)
			}
			results := filepath.Join(dir, "results")
			checkFiles(t, results, "experiment.yaml", "summary.json", "summary.txt", "ungated/seed-1/summary.json")
			if events := checkEnding(t, filepath.Join(results, "ungated/seed-1"), trace.EndInterrupted); count(events, m.recorded) == 0 {
				t.Errorf("the trace has no %s", m.recorded)
			}
		})
	}
}

// TestKilled: when mirrorgap is killed it can stop nothing itself, so its servers end by themselves; and its trace says that it is incomplete.
func TestKilled(t *testing.T) {
	dir := experimentsFolder(t)
	p := start(t, dir, "run", "storm.yaml", "--out", "results")
	p.stderr.awaitText(t, "scale-up: ")
	if n := len(p.descendants(t)); n != 2 {
		t.Errorf("%d processes run beside mirrorgap, want etcd and kube-apiserver", n)
	}
	p.signal(t, syscall.SIGKILL)
	if code := p.wait(t); code != -1 {
		t.Errorf("exit code %d of a killed process", code)
	}
	eventually(t, "end of its servers", func() (bool, any) {
		left := p.descendants(t)
		return len(left) == 0, left
	})
	events, err := readTrace(t, filepath.Join(dir, "results/ungated/seed-1"))
	if !errors.Is(err, trace.ErrTruncated) || count(events, trace.NodeRegistered) == 0 {
		t.Errorf("the trace has %d events and ends with %v", len(events), err)
	}
}

// rejectedSome matches progress in which pods were rejected.
var rejectedSome = regexp.MustCompile(`scale-up: [1-9][0-9,]* rejected`)

// TestServerDies: a run whose etcd or kube-apiserver dies ends as an error that names it and shows its log; what was recorded is kept.
func TestServerDies(t *testing.T) {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		t.Run(name, func(t *testing.T) {
			dir := experimentsFolder(t)
			p := start(t, dir, "run", "storm.yaml", "--out", "results")
			p.stderr.await(t, "progress with rejected pods", rejectedSome.MatchString)
			if err := p.server(t, name).KillWithContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if code := p.wait(t); code != exitError {
				t.Errorf("exit code %d, want %d", code, exitError)
			}
			p.checkNothingLeft(t)
			for _, want := range []string{name + " died in mid-run", "--- end of " + name + ".log ---"} {
				if !strings.Contains(p.stderr.String(), want) {
					t.Errorf("standard error lacks %q", want)
				}
			}
			results := filepath.Join(dir, "results")
			run := filepath.Join(results, "ungated/seed-1")
			checkFiles(t, results, "summary.json", "summary.txt")
			checkFiles(t, run, "summary.json", "nodes.csv", "pods.csv")
			if !strings.Contains(p.stdout.String(), "results: results") {
				t.Errorf("no table of what was recorded:\n%s", p.stdout)
			}
			events := checkEnding(t, run, trace.EndError)
			died := slices.IndexFunc(events, func(e trace.Event) bool { return e.Kind == trace.ComponentDied })
			if died < 0 || events[died].Reason != name {
				t.Errorf("the trace does not say that %s died", name)
			}
			if count(events, trace.PodRejected) == 0 {
				t.Error("the trace has no rejected pod")
			}
		})
	}
}
