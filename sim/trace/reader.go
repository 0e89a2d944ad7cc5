package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrTruncated is returned (wrapped) when a trace ends without a RunEnded event: its run was killed, or the file was cut.
var ErrTruncated = errors.New("trace is incomplete: its last event is not RunEnded")

// maxLine bounds a line, so that a foreign file is refused instead of read into memory whole.
const maxLine = 4 << 20

// Reader reads a trace as a stream; memory does not grow with its length.
type Reader struct {
	name   string
	lines  *bufio.Scanner
	line   int
	header Header
	last   time.Duration
	ended  bool
	// event is where the next event is decoded into: a variable of Next would be allocated for each of millions.
	event Event
}

// NewReader reads the header of the trace in r. Name is used in errors (a path, say). It fails when the first line is not a header of
// this Schema.
func NewReader(name string, r io.Reader) (*Reader, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	t := &Reader{name: name, lines: lines}
	data, err := t.next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: empty file, not a trace", name)
	}
	if err != nil {
		return nil, err
	}
	var probe struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &probe); err != nil || probe.Schema == "" {
		return nil, fmt.Errorf("%s:1: not a trace: the first line has no \"schema\"", name)
	}
	if probe.Schema != Schema {
		return nil, fmt.Errorf("%s:1: trace of schema %q, but this program reads %q: use the mirrorgap version that wrote it", name, probe.Schema, Schema)
	}
	if err := json.Unmarshal(data, &t.header); err != nil {
		return nil, fmt.Errorf("%s:1: read header: %w", name, err)
	}
	return t, nil
}

// Header returns the trace's header.
func (t *Reader) Header() Header { return t.header }

// Next returns the next event. At the end of a complete trace it returns io.EOF, at the end of any other an error that wraps ErrTruncated.
// Any other error names the line that is not an event, or comes before its time, or could not be read. Nothing can be read after an error.
func (t *Reader) Next() (Event, error) {
	data, err := t.next()
	if errors.Is(err, io.EOF) {
		if !t.ended {
			return Event{}, fmt.Errorf("%s:%d: %w", t.name, t.line, ErrTruncated)
		}
		return Event{}, io.EOF
	}
	if err != nil {
		return Event{}, err
	}
	t.event = Event{}
	if err := json.Unmarshal(data, &t.event); err != nil {
		return Event{}, t.refused(err)
	}
	e := t.event
	switch {
	case e.Kind == "":
		return Event{}, fmt.Errorf("%s:%d: not an event: it has no \"kind\"", t.name, t.line)
	case e.T < t.last:
		return Event{}, fmt.Errorf("%s:%d: time goes back from %v to %v: the lines are not in the order of a trace", t.name, t.line, t.last, e.T)
	}
	t.last, t.ended = e.T, e.Kind == RunEnded
	return e, nil
}

// refused explains why the current line is no event: it is the last one and was cut in the middle, or the file cannot be read on, or it is foreign.
func (t *Reader) refused(cause error) error {
	line := t.line
	switch _, err := t.next(); {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s:%d: %w", t.name, line, ErrTruncated)
	case err != nil:
		return err
	}
	return fmt.Errorf("%s:%d: read event: %w", t.name, line, cause)
}

// next returns the next line that is not empty.
func (t *Reader) next() ([]byte, error) {
	for t.lines.Scan() {
		t.line++
		if data := bytes.TrimSpace(t.lines.Bytes()); len(data) > 0 {
			return data, nil
		}
	}
	if err := t.lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: read trace: %w", t.name, t.line+1, err)
	}
	return nil, io.EOF
}
