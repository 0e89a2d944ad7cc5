package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Config configures the kubelets of a simulated cluster.
type Config struct {
	// Seed is the root of the random streams.
	Seed random.Seed
	// Access is how all kubelets reach the API server. Its identity must be allowed to write nodes, pods and events, and to impersonate nodes, as which
	// statuses of pods are written: the API server has the Node authorizer. Client-side throttling is switched off, since one client stands for many kubelets.
	Access *rest.Config
	// Recorder takes the kubelets' events. Nil: none are recorded.
	Recorder trace.Recorder
	// Programs gives the program that stands in for the image of an init container, or nil for one that ends at once. Nil: no programs.
	Programs func(pod *corev1.Pod, container *corev1.Container) Program
	// LogDir is the folder for the output of programs, see LogFile. Empty: it is dropped.
	LogDir string
}

// Machine is a computer that runs a kubelet.
type Machine struct {
	// Name is the node's name, Group that of its node group, which becomes the label sim.LabelGroup unless it is empty.
	Name, Group string
	// Capacity has cpu, memory and pods at least. Allocatable is at most that; what is absent from it equals the capacity.
	Capacity, Allocatable corev1.ResourceList
	// Labels and Taints that the kubelet registers with (--node-labels, --register-with-taints), besides those every kubelet sets.
	Labels map[string]string
	Taints []corev1.Taint
	// Initial sets the label sim.LabelInitial to "true".
	Initial bool
	// Established: mirror pods are created as soon as the node registers, as on a node that has been running for long.
	Established bool
	// Behaviour has all its delays set.
	Behaviour sim.Kubelet
	// StaticPods are the manifests in the static pod folder when the machine first starts. Each has its Manifest and its FileName.
	StaticPods []sim.StaticPod
}

// Kubelets are the kubelets of a simulated cluster. It is a sim.Component.
type Kubelets struct {
	config Config
	client kubernetes.Interface
	pods   cache.SharedIndexInformer
	nodes  cache.SharedIndexInformer
	crew   *crew

	// ctx and events are set when running is closed.
	running chan struct{}
	ctx     context.Context
	events  record.EventBroadcaster

	mu       sync.RWMutex
	machines map[string]*machine
}

// machine is what stays of a Machine while its kubelet is stopped.
type machine struct {
	Machine
	folder *folder
	draws  *draws
	// node is the running kubelet; nil when there is none.
	node *node
}

var _ sim.Component = (*Kubelets)(nil)

// byNode indexes pods by spec.nodeName.
const byNode = "node"

// New makes the component. It fails when Access is not usable.
func New(config Config) (*Kubelets, error) {
	if config.Access == nil {
		return nil, errors.New("make kubelets: no client configuration")
	}
	access := rest.CopyConfig(config.Access)
	access.QPS = -1
	access.ContentType = "application/vnd.kubernetes.protobuf"
	access.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	access = rest.AddUserAgent(access, "kubelet")
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return identities{next} })
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("make client for kubelets: %w", err)
	}
	return newKubelets(config, client)
}

func newKubelets(config Config, client kubernetes.Interface) (*Kubelets, error) {
	if config.Recorder == nil {
		config.Recorder = trace.Discard
	}
	k := &Kubelets{
		config:   config,
		client:   client,
		crew:     &crew{},
		running:  make(chan struct{}),
		machines: map[string]*machine{},
		// As in the real kubelet the API server filters, so that the first event of a pod is its binding and events come in bind order.
		pods: coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{byNode: podNode}, func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}),
		nodes: coreinformers.NewNodeInformer(client, 0, cache.Indexers{}),
	}
	for _, informer := range []cache.SharedIndexInformer{k.pods, k.nodes} {
		if err := informer.SetTransform(withoutManagedFields); err != nil {
			return nil, fmt.Errorf("make watch for kubelets: %w", err)
		}
	}
	if _, err := k.pods.AddEventHandler(k.podHandler()); err != nil {
		return nil, fmt.Errorf("make pod watch for kubelets: %w", err)
	}
	if _, err := k.nodes.AddEventHandler(k.nodeHandler()); err != nil {
		return nil, fmt.Errorf("make node watch for kubelets: %w", err)
	}
	return k, nil
}

