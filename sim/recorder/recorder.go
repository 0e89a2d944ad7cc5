package recorder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Recorder is a component that records a cluster.
type Recorder struct {
	client  kubernetes.Interface
	trace   trace.Recorder
	isCheck func(*corev1.Pod) bool
	synced  chan struct{}
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
	return &Recorder{client: client, trace: out, isCheck: isCheck, synced: make(chan struct{})}
}

// Name implements sim.Component.
func (r *Recorder) Name() string { return "recorder" }

// Synced is closed once both watches are open and what was there already is in the trace: whatever happens from then on follows.
func (r *Recorder) Synced() <-chan struct{} { return r.synced }

// Run implements sim.Component.
func (r *Recorder) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	core := r.client.CoreV1()
	nodes, err := open(ctx, "nodes", &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Nodes().List(ctx, o)
		},
		WatchFuncWithContext: core.Nodes().Watch,
	})
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer nodes.Stop()
	allPods := core.Pods(metav1.NamespaceAll)
	pods, err := open(ctx, "pods", &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return allPods.List(ctx, o) },
		WatchFuncWithContext: allPods.Watch,
	})
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer pods.Stop()
	n, p := newNodeStates(r.trace), newPodStates(r.trace, r.isCheck)
	for _, node := range nodes.present {
		n.existing(node)
	}
	for _, pod := range pods.present {
		p.existing(pod)
	}
	close(r.synced)

	failed := make(chan error, 2)
	go func() { failed <- follow(ctx, nodes, n.observe) }()
	go func() { failed <- follow(ctx, pods, p.observe) }()
	first := <-failed
	cancel()
	return errors.Join(first, <-failed)
}

// list is an opened watch and the objects that were there when it was.
type list struct {
	watch.Interface
	what    string
	present []runtime.Object
}

// open lists and then watches from where the list ended.
func open(ctx context.Context, what string, lw *cache.ListWatch) (*list, error) {
	objects, err := lw.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	present, err := meta.ExtractList(objects)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	accessor, err := meta.ListAccessor(objects)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, accessor.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: tellGone(lw.WatchFuncWithContext)})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", what, err)
	}
	return &list{Interface: watcher, what: what, present: present}, nil
}

// tellGone has a watch that cannot be opened, because what it is to begin with is gone, end with that error as an open one does.
// A RetryWatcher would try to open it for ever.
func tellGone(open cache.WatchFuncWithContext) cache.WatchFuncWithContext {
	return func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		w, err := open(ctx, o)
		var gone apierrors.APIStatus
		if errors.As(err, &gone) && gone.Status().Code == http.StatusGone {
			status := gone.Status()
			events := make(chan watch.Event, 1)
			events <- watch.Event{Type: watch.Error, Object: &status}
			return watch.NewProxyWatcher(events), nil
		}
		return w, err
	}
}

// follow hands every event to observe, in order, until ctx ends or the watch breaks for good.
func follow(ctx context.Context, l *list, observe func(watch.EventType, runtime.Object)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-l.ResultChan():
			switch {
			case !open:
				return unlessDone(ctx, fmt.Errorf("watch %s: it ended and cannot be continued, so the trace would have a hole", l.what))
			case e.Type == watch.Error:
				return unlessDone(ctx, fmt.Errorf("watch %s: %w", l.what, apierrors.FromObject(e.Object)))
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
