package real

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	kubelettypes "k8s.io/kubelet/pkg/types"
)

func resources(amounts map[string]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range amounts {
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

// amounts writes resources so that a difference is readable.
func amounts(list corev1.ResourceList) map[string]string {
	m := map[string]string{}
	for name, q := range list {
		m[string(name)] = q.String()
	}
	return m
}

func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node", "settings.json")
	want := &settings{
		NodeName: "n", Root: "/r", Capacity: resources(map[string]string{"cpu": "4"}), APIUnreachable: time.Second,
		API: apiOf(&rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte("cert"), KeyData: []byte("key")}}),
	}
	if err := want.write(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the key has mode %v", info.Mode())
	}
	got, err := readSettings(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.API, got.API); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if cfg := got.API.config(); cfg.Host != "https://127.0.0.1:1" || string(cfg.KeyData) != "key" {
		t.Errorf("client configuration: %+v", cfg)
	}
	if err := run(t.Context(), []string{"kubelet"}); err == nil {
		t.Error("a kubelet without settings runs")
	}
	if err := run(t.Context(), []string{"kubelet", path + ".none"}); err == nil {
		t.Error("a kubelet whose settings are not there runs")
	}
}

// TestMachine: the size that the kubelet finds is the one that it was given; cpu is counted in cores, and what is left of them is reserved.
func TestMachine(t *testing.T) {
	s := &settings{
		Capacity:    resources(map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "10Gi", "example.com/gpu": "2"}),
		Allocatable: resources(map[string]string{"cpu": "3920m", "memory": "7Gi", "pods": "110", "ephemeral-storage": "10Gi", "example.com/gpu": "1"}),
	}
	info, err := s.cadvisor().MachineInfo(klog.Background())
	if err != nil {
		t.Fatal(err)
	}
	if info.NumCores != 4 || info.MemoryCapacity != 8<<30 {
		t.Errorf("%d cores, %d bytes", info.NumCores, info.MemoryCapacity)
	}
	manager := s.containerManager()
	if diff := cmp.Diff(map[string]string{"cpu": "80m", "memory": "1Gi"}, amounts(manager.GetNodeAllocatableReservation())); diff != "" {
		t.Errorf("reserved (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"ephemeral-storage": "10Gi"}, amounts(manager.GetCapacity(klog.Background(), true))); diff != "" {
		t.Errorf("capacity (-want +got)\n%s", diff)
	}
	if got := manager.GetCapacity(klog.Background(), false); len(got) > 0 {
		t.Errorf("capacity without local storage: %v", got)
	}
	capacity, allocatable, _ := manager.GetDevicePluginResourceCapacity(klog.Background())
	if diff := cmp.Diff([]map[string]string{{"example.com/gpu": "2"}, {"example.com/gpu": "1"}}, []map[string]string{amounts(capacity), amounts(allocatable)}); diff != "" {
		t.Errorf("devices (-want +got)\n%s", diff)
	}
}

