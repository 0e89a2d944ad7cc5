package checker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

func TestRunLooksUntilTheMirrorsExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, start := newAPI(), time.Now()
		time.AfterFunc(3*time.Second, func() { api.addPod("kube-system", "a-n0") })
		time.AfterFunc(5*time.Second, func() { api.addPod("kube-system", "b-n0") })
		var log bytes.Buffer
		var events []string
		err := Run(t.Context(), Config{
			Client: api.client(t), Folder: twoPods(), NodeName: "n0", Log: &log,
			OnWaiting: func(missing []string) { events = append(events, fmt.Sprint(time.Since(start), missing)) },
			OnPassed:  func() { events = append(events, fmt.Sprint(time.Since(start), " passed")) },
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"0s [kube-system/a-n0 kube-system/b-n0]", "2s [kube-system/a-n0 kube-system/b-n0]", "4s [kube-system/b-n0]", "6s passed"}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		wantLog := `2000-01-01T00:00:00Z [StaticPodMirrorCheck] waiting for mirror pods: kube-system/a-n0 kube-system/b-n0
2000-01-01T00:00:02Z [StaticPodMirrorCheck] waiting for mirror pods: kube-system/a-n0 kube-system/b-n0
2000-01-01T00:00:04Z [StaticPodMirrorCheck] waiting for mirror pods: kube-system/b-n0
2000-01-01T00:00:06Z [StaticPodMirrorCheck] set readiness.example.com/StaticPodsMirrored=True on n0
`
		if diff := cmp.Diff(wantLog, log.String()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

func TestRunSetsTheConditionUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, start := newAPI(), time.Now()
		api.refuseApplies = 2
		var log bytes.Buffer
		err := Run(t.Context(), Config{
			Client: api.client(t), Folder: fstest.MapFS{}, NodeName: "n0", Condition: "example.com/Mirrored", PollInterval: 5 * time.Second, Log: &log,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 10*time.Second {
			t.Errorf("took %s, want two poll intervals of 5 s", got)
		}
		wantLog := `2000-01-01T00:00:00Z [StaticPodMirrorCheck] setting example.com/Mirrored=True on n0 failed: not now
2000-01-01T00:00:05Z [StaticPodMirrorCheck] setting example.com/Mirrored=True on n0 failed: not now
2000-01-01T00:00:10Z [StaticPodMirrorCheck] set example.com/Mirrored=True on n0
`
		if diff := cmp.Diff(wantLog, log.String()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		want := apply{
			path: "/api/v1/nodes/n0/status", contentType: "application/apply-patch+yaml", fieldManager: "static-pod-mirror-check", force: "false",
			body: []byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n0"},"status":{"conditions":[{"type":"example.com/Mirrored","status":"True",` +
				`"lastHeartbeatTime":"2000-01-01T00:00:00Z","lastTransitionTime":"2000-01-01T00:00:00Z",` +
				`"reason":"MirrorPodsRegistered","message":"All static pods have mirror pods in the API server"}]}}`),
		}
		for _, got := range api.applied {
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(apply{}), cmp.Transformer("text", func(b []byte) string { return strings.TrimSpace(string(b)) })); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
		}
		if len(api.applied) != 3 {
			t.Errorf("applied %d times, want 3", len(api.applied))
		}
	})
}

func TestRunSeesTheFolderChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, folder := newAPI(), t.TempDir()
		path := folder + "/late.yaml"
		if err := os.WriteFile(path, []byte(podNamed("late")), 0o600); err != nil {
			t.Fatal(err)
		}
		looks := 0
		err := Run(t.Context(), Config{
			Client: api.client(t), Folder: os.DirFS(folder), NodeName: "n0",
			OnWaiting: func([]string) {
				if looks++; looks == 2 {
					if err := os.Remove(path); err != nil {
						t.Error(err)
					}
				}
			},
		})
		if err != nil || looks != 2 {
			t.Errorf("got error %v after waiting %d times, want none after 2", err, looks)
		}
	})
}

