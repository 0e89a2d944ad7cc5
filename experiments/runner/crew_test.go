package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/mirrorgap/mirrorgap/sim/engine/live"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// events collects what is recorded.
type events struct {
	mu   sync.Mutex
	list []trace.Event
}

func (e *events) Record(event trace.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

// died are the components that the trace says have died.
func (e *events) died() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, event := range e.list {
		if event.Kind == trace.ComponentDied {
			names = append(names, event.Reason)
		}
	}
	return names
}

// component is a sim.Component made of a function.
type component struct {
	name string
	run  func(context.Context) error
}

func (c component) Name() string                  { return c.name }
func (c component) Run(ctx context.Context) error { return c.run(ctx) }

func untilDone(ctx context.Context) error { <-ctx.Done(); return nil }

// TestOneDiesAllStop: the death is recorded, the others are stopped, and the error names who it was.
func TestOneDiesAllStop(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		err  error
		want string
		who  string
	}{
		"with an error":              {boom, "kube-scheduler failed: boom", "kube-scheduler"},
		"without":                    {nil, "kube-scheduler ended in mid-run without an error; see its log", "kube-scheduler"},
		"a server, told by the port": {&live.DiedError{Server: "etcd", Log: "/run/logs/etcd.log", Tail: "\npanic: no space"}, "etcd died in mid-run", "etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var recorded events
				crew := newCrew(t.Context(), t.TempDir(), &recorded)
				var stopped time.Time
				crew.watch("kubelet", func(ctx context.Context) error { <-ctx.Done(); stopped = time.Now(); return errors.New("closing") })
				start := time.Now()
				err := crew.start(component{"kube-scheduler", func(context.Context) error { time.Sleep(time.Minute); return c.err }})
				if err != nil {
					t.Fatal(err)
				}
				<-crew.ctx.Done()
				crew.dismiss()
				if stopped.Sub(start) != time.Minute {
					t.Errorf("the other component ended after %v", stopped.Sub(start))
				}
				cause := context.Cause(crew.ctx)
				if cause == nil || !strings.Contains(cause.Error(), c.want) || c.err != nil && !errors.Is(cause, c.err) {
					t.Errorf("the crew ended because of %v, want %q", cause, c.want)
				}
				if died := recorded.died(); len(died) != 1 || died[0] != c.who {
					t.Errorf("the trace says that %v died, want only %s", died, c.who)
				}
			})
		})
	}
}

// TestDismissal is no death: what components return because they were told to end is not recorded.
func TestDismissal(t *testing.T) {
	var recorded events
	crew := newCrew(t.Context(), t.TempDir(), &recorded)
	for _, c := range []component{
		{"obedient", untilDone}, {"surprised", func(ctx context.Context) error { <-ctx.Done(); return errors.New("connection refused") }},
	} {
		if err := crew.start(c); err != nil {
			t.Fatal(err)
		}
	}
	crew.dismiss()
	if died := recorded.died(); len(died) > 0 {
		t.Errorf("the trace says that %v died", died)
	}
	if cause := context.Cause(crew.ctx); !errors.Is(cause, context.Canceled) {
		t.Errorf("the crew ended because of %v", cause)
	}
}

func TestComponentsHaveLogsOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	crew := newCrew(t.Context(), dir, &events{})
	for _, name := range []string{"a", "b"} {
		logged := make(chan struct{})
		err := crew.start(component{name, func(ctx context.Context) error {
			klog.FromContext(ctx).Info("hello from " + name)
			close(logged)
			return untilDone(ctx)
		}})
		if err != nil {
			t.Fatal(err)
		}
		<-logged
	}
	crew.dismiss()
	for name, other := range map[string]string{"a": "b", "b": "a"} {
		data, err := os.ReadFile(filepath.Join(dir, name+".log"))
		if err != nil || !strings.Contains(string(data), "hello from "+name) || strings.Contains(string(data), "hello from "+other) {
			t.Errorf("%s.log has %q (%v)", name, data, err)
		}
	}
}

func TestNoLogNoComponent(t *testing.T) {
	crew := newCrew(t.Context(), filepath.Join(t.TempDir(), "missing"), &events{})
	defer crew.dismiss()
	err := crew.start(component{"kwok-controller", func(context.Context) error { t.Error("it runs"); return nil }})
	if err == nil || !strings.Contains(err.Error(), "kwok-controller") {
		t.Errorf("got %v, want an error that names the component", err)
	}
}

// disk is a file on a disk that is full after so many bytes.
type disk struct {
	strings.Builder

	room int
}

func (d *disk) Write(p []byte) (int, error) {
	if d.Len()+len(p) > d.room {
		n, _ := d.Builder.Write(p[:d.room-d.Len()])
		return n, syscall.ENOSPC
	}
	return d.Builder.Write(p)
}

// TestFullDiskEndsTheRun: within a tick of the trace's first failed write the run is stopped by an error that says so, and what fitted is there.
func TestFullDiskEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &disk{room: 1000}
		w, err := trace.NewWriter(file, trace.Header{Start: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		r := &run{options: &Options{}, trace: w, status: newStatus(nil), crew: newCrew(t.Context(), t.TempDir(), w)}
		r.crew.watch("trace", r.flushRegularly)
		start := time.Now()
		for range 100 {
			w.Record(workloadCreated("p"))
		}
		<-r.crew.ctx.Done()
		r.crew.dismiss()
		if took := time.Since(start); took != tick {
			t.Errorf("the run ended after %v", took)
		}
		cause := context.Cause(r.crew.ctx)
		if !errors.Is(cause, syscall.ENOSPC) || !strings.Contains(cause.Error(), "trace failed: write trace: no space left on device") {
			t.Errorf("it ended because of %v", cause)
		}
		if file.Len() != file.room {
			t.Errorf("%d of %d bytes are kept", file.Len(), file.room)
		}
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := trace.NewWriter(&strings.Builder{}, trace.Header{Start: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		var reports []Progress
		r := &run{
			options: &Options{Progress: func(p Progress) { reports = append(reports, p) }},
			start:   time.Now(), trace: w, status: newStatus(nil), crew: newCrew(t.Context(), t.TempDir(), w), seed: 7, number: 2, of: 3,
		}
		w.Tap(r.status.apply)
		r.arm.Name = "gated"
		r.enter(trace.PhaseWorkload)
		r.crew.watch("trace", r.flushRegularly)
		time.Sleep(2500 * time.Millisecond)
		r.crew.dismiss()
		want := Progress{Run: 2, Runs: 3, Arm: "gated", Seed: 7, Elapsed: 2 * time.Second, Phase: trace.PhaseWorkload,
			State: "0 rejected, 0 running, 0 pending; nodes 0/0 ready, 0 held, 0 unmirrored"}
		if len(reports) != 2 || reports[1] != want {
			t.Errorf("got %+v, want two reports, the second one %+v", reports, want)
		}
	})
}
