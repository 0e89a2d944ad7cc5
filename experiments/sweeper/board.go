package sweeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mirrorgap/mirrorgap/experiments"
)

// board keeps account of the runs.
type board struct {
	parallel int
	begun    time.Time

	mu       sync.Mutex
	waiting  []*job
	running  []*job
	finished int
	planned  int
	failures []error
	// took is how long finished runs took, by case and arm.
	took map[kind][]time.Duration
}

// job is a run that is to be made.
type job struct {
	run     experiments.SweepRun
	started time.Time
	took    time.Duration
}

// kind is what decides how long a run takes.
type kind struct{ caseName, arm string }

func kindOf(run experiments.SweepRun) kind { return kind{run.Case.Name, run.Arm.Name} }

func newBoard(runs []experiments.SweepRun, took []time.Duration, done []bool, parallel int) *board {
	b := &board{parallel: parallel, begun: time.Now(), planned: len(runs), took: map[kind][]time.Duration{}}
	for i, run := range runs {
		if done[i] {
			b.finished++
			b.took[kindOf(run)] = append(b.took[kindOf(run)], took[i])
		} else {
			b.waiting = append(b.waiting, &job{run: run})
		}
	}
	return b
}

// next is the run to make next; nil when there is none left, or no more are to be begun.
func (b *board) next(ctx context.Context) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil || len(b.failures) > 0 || len(b.waiting) == 0 {
		return nil
	}
	next := b.waiting[0]
	next.started = time.Now()
	b.waiting, b.running = b.waiting[1:], append(b.running, next)
	return next
}

// ended takes the end of a run.
func (b *board) ended(j *job, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.took = time.Since(j.started)
	b.running = slices.DeleteFunc(b.running, func(other *job) bool { return other == j })
	if err != nil {
		b.failures = append(b.failures, fmt.Errorf("case %s, arm %s, seed %d: %w", j.run.Case.Name, j.run.Arm.Name, j.run.Seed, err))
		return
	}
	b.finished++
	b.took[kindOf(j.run)] = append(b.took[kindOf(j.run)], j.took)
}

// err is why runs are left, if any are.
func (b *board) err(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished == b.planned {
		return nil
	}
	if ctx.Err() != nil { // that runs failed is the consequence
		return fmt.Errorf("%d of %d runs are finished: %w", b.finished, b.planned, context.Cause(ctx))
	}
	return errors.Join(b.failures...)
}

func (b *board) progress() Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := Progress{Finished: b.finished, Planned: b.planned, Elapsed: time.Since(b.begun), Left: b.left(time.Now())}
	for _, j := range b.running {
		p.Running = append(p.Running, j.run)
	}
	return p
}

// left estimates the time to the end: of each run what others of its case and arm took, or, as long as there is none, any run.
func (b *board) left(now time.Time) *time.Duration {
	var all []time.Duration
	for _, took := range b.took {
		all = append(all, took...)
	}
	if len(all) == 0 {
		return nil
	}
	expected := func(j *job) time.Duration {
		if same := b.took[kindOf(j.run)]; len(same) > 0 {
			return mean(same)
		}
		return mean(all)
	}
	var work, longest time.Duration
	for _, j := range b.waiting {
		work += expected(j)
	}
	for _, j := range b.running {
		rest := max(expected(j)-now.Sub(j.started), 0)
		work, longest = work+rest, max(longest, rest)
	}
	return new(max(work/time.Duration(b.parallel), longest))
}

func mean(times []time.Duration) time.Duration {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(len(times))
}