// TestRunDoesNotPassWithoutTheFolder: the script would.
func TestRunDoesNotPassWithoutTheFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, folder := newAPI(), t.TempDir()+"/manifests"
		var log bytes.Buffer
		time.AfterFunc(time.Second, func() {
			if err := os.Mkdir(folder, 0o750); err != nil {
				t.Error(err)
			}
		})
		if err := Run(t.Context(), Config{Client: api.client(t), Folder: os.DirFS(folder), NodeName: "n0", Log: &log}); err != nil {
			t.Fatal(err)
		}
		wantLog := `2000-01-01T00:00:00Z [StaticPodMirrorCheck] read the folder of static pods: open .: no such file or directory
2000-01-01T00:00:02Z [StaticPodMirrorCheck] set readiness.example.com/StaticPodsMirrored=True on n0
`
		if diff := cmp.Diff(wantLog, log.String()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	stop := errors.New("node went away")
	tests := map[string]struct {
		folder  fs.FS
		applies int
		want    string
	}{
		"while waiting":               {twoPods(), 0, "wait for mirror pods on node n0: node went away"},
		"while setting the condition": {fstest.MapFS{}, 2, "set readiness.example.com/StaticPodsMirrored on node n0: node went away"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(3*time.Second, func() { cancel(stop) })
				api := newAPI()
				api.refuseApplies = 100
				err := Run(ctx, Config{
					Client: api.client(t), Folder: tt.folder, NodeName: "n0",
					OnPassed: func() { t.Error("passed") },
				})
				if !errors.Is(err, stop) || err.Error() != tt.want {
					t.Errorf("got error %v, want %s", err, tt.want)
				}
				if len(api.applied) != tt.applies {
					t.Errorf("applied %d times, want %d", len(api.applied), tt.applies)
				}
			})
		})
	}
}

func TestRunReportsEverythingWrongWithItsConfig(t *testing.T) {
	err := Run(t.Context(), Config{PollInterval: -time.Second})
	want := `start the mirror-pod check: no client: set Client
no folder of static pods: set Folder
no node name: set NodeName
poll interval -1s is negative: give a positive one`
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func twoPods() fs.FS {
	return fstest.MapFS{"a.yaml": {Data: []byte(podNamed("a"))}, "b.yaml": {Data: []byte(podNamed("b"))}}
}

// firstLook runs the check until it first waits, or passes, and returns its log.
func firstLook(t *testing.T, api *api, folder string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log bytes.Buffer
	err := Run(ctx, Config{
		Client: api.client(t), Folder: os.DirFS(folder), NodeName: "n0", Log: &log,
		OnWaiting: func([]string) { cancel() },
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return log.String()
}

// api is an API server reduced to what the check asks of it. It answers without a socket, so that it works in a synctest bubble.
type api struct {
	mu            sync.Mutex
	pods          map[string]bool
	forbidden     bool
	refuseApplies int
	applied       []apply
}

// apply is a server-side apply that arrived.
type apply struct {
	path, contentType, fieldManager, force string
	body                                   []byte
}

func newAPI() *api { return &api{pods: map[string]bool{}} }

func (a *api) addPod(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods[namespace+"/"+name] = true
}

func (a *api) removePod(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pods, namespace+"/"+name)
}

func (a *api) forbidLookups() { a.forbidden = true }

func (a *api) client(t *testing.T) Client {
	t.Helper()
	client, err := clientcorev1.NewForConfig(&rest.Config{Host: "http://api", Transport: a, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// RoundTrip answers GET of a pod and PATCH of a node's status.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodGet && len(path) == 6 && path[2] == "namespaces" && path[4] == "pods":
		return a.getPod(path[3], path[5])
	case r.Method == http.MethodGet && len(path) == 4 && path[2] == "nodes":
		return respond(http.StatusOK, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: path[3], UID: nodeUID}})
	case r.Method == http.MethodPatch && len(path) == 5 && path[2] == "nodes" && path[4] == "status":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return a.apply(r.URL, r.Header.Get("Content-Type"), body)
	}
	return nil, fmt.Errorf("unexpected %s %s", r.Method, r.URL)
}

func (a *api) getPod(namespace, name string) (*http.Response, error) {
	if a.forbidden {
		status := apierrors.NewForbidden(corev1.Resource("pods"), "", nil).Status()
		status.Message = "pods is forbidden"
		return respond(int(status.Code), &status)
	}
	if !a.pods[namespace+"/"+name] {
		status := apierrors.NewNotFound(corev1.Resource("pods"), name).Status()
		return respond(int(status.Code), &status)
	}
	return respond(http.StatusOK, mirrorPod(namespace, name))
}

// nodeUID is the UID of every node.
const nodeUID = "uid-of-the-node"

// mirrorPod is a right mirror pod.
func mirrorPod(namespace, name string) *corev1.Pod {
	controller := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "hash"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n0", UID: nodeUID, Controller: &controller}},
	}}
}

func (a *api) apply(u *url.URL, contentType string, body []byte) (*http.Response, error) {
	a.applied = append(a.applied, apply{u.Path, contentType, u.Query().Get("fieldManager"), u.Query().Get("force"), body})
	if len(a.applied) <= a.refuseApplies {
		status := apierrors.NewConflict(corev1.Resource("nodes"), "n0", nil).Status()
		status.Message = "not now"
		return respond(int(status.Code), &status)
	}
	return respond(http.StatusOK, &corev1.Node{})
}

func respond(code int, object runtime.Object) (*http.Response, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(body)),
	}, nil
}
