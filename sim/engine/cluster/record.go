package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirrorgap/mirrorgap/sim/recorder"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// tick is the period in which the trace is flushed and Options.Tick called.
const tick = time.Second

// Options say how to record.
type Options struct {
	// Header is the trace's. Record sets Engine, Start and the version of Kubernetes.
	Header trace.Header
	// For is how long to record, from the moment at which everything that was there is in the trace. 0: until the context ends.
	For time.Duration
	// IsCheck tells the pods of the mirror-pod check; nil when there are none.
	IsCheck func(*corev1.Pod) bool
	// Began is called when everything that was there is in the trace, Tick every second; Tap sees every event. Each may be nil.
	Began, Tick func()
	Tap         func(trace.Event)
}

// Record writes the trace of the cluster to w until the time is up or ctx ends; either is no error. What was there is initial; a phase event scale-up follows it,
// from which on nodes that join are new. It fails when ctx ends before that, when w cannot be written to, and when a watch breaks for good or is broken when
// the recording ends. The trace then ends as an error, and holds what was recorded.
func (c *Cluster) Record(ctx context.Context, w io.Writer, o Options) error {
	writer, err := trace.NewWriter(w, c.header(o.Header))
	if err != nil {
		return err
	}
	if o.Tap != nil {
		writer.Tap(o.Tap)
	}
	watches, err := recorder.New(c.Config, writer, o.IsCheck)
	if err != nil {
		return err
	}
	err = o.watch(ctx, writer, watches)
	writer.Record(ending(ctx, err))
	if flushed := writer.Flush(); err == nil { // a disk that failed before has ended the recording, and is err already
		err = flushed
	}
	return err
}

func (c *Cluster) header(h trace.Header) trace.Header {
	h.Engine, h.Start = "cluster", time.Now().UTC()
	h.Versions = maps.Clone(h.Versions)
	if h.Versions == nil {
		h.Versions = map[string]string{}
	}
	h.Versions["kubernetes"] = c.Version
	return h
}

// ending is the last event of a trace.
func ending(ctx context.Context, err error) trace.Event {
	e := trace.Event{Kind: trace.RunEnded, Source: trace.SourceRun, Reason: trace.EndStopped}
	switch {
	case err == nil:
		return e
	case errors.Is(err, ctx.Err()):
		e.Reason = trace.EndInterrupted
	default:
		e.Reason = trace.EndError
	}
	e.Message = err.Error()
	return e
}

// watch records until the time is up, ctx ends, or something fails.
func (o *Options) watch(ctx context.Context, writer *trace.Writer, watches *recorder.Recorder) error {
	recording, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- watches.Run(recording) }()
	if err := o.await(ctx, writer, watches.Synced(), ended); err != nil {
		return err
	}
	if broken := watches.Broken(); len(broken) > 0 {
		return fmt.Errorf("the watch of %s was broken when the recording ended: what happened since is not in the trace", strings.Join(broken, " and "))
	}
	return nil
}

// await returns nil when the recording ended as it was meant to.
func (o *Options) await(ctx context.Context, writer *trace.Writer, synced <-chan struct{}, ended <-chan error) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var timeUp <-chan time.Time
	begun := false
	for {
		select {
		case <-synced:
			synced, begun = nil, true
			timeUp = o.begin(writer)
		case <-ticker.C:
			if err := writer.Flush(); err != nil {
				return err
			}
			call(o.Tick)
		case <-timeUp:
			return nil
		case <-ctx.Done():
			if begun {
				return nil
			}
			return ctx.Err()
		case err := <-ended:
			if err != nil {
				return err
			}
			ended = nil // ctx has ended
		}
	}
}

// begin marks the end of what was there, and starts the clock.
func (o *Options) begin(writer *trace.Writer) <-chan time.Time {
	writer.Record(trace.Event{Kind: trace.Phase, Source: trace.SourceRun, Message: trace.PhaseScaleUp})
	call(o.Began)
	if o.For == 0 {
		return nil
	}
	return time.After(o.For)
}

func call(f func()) {
	if f != nil {
		f()
	}
}
