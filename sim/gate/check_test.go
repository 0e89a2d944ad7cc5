package gate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

func TestIsCheck(t *testing.T) {
	set, err := published().Check.DecodeDaemonSet()
	if err != nil {
		t.Fatal(err)
	}
	script := corev1.Container{Name: "init", Command: []string{"bash", "-c", "/opt/wait-for-mirrors.sh || true"}}
	other := corev1.Container{Name: "setup", Command: []string{"sh"}, Image: "wait-for-it"}
	for name, c := range map[string]struct {
		pod  corev1.PodSpec
		want bool
	}{
		"the published DaemonSet":               {set.Spec.Template.Spec, true},
		"known by its command":                  {corev1.PodSpec{InitContainers: []corev1.Container{other, script}}, true},
		"known by its name":                     {corev1.PodSpec{InitContainers: []corev1.Container{{Name: "wait-for-mirrors"}}}, true},
		"another init container":                {corev1.PodSpec{InitContainers: []corev1.Container{other}}, false},
		"no init container":                     {corev1.PodSpec{Containers: []corev1.Container{other}}, false},
		"the script in a container of the pod":  {corev1.PodSpec{Containers: []corev1.Container{script}}, false},
		"a name that begins like the container": {corev1.PodSpec{InitContainers: []corev1.Container{{Name: "wait-for-mirrors-2"}}}, false},
	} {
		if got := IsCheck(&corev1.Pod{Spec: c.pod}); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestProgram: the check runs in its own container only.
func TestProgram(t *testing.T) {
	checks := NewChecks(&published().Check, &rest.Config{}, 1, trace.Discard)
	for name, want := range map[string]bool{"wait-for-mirrors": true, "setup": false} {
		if got := checks.Program(&corev1.Pod{}, &corev1.Container{Name: name}) != nil; got != want {
			t.Errorf("init container %s has a program: %v", name, got)
		}
	}
}

func TestEnvironment(t *testing.T) {
	container := &corev1.Container{Env: []corev1.EnvVar{
		{Name: "CONDITION", Value: "example.com/Mirrored"},
		{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
	}}
	for name, want := range map[string]string{"CONDITION": "example.com/Mirrored", "NODE_NAME": "", "MANIFEST_DIR": ""} {
		if got := environment(container, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// request is what the API server saw of one.
type request struct{ method, path, user, groups, body string }

// server is an API server that has no pod until a look has failed, and accepts every patch.
func server(t *testing.T) (cfg *rest.Config, seen func() []request) {
	t.Helper()
	var mu sync.Mutex
	var requests []request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		first := len(requests) == 0
		requests = append(requests, request{r.Method, r.URL.Path, r.Header.Get("Impersonate-User"), strings.Join(r.Header.Values("Impersonate-Group"), " "), string(body)})
		w.Header().Set("Content-Type", "application/json")
		if first {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
			return
		}
		kind := "Pod"
		if r.Method == http.MethodPatch {
			kind = "Node"
		}
		_, _ = io.WriteString(w, `{"kind": "`+kind+`", "apiVersion": "v1"}`)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL, QPS: -1}, func() []request {
		mu.Lock()
		defer mu.Unlock()
		return requests
	}
}

// checkContainer is the check's container on a node with one static pod, in a pod of the given ServiceAccount.
func checkContainer(account string, log io.Writer) kubelet.ContainerContext {
	return kubelet.ContainerContext{
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "check-x", UID: "u"}, Spec: corev1.PodSpec{ServiceAccountName: account}},
		Container: &corev1.Container{
			Name: "wait-for-mirrors", Env: []corev1.EnvVar{{Name: "CONDITION", Value: "example.com/Mirrored"}},
		},
		Node:      "pool-0",
		Manifests: fstest.MapFS{"p.yaml": {Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: proxy, namespace: kube-system}\n")}},
		Log:       log,
	}
}

// TestCheckRunsAsItsPod: the shipped check, under the rights of the pod's ServiceAccount, with the container's environment; the trace has what it does.
func TestCheckRunsAsItsPod(t *testing.T) {
	for account, user := range map[string]string{
		"mirror-check": "system:serviceaccount:kube-system:mirror-check", "": "system:serviceaccount:kube-system:default",
	} {
		cfg, seen := server(t)
		spec := published().Check
		spec.Accept = sim.AcceptName // the server has no Node
		spec.StartDelay, spec.PollInterval = random.Constant(time.Millisecond), &metav1.Duration{Duration: time.Millisecond}
		var events []trace.Event
		checks := NewChecks(&spec, cfg, 1, trace.RecorderFunc(func(e trace.Event) { events = append(events, e) }))
		var log bytes.Buffer
		container := checkContainer(account, &log)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := checks.Program(container.Pod, container.Container)(ctx, container)
		cancel()
		if err != nil {
			t.Fatalf("%v; its log begins with\n%.500s", err, log.String())
		}

		event := trace.Event{Source: trace.SourceCheck, Node: "pool-0", Pod: "kube-system/check-x", UID: "u"}
		started, waiting, passed := event, event, event
		started.Kind, waiting.Kind, passed.Kind = trace.CheckStarted, trace.CheckWaiting, trace.CheckPassed
		waiting.Missing = []string{"kube-system/proxy-pool-0"}
		if diff := cmp.Diff([]trace.Event{started, waiting, passed}, events); diff != "" {
			t.Errorf("trace (-want +got)\n%s", diff)
		}
		requests := seen()
		var lines []string
		for _, r := range requests {
			lines = append(lines, r.method+" "+r.path)
			if r.user != user || r.groups != "system:serviceaccounts system:serviceaccounts:kube-system system:authenticated" {
				t.Errorf("%s %s by %s of %s, want %s", r.method, r.path, r.user, r.groups, user)
			}
		}
		get := "GET /api/v1/namespaces/kube-system/pods/proxy-pool-0"
		if diff := cmp.Diff([]string{get, get, "PATCH /api/v1/nodes/pool-0/status"}, lines); diff != "" {
			t.Errorf("requests (-want +got)\n%s", diff)
		}
		if patch := requests[len(requests)-1].body; !strings.Contains(patch, `"type":"example.com/Mirrored"`) {
			t.Errorf("the patch does not set the condition of the container's environment: %s", patch)
		}
		if !strings.Contains(log.String(), "waiting for mirror pods: kube-system/proxy-pool-0") {
			t.Errorf("the container's log is %q", log.String())
		}
	}
}

// TestCheckEndsWhileItStarts: a pod that ends before its image is there has not looked at anything.
func TestCheckEndsWhileItStarts(t *testing.T) {
	cfg, seen := server(t)
	spec := published().Check
	spec.StartDelay = random.Constant(time.Hour)
	checks := NewChecks(&spec, cfg, 1, trace.RecorderFunc(func(e trace.Event) { t.Errorf("recorded %s", e.Kind) }))
	container := checkContainer("", io.Discard)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := checks.Program(container.Pod, container.Container)(ctx, container)
	if !errors.Is(err, context.Canceled) || len(seen()) > 0 {
		t.Errorf("got %v after %d requests", err, len(seen()))
	}
}
