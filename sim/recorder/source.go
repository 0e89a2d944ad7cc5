package recorder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// source gives out the objects of one kind: those that are there, and then their watch, which is opened again where it broke off.
// The trace is told of that, as what happened in between arrives late.
type source struct {
	what  string
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	trace trace.Recorder

	opened bool
	mu     sync.Mutex
	broken bool
}

// open hands the objects that are there to existing, and watches from there.
func (s *source) open(ctx context.Context, existing func(runtime.Object)) (watch.Interface, error) {
	objects, err := s.list(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.what, err)
	}
	accessor, err := meta.ListAccessor(objects)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.what, err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, accessor.GetResourceVersion(), s)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.what, err)
	}
	if err := meta.EachListItem(objects, func(o runtime.Object) error { existing(o); return nil }); err != nil {
		watcher.Stop()
		return nil, fmt.Errorf("list %s: %w", s.what, err)
	}
	return watcher, nil
}

// WatchWithContext implements cache.WatcherWithContext for a RetryWatcher, which calls it again as soon as a watch has ended. A watch that cannot be opened,
// because what it is to begin with is gone, ends with that error as an open one does: a RetryWatcher would try to open it for ever.
func (s *source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if s.opened {
		s.setBroken(ctx, true)
	}
	w, err := s.watch(ctx, o)
	if err == nil {
		s.opened = true
		s.setBroken(ctx, false)
		return w, nil
	}
	s.setBroken(ctx, true)
	var gone apierrors.APIStatus
	if errors.As(err, &gone) && gone.Status().Code == http.StatusGone {
		status := gone.Status()
		events := make(chan watch.Event, 1)
		events <- watch.Event{Type: watch.Error, Object: &status}
		return watch.NewProxyWatcher(events), nil
	}
	return nil, err
}

func (s *source) isBroken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// setBroken tells the trace when a watch breaks or is open again. One that ends because the recording does is not broken.
func (s *source) setBroken(ctx context.Context, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == broken || ctx.Err() != nil {
		return
	}
	s.broken = broken
	kind := trace.WatchResumed
	if broken {
		kind = trace.WatchBroken
	}
	s.trace.Record(trace.Event{Kind: kind, Source: trace.SourceRun, Reason: s.what})
}
