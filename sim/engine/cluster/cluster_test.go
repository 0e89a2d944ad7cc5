package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// apiServer answers what Reach and Record ask an API server, as one would. One node is there from the start.
type apiServer struct {
	*httptest.Server
	// refused are paths that may not be read.
	refused []string
	// pods are the events of the watch of pods, by the number of its opening. After the last of an opening the watch ends, unless there are no others.
	pods [][]string

	mu     sync.Mutex
	asked  []string
	opened int
}

func serve(t *testing.T, s *apiServer) *Cluster {
	t.Helper()
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return &Cluster{Config: &rest.Config{Host: s.URL}, Name: "test", Version: "v1.37.2"}
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case slices.Contains(s.refused, r.URL.Path):
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintln(w, forbidden)
	case r.URL.Path == "/version":
		fmt.Fprintln(w, `{"gitVersion":"v1.30.0"}`)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case r.URL.Path == "/api/v1/nodes":
		fmt.Fprintln(w, nodeList)
	default:
		fmt.Fprintln(w, podList)
	}
}

// watch streams the next events of pods, or nothing of nodes.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	if r.URL.Path == "/api/v1/pods" {
		for _, event := range s.next() {
			fmt.Fprintln(w, event)
			w.(http.Flusher).Flush()
		}
		if s.more() {
			return
		}
	}
	<-r.Context().Done()
}

func (s *apiServer) next() (events []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened < len(s.pods) {
		events = s.pods[s.opened]
	}
	s.opened++
	return events
}

func (s *apiServer) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened < len(s.pods)
}

func (s *apiServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.asked)
	return slices.Compact(slices.Clone(s.asked))
}

