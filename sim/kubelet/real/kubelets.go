package real

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Config configures real kubelets.
type Config struct {
	// Access gives each kubelet its identity, and Kubelets one that may read pods.
	Access sim.Access
	// Recorder takes the kubelets' events. Nil: none are recorded.
	Recorder trace.Recorder
	// Programs gives the program that stands in for the image of an init container, or nil for one that ends at once. Nil: no programs.
	Programs func(pod *corev1.Pod, container *corev1.Container) kubelet.Program
	// LogDir is the folder for the kubelets' logs, <node>.log, and ContainerLogDir that for the output of programs (see kubelet.LogFile). Empty: they are
	// dropped.
	LogDir, ContainerLogDir string
	// Binary is what is started as "kubelet": one whose main calls live.DispatchTool first. Default: the running executable.
	Binary string
}

// Kubelets are real kubelets, each a process. It is a sim.Component, and what sim/fleet boots machines with.
type Kubelets struct {
	config Config
	client kubernetes.Interface

	// ctx and dir, the folder of all machines, are set when running is closed.
	running chan struct{}
	ctx     context.Context //nolint:containedctx // the component is the lifetime of its machines
	dir     string
	// url is where static pods are served that are in no folder.
	url    string
	failed chan error

	mu       sync.Mutex
	machines map[string]*node
	// background counts what goes on beside the callers.
	background sync.WaitGroup
}

var _ sim.Component = (*Kubelets)(nil)

// New makes the component. It fails when there is no access or no binary.
func New(config Config) (*Kubelets, error) {
	if config.Access == nil {
		return nil, errors.New("make real kubelets: no access to the API")
	}
	if config.Recorder == nil {
		config.Recorder = trace.Discard
	}
	if config.Programs == nil {
		config.Programs = func(*corev1.Pod, *corev1.Container) kubelet.Program { return nil }
	}
	if config.Binary == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the running binary: %w", err)
		}
		config.Binary = self
	}
	access, err := config.Access.ConfigFor("container-runtimes", sim.Masters)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("make client of the container runtimes: %w", err)
	}
	return &Kubelets{config: config, client: client, running: make(chan struct{}), failed: make(chan error, 1), machines: map[string]*node{}}, nil
}

// Name implements sim.Component.
func (k *Kubelets) Name() string { return "kubelet-real" }

// Run implements sim.Component. Kubelets can be started once it runs, and all end with it, together with their folders. A kubelet that ends by itself is
// an error.
func (k *Kubelets) Run(ctx context.Context) (err error) {
	if k.dir, err = os.MkdirTemp("", "mirrorgap-"); err != nil {
		return fmt.Errorf("make a folder for the machines: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(k.dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	if k.url, err = k.serveManifests(ctx); err != nil {
		cancel()
		return err
	}
	k.ctx = ctx
	close(k.running)
	defer k.background.Wait()
	defer k.stopAll()
	defer cancel()
	select {
	case <-ctx.Done():
		return nil
	case err := <-k.failed:
		return err
	}
}

// serveManifests serves the static pods that kubelets get from a URL, each below its node's name, until ctx ends.
func (k *Kubelets) serveManifests(ctx context.Context) (url string, err error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("open the port of static pods: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if n, ok := k.machines[strings.Trim(r.URL.Path, "/")]; ok {
			_, _ = w.Write(n.list) // a kubelet that is gone does not mind
		}
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // ends when it is closed
	return "http://" + listener.Addr().String() + "/", nil
}

func (k *Kubelets) stopAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.machines {
		n.halt()
	}
}

