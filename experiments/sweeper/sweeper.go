package sweeper

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/sweep"
)

// tick is the period of progress reports.
const tick = time.Second

// Options configure the making of runs.
type Options struct {
	// Dir is the results folder. It is made; when it exists it must be empty, or of the same sweep.
	Dir string
	// Parallel is how many runs are made at a time, at least 1.
	Parallel int
	// Child is the command line that makes one run. The results folder of its case, the names of the arm and the seed are appended. The process ends the
	// run early when its standard input ends, leaves nothing running, and exits with 0 only if the run is finished.
	Child []string
	// Progress is called about once a second, and when a run has ended; not by two goroutines at once. Nil: not.
	Progress func(Progress)
}

// Progress says how far a sweep is.
type Progress struct {
	// Finished and Planned count the runs.
	Finished, Planned int
	// Running are the runs that are being made, the oldest first.
	Running []experiments.SweepRun
	// Ended is the run that has just ended, and Took how long it took; nil if none has since the last report.
	Ended *experiments.SweepRun
	Took  time.Duration
	// Elapsed is the time since the sweep began or was continued.
	Elapsed time.Duration
	// Left estimates the time to the end from the runs that are finished; nil before there is one.
	Left *time.Duration
}

// Run makes the runs of a sweep that are not finished yet, and puts the results of all together. When one fails no more are begun; those that are being
// made go on to their ends. When ctx ends they are told to stop. Either way the results so far are written, and returned together with the error; they
// are nil as long as no run is finished. To make the rest, Run is called again.
func Run(ctx context.Context, s *experiments.Sweep, options Options) (*sweep.Sweep, error) {
	f, err := open(options.Dir, s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.close() }() // it was only read
	took, done := Finished(f.path, s)
	b := newBoard(s.Runs(), took, done, options.Parallel)
	failed := makeRuns(ctx, f, b, options)
	result, err := summarize(f.path, s)
	return result, errors.Join(failed, err)
}

// makeRuns makes the runs that are left.
func makeRuns(ctx context.Context, f *folder, b *board, options Options) error {
	var workers sync.WaitGroup
	report := reporter(b, options.Progress)
	for range options.Parallel {
		workers.Go(func() {
			for job := b.next(ctx); job != nil; job = b.next(ctx) {
				b.ended(job, makeRun(ctx, f.path, job.run, options.Child))
				report(job)
			}
		})
	}
	stop := reportRegularly(report)
	workers.Wait()
	stop()
	return b.err(ctx)
}

// reporter makes the function that reports how far the sweep is, and which run has just ended, if one has.
func reporter(b *board, progress func(Progress)) func(ended *job) {
	if progress == nil {
		return func(*job) {}
	}
	var mu sync.Mutex
	return func(ended *job) {
		mu.Lock()
		defer mu.Unlock()
		p := b.progress()
		if ended != nil {
			p.Ended, p.Took = &ended.run, ended.took
		}
		progress(p)
	}
}

// reportRegularly reports at once and at each tick, until it is stopped.
func reportRegularly(report func(ended *job)) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			report(nil)
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// summarize puts the finished runs together, by case, and writes the results; nil without a finished run.
func summarize(path string, s *experiments.Sweep) (*sweep.Sweep, error) {
	plan := planOf(s)
	var cases []sweep.Case
	for i := range s.Cases {
		c := &s.Cases[i]
		summary, err := summarizeCase(path, c)
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", c.Name, err)
		}
		cases = append(cases, plan.NewCase(c.Labels, filepath.ToSlash(caseFolder(c)), summary))
	}
	result := sweep.New(plan, cases...)
	if finished, _, _ := result.Finished(); finished == 0 {
		return nil, nil //nolint:nilnil // there is nothing to show yet, and that is no error
	}
	err := result.Write(path)
	return result, err
}

// summarizeCase puts the finished runs of a case together, and writes the files of its results folder; nil without a finished run.
func summarizeCase(path string, c *experiments.Case) (*results.Summary, error) {
	var runs []*results.Digest
	for _, run := range c.Experiment.Runs() {
		if read := finished(path, experiments.SweepRun{Case: c, Run: run}); read != nil {
			runs = append(runs, read.Digest())
		}
	}
	if len(runs) == 0 {
		return nil, nil //nolint:nilnil // as above
	}
	summary, err := results.Summarize(runs)
	if err != nil {
		return nil, err
	}
	return summary, results.WriteSummary(filepath.Join(path, caseFolder(c)), summary)
}

func planOf(s *experiments.Sweep) sweep.Plan {
	plan := sweep.Plan{Name: s.Metadata.Name, Description: s.Spec.Description, Arms: s.Arms(), Seeds: s.Spec.Seeds, Show: s.Spec.Show}
	for _, p := range s.Spec.Parameters {
		parameter := sweep.Parameter{Name: p.Name}
		for _, v := range p.Values {
			parameter.Values = append(parameter.Values, v.Label)
		}
		plan.Parameters = append(plan.Parameters, parameter)
	}
	return plan
}
