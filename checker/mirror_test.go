package checker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOwnMirror: each of the pods that the published script takes for the mirror of a static pod, and the check does not.
func TestOwnMirror(t *testing.T) {
	const manifest = `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: kube-system}
spec:
  initContainers: [{name: first, image: i, resources: {requests: {cpu: 300m}}}]
  containers: [{name: a, image: i, resources: {requests: {cpu: 100m}, limits: {memory: 1Gi}}}, {name: b, image: i, resources: {requests: {cpu: 100m}}}]
`
	static, ok := parseManifest([]byte(manifest))
	if !ok || static.pod == nil {
		t.Fatal("the manifest is not read")
	}
	right := func() *corev1.Pod {
		pod := mirrorPod("kube-system", "p-n0")
		pod.Spec = *static.pod.Spec.DeepCopy()
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi") // as defaults have it
		return pod
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"the mirror pod":                {func(*corev1.Pod) {}, ""},
		"one that requests more":        {func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("1")} }, ""},
		"an ordinary pod":               {func(p *corev1.Pod) { p.Annotations = nil }, "not a mirror pod"},
		"one without owner":             {func(p *corev1.Pod) { p.OwnerReferences = nil }, "of another Node object"},
		"one of an earlier Node":        {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "before" }, "of another Node object"},
		"one that is being deleted":     {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, "being deleted"},
		"one that requests less cpu":    {func(p *corev1.Pod) { p.Spec.InitContainers = nil }, "requests 200m of cpu, its manifest 300m"},
		"one that requests less memory": {func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, "requests 0 of memory, its manifest 1Gi"},
	} {
		pod := right()
		c.change(pod)
		if got := static.wrong(pod, nodeUID); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		folder := fstest.MapFS{"p.yaml": {Data: []byte(manifest)}}
		look := Look{Folder: folder, NodeName: "n0", NodeUID: nodeUID, Accept: AcceptName, Lookup: func(string, string) (*corev1.Pod, error) { return pod, nil }}
		if missing, failures := look.Evaluate(); len(missing)+len(failures) > 0 {
			t.Errorf("%s: by its name it is missed: %v %v", name, missing, failures)
		}
		look.Accept = AcceptOwnMirror
		missing, _ := look.Evaluate()
		if want := "kube-system/p-n0(" + c.want + ")"; c.want != "" && (len(missing) != 1 || missing[0] != want) {
			t.Errorf("%s: missing %q, want %q", name, missing, want)
		}
	}
}

// TestStaticPodsThatAreNotInTheFolder are waited for too.
func TestStaticPodsThatAreNotInTheFolder(t *testing.T) {
	look := Look{Folder: fstest.MapFS{}, StaticPods: []string{"kube-system/from-url"}, NodeName: "n0", NodeUID: nodeUID, Lookup: none}
	missing, failures := look.Evaluate()
	if diff := cmp.Diff([]string{"kube-system/from-url-n0"}, missing); diff != "" || len(failures) > 0 {
		t.Errorf("missing (-want +got):\n%s\nfailures: %v", diff, failures)
	}
}

// TestSettle: the time begins again whenever a mirror pod is missing.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, start := newAPI(), time.Now()
		for _, at := range []time.Duration{0, 7 * time.Second} {
			time.AfterFunc(at, func() { api.addPod("kube-system", "a-n0"); api.addPod("kube-system", "b-n0") })
		}
		time.AfterFunc(3*time.Second, func() { api.removePod("kube-system", "a-n0") })
		var passed time.Duration
		err := Run(t.Context(), Config{
			Client: api.client(t), Folder: twoPods(), NodeName: "n0", Settle: 5 * time.Second,
			OnPassed: func() { passed = time.Since(start) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := 13 * time.Second; passed != want { // missed at 4 and 6 s, there at 8 s
			t.Errorf("passed after %v, want %v", passed, want)
		}
	})
}

// TestContinuous: the condition follows the mirror pods, and a look that fails does not change it.
func TestContinuous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		at := func(second int, do func()) { time.AfterFunc(time.Duration(second)*time.Second, do) }
		locked := func(do func()) func() {
			return func() { api.mu.Lock(); defer api.mu.Unlock(); do() }
		}
		api.addPod("kube-system", "a-n0")
		api.addPod("kube-system", "b-n0")
		at(3, func() { api.removePod("kube-system", "b-n0") })
		at(9, func() { api.addPod("kube-system", "b-n0") })
		at(13, locked(func() { api.forbidden = true }))
		at(19, locked(func() { api.forbidden = false }))
		at(25, cancel)
		var log bytes.Buffer
		err := Run(ctx, Config{Client: api.client(t), Folder: twoPods(), NodeName: "n0", Log: &log, Continuous: true})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("ended with %v", err)
		}
		var got []string
		for _, a := range api.applied {
			for _, status := range []string{"True", "False"} {
				if strings.Contains(string(a.body), `"status":"`+status+`"`) {
					got = append(got, status)
				}
			}
		}
		if diff := cmp.Diff([]string{"True", "False", "True"}, got); diff != "" {
			t.Errorf("conditions (-want +got):\n%s\n%s", diff, &log)
		}
		if want := "Without mirror pod: kube-system/b-n0"; !strings.Contains(string(api.applied[1].body), want) {
			t.Errorf("the condition says %s, want %s", api.applied[1].body, want)
		}
	})
}

func TestBadSettings(t *testing.T) {
	err := Run(t.Context(), Config{
		Client: newAPI().client(t), Folder: fstest.MapFS{}, NodeName: "n0", StaticPods: []string{"p", "a/b/c"}, Accept: "any", Settle: -1,
	})
	want := `start the mirror-pod check: static pod "p" is not namespace/name: give the names of its manifest
static pod "a/b/c" is not namespace/name: give the names of its manifest
accept "any" is neither own-mirror nor name
settle time -1ns is negative: give a positive one, or 0`
	if got := fmt.Sprint(err); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