// Name implements sim.Component.
func (k *Kubelets) Name() string { return "kubelet" }

// Run implements sim.Component. Kubelets can be started once it runs, and all end with it.
func (k *Kubelets) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer k.crew.dismiss()
	defer cancel()

	k.events = record.NewBroadcaster(record.WithContext(ctx))
	k.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: k.client.CoreV1().Events(metav1.NamespaceAll)})
	defer k.events.Shutdown()

	k.crew.start(func() { k.pods.RunWithContext(ctx) })
	k.crew.start(func() { k.nodes.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), k.pods.HasSynced, k.nodes.HasSynced) {
		return nil // ctx ended first
	}
	k.ctx = ctx
	close(k.running)
	<-ctx.Done()
	return nil
}

// Start boots a machine: its kubelet starts, runs the static pods of a fresh folder with m.StaticPods, and registers the node. It waits until the
// component runs, not for the registration, which is retried until it succeeds or the kubelet is stopped. It fails when m is incomplete, when a
// kubelet of that name runs, or when ctx ends before the component runs.
func (k *Kubelets) Start(ctx context.Context, m Machine) error {
	if err := m.validate(); err != nil {
		return fmt.Errorf("start kubelet %s: %w", m.Name, err)
	}
	if err := k.wait(ctx); err != nil {
		return fmt.Errorf("start kubelet %s: %w", m.Name, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := &machine{Machine: m, folder: newFolder(m.StaticPods)}
	switch old := k.machines[m.Name]; {
	case old == nil:
		next.draws = newDraws(k.config.Seed)
	case old.node != nil:
		return fmt.Errorf("start kubelet %s: it runs already", m.Name)
	default:
		next.draws = old.draws
	}
	k.machines[m.Name] = next
	k.boot(next)
	return nil
}

// Restart starts the kubelet of a stopped machine again, as after a reboot: with the same identity and the static pod folder as it was left or
// changed since. It fails for an unknown machine and for one whose kubelet runs.
func (k *Kubelets) Restart(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	m, ok := k.machines[name]
	if !ok {
		return fmt.Errorf("restart kubelet %s: there is no machine of that name", name)
	}
	if m.node != nil {
		return fmt.Errorf("restart kubelet %s: it runs already", name)
	}
	k.boot(m)
	return nil
}

// boot starts the kubelet of a machine. The caller holds k.mu.
func (k *Kubelets) boot(m *machine) {
	m.node = newNode(k, m)
	m.node.do(m.node.boot)
}

// Stop ends the kubelet of a machine and everything on it; nothing is written to the API any more. It does nothing when none runs.
func (k *Kubelets) Stop(name string) {
	k.mu.Lock()
	m, ok := k.machines[name]
	if !ok || m.node == nil {
		k.mu.Unlock()
		return
	}
	n := m.node
	m.node = nil
	k.mu.Unlock()
	n.stop()
}

// Kill ends the kubelet of a machine, as a crash does. In the model it is like Stop: programs end with the kubelet, and start again with it, where
// containers would run on.
func (k *Kubelets) Kill(name string) { k.Stop(name) }

// PutStaticPod writes a manifest into the static pod folder of a machine, in place of one of the same file name. A running kubelet takes it up at
// once, a stopped one when it starts. A manifest that the kubelet cannot use is no error: it is recorded as trace.StaticPodRefused.
func (k *Kubelets) PutStaticPod(machine, file string, manifest []byte) error {
	m, n, err := k.machine(machine)
	if err != nil {
		return fmt.Errorf("write static pod %s: %w", file, err)
	}
	m.folder.put(file, manifest)
	n.do(n.readFolder)
	return nil
}

// RemoveStaticPod removes a manifest from the static pod folder of a machine. It fails when there is none of that file name.
func (k *Kubelets) RemoveStaticPod(machine, file string) error {
	m, n, err := k.machine(machine)
	if err != nil {
		return fmt.Errorf("remove static pod %s: %w", file, err)
	}
	if !m.folder.remove(file) {
		return fmt.Errorf("remove static pod %s: machine %s has no such file", file, machine)
	}
	n.do(n.readFolder)
	return nil
}

// machine finds a machine and its running kubelet, if any.
func (k *Kubelets) machine(name string) (*machine, *node, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	m, ok := k.machines[name]
	if !ok {
		return nil, nil, fmt.Errorf("there is no machine %s", name)
	}
	return m, m.node, nil
}

// wait returns when the component runs.
func (k *Kubelets) wait(ctx context.Context) error {
	select {
	case <-k.running:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the kubelets' watches: %w", ctx.Err())
	}
}

func (m *Machine) validate() error {
	if m.Name == "" {
		return errors.New("the machine has no name")
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if _, ok := m.Capacity[name]; !ok {
			return fmt.Errorf("its capacity has no %s", name)
		}
	}
	b := m.Behaviour
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"readyDelay", b.ReadyDelay != nil},
		{"mirrorDelay", b.MirrorDelay != nil},
		{"mirrorRetry", b.MirrorRetry != nil},
		{"mirrorResync", b.MirrorResync != nil},
		{"statusDelay", b.StatusDelay != nil},
		{"statusTick", b.StatusTick != nil && b.StatusTick.Duration > 0},
		{"housekeeping", b.Housekeeping != nil && b.Housekeeping.Duration > 0},
		{"podSourceDelay", b.PodSourceDelay != nil},
	} {
		if !field.set {
			return fmt.Errorf("its behaviour has no %s", field.name)
		}
	}
	for i, p := range m.StaticPods {
		if p.FileName == "" || p.Manifest == nil {
			return fmt.Errorf("static pod %d has no file name or no manifest", i)
		}
	}
	return nil
}

