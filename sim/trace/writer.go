package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Recorder takes the events of a run. Implementations are safe for concurrent use and never block for long.
type Recorder interface {
	// Record stamps the event with the time since the trace began and keeps it. Errors are reported when the trace is closed.
	Record(Event)
}

// RecorderFunc makes a Recorder of a function.
type RecorderFunc func(Event)

// Record calls f.
func (f RecorderFunc) Record(e Event) { f(e) }

// Discard drops every event.
var Discard Recorder = RecorderFunc(func(Event) {})

// Writer writes a trace. Its zero value is not usable: call NewWriter.
type Writer struct {
	mu    sync.Mutex
	out   *bufio.Writer
	enc   *json.Encoder
	start time.Time
	last  time.Duration
	err   error
	ended bool
	taps  []func(Event)
}

// NewWriter writes the header to w, at once, so that even a run that is killed leaves a trace, and returns a Writer for the events. Header.Schema is set; Header.Start is the zero of Event.T.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Schema = Schema
	out := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(out)
	if err := enc.Encode(h); err != nil {
		return nil, fmt.Errorf("write trace header: %w", err)
	}
	if err := out.Flush(); err != nil {
		return nil, fmt.Errorf("write trace header: %w", err)
	}
	return &Writer{out: out, enc: enc, start: h.Start}, nil
}

// Tap has f called with every event, stamped, in the trace's order. f must return quickly and must not call Record.
// Taps are to be set before the first Record.
func (w *Writer) Tap(f func(Event)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taps = append(w.taps, f)
}

// Record implements Recorder. After the first write error events are dropped, but still reach the taps. Events after RunEnded are dropped.
func (w *Writer) Record(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.last = max(w.last, time.Since(w.start)) // a start without a monotonic clock reading may lie in the future for a moment
	e.T = w.last
	if w.err == nil {
		w.err = w.enc.Encode(e)
	}
	for _, tap := range w.taps {
		tap(e)
	}
	w.ended = e.Kind == RunEnded
}

// Err returns the first write error, if any, so that a run on a full disk can stop early.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return fmt.Errorf("write trace: %w", w.err)
	}
	return nil
}

// Flush writes what is buffered and returns the first error of the whole trace.
func (w *Writer) Flush() error {
	w.mu.Lock()
	if w.err == nil {
		w.err = w.out.Flush()
	}
	w.mu.Unlock()
	return w.Err()
}
