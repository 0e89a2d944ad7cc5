package trace

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWriterStampsAndReaderReadsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		w, err := NewWriter(&file, Header{Schema: "ignored", Arm: "gated", Start: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		var tapped []Event
		w.Tap(func(e Event) { tapped = append(tapped, e) })
		rejection := &Rejection{Resource: "cpu", Requested: 1000, Used: 3500, Capacity: 4000, Static: 500, Pods: []string{"a", "b"}}
		w.Record(Event{Kind: NodeReady, Source: SourceAPI, T: time.Hour})
		time.Sleep(3 * time.Second)
		w.Record(Event{Kind: PodRejected, Source: SourceKubelet, Rejection: rejection})
		w.Record(Event{Kind: RunEnded, Source: SourceRun, Reason: EndSettled})
		w.Record(Event{Kind: PodCreated, Source: SourceAPI}) // too late: the trace has ended
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}

		r, err := NewReader("file", &file)
		if err != nil {
			t.Fatal(err)
		}
		if r.Header().Schema != Schema || r.Header().Arm != "gated" {
			t.Errorf("header %+v", r.Header())
		}
		got, err := drain(r)
		if !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want io.EOF", err)
		}
		want := []Event{
			{T: 0, Kind: NodeReady, Source: SourceAPI},
			{T: 3 * time.Second, Kind: PodRejected, Source: SourceKubelet, Rejection: rejection},
			{T: 3 * time.Second, Kind: RunEnded, Source: SourceRun, Reason: EndSettled},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read back %+v, want %+v", got, want)
		}
		if !reflect.DeepEqual(tapped, want) {
			t.Errorf("tapped %+v, want %+v", tapped, want)
		}
	})
}

// TestWriterNeverGoesBack: a start that lies in the future, as after a correction of the wall clock, must not make a trace that cannot be read.
func TestWriterNeverGoesBack(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, Header{Start: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	w.Record(Event{Kind: RunEnded, Source: SourceRun})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader("file", &file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := drain(r); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want io.EOF", err)
	}
}

func TestWriterIsSafeForConcurrentUse(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, Header{Start: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	var recorders sync.WaitGroup
	for range 8 {
		recorders.Go(func() {
			for range 500 {
				w.Record(Event{Kind: PodCreated, Source: SourceAPI})
			}
		})
	}
	recorders.Wait()
	w.Record(Event{Kind: RunEnded, Source: SourceRun})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader("file", &file)
	if err != nil {
		t.Fatal(err)
	}
	if events, err := drain(r); !errors.Is(err, io.EOF) || len(events) != 8*500+1 {
		t.Errorf("read %d events, then %v, want %d, then io.EOF", len(events), err, 8*500+1)
	}
}

var errFull = errors.New("no space left on device")

// full takes a number of bytes and refuses the rest.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		n := f.room
		f.room = 0
		return n, errFull
	}
	f.room -= len(p)
	return len(p), nil
}

func TestWriterKeepsTheFirstErrorAndStillTaps(t *testing.T) {
	w, err := NewWriter(&full{room: 1 << 16}, Header{Start: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	taps := 0
	w.Tap(func(Event) { taps++ })
	for range 2000 {
		w.Record(Event{Kind: PodCreated, Source: SourceAPI, Message: "a pod, and another one"})
	}
	if taps != 2000 {
		t.Errorf("%d events were tapped, want 2000", taps)
	}
	if err := w.Err(); !errors.Is(err, errFull) {
		t.Errorf("Err: got %v, want %v", err, errFull)
	}
	if err := w.Flush(); !errors.Is(err, errFull) {
		t.Errorf("Flush: got %v, want %v", err, errFull)
	}
}

func TestRecorderFunc(t *testing.T) {
	var got Event
	RecorderFunc(func(e Event) { got = e }).Record(Event{Kind: NodeReady})
	if got.Kind != NodeReady {
		t.Errorf("got %+v", got)
	}
	Discard.Record(Event{Kind: NodeReady})
}