// tell hands an event to the kubelet of a node, if one runs.
func (k *Kubelets) tell(nodeName string, event func(*node)) {
	k.mu.RLock()
	m, ok := k.machines[nodeName]
	var n *node
	if ok {
		n = m.node
	}
	k.mu.RUnlock()
	n.do(func() { event(n) })
}

func (k *Kubelets) podHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok {
				k.tell(pod.Spec.NodeName, func(n *node) { n.podAdded(pod) })
			}
		},
		UpdateFunc: func(_, obj any) {
			if pod, ok := obj.(*corev1.Pod); ok {
				k.tell(pod.Spec.NodeName, func(n *node) { n.podChanged(pod) })
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				k.tell(pod.Spec.NodeName, func(n *node) { n.podRemoved(pod) })
			}
		},
	}
}

// nodeHandler tells kubelets that wait for it that their node is in the lister; nothing else about nodes is an event for a kubelet.
func (k *Kubelets) nodeHandler() cache.ResourceEventHandler {
	seen := func(obj any) {
		if object, ok := obj.(*corev1.Node); ok {
			k.tell(object.Name, func(n *node) { n.nodeSeen(object) })
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: seen, UpdateFunc: func(_, obj any) { seen(obj) }}
}

func (k *Kubelets) nodeLister() corelisters.NodeLister {
	return corelisters.NewNodeLister(k.nodes.GetIndexer())
}

// withoutManagedFields spares the memory of what no kubelet reads.
func withoutManagedFields(obj any) (any, error) {
	if object, err := meta.Accessor(obj); err == nil {
		object.SetManagedFields(nil)
	}
	return obj, nil
}

func podNode(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("index pods: got a %T", obj)
	}
	return []string{pod.Spec.NodeName}, nil
}
