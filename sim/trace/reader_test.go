package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const (
	header   = `{"schema":"mirrorgap.trace/v1","experiment":"scale-up","arm":"gated","seed":3,"engine":"live","start":"2026-01-02T03:04:05Z","machine":{"os":"linux","arch":"amd64","cpus":2}}`
	ready    = `{"t":1000,"kind":"NodeReady","source":"api","node":"n0","nodeUID":"u0","rv":7}`
	ended    = `{"t":2000,"kind":"RunEnded","source":"run","reason":"settled"}`
	newer    = `{"t":1500,"kind":"AKindOfTheFuture","source":"api","aField":[1]}`
	complete = header + "\n" + ready + "\n" + newer + "\n" + ended + "\n"
)

func readAll(data string) (*Reader, []Event, error) {
	r, err := NewReader("t.jsonl", strings.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	events, err := drain(r)
	return r, events, err
}

func drain(r *Reader) ([]Event, error) {
	var events []Event
	for {
		e, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func TestReaderReadsACompleteTrace(t *testing.T) {
	r, events, err := readAll(complete)
	if !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want io.EOF", err)
	}
	if h := r.Header(); h.Experiment != "scale-up" || h.Arm != "gated" || h.Seed != 3 || h.Machine.CPUs != 2 || h.Gate != nil {
		t.Errorf("header %+v", h)
	}
	if len(events) != 3 {
		t.Fatalf("got %d events, want 3", len(events))
	}
	if e := events[0]; e.T != time.Microsecond || e.Kind != NodeReady || e.Source != SourceAPI || e.Node != "n0" || e.NodeUID != "u0" || e.RV != 7 {
		t.Errorf("event %+v", e)
	}
	if e := events[1]; e.Kind != "AKindOfTheFuture" {
		t.Errorf("an unknown kind reads as %+v", e)
	}
}

func TestReaderTellsATruncatedTrace(t *testing.T) {
	for name, tt := range map[string]struct {
		data string
		line string
		n    int
	}{
		"no event":                        {header, "t.jsonl:1:", 0},
		"no end":                          {header + "\n" + ready + "\n", "t.jsonl:2:", 1},
		"cut in a line":                   {header + "\n" + ready + "\n" + ended[:20], "t.jsonl:3:", 1},
		"cut in a line, then empty lines": {header + "\n" + ended[:20] + "\n\n  \n", "t.jsonl:2:", 0},
		"more after the end":              {complete + ready[:5] + "2" + ready[5:] + "\n", "t.jsonl:5:", 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, events, err := readAll(tt.data)
			if !errors.Is(err, ErrTruncated) || !strings.HasPrefix(err.Error(), tt.line) {
				t.Errorf("got %v, want ErrTruncated at %s", err, tt.line)
			}
			if len(events) != tt.n {
				t.Errorf("got %d events, want %d", len(events), tt.n)
			}
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ data, want string }{
		"an empty file":       {"", "t.jsonl: empty file, not a trace"},
		"blank lines":         {"\n \n", "t.jsonl: empty file, not a trace"},
		"plain text":          {"hello\n", `t.jsonl:1: not a trace: the first line has no "schema"`},
		"an event first":      {ready + "\n", `t.jsonl:1: not a trace: the first line has no "schema"`},
		"another schema":      {`{"schema":"mirrorgap.trace/v2"}` + "\n", `t.jsonl:1: trace of schema "mirrorgap.trace/v2", but this program reads "mirrorgap.trace/v1"`},
		"a header of strings": {`{"schema":"mirrorgap.trace/v1","seed":"3"}` + "\n", "t.jsonl:1: read header: "},
		"text in the middle":  {header + "\nhello\n" + ended + "\n", "t.jsonl:2: read event: "},
		"a wrong type":        {header + "\n" + `{"t":"1s","kind":"NodeReady","source":"api"}` + "\n" + ended + "\n", "t.jsonl:2: read event: "},
		"no kind":             {header + "\n{}\n" + ended + "\n", `t.jsonl:2: not an event: it has no "kind"`},
		"null":                {header + "\nnull\n" + ended + "\n", `t.jsonl:2: not an event: it has no "kind"`},
		"time that goes back": {header + "\n" + ended + "\n" + ready + "\n", "t.jsonl:3: time goes back from 2µs to 1µs"},
		"a negative time":     {header + "\n" + `{"t":-1,"kind":"NodeReady","source":"api"}` + "\n", "t.jsonl:2: time goes back from 0s to -1ns"},
		"an endless line":     {header + "\n" + strings.Repeat("x", maxLine+1), "t.jsonl:2: read trace: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readAll(tt.data)
			if err == nil || errors.Is(err, io.EOF) || errors.Is(err, ErrTruncated) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s…", err, tt.want)
			}
		})
	}
}

// TestReaderReportsReadErrors: a disk that fails in the middle of a line must not look like a trace that was cut there.
func TestReaderReportsReadErrors(t *testing.T) {
	broken := errors.New("input/output error")
	for _, before := range []string{"", header[:10], header + "\n", header + "\n" + ready + "\n", header + "\n" + ready[:20]} {
		r, err := NewReader("t.jsonl", io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken)))
		if err == nil {
			_, err = drain(r)
		}
		if before == header[:10] {
			continue // what was read of the first line is not a header, whatever follows
		}
		if !errors.Is(err, broken) {
			t.Errorf("after %q: got %v, want the read error", before, err)
		}
	}
}

// FuzzReader: any input is read or refused, never a panic, and what was read can be written and read again.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{complete, header, header + "\n" + ready[:30], "", "{}", header + "\nnull\n", header + "\n\n" + ended} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		events, err := drain(r)
		last := time.Duration(0)
		var again bytes.Buffer
		enc := json.NewEncoder(&again)
		if err := enc.Encode(r.Header()); err != nil {
			t.Fatalf("header does not encode: %v", err)
		}
		for _, e := range events {
			if e.T < last || e.Kind == "" {
				t.Fatalf("accepted %+v after %v", e, last)
			}
			last = e.T
			if err := enc.Encode(e); err != nil {
				t.Fatalf("event does not encode: %v", err)
			}
		}
		if !errors.Is(err, io.EOF) {
			return
		}
		if len(events) == 0 || events[len(events)-1].Kind != RunEnded {
			t.Fatal("a trace without RunEnded at its end was taken as complete")
		}
		r, err = NewReader("again", &again)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := drain(r); !errors.Is(err, io.EOF) || len(back) != len(events) {
			t.Fatalf("%d events read back as %d: %v", len(events), len(back), err)
		}
	})
}