// Start boots a machine: its container runtime and its kubelet start, with m.StaticPods in a fresh folder. It waits until the component runs, not for
// the registration. It fails when m is incomplete, when a kubelet of that name runs, when ctx ends before the component runs, or when that has ended.
func (k *Kubelets) Start(ctx context.Context, m kubelet.Machine) error {
	select {
	case <-k.running:
	case <-ctx.Done():
		return fmt.Errorf("start kubelet %s: %w", m.Name, ctx.Err())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil { // everything has been stopped, and nobody would stop this one
		return fmt.Errorf("start kubelet %s: %w", m.Name, k.ctx.Err())
	}
	if old := k.machines[m.Name]; old != nil && old.process != nil {
		return fmt.Errorf("start kubelet %s: it runs already", m.Name)
	}
	n := &node{Machine: m, kubelets: k, dir: filepath.Join(k.dir, m.Name)}
	if err := n.install(); err != nil {
		return fmt.Errorf("start kubelet %s: %w", m.Name, err)
	}
	k.machines[m.Name] = n
	return n.boot()
}

// Restart starts the kubelet of a machine again that was stopped or killed, with the static pod folder as it was left or changed since. It fails for an
// unknown machine and for one whose kubelet runs.
func (k *Kubelets) Restart(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.machines[name]
	switch {
	case !ok:
		return fmt.Errorf("restart kubelet %s: there is no machine of that name", name)
	case n.process != nil:
		return fmt.Errorf("restart kubelet %s: it runs already", name)
	case k.ctx.Err() != nil:
		return fmt.Errorf("restart kubelet %s: %w", name, k.ctx.Err())
	}
	return n.boot()
}

// Stop switches a machine off: its kubelet and all containers end at once. It does nothing when there is none.
func (k *Kubelets) Stop(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n, ok := k.machines[name]; ok {
		n.halt()
	}
}

// Kill ends the kubelet of a machine, as a crash does: its containers run on. It does nothing when none runs.
func (k *Kubelets) Kill(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n, ok := k.machines[name]; ok {
		n.kill()
	}
}

// PutStaticPod writes a manifest into the static pod folder of a machine, in place of one of the same file name. A manifest that the kubelet cannot use is
// no error: it is recorded as trace.StaticPodRefused.
func (k *Kubelets) PutStaticPod(machine, file string, manifest []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.machines[machine]
	if !ok {
		return fmt.Errorf("write static pod %s: there is no machine %s", file, machine)
	}
	return n.put(file, manifest)
}

// RemoveStaticPod removes a manifest from the static pod folder of a machine. It fails when there is none of that file name.
func (k *Kubelets) RemoveStaticPod(machine, file string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.machines[machine]
	if !ok {
		return fmt.Errorf("remove static pod %s: there is no machine %s", file, machine)
	}
	if err := os.Remove(filepath.Join(n.manifests(), file)); err != nil {
		return fmt.Errorf("remove static pod %s of %s: %w", file, machine, err)
	}
	return nil
}

// FinishPod has the containers of a pod exit with 0.
func (k *Kubelets) FinishPod(machine string, pod types.UID) {
	k.atRuntime(machine, func(r *containerRuntime) { r.finish(pod) })
}

// HoldPod keeps the containers of a pod from stopping, whatever their grace period, until ReleasePod.
func (k *Kubelets) HoldPod(machine string, pod types.UID) {
	k.atRuntime(machine, func(r *containerRuntime) { r.hold(pod) })
}

// ReleasePod lets the containers of a held pod stop.
func (k *Kubelets) ReleasePod(machine string, pod types.UID) {
	k.atRuntime(machine, func(r *containerRuntime) { r.release(pod) })
}

func (k *Kubelets) atRuntime(machine string, do func(*containerRuntime)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n, ok := k.machines[machine]; ok && n.runtime != nil {
		do(n.runtime)
	}
}

// fail ends the component with an error.
func (k *Kubelets) fail(err error) {
	select {
	case k.failed <- err:
	default: // the first one counts
	}
}

// install makes the folder of a machine with its static pods.
func (n *node) install() error {
	if err := os.RemoveAll(n.dir); err != nil {
		return fmt.Errorf("remove the folder of the machine that was there before: %w", err)
	}
	if err := os.MkdirAll(n.manifests(), 0o700); err != nil {
		return fmt.Errorf("make static pod folder: %w", err)
	}
	var err error
	if n.list, err = n.served(); err != nil {
		return err
	}
	if n.list != nil {
		n.url = n.kubelets.url + n.Name
	}
	for _, p := range n.StaticPods {
		if p.Source == sim.SourceURL {
			continue
		}
		if err := n.put(p.FileName, p.Content()); err != nil {
			return err
		}
	}
	return nil
}

// put writes a manifest as a whole: the kubelet skips dotfiles, and must not read half a file.
func (n *node) put(file string, manifest []byte) error {
	path := filepath.Join(n.manifests(), file)
	part := filepath.Join(n.manifests(), "."+file)
	if err := os.WriteFile(part, manifest, 0o600); err != nil {
		return fmt.Errorf("write static pod %s: %w", file, err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("write static pod %s: %w", file, err)
	}
	if _, err := kubelet.DecodeManifest(manifest, path, n.Name); err != nil {
		n.record(trace.Event{Kind: trace.StaticPodRefused, Message: err.Error()})
	}
	return nil
}

func (n *node) manifests() string { return filepath.Join(n.dir, "manifests") }

// staticPod finds a static pod of the machine by the name of its mirror; nil if no manifest makes one.
func (n *node) staticPod(namespace, name string) *corev1.Pod {
	for _, p := range n.decoded() {
		if p.Namespace == namespace && p.Name == name {
			return p
		}
	}
	return nil
}

// decoded are the static pods of the machine, as its kubelet decodes them.
func (n *node) decoded() []*corev1.Pod {
	var pods []*corev1.Pod
	files, _ := fs.ReadDir(os.DirFS(n.manifests()), ".") // a folder that cannot be read has none
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") {
			continue
		}
		path := filepath.Join(n.manifests(), f.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			continue // removed in between
		}
		if pod, err := kubelet.DecodeManifest(data, path, n.Name); err == nil {
			pods = append(pods, pod)
		}
	}
	for _, p := range n.StaticPods {
		if p.Source != sim.SourceURL {
			continue
		}
		if pod, err := kubelet.DecodeManifest(p.Content(), n.url, n.Name); err == nil {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return pods
}