const (
	forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you shall not"}`
	nodeList  = `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"old","uid":"old-uid","resourceVersion":"3"}}]}`
	podList   = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`
	podAdded  = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","resourceVersion":"7"}}}`
	tooOld    = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}}`
)

// record records until something of that kind is in the trace, or until the recording ends by itself, and returns the kinds of all events.
func record(t *testing.T, c *Cluster, until trace.Kind) (kinds []trace.Kind, last trace.Event, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	err = c.Record(ctx, &out, Options{Header: trace.Header{Experiment: "test", Arm: "recorded"}, Tap: func(e trace.Event) {
		if e.Kind == until {
			cancel()
		}
	}})
	reader, failed := trace.NewReader("trace", strings.NewReader(out.String()))
	if failed != nil {
		t.Fatal(failed)
	}
	if h := reader.Header(); h.Engine != "cluster" || h.Versions["kubernetes"] != c.Version || h.Start.IsZero() {
		t.Errorf("header %+v", h)
	}
	for {
		e, failed := reader.Next()
		if failed != nil {
			return kinds, last, err
		}
		kinds, last = append(kinds, e.Kind), e
	}
}

// TestRecord: what was there comes first, then the scale-up, then what happens; and nothing but reading is asked for.
func TestRecord(t *testing.T) {
	server := &apiServer{pods: [][]string{{podAdded}}}
	c := serve(t, server)
	if err := c.Reach(t.Context()); err != nil {
		t.Fatal(err)
	}
	kinds, last, err := record(t, c, trace.PodCreated)
	if err != nil {
		t.Fatal(err)
	}
	if want := []trace.Kind{trace.NodeRegistered, trace.Phase, trace.PodCreated, trace.RunEnded}; !slices.Equal(kinds, want) {
		// The first pod may come before the phase is noted.
		if want[1], want[2] = want[2], want[1]; !slices.Equal(kinds, want) {
			t.Errorf("recorded %v, want %v", kinds, want)
		}
	}
	if last.Reason != trace.EndStopped {
		t.Errorf("ended as %s", last.Reason)
	}
	if want := []string{"GET /api/v1/nodes", "GET /api/v1/pods", "GET /version"}; !slices.Equal(server.requests(), want) {
		t.Errorf("asked for %v, want %v", server.requests(), want)
	}
}

// TestTimeUp: a recording ends by itself.
func TestTimeUp(t *testing.T) {
	began := false
	var out strings.Builder
	err := serve(t, &apiServer{}).Record(t.Context(), &out, Options{For: time.Nanosecond, Began: func() { began = true }})
	if err != nil || !began || !strings.Contains(out.String(), `"reason":"stopped"`) {
		t.Errorf("began: %v, %v\n%s", began, err, out.String())
	}
}

// TestWatchGoesOn: the trace has what happened after an interruption, and that there was one.
func TestWatchGoesOn(t *testing.T) {
	kinds, last, err := record(t, serve(t, &apiServer{pods: [][]string{{}, {podAdded}}}), trace.PodCreated)
	if err != nil || last.Reason != trace.EndStopped {
		t.Fatalf("ended as %s: %v", last.Reason, err)
	}
	for _, want := range []trace.Kind{trace.WatchBroken, trace.WatchResumed, trace.PodCreated} {
		if !slices.Contains(kinds, want) {
			t.Errorf("recorded %v, want %s among them", kinds, want)
		}
	}
}

// TestHole: a watch that cannot be taken up ends the recording as an error; what was recorded is kept.
func TestHole(t *testing.T) {
	kinds, last, err := record(t, serve(t, &apiServer{pods: [][]string{{podAdded, tooOld}}}), "")
	if err == nil || !strings.Contains(err.Error(), "watch pods: too old resource version") {
		t.Errorf("got %v", err)
	}
	if last.Reason != trace.EndError || !slices.Contains(kinds, trace.PodCreated) {
		t.Errorf("recorded %v, ended as %s", kinds, last.Reason)
	}
}

// TestEndsWhileBroken: a recording that is ended while the API server does not answer lacks its end.
func TestEndsWhileBroken(t *testing.T) {
	server := &apiServer{}
	c := serve(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	err := c.Record(ctx, &out, Options{
		Began: func() { go server.CloseClientConnections(); go server.Close() },
		Tap: func(e trace.Event) {
			if e.Kind == trace.WatchBroken {
				cancel()
			}
		},
	})
	if err == nil || !strings.Contains(err.Error(), "broken when the recording ended") || !strings.Contains(out.String(), `"reason":"error"`) {
		t.Errorf("got %v\n%s", err, out.String())
	}
}

// TestInterruptedBeforeItBegan: without what was there, there is no recording.
func TestInterruptedBeforeItBegan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	err := serve(t, &apiServer{}).Record(ctx, &out, Options{})
	if !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), `"reason":"interrupted"`) {
		t.Errorf("got %v\n%s", err, out.String())
	}
}

// full is a disk with room for that many bytes.
type full int

// Write implements io.Writer.
func (f *full) Write(data []byte) (int, error) {
	if *f -= full(len(data)); *f < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(data), nil
}

// TestDiskFull: a recording that cannot be written ends at once.
func TestDiskFull(t *testing.T) {
	for _, room := range []full{10, 400} { // the header does not fit, or the events do not
		err := serve(t, &apiServer{pods: [][]string{{podAdded}}}).Record(t.Context(), &room, Options{})
		if err == nil || strings.Count(err.Error(), "no space left") != 1 {
			t.Errorf("got %v", err)
		}
	}
}

// TestReach: what is refused is told with what to do about it.
func TestReach(t *testing.T) {
	for _, path := range []string{"/api/v1/nodes", "/api/v1/pods"} {
		err := serve(t, &apiServer{refused: []string{path}}).Reach(t.Context())
		if err == nil || !strings.Contains(err.Error(), "list "+filepath.Base(path)) || !strings.Contains(err.Error(), "ClusterRole") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	c := serve(t, &apiServer{})
	if err := c.Reach(t.Context()); err != nil || c.Version != "v1.30.0" {
		t.Errorf("version %q, %v", c.Version, err)
	}
	nowhere := &Cluster{Config: &rest.Config{Host: "http://127.0.0.1:1"}}
	if err := nowhere.Reach(t.Context()); err == nil || !strings.Contains(err.Error(), "reach the cluster at http://127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: a,
clusters: [{name: "gke_Prod_Europe-west1", cluster: {server: "https://a"}}, {name: "_", cluster: {server: "https://b"}}],
contexts: [{name: a, context: {cluster: "gke_Prod_Europe-west1"}}, {name: b, context: {cluster: "_"}}]}`

// TestFind: the kubeconfig's cluster, by its context; its name can name a folder and an experiment.
func TestFind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for kubeContext, want := range map[string][2]string{"": {"gke-prod-europe-west1", "https://a"}, "b": {"cluster", "https://b"}} {
		c, err := Find(path, kubeContext)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{c.Name, c.Config.Host}; got != want {
			t.Errorf("context %q: got %v, want %v", kubeContext, got, want)
		}
	}
	for _, missing := range [][2]string{{path, "c"}, {path + "-not-there", ""}} {
		if _, err := Find(missing[0], missing[1]); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
			t.Errorf("%v: got %v", missing, err)
		}
	}
}
