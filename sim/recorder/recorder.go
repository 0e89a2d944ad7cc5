package recorder

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Recorder is a component that records a cluster.
type Recorder struct {
	trace   trace.Recorder
	isCheck func(*corev1.Pod) bool
	synced  chan struct{}
	watches []*source
}

// New makes a recorder. isCheck tells the pods of the mirror-pod check; nil when there are none.
func New(cfg *rest.Config, out trace.Recorder, isCheck func(*corev1.Pod) bool) (*Recorder, error) {
	cfg = rest.CopyConfig(cfg)
	// Cheaper than JSON on both sides, at thousands of pods noticeably.
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return newRecorder(client, out, isCheck), nil
}

func newRecorder(client kubernetes.Interface, out trace.Recorder, isCheck func(*corev1.Pod) bool) *Recorder {
	if isCheck == nil {
		isCheck = func(*corev1.Pod) bool { return false }
	}
	r := &Recorder{trace: out, isCheck: isCheck, synced: make(chan struct{})}
	core := client.CoreV1()
	allPods := core.Pods(metav1.NamespaceAll)
	r.watches = []*source{
		{what: "nodes", trace: out, watch: core.Nodes().Watch,
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return core.Nodes().List(ctx, o)
			}},
		{what: "pods", trace: out, watch: allPods.Watch,
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return allPods.List(ctx, o) }},
	}
	return r
}

// Name implements sim.Component.
func (r *Recorder) Name() string { return "recorder" }

// Synced is closed once both watches are open and what was there already is in the trace: whatever happens from then on follows.
func (r *Recorder) Synced() <-chan struct{} { return r.synced }

// Broken names the objects whose watch is broken at present: what happens to them is not in the trace.
func (r *Recorder) Broken() []string {
	var broken []string
	for _, s := range r.watches {
		if s.isBroken() {
			broken = append(broken, s.what)
		}
	}
	return broken
}

// Run implements sim.Component.
func (r *Recorder) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx) // its end stops the watches
	defer cancel()
	observers := []observer{newNodeStates(r.trace), newPodStates(r.trace, r.isCheck)} // in the order of r.watches
	var opened []watch.Interface
	for i, s := range r.watches {
		w, err := s.open(ctx, observers[i].existing)
		if err != nil {
			return unlessDone(ctx, err)
		}
		opened = append(opened, w)
	}
	close(r.synced)

	failed := make(chan error, len(opened))
	for i, w := range opened {
		go func() { failed <- follow(ctx, w, r.watches[i].what, observers[i].observe) }()
	}
	var errs []error
	for range opened {
		errs = append(errs, <-failed)
		cancel()
	}
	return errors.Join(errs...)
}

// observer records the objects of one kind.
type observer interface {
	// existing takes one that was there when recording began, observe what a watch tells.
	existing(runtime.Object)
	observe(watch.EventType, runtime.Object)
}

// follow hands every event to observe, in order, until ctx ends or the watch breaks for good.
func follow(ctx context.Context, w watch.Interface, what string, observe func(watch.EventType, runtime.Object)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-w.ResultChan():
			switch {
			case !open:
				return unlessDone(ctx, fmt.Errorf("watch %s: it ended and cannot be continued, so the trace would have a hole", what))
			case e.Type == watch.Error:
				return unlessDone(ctx, fmt.Errorf("watch %s: %w", what, apierrors.FromObject(e.Object)))
			case e.Type != watch.Bookmark:
				observe(e.Type, e.Object)
			}
		}
	}
}

func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the error is the consequence of the end
	}
	return err
}

// version turns a resourceVersion into the trace's number; 0 when it is not one.
func version(o metav1.Object) uint64 {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return v
}