func TestDialer(t *testing.T) {
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address := listener.Addr().String()
	if _, err := dialer(time.Now().Add(time.Hour))(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("unreachable for an hour: %v", err)
	}
	conn, err := dialer(time.Now())(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// TestAnnouncer: only what the kubelet says when it rejects a pod is a rejection.
func TestAnnouncer(t *testing.T) {
	var out bytes.Buffer
	a := announcer{&record.FakeRecorder{}, &announcements{out: &out}}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "default", "p", "u"
	a.WithLogger(klog.Background()).Eventf(pod, corev1.EventTypeWarning, "FailedMount", "no %s", "disk")
	if out.Len() > 0 {
		t.Errorf("announced: %s", &out)
	}
	a.announcements.write(announcement{"default", "p", "u", "OutOfcpu", "Node didn't have enough resource"})
	var got announcement
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Reason != "OutOfcpu" {
		t.Errorf("announced %q: %v", &out, err)
	}
}

// TestCalledFrom holds the depth at which rejectPod is looked for, with a function of this package in its place.
func TestCalledFrom(t *testing.T) {
	const here = "github.com/mirrorgap/mirrorgap/sim/kubelet/real.rejects"
	if !rejects(here) || rejects("github.com/mirrorgap/mirrorgap/sim/kubelet/real.other") {
		t.Error("the caller of Eventf is not found, or another one is")
	}
}

// rejects, event and announces are called as rejectPod, Eventf and announce are.
//
//go:noinline
func rejects(function string) bool { return event(function) }

//go:noinline
func event(function string) bool { return announces(function) }

//go:noinline
func announces(function string) bool { return calledFrom(function) }

// aRuntime is a container runtime that writes down what it is told to tell.
func aRuntime(t *testing.T) (r *containerRuntime, told *[]string, started *[]*runningContainer) {
	t.Helper()
	r, told, started = newContainerRuntime(), new([]string), new([]*runningContainer)
	note := func(what string) func(*runtimeapi.PodSandboxConfig) {
		return func(c *runtimeapi.PodSandboxConfig) { *told = append(*told, what+" "+c.GetMetadata().GetName()) }
	}
	r.sandboxStarted, r.sandboxStopped = note("start"), note("stop")
	r.containerStarted = func(c *runningContainer) { *started = append(*started, c) }
	t.Cleanup(r.stop)
	return r, told, started
}

// runPod starts a pod with one container, and returns their identifiers.
func runPod(t *testing.T, r *containerRuntime, name string) (sandbox, container string) {
	t.Helper()
	ctx := t.Context()
	config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name}}
	s, err := r.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: s.GetPodSandboxId(), SandboxConfig: config, Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "i"},
		Labels: map[string]string{kubelettypes.KubernetesContainerNameLabel: "c"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: c.GetContainerId()}); err != nil {
		t.Fatal(err)
	}
	return s.GetPodSandboxId(), c.GetContainerId()
}

func state(t *testing.T, r *containerRuntime, container string) string {
	t.Helper()
	response, err := r.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: container})
	if err != nil {
		t.Fatal(err)
	}
	s := response.GetStatus()
	return fmt.Sprintf("%v %d %s", s.GetState(), s.GetExitCode(), s.GetReason())
}

func TestContainers(t *testing.T) {
	r, told, started := aRuntime(t)
	sandbox, first := runPod(t, r, "a")
	_, second := runPod(t, r, "b")
	_, third := runPod(t, r, "c")
	if got := state(t, r, first); got != "CONTAINER_RUNNING 0 " {
		t.Errorf("a started container is %s", got)
	}

	r.finish("uid-b")
	r.exit((*started)[2], 1)
	for container, want := range map[string]string{second: "CONTAINER_EXITED 0 Completed", third: "CONTAINER_EXITED 1 Error"} {
		if got := state(t, r, container); got != want {
			t.Errorf("%s is %s, want %s", container, got, want)
		}
	}
	if (*started)[1].ctx.Err() == nil || (*started)[0].ctx.Err() != nil {
		t.Error("a container's context must end with it, and not before")
	}

	for range 2 { // the kubelet stops a sandbox more than once
		if _, err := r.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"start a", "start b", "start c", "stop a"}, *told); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := len(r.running()); n != 2 {
		t.Errorf("%d sandboxes run, want 2", n)
	}
}

// TestHeldContainers stop when they are released, or when whoever waits has enough.
func TestHeldContainers(t *testing.T) {
	r, _, started := aRuntime(t)
	_, container := runPod(t, r, "a")
	r.hold(types.UID("uid-a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: container}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped although it is held: %v", err)
	}
	if (*started)[0].ctx.Err() != nil {
		t.Error("a held container ended")
	}
	stopped := make(chan error)
	go func() {
		_, err := r.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: container})
		stopped <- err
	}()
	r.release("uid-a")
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if (*started)[0].ctx.Err() == nil {
		t.Error("a stopped container goes on")
	}
}
