package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

// Names in a results folder.
const (
	// ExperimentFile is the experiment as it was run.
	ExperimentFile = experiments.ResolvedFile
	containerLogs  = "containers"
)

// Options configure the making of runs.
type Options struct {
	// Dir is the results folder. It is made; when it exists it must be empty.
	Dir string
	// Binary is the multi-call binary that serves as etcd and kube-apiserver (see live.Options). Default: the running executable.
	Binary string
	// Progress is called about once a second while a run takes place. Nil: not.
	Progress func(Progress)
	// BeforeScaleUp, if set, is called once the workloads are placed; the scale-up begins when it returns.
	BeforeScaleUp func(context.Context) error
	// Hold, if set, keeps the cluster after the scale-up until ctx ends, without a time limit. It is called with the run's folder once the API
	// is there and before the first node.
	Hold func(dir string, engine *live.Engine) error
}

// Progress says how far an experiment is.
type Progress struct {
	// Run and Runs count the runs from 1.
	Run, Runs int
	Arm       string
	Seed      uint64
	// Elapsed is the time since the run began; its control plane is started first.
	Elapsed time.Duration
	// Phase is the phase of the run, one of the trace.Phase constants, empty before the first.
	Phase string
	// State is the cluster in one line.
	State string
}

// Run makes all runs of an experiment, one after another, and writes the results folder. When a run fails or ctx ends, the summary of the runs so
// far, the failed one included, is written and returned together with the error.
func Run(ctx context.Context, e *experiments.Experiment, options Options) (*results.Summary, error) {
	if err := prepare(e, options.Dir); err != nil {
		return nil, err
	}
	var done []*results.Digest
	runs := e.Runs()
	for i, next := range runs {
		r := newRun(e, next, &options)
		r.number, r.of = i+1, len(runs)
		failed := r.execute(ctx)
		result, err := evaluate(r.dir)
		if err != nil {
			return nil, errors.Join(failed, err)
		}
		done = append(done, result)
		if failed != nil {
			summary, err := summarize(options.Dir, done)
			return summary, errors.Join(fmt.Errorf("arm %s, seed %d: %w", next.Arm.Name, next.Seed, failed), err)
		}
	}
	return summarize(options.Dir, done)
}

// RunOne makes one run of an experiment, in options.Dir, its results folder, of which everything else is left as it is. What the run has recorded is
// kept and evaluated also if it fails.
func RunOne(ctx context.Context, e *experiments.Experiment, one experiments.Run, options Options) error {
	r := newRun(e, one, &options)
	failed := r.execute(ctx)
	_, err := evaluate(r.dir)
	return errors.Join(failed, err)
}

func newRun(e *experiments.Experiment, one experiments.Run, options *Options) *run {
	return &run{
		experiment: e, arm: one.Arm, cluster: e.ClusterOf(one.Arm), growing: make(chan struct{}), seed: random.Seed(one.Seed), dir: filepath.Join(options.Dir, one.Folder()), options: options, number: 1, of: 1,
	}
}

// prepare makes the results folder and checks what would otherwise be found out after minutes.
func prepare(e *experiments.Experiment, dir string) error {
	if err := Check(e); err != nil {
		return err
	}
	if err := PrepareFolder(dir); err != nil {
		return err
	}
	resolved, err := e.YAML()
	if err != nil {
		return err
	}
	return results.ReplaceFile(filepath.Join(dir, ExperimentFile), func(w io.Writer) error {
		_, err := w.Write(resolved)
		return err
	})
}

// PrepareFolder makes a results folder. It fails with an *experiments.BadInput if there is one that is not empty.
func PrepareFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return badInput("results folder: %v", err)
	case len(entries) > 0:
		return badInput("results folder %s is in use: name another with --out, or remove it", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return badInput("make results folder: %v", err)
	}
	return nil
}

func badInput(format string, args ...any) error {
	return &experiments.BadInput{Problems: []experiments.Problem{{Message: fmt.Sprintf(format, args...)}}}
}

// evaluate reads a run's trace back and writes its tables: what is reported is what was recorded.
func evaluate(dir string) (*results.Digest, error) {
	result, err := results.ReadTrace(filepath.Join(dir, results.TraceFile))
	if err != nil {
		return nil, err
	}
	return results.WriteRun(dir, result)
}

func summarize(dir string, runs []*results.Digest) (*results.Summary, error) {
	summary, err := results.Summarize(runs)
	if err != nil {
		return nil, err
	}
	return summary, results.WriteSummary(dir, summary)
}
