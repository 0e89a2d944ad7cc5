package differential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/kubelet/events"
)

// view is what the API shows of the pods and events of a namespace.
type view struct {
	mu sync.Mutex
	// pods are the last versions of all pods that ever were, gone those that are no more.
	pods map[string]*corev1.Pod
	gone map[string]bool
	// events are the kubelet's.
	events map[string]*corev1.Event
	// changed is closed at the next change.
	changed chan struct{}
}

// newView watches until ctx ends.
func newView(ctx context.Context, client kubernetes.Interface, namespace string) (*view, error) {
	v := &view{pods: map[string]*corev1.Pod{}, gone: map[string]bool{}, events: map[string]*corev1.Event{}, changed: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	_, podErr := factory.Core().V1().Pods().Informer().AddEventHandler(v.handler())
	_, eventErr := factory.Core().V1().Events().Informer().AddEventHandler(v.handler())
	if err := errors.Join(podErr, eventErr); err != nil {
		return nil, fmt.Errorf("watch namespace %s: %w", namespace, err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	return v, nil
}

func (v *view) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { v.see(obj, false) },
		UpdateFunc: func(_, obj any) { v.see(obj, false) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			v.see(obj, true)
		},
	}
}

func (v *view) see(obj any, gone bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch object := obj.(type) {
	case *corev1.Pod:
		v.pods[object.Name] = object
		v.gone[object.Name] = gone
	case *corev1.Event:
		if object.Source.Component == "kubelet" {
			v.events[object.Name] = object
		}
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

// wait waits until a condition holds, which is looked at after each change.
func (v *view) wait(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it did not come within %s", patience))
	defer cancel()
	for {
		v.mu.Lock()
		changed := v.changed
		v.mu.Unlock()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
}

// pod is the last version of a pod; nil if there never was one.
func (v *view) pod(name string) *corev1.Pod {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pods[name]
}

func (v *view) isGone(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gone[name]
}

// names are those of all pods that ever were, in order.
func (v *view) names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Sorted(maps.Keys(v.pods))
}

const preempting = events.PreemptContainer

// aboutContainers are the reasons of events that a kubelet emits about pods it has admitted.
var aboutContainers = map[string]bool{
	events.PullingImage: true, events.PulledImage: true, events.CreatedContainer: true, events.StartedContainer: true, events.KillingContainer: true,
	events.FailedToKillPod: true, events.FailedSync: true, events.SandboxChanged: true, events.FailedCreatePodSandBox: true,
	events.ExceededGracePeriod: true, events.BackOffStartContainer: true, "MissingClusterDNS": true,
}

// admissionEvents are the events about the admission and preemption of a pod, in order.
func (v *view) admissionEvents(name string) []Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	var about []*corev1.Event
	for _, e := range v.events {
		if e.InvolvedObject.Name == name && !aboutContainers[e.Reason] {
			about = append(about, e)
		}
	}
	// The names of events end with their time in nanoseconds, hexadecimal and of one length.
	slices.SortFunc(about, func(a, b *corev1.Event) int { return cmp.Compare(a.Name, b.Name) })
	var list []Event
	for _, e := range about {
		list = append(list, Event{
			Type: e.Type, Reason: e.Reason, Message: e.Message, Component: e.Source.Component, OfNode: e.Source.Host == e.Namespace,
			Kind: e.InvolvedObject.Kind, Count: e.Count,
		})
	}
	return list
}
