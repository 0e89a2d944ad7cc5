package real

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	fakeremote "k8s.io/cri-client/pkg/fake"
	kubelettypes "k8s.io/kubelet/pkg/types"
)

// containerRuntime is the container runtime of one machine: the fake one of k8s.io/cri-client, whose containers end as containers do.
type containerRuntime struct {
	*fakeremote.RemoteRuntime
	server *grpc.Server
	// sandboxStarted, sandboxStopped and containerStarted are told what happened. They must not block.
	sandboxStarted, sandboxStopped func(*runtimeapi.PodSandboxConfig)
	containerStarted               func(*runningContainer)

	mu sync.Mutex
	// sandboxes are the running ones by their identifiers, containers the running containers.
	sandboxes  map[string]*runtimeapi.PodSandboxConfig
	containers map[string]*runningContainer
	// held are the pods whose containers do not stop until they are released.
	held map[types.UID]chan struct{}
}

// terminatedExitCode is that of a container that SIGTERM ends: 128 + 15.
const terminatedExitCode = 143

// runningContainer is a container that was started and has not ended.
type runningContainer struct {
	id, name string
	pod      *runtimeapi.PodSandboxConfig
	// ctx ends when the container is to stop.
	ctx context.Context //nolint:containedctx // the container is what the context is the lifetime of
	end context.CancelFunc
}

func newContainerRuntime() *containerRuntime {
	r := &containerRuntime{
		RemoteRuntime: fakeremote.NewFakeRemoteRuntime(),
		server:        grpc.NewServer(),
		sandboxes:     map[string]*runtimeapi.PodSandboxConfig{},
		containers:    map[string]*runningContainer{},
		held:          map[types.UID]chan struct{}{},
	}
	r.RuntimeService.FakeStatus = &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}}
	r.ImageService.SetFakeImageSize(1) // an image without a size counts as broken
	runtimeapi.RegisterRuntimeServiceServer(r.server, r)
	runtimeapi.RegisterImageServiceServer(r.server, r)
	return r
}

// serve listens on a socket until stop.
func (r *containerRuntime) serve(ctx context.Context, socket string) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("open the container runtime's socket (a shorter TMPDIR helps if its path is too long): %w", err)
	}
	go func() { _ = r.server.Serve(listener) }() // ends with stop
	return nil
}

// stop ends all containers and the server.
func (r *containerRuntime) stop() {
	r.mu.Lock()
	for _, c := range r.containers {
		c.end()
	}
	for uid, release := range r.held {
		close(release)
		delete(r.held, uid)
	}
	r.mu.Unlock()
	r.server.Stop()
}

// running are the sandboxes that run, by the names of their pods.
func (r *containerRuntime) running() []*runtimeapi.PodSandboxConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*runtimeapi.PodSandboxConfig
	for _, sandbox := range r.sandboxes {
		all = append(all, sandbox)
	}
	slices.SortFunc(all, func(a, b *runtimeapi.PodSandboxConfig) int {
		return cmp.Compare(a.GetMetadata().GetNamespace()+"/"+a.GetMetadata().GetName(), b.GetMetadata().GetNamespace()+"/"+b.GetMetadata().GetName())
	})
	return all
}

// finish has the running containers of a pod exit with 0.
func (r *containerRuntime) finish(pod types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.pod.GetMetadata().GetUid() == string(pod) {
			r.exitLocked(c, 0)
		}
	}
}

// hold keeps the containers of a pod from stopping until they are released.
func (r *containerRuntime) hold(pod types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[pod] == nil {
		r.held[pod] = make(chan struct{})
	}
}

func (r *containerRuntime) release(pod types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if release, ok := r.held[pod]; ok {
		close(release)
		delete(r.held, pod)
	}
}

// exit ends a container, unless it was stopped before.
func (r *containerRuntime) exit(c *runningContainer, code int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exitLocked(c, code)
}

func (r *containerRuntime) exitLocked(c *runningContainer, code int32) {
	if r.containers[c.id] != c {
		return
	}
	r.endLocked(c)
	r.RuntimeService.Lock()
	defer r.RuntimeService.Unlock()
	if fake, ok := r.RuntimeService.Containers[c.id]; ok {
		fake.State, fake.FinishedAt, fake.ExitCode = runtimeapi.ContainerState_CONTAINER_EXITED, time.Now().UnixNano(), code
		fake.Reason = "Completed"
		if code != 0 {
			fake.Reason = "Error"
		}
	}
}

func (r *containerRuntime) endLocked(c *runningContainer) {
	c.end()
	delete(r.containers, c.id)
}

// RunPodSandbox implements runtimeapi.RuntimeServiceServer.
func (r *containerRuntime) RunPodSandbox(ctx context.Context, request *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	response, err := r.RemoteRuntime.RunPodSandbox(ctx, request)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.sandboxes[response.GetPodSandboxId()] = request.GetConfig()
	r.mu.Unlock()
	r.sandboxStarted(request.GetConfig())
	return response, nil
}

// StopPodSandbox implements runtimeapi.RuntimeServiceServer. It is called more than once for a sandbox.
func (r *containerRuntime) StopPodSandbox(ctx context.Context, request *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	response, err := r.RemoteRuntime.StopPodSandbox(ctx, request)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	config, ok := r.sandboxes[request.GetPodSandboxId()]
	delete(r.sandboxes, request.GetPodSandboxId())
	r.mu.Unlock()
	if ok {
		r.sandboxStopped(config)
	}
	return response, nil
}

// StartContainer implements runtimeapi.RuntimeServiceServer.
func (r *containerRuntime) StartContainer(ctx context.Context, request *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	response, err := r.RemoteRuntime.StartContainer(ctx, request)
	if err != nil {
		return nil, err
	}
	if c := r.started(request.GetContainerId()); c != nil {
		r.containerStarted(c)
	}
	return response, nil
}

// started notes a container that runs; nil if its sandbox is gone.
func (r *containerRuntime) started(id string) *runningContainer {
	r.RuntimeService.Lock()
	fake, ok := r.RuntimeService.Containers[id]
	var name, sandbox string
	if ok {
		name, sandbox = fake.Labels[kubelettypes.KubernetesContainerNameLabel], fake.SandboxID
	}
	r.RuntimeService.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	config, running := r.sandboxes[sandbox]
	if !ok || !running {
		return nil
	}
	c := &runningContainer{id: id, name: name, pod: config}
	c.ctx, c.end = context.WithCancel(context.Background()) //nolint:forbidigo // a container outlives the kubelet's request to start it
	r.containers[id] = c
	return c
}

// StopContainer implements runtimeapi.RuntimeServiceServer.
func (r *containerRuntime) StopContainer(ctx context.Context, request *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	if err := r.waitUntilReleased(ctx, request.GetContainerId()); err != nil {
		return nil, err
	}
	r.mu.Lock()
	if c, ok := r.containers[request.GetContainerId()]; ok {
		r.exitLocked(c, terminatedExitCode)
	}
	r.mu.Unlock()
	return r.RemoteRuntime.StopContainer(ctx, request)
}

func (r *containerRuntime) waitUntilReleased(ctx context.Context, container string) error {
	r.mu.Lock()
	var released chan struct{}
	if c, ok := r.containers[container]; ok {
		released = r.held[types.UID(c.pod.GetMetadata().GetUid())]
	}
	r.mu.Unlock()
	if released == nil {
		return nil
	}
	select {
	case <-released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
