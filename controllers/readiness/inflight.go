package readiness

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// inFlight counts the node reconciles that are under way, so that the withdrawal of a deleted rule can wait for those that still act on what
// they read before the deletion. Without it a taint could be added after the withdrawal looked, and stay for ever.
type inFlight struct {
	size  int64
	slots *semaphore.Weighted
}

// newInFlight is for at most size reconciles at a time.
func newInFlight(size int) *inFlight {
	return &inFlight{int64(size), semaphore.NewWeighted(int64(size))}
}

// enter marks the begin of a reconcile, and done its end.
func (f *inFlight) enter(ctx context.Context) (done func(), err error) {
	if err := f.slots.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for the withdrawal of a rule: %w", err)
	}
	return func() { f.slots.Release(1) }, nil
}

// drain waits until every reconcile that had begun has ended. Those that begin later wait until then.
func (f *inFlight) drain(ctx context.Context) error {
	if err := f.slots.Acquire(ctx, f.size); err != nil {
		return fmt.Errorf("wait for node reconciles under way: %w", err)
	}
	f.slots.Release(f.size)
	return nil
}
