package kubelet

import (
	"context"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// node is one run of the kubelet of one machine. All its state belongs to its main loop: methods run there unless they say otherwise.
type node struct {
	*machine
	kubelets *Kubelets
	ctx      context.Context
	cancel   context.CancelFunc
	started  time.Time

	// loop decides and never waits for the API; statuses and calls are its two writers.
	loop, statuses, calls *queue

	events       record.EventRecorder
	admission    lifecycle.PodAdmitHandler
	mirrorClient kubepod.MirrorClient

	// created is when the Node object was created, or adopted; uid is that object's. registered: the node is in the lister.
	created    time.Time
	uid        types.UID
	registered bool
	// booted: the static pods of the start are taken up. sourceOpen: pods from the API are seen. housekept: the first housekeeping since then is over.
	booted, sourceOpen, housekept bool

	// pods are the static pods and the pods from the API, in the order in which they came, with the same by UID.
	pods  []*pod
	byUID map[types.UID]*pod
	// mirrors are the mirror pods in the API by full name.
	mirrors map[string]*corev1.Pod
	// refused is what is wrong with a manifest, by file name.
	refused map[string]string
	// stale are the pods whose status waits for the status tick, unwritten those of which a write failed.
	stale, unwritten []*pod
	// shortage is the first reason of a failed admission, while it is handled.
	shortage *lifecycle.InsufficientResourceError
}

// pod is what the kubelet knows of one static pod, or of one pod from the API.
type pod struct {
	// object is the pod as its source shows it.
	object *corev1.Pod
	static *staticPod
	state  podState
	inits  []container
	// status is what the kubelet says; nil as long as it has nothing to say. writing: a write of it is due. written: there was one.
	status           *corev1.PodStatus
	writing, written bool
	// terminated: the kubelet knows that nothing of the pod runs, although it was rejected before the first housekeeping.
	terminated bool
	// running lasts as long as the pod's containers may run, until end is called; both are nil when they never did.
	running context.Context
	end     context.CancelFunc
}

// podState is a pod's standing at admission.
type podState int

const (
	// admitted pods count at the admission of others.
	admitted podState = iota
	// rejected pods never ran.
	rejected
	// finished pods ran, or ended before this kubelet came to see them.
	finished
)

func newNode(k *Kubelets, m *machine) *node {
	n := &node{
		machine:  m,
		kubelets: k,
		started:  time.Now(),
		loop:     &queue{crew: k.crew},
		statuses: &queue{crew: k.crew},
		calls:    &queue{crew: k.crew},
		events:   k.events.NewRecorder(legacyscheme.Scheme, corev1.EventSource{Component: "kubelet", Host: m.Name}),
		byUID:    map[types.UID]*pod{},
		mirrors:  map[string]*corev1.Pod{},
		refused:  map[string]string{},
	}
	n.ctx, n.cancel = context.WithCancel(k.ctx)
	n.mirrorClient = kubepod.NewBasicMirrorClient(k.client, m.Name, k.nodeLister())
	n.admission = n.newAdmission()
	return n
}

// boot is what a kubelet does when it starts: static pods first, then the registration, and the pods of the API some time later.
func (n *node) boot() {
	n.record(trace.Event{Kind: trace.KubeletStarted})
	n.readFolder()
	n.booted = true
	n.register(registrationStep, n.sample(n.Behaviour.ReadyDelay, "kubelet/ready", n.Name))
	n.after(n.sample(n.Behaviour.PodSourceDelay, "kubelet/pod-source", n.Name), n.openSource)
}

// stop ends the kubelet. It is called from outside the main loop.
func (n *node) stop() {
	stopped := make(chan struct{})
	last := func() {
		defer close(stopped)
		for _, p := range n.pods {
			n.recordStaticStop(p)
		}
		n.record(trace.Event{Kind: trace.KubeletStopped})
		n.cancel()
	}
	if n.loop.push(last) {
		<-stopped
	}
}

// do runs f in the main loop, unless the kubelet ends first. It may be called on a nil node, which does nothing, and from everywhere.
func (n *node) do(f func()) {
	if n == nil {
		return
	}
	n.loop.push(func() {
		if n.ctx.Err() == nil {
			f()
		}
	})
}

// after runs f in the main loop after some time.
func (n *node) after(wait time.Duration, f func()) {
	time.AfterFunc(wait, func() { n.do(f) })
}

// atTick runs f in the main loop at the next multiple of period since the kubelet's start.
func (n *node) atTick(period time.Duration, f func()) {
	n.after(period-time.Since(n.started)%period, f)
}

// sample draws a delay from the stream of an object.
func (n *node) sample(delay *random.Delay, component, object string) time.Duration {
	return n.draws.sample(delay, component, object)
}

func (n *node) record(e trace.Event) {
	e.Source = trace.SourceKubelet
	e.Node = n.Name
	n.kubelets.config.Recorder.Record(e)
}

// openSource begins to see the pods of the API, once the node is in the lister: first all those bound by now, as one batch.
func (n *node) openSource() {
	if !n.registered {
		n.after(kubeletconfig.WaitForAPIServerSyncPeriod, n.openSource)
		return
	}
	n.sourceOpen = true
	n.atTick(n.Behaviour.Housekeeping.Duration, n.firstHousekeeping)
	for _, object := range n.boundPods() {
		n.podAdded(object)
	}
	n.missedMirrors()
}

func (n *node) firstHousekeeping() {
	n.housekept = true
	n.deleteOrphanMirrors()
}

// boundPods are the pods of the node as the watch shows them now, by creation time and then by name.
func (n *node) boundPods() []*corev1.Pod {
	objects, err := n.kubelets.pods.GetIndexer().ByIndex(byNode, n.Name)
	if err != nil { // the index is gone from newKubelets
		klog.FromContext(n.ctx).Error(err, "Unable to list the pods of the node", "node", n.Name)
	}
	pods := make([]*corev1.Pod, 0, len(objects))
	for _, obj := range objects {
		if pod, ok := obj.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	sort.Slice(pods, func(i, j int) bool {
		a, b := pods[i], pods[j]
		if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
			return a.CreationTimestamp.Before(&b.CreationTimestamp)
		}
		return kubecontainer.GetPodFullName(a) < kubecontainer.GetPodFullName(b)
	})
	return pods
}

// podAdded handles a pod that was bound to the node, or a new mirror pod.
func (n *node) podAdded(object *corev1.Pod) {
	switch {
	case !n.sourceOpen:
	case kubetypes.IsMirrorPod(object):
		n.mirrorAdded(object)
	case n.byUID[object.UID] != nil: // it came with the first batch
		n.podChanged(object)
	default:
		n.add(&pod{object: object})
	}
}

// podChanged handles a change of a pod in the API.
func (n *node) podChanged(object *corev1.Pod) {
	p := n.byUID[object.UID]
	switch {
	case !n.sourceOpen:
	case kubetypes.IsMirrorPod(object):
		n.mirrorChanged(object)
	case p == nil: // a client without a filter of its own shows the binding as a change
		n.podAdded(object)
	default:
		p.object = object
		n.observe(p)
	}
}

// podRemoved handles a pod that is gone from the API.
func (n *node) podRemoved(object *corev1.Pod) {
	switch p := n.byUID[object.UID]; {
	case !n.sourceOpen:
	case kubetypes.IsMirrorPod(object):
		n.mirrorRemoved(object)
	case p != nil:
		n.forget(p)
	}
}

// add takes up a pod: it is admitted and its containers start, or it is rejected.
func (n *node) add(p *pod) {
	n.pods = append(n.pods, p)
	n.byUID[p.object.UID] = p
	if podutil.IsPodPhaseTerminal(p.object.Status.Phase) {
		p.state = finished
		return
	}
	if !n.admit(p) {
		return
	}
	if p.object.DeletionTimestamp == nil {
		n.startContainers(p)
	}
}

// observe takes up what the API says about a known pod.
func (n *node) observe(p *pod) {
	phase := p.object.Status.Phase
	if p.object.DeletionTimestamp != nil || podutil.IsPodPhaseTerminal(phase) {
		p.stopContainers()
	}
	switch {
	case p.state == admitted && podutil.IsPodPhaseTerminal(phase):
		p.state = finished
	case p.status != nil && podutil.IsPodPhaseTerminal(p.status.Phase) && p.status.Phase != phase && !p.writing:
		n.writeAtTick(p) // the kubelet is the source of truth
	}
}

// forget drops a pod that is gone from its source.
func (n *node) forget(p *pod) {
	p.stopContainers()
	delete(n.byUID, p.object.UID)
	n.pods = slices.DeleteFunc(n.pods, func(other *pod) bool { return other == p })
}

// knows reports whether the pod is still there.
func (n *node) knows(p *pod) bool { return n.byUID[p.object.UID] == p }

// name is the pod's namespace/name, as traces have it.
func (p *pod) name() string { return p.object.Namespace + "/" + p.object.Name }
