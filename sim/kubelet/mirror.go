package kubelet

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"

	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// mirrorAfterRegistration plans the mirror of a static pod that was there when the node registered.
func (n *node) mirrorAfterRegistration(p *pod) {
	if p.static == nil || p.state != admitted && !p.static.atBoot {
		return
	}
	if n.Established {
		n.reconcileMirror(p)
		return
	}
	delay := n.Behaviour.MirrorDelay
	if own := n.folder.delays[p.static.file]; own != nil {
		delay = own
	}
	n.mirrorAfter(p, n.sample(delay, "kubelet/mirror", n.mirrorStream(p))-time.Since(n.created))
}

// mirrorLater looks at the mirror of a static pod again after a drawn delay.
func (n *node) mirrorLater(p *pod, delay *random.Delay, stream string) {
	n.mirrorAfter(p, n.sample(delay, stream, n.mirrorStream(p)))
}

func (n *node) mirrorAfter(p *pod, wait time.Duration) {
	n.after(max(wait, 0), func() { n.reconcileMirror(p) })
}

// mirrorStream names the object of a static pod's random streams.
func (n *node) mirrorStream(p *pod) string { return n.Name + "/" + p.name() }

// reconcileMirror makes the mirror of a static pod if it is missing, and replaces it if it is not that static pod's or terminating
// (tryReconcileMirrorPods).
func (n *node) reconcileMirror(p *pod) {
	mirror := n.mirror(p)
	switch {
	case !n.knows(p), mirror != nil && isRight(mirror, p.object):
		return
	case p.static.replacing:
		p.static.again = true
		return
	}
	if object, err := n.kubelets.nodeLister().Get(n.Name); err != nil || object.DeletionTimestamp != nil {
		n.mirrorLater(p, n.Behaviour.MirrorRetry, "kubelet/mirror-retry") // a node that is going gets no mirrors
		return
	}
	p.static.replacing = true
	static := p.object
	n.calls.push(func() {
		err := n.replaceMirror(static, mirror)
		n.do(func() {
			p.static.replacing, p.static.mirrored = false, err == nil
			if err != nil {
				n.mirrorFailed(p, err)
			}
			if p.static.again {
				p.static.again = false
				n.reconcileMirror(p)
			}
		})
	})
}

// replaceMirror creates a mirror pod, after deleting the one that is there. It calls the API and belongs into n.calls.
func (n *node) replaceMirror(static, mirror *corev1.Pod) error {
	if mirror != nil {
		deleted, err := n.mirrorClient.DeleteMirrorPod(n.ctx, kubecontainer.GetPodFullName(static), &mirror.UID)
		if err != nil {
			return fmt.Errorf("delete the mirror pod that is there: %w", err)
		}
		if !deleted {
			return errors.New("the mirror pod that is there could not be deleted")
		}
	}
	err := n.mirrorClient.CreateMirrorPod(n.ctx, static)
	if apierrors.IsAlreadyExists(err) && n.inAPI(static) {
		return nil
	}
	return err
}

// inAPI reports whether the watch has seen the right mirror of a static pod, which this kubelet may not have looked at yet.
func (n *node) inAPI(static *corev1.Pod) bool {
	obj, ok, err := n.kubelets.pods.GetIndexer().GetByKey(cache.NewObjectName(static.Namespace, static.Name).String())
	if err != nil || !ok {
		return false
	}
	mirror, ok := obj.(*corev1.Pod)
	return ok && isRight(mirror, static)
}

// missedMirrors plans to bring back mirrors that were created and deleted before the kubelet began to see the API.
func (n *node) missedMirrors() {
	for _, p := range n.pods {
		if p.static != nil && p.static.mirrored && n.mirror(p) == nil {
			n.mirrorLater(p, n.Behaviour.MirrorResync, "kubelet/mirror-resync")
		}
	}
}

// mirrorFailed plans another attempt. A rejected static pod has none: only the one-shot fast path ever looks at it.
func (n *node) mirrorFailed(p *pod, err error) {
	n.record(trace.Event{Kind: trace.MirrorFailed, Pod: p.name(), Message: err.Error()})
	if p.state == admitted {
		n.mirrorLater(p, n.Behaviour.MirrorRetry, "kubelet/mirror-retry")
	}
}

// mirrorAdded handles a new mirror pod in the API: its static pod is synced at once.
func (n *node) mirrorAdded(mirror *corev1.Pod) {
	n.mirrors[kubecontainer.GetPodFullName(mirror)] = mirror
	p := n.staticPodOf(mirror)
	if p == nil {
		n.atTick(n.Behaviour.Housekeeping.Duration, n.deleteOrphanMirrors)
		return
	}
	switch p.state {
	case admitted:
		n.reconcileMirror(p)
	case rejected:
		n.mirrorOfRejected(p)
	}
	n.writeAtTick(p)
}

// mirrorChanged handles a change of a mirror pod. It triggers no sync (HandlePodUpdates skips pods without an allocation, such as mirror pods): a
// mirror that became wrong, by being deleted gracefully for instance, is replaced at the static pod's next one.
func (n *node) mirrorChanged(mirror *corev1.Pod) {
	fullName := kubecontainer.GetPodFullName(mirror)
	old := n.mirrors[fullName]
	n.mirrors[fullName] = mirror
	p := n.staticPodOf(mirror)
	if p != nil && !isRight(mirror, p.object) && (old == nil || isRight(old, p.object)) {
		n.mirrorLater(p, n.Behaviour.MirrorResync, "kubelet/mirror-resync")
	}
}

// mirrorRemoved handles a mirror pod that is gone from the API: it comes back at the static pod's next sync.
func (n *node) mirrorRemoved(mirror *corev1.Pod) {
	fullName := kubecontainer.GetPodFullName(mirror)
	if known := n.mirrors[fullName]; known == nil || known.UID != mirror.UID {
		return
	}
	delete(n.mirrors, fullName)
	if p := n.staticPodOf(mirror); p != nil && p.state == admitted {
		n.mirrorLater(p, n.Behaviour.MirrorResync, "kubelet/mirror-resync")
	}
}

// deleteOrphanMirrors is the part of housekeeping that deletes mirror pods without a static pod.
func (n *node) deleteOrphanMirrors() {
	for _, fullName := range slices.Sorted(maps.Keys(n.mirrors)) {
		if n.staticPodOf(n.mirrors[fullName]) != nil {
			continue
		}
		n.calls.push(func() {
			// The client logs what the API refuses and tells nobody, as in the real kubelet; housekeeping comes back to it.
			_, err := n.mirrorClient.DeleteMirrorPod(n.ctx, fullName, nil)
			n.do(func() {
				if err == nil && n.mirrors[fullName] != nil {
					n.atTick(n.Behaviour.Housekeeping.Duration, n.deleteOrphanMirrors)
				}
			})
		})
	}
}

// mirror is the mirror of a static pod in the API, as far as the kubelet knows; nil if there is none.
func (n *node) mirror(p *pod) *corev1.Pod { return n.mirrors[kubecontainer.GetPodFullName(p.object)] }

// staticPodOf is the static pod of the name of a mirror pod; nil if there is none.
func (n *node) staticPodOf(mirror *corev1.Pod) *pod {
	for _, p := range n.pods {
		if p.static != nil && p.object.Name == mirror.Name && p.object.Namespace == mirror.Namespace {
			return p
		}
	}
	return nil
}

// isRight reports whether a mirror can stay.
func isRight(mirror, static *corev1.Pod) bool {
	return mirror.DeletionTimestamp == nil && kubepod.IsMirrorPodOf(mirror, static)
}
