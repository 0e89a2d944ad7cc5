package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// TestDelayLine: in virtual time every byte arrives exactly that late, in order, and so does the end.
func TestDelayLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		from, to := io.Pipe()
		line := delayed(t.Context(), from, time.Second)
		go func() {
			for _, text := range []string{"one ", "two ", "three"} {
				_, _ = io.WriteString(to, text)
				time.Sleep(300 * time.Millisecond)
			}
			_ = to.CloseWithError(io.ErrUnexpectedEOF)
		}()
		var got []string
		small := make([]byte, 3) // less than a part
		for {
			n, err := line.Read(small)
			got = append(got, fmt.Sprintf("%v %q", time.Since(start), small[:n]))
			if err != nil {
				got = append(got, err.Error())
				break
			}
		}
		want := []string{`1s "one"`, `1s " "`, `1.3s "two"`, `1.3s " "`, `1.6s "thr"`, `1.6s "ee"`, `1.9s ""`, "unexpected EOF"}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		if _, err := line.Read(small); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after the end: %v", err)
		}
		if err := line.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestDelayLineEnds at once, with the request's context or by Close, though something is still on its way; in the bubble no goroutine may be left.
func TestDelayLineEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(cancel context.CancelFunc, line io.Closer)
		want error
	}{
		"context": {func(cancel context.CancelFunc, _ io.Closer) { cancel() }, context.Canceled},
		"close":   {func(_ context.CancelFunc, line io.Closer) { _ = line.Close() }, http.ErrBodyReadAfterClose},
	} {
		for _, sent := range []string{"", "late"} {
			t.Run(name+sent, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					from, to := io.Pipe()
					line := delayed(ctx, from, time.Hour)
					go func() { _, _ = io.WriteString(to, sent) }()
					time.AfterFunc(time.Minute, func() { c.end(cancel, line) })
					if n, err := line.Read(make([]byte, 9)); n != 0 || !errors.Is(err, c.want) || time.Since(start) != time.Minute {
						t.Errorf("read %d bytes after %v: %v", n, time.Since(start), err)
					}
					if err := line.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// lag is what the servers of the tests below are late by: long beside what they need, so that nothing but the delay line can explain it.
const lag = 300 * time.Millisecond

// TestLateWatches: a client of a real server gets its watch of pods late, over HTTP/1 and HTTP/2, in JSON and in protobuf, and everything else as ever.
func TestLateWatches(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, content := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			t.Run(fmt.Sprintf("HTTP2=%v %s", http2, content), func(t *testing.T) {
				before := goruntime.NumGoroutine()
				server := podServer(t, http2)
				client := lateClient(t, server, content)
				late := watchOne(t, client, "pods")
				if late < lag {
					t.Errorf("the watch of pods brought its first event after %v, want %v", late, lag)
				}
				watchOne(t, client, "nodes")
				server.CloseClientConnections()
				server.Close()
				eventually(t, func() bool { return goruntime.NumGoroutine() <= before+1 }) // testing may have a timer of its own
			})
		}
	}
}

// podServer answers every watch with one object called p and leaves it open.
func podServer(t *testing.T, http2 bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := "application/json"
		event := []byte(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}}` + "\n")
		if strings.Contains(r.Header.Get("Accept"), "protobuf") {
			content, event = "application/vnd.kubernetes.protobuf;stream=watch", protobufEvent(t)
		}
		w.Header().Set("Content-Type", content)
		if http2 != (r.ProtoMajor == 2) {
			t.Errorf("the request came over %s", r.Proto)
		}
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(event)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func lateClient(t *testing.T, server *httptest.Server, content string) *kubernetes.Clientset {
	t.Helper()
	cfg := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: content, AcceptContentTypes: content}}
	cfg.Transport = server.Client().Transport
	lagPodWatches(cfg, lag)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// protobufEvent is a watch event about a pod as the API server frames it.
func protobufEvent(t *testing.T) []byte {
	t.Helper()
	var pod, framed bytes.Buffer
	object := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &pod); err != nil {
		t.Fatal(err)
	}
	event := &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: pod.Bytes()}}
	if err := protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme).Encode(event, protobuf.LengthDelimitedFramer.NewFrameWriter(&framed)); err != nil {
		t.Fatal(err)
	}
	return framed.Bytes()
}

// watchOne opens a watch, takes one event, stops the watch, and says how long the event took.
func watchOne(t *testing.T, client *kubernetes.Clientset, resource string) time.Duration {
	t.Helper()
	start := time.Now()
	watch, err := client.CoreV1().RESTClient().Get().Resource(resource).VersionedParams(&metav1.ListOptions{Watch: true}, scheme.ParameterCodec).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	event := <-watch.ResultChan()
	if pod, ok := event.Object.(*corev1.Pod); !ok || pod.Name != "p" {
		t.Fatalf("the watch of %s brought %v", resource, event)
	}
	return time.Since(start)
}

// eventually waits for what other goroutines are about to do.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			buffer := make([]byte, 1<<20)
			t.Fatalf("still not so; goroutines:\n%s", buffer[:goruntime.Stack(buffer, true)])
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestOnlyPodWatchesAreLate.
func TestOnlyPodWatchesAreLate(t *testing.T) {
	for url, want := range map[string]bool{
		"GET /api/v1/pods?watch=true&allowWatchBookmarks=true":   true,
		"GET /api/v1/pods?sendInitialEvents=true&watch=true":     true,
		"GET /api/v1/namespaces/default/pods?watch=1":            true,
		"GET /api/v1/pods?resourceVersion=0":                     false,
		"GET /api/v1/pods?watch=false":                           false,
		"GET /api/v1/nodes?watch=true":                           false,
		"GET /apis/metrics.k8s.io/v1beta1/pods?watch=true":       false,
		"POST /api/v1/namespaces/default/pods?watch=true":        false,
		"GET /api/v1/namespaces/default/pods/web/log?watch=true": false,
	} {
		method, target, _ := strings.Cut(url, " ")
		if got := watchesPods(httptest.NewRequest(method, target, nil)); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}

// TestNoLagIsNoWrap: without a lag nothing stands between the scheduler and the API.
func TestNoLagIsNoWrap(t *testing.T) {
	cfg := &rest.Config{}
	if lagPodWatches(cfg, 0); cfg.WrapTransport != nil {
		t.Error("the transport is wrapped")
	}
}
