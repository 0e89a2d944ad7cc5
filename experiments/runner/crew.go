package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// crew runs the components of a cluster, each with a log of its own. When one ends before it is told to, all are stopped.
type crew struct {
	ctx     context.Context //nolint:containedctx // the crew is the lifetime of its components
	stop    context.CancelCauseFunc
	logDir  string
	trace   trace.Recorder
	running sync.WaitGroup
	logs    []*os.File
}

// diedError says that a component ended before the run did.
type diedError struct {
	component string
	err       error
}

func (e *diedError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("%s ended in mid-run without an error; see its log", e.component)
	}
	return fmt.Sprintf("%s failed: %v", e.component, e.err)
}

func (e *diedError) Unwrap() error { return e.err }

// who is the component, or the server of the control plane, that died.
func (e *diedError) who() string {
	var server *live.DiedError
	if errors.As(e.err, &server) {
		return server.Server
	}
	return e.component
}

func newCrew(ctx context.Context, logDir string, out trace.Recorder) *crew {
	ctx, stop := context.WithCancelCause(ctx)
	return &crew{ctx: ctx, stop: stop, logDir: logDir, trace: out}
}

// start runs a component until the crew is dismissed.
func (c *crew) start(component sim.Component) error {
	log, err := os.Create(filepath.Join(c.logDir, component.Name()+".log"))
	if err != nil {
		return fmt.Errorf("open log of %s: %w", component.Name(), err)
	}
	c.logs = append(c.logs, log)
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(componentVerbosity)))
	c.watch(component.Name(), func(ctx context.Context) error { return component.Run(klog.NewContext(ctx, logger)) })
	return nil
}

// watch runs f, which is to end only with its context.
func (c *crew) watch(name string, f func(context.Context) error) {
	c.running.Go(func() {
		err := f(c.ctx)
		if c.ctx.Err() != nil {
			return
		}
		died := &diedError{component: name, err: err}
		c.trace.Record(trace.Event{Kind: trace.ComponentDied, Source: trace.SourceRun, Reason: died.who(), Message: died.Error()})
		c.stop(died)
	})
}

// dismiss stops all components, waits for them and closes their logs.
func (c *crew) dismiss() {
	c.stop(context.Canceled)
	c.running.Wait()
	for _, log := range c.logs {
		_ = log.Close() // a component's log is a convenience; the trace is the record
	}
}
