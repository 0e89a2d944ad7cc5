package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/kwokconfigs"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/control"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
	"github.com/mirrorgap/mirrorgap/sim/fault"
	"github.com/mirrorgap/mirrorgap/sim/fleet"
	"github.com/mirrorgap/mirrorgap/sim/gate"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/kubelet/real"
	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/recorder"
	"github.com/mirrorgap/mirrorgap/sim/trace"
	"github.com/mirrorgap/mirrorgap/sim/workload"
)

const (
	// placedQuiet is how long nothing may happen after the workloads were placed on the initial nodes before the scale-up begins.
	placedQuiet = 2 * time.Second
	// tick is the period of progress reports and of flushing the trace.
	tick = time.Second
)

// errTimeLimit is the cause of a run's end by its time limit.
var errTimeLimit = errors.New("the experiment's time limit was reached before the run settled")

// run is one run of an experiment while it takes place: an arm with a seed, on a control plane of its own.
type run struct {
	experiment *experiments.Experiment
	arm        experiments.Arm
	cluster    *sim.Cluster // the arm's
	seed       random.Seed
	dir        string
	options    *Options
	// number and of count the runs of the experiment, from 1.
	number, of int

	gate   *gate.Gate // nil in an arm without it
	start  time.Time
	trace  *trace.Writer
	status *status
	engine *live.Engine
	crew   *crew
	fleet  *fleet.Fleet
	faults *fault.Faults
	// autoscaler is nil in a cluster without one. growing is closed when the scale-up begins.
	autoscaler *fleet.Autoscaler
	growing    chan struct{}
}

// execute makes the run and writes its trace. The error is nil when the run settled or its time was up; the trace says which.
func (r *run) execute(ctx context.Context) (err error) {
	logs := filepath.Join(r.dir, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("make the run's folder: %w", err)
	}
	restore, err := redirectLogs(logs)
	if err != nil {
		return err
	}
	defer restore()
	if err := r.prepareGate(); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(r.dir, results.TraceFile))
	if err != nil {
		return fmt.Errorf("create trace: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := r.openTrace(file); err != nil {
		return err
	}
	err = r.play(ctx, logs)
	r.trace.Record(ending(ctx, err))
	if errors.Is(err, errTimeLimit) {
		err = nil
	}
	if flushed := r.trace.Flush(); err == nil { // a disk that failed before has ended the run, and is err already
		err = flushed
	}
	return err
}

// prepareGate makes the gate of a gated arm.
func (r *run) prepareGate() (err error) {
	if r.arm.Gate {
		r.gate, err = gate.New(&r.cluster.Gate, r.arm.LeaveOut)
	}
	return err
}

func (r *run) openTrace(file *os.File) (err error) {
	r.start = time.Now()
	header := trace.Header{
		Experiment: r.experiment.Metadata.Name,
		Labels:     r.experiment.Metadata.Labels,
		Arm:        r.arm.Name,
		Seed:       uint64(r.seed),
		Engine:     string(r.experiment.Spec.Engine),
		Start:      r.start.UTC(),
		Versions:   Versions(),
		Machine:    Machine(),
	}
	if r.gate != nil {
		header.Gate = r.gate.Trace()
	}
	r.status = newStatus(header.Gate)
	if r.trace, err = trace.NewWriter(file, header); err != nil {
		return err
	}
	r.trace.Tap(r.status.apply)
	return nil
}

// ending is the last event of a trace, from how play ended.
func ending(ctx context.Context, err error) trace.Event {
	e := trace.Event{Kind: trace.RunEnded, Source: trace.SourceRun, Reason: trace.EndSettled}
	switch {
	case err == nil:
		return e
	case errors.Is(err, errTimeLimit):
		e.Reason = trace.EndTimeLimit
	case ctx.Err() != nil:
		e.Reason = trace.EndInterrupted
	default:
		e.Reason = trace.EndError
	}
	e.Message = err.Error()
	return e
}

// play starts the cluster, takes it through the phases of the experiment, and stops it.
func (r *run) play(ctx context.Context, logs string) (err error) {
	r.engine, err = live.Start(ctx, live.Options{LogDir: logs, Binary: r.options.Binary, APIServerFlags: r.cluster.ControlPlane.APIServerFlags})
	if err != nil {
		return err
	}
	r.crew = newCrew(ctx, logs, r.trace)
	defer func() {
		r.crew.dismiss()
		err = errors.Join(err, r.engine.Stop())
	}()
	r.crew.watch("control plane", r.engine.Watch)
	r.crew.watch("trace", r.flushRegularly)

	limited, cancel := r.limit()
	defer cancel()
	if err := r.phases(limited, logs); err != nil { //nolint:contextcheck // limited is ctx with the crew's and the limit's ends added
		// What ended the context says more than the call that noticed: a dead API server shows as a refused connection anywhere.
		cause := context.Cause(limited) //nolint:contextcheck // as above
		switch {
		case errors.Is(cause, errTimeLimit):
			return fmt.Errorf("%w: %s", cause, r.status.standstill())
		case cause != nil:
			return cause
		}
		return err
	}
	return nil
}

// limit is the crew's context with the time limit, which a held run does not have.
func (r *run) limit() (context.Context, context.CancelFunc) {
	if r.options.Hold != nil {
		return context.WithCancel(r.crew.ctx)
	}
	return context.WithTimeoutCause(r.crew.ctx, r.experiment.Spec.TimeLimit.Duration, errTimeLimit)
}

func (r *run) phases(ctx context.Context, logs string) error {
	if err := r.startComponents(ctx, logs); err != nil {
		return err
	}
	creator, err := r.newCreator()
	if err != nil {
		return err
	}
	if err := creator.CreatePriorityClasses(ctx, r.experiment.Spec.PriorityClasses); err != nil {
		return err
	}
	if err := r.fleet.CreateNamespaces(ctx, r.faults.MissingNamespaces()); err != nil {
		return err
	}
	r.enter(trace.PhaseInitial)
	if err := r.fleet.Initial(ctx); err != nil {
		return err
	}
	if err := r.status.wait(ctx, 0, initial(r.fleet.Size())); err != nil {
		return err
	}
	r.enter(trace.PhaseWorkload)
	if err := r.createWorkloads(ctx, creator, sim.WorkloadBefore); err != nil {
		return err
	}
	if err := r.status.wait(ctx, placedQuiet, (*status).placed); err != nil {
		return err
	}
	if r.options.BeforeScaleUp != nil {
		if err := r.options.BeforeScaleUp(ctx); err != nil {
			return err
		}
	}
	if err := r.scaleUp(ctx, creator); err != nil {
		return err
	}
	return r.finish(ctx)
}

// scaleUp plays everything that has its time in the scale-up phase.
func (r *run) scaleUp(ctx context.Context, creator *workload.Creator) error {
	if err := r.faults.Begin(ctx); err != nil {
		return err
	}
	r.enter(trace.PhaseScaleUp)
	close(r.growing)
	playing, ctx := errgroup.WithContext(ctx)
	playing.Go(func() error { return r.fleet.Grow(ctx) })
	playing.Go(func() error { return r.createWorkloads(ctx, creator, sim.WorkloadDuring) })
	playing.Go(func() error { return r.faults.Play(ctx) })
	playing.Go(func() error { return sim.Sleep(ctx, r.lastRestart()) })
	return playing.Wait()
}

// lastRestart is when the last outage of the readiness controller is over, counted from the start of the scale-up.
func (r *run) lastRestart() time.Duration {
	restarts := r.cluster.ControlPlane.ReadinessController.Restarts
	if r.gate == nil || len(restarts) == 0 {
		return 0
	}
	last := restarts[len(restarts)-1]
	return last.At.Duration + last.Down.Duration
}

// finish waits for the end: that the run settles, or for somebody who holds the cluster to let it go.
func (r *run) finish(ctx context.Context) error {
	if r.options.Hold != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return r.status.wait(ctx, r.experiment.Spec.Stop.Settle.Duration, func(s *status) bool {
		return s.settled() && (r.autoscaler == nil || r.autoscaler.Idle())
	})
}

func (r *run) enter(phase string) {
	r.trace.Record(trace.Event{Kind: trace.Phase, Source: trace.SourceRun, Message: phase})
}

// startComponents starts the recorder first, so that the trace misses nothing, and the nodes' kubelets last.
func (r *run) startComponents(ctx context.Context, logs string) error {
	admin, err := r.engine.ConfigFor("mirrorgap", sim.Masters)
	if err != nil {
		return err
	}
	record, err := recorder.New(admin, r.trace, gate.IsCheck)
	if err != nil {
		return err
	}
	if err := r.crew.start(record); err != nil {
		return err
	}
	select {
	case <-record.Synced():
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.faults, err = fault.New(admin, r.cluster.APIFaults, r.trace); err != nil {
		return err
	}
	if err := gate.InstallAPI(ctx, admin); err != nil {
		return err
	}
	if err := r.startControlPlane(logs); err != nil { //nolint:contextcheck // it starts nothing that would need ctx
		return err
	}
	if r.gate != nil {
		if err := r.gate.Install(ctx, admin); err != nil {
			return err
		}
	}
	if r.options.Hold != nil {
		if err := r.options.Hold(r.dir, r.engine); err != nil {
			return err
		}
	}
	return r.startKubelets(logs) //nolint:contextcheck // it starts nothing that would need ctx
}

func (r *run) startControlPlane(logs string) error {
	spec := &r.cluster.ControlPlane
	scheduler, err := control.NewScheduler(r.engine, spec.Scheduler)
	if err != nil {
		return err
	}
	stages, err := kwokconfigs.Stages()
	if err != nil {
		return err
	}
	kwok, err := control.NewKWOK(r.engine, stages, filepath.Join(logs, containerLogs))
	if err != nil {
		return err
	}
	components := []sim.Component{scheduler, control.NewControllerManager(r.engine, spec.ControllerManager, r.cluster.NodesLeave()), kwok}
	for _, name := range spec.OtherSchedulers {
		other, err := control.NewOtherScheduler(r.engine, name)
		if err != nil {
			return err
		}
		components = append(components, other)
	}
	if r.gate != nil {
		controller, err := r.gate.Controller(r.engine, &spec.ReadinessController, r.growing, r.trace)
		if err != nil {
			return err
		}
		if controller != nil {
			components = append(components, controller)
		}
	}
	for _, c := range components {
		if err := r.crew.start(c); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) startKubelets(logs string) error {
	access, err := r.engine.ConfigFor("kubelets", sim.Masters)
	if err != nil {
		return err
	}
	checks := gate.NewChecks(&r.cluster.Gate.Check, access, r.seed, r.trace)
	kubelets, err := kubelet.New(kubelet.Config{
		Seed:     r.seed,
		Access:   access,
		Recorder: r.trace,
		Programs: checks.Program,
		LogDir:   filepath.Join(logs, containerLogs),
	})
	if err != nil {
		return err
	}
	config := fleet.Config{
		Groups: r.cluster.NodeGroups, Seed: r.seed, Access: access,
		Kubelets: map[sim.Implementation]fleet.Kubelets{sim.KubeletModel: kubelets},
	}
	if r.gate != nil {
		config.Taint = r.gate.Taint()
	}
	if r.hasReal() {
		if config.Kubelets[sim.KubeletReal], err = r.startRealKubelets(logs, checks); err != nil {
			return err
		}
	}
	if r.fleet, err = fleet.New(config); err != nil {
		return err
	}
	if err := r.startAutoscaler(access); err != nil {
		return err
	}
	return r.crew.start(kubelets)
}

// startAutoscaler has the autoscaler, if there is one, begin with the scale-up.
func (r *run) startAutoscaler(access *rest.Config) (err error) {
	if r.cluster.Autoscaler == nil {
		return nil
	}
	r.autoscaler, err = fleet.NewAutoscaler(fleet.AutoscalerConfig{
		Cluster: r.cluster, Gated: r.arm.Gate, Fleet: r.fleet, Access: access, Seed: r.seed,
	})
	if err != nil {
		return err
	}
	r.crew.watch("autoscaler", func(ctx context.Context) error {
		select {
		case <-r.growing:
			return r.autoscaler.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	})
	return nil
}

// hasReal tells whether any node has a real kubelet.
func (r *run) hasReal() bool {
	return slices.ContainsFunc(r.cluster.NodeGroups, func(g sim.NodeGroup) bool { return g.Kubelet.Implementation == sim.KubeletReal })
}

func (r *run) startRealKubelets(logs string, checks *gate.Checks) (*real.Kubelets, error) {
	kubeletLogs := filepath.Join(logs, "kubelets")
	if err := os.MkdirAll(kubeletLogs, 0o755); err != nil {
		return nil, fmt.Errorf("make folder for the kubelets' logs: %w", err)
	}
	kubelets, err := real.New(real.Config{
		Access: r.engine, Recorder: r.trace, Programs: checks.Program, Binary: r.options.Binary,
		LogDir: kubeletLogs, ContainerLogDir: filepath.Join(logs, containerLogs),
	})
	if err != nil {
		return nil, err
	}
	return kubelets, r.crew.start(kubelets)
}

func (r *run) newCreator() (*workload.Creator, error) {
	cfg, err := r.engine.ConfigFor("workloads", sim.Masters)
	if err != nil {
		return nil, err
	}
	return workload.NewCreator(cfg)
}

// createWorkloads creates the workloads of a phase, which has just begun.
func (r *run) createWorkloads(ctx context.Context, creator *workload.Creator, phase sim.WorkloadPhase) error {
	cluster := &r.experiment.Spec.Cluster
	var workloads []sim.Workload
	for _, w := range cluster.Workloads {
		if w.Phase != phase {
			continue
		}
		if w.Fill != "" {
			replicas, err := cluster.FillReplicas(&w, r.experiment.Gated())
			if err != nil {
				return err
			}
			w.Replicas = &replicas
		}
		workloads = append(workloads, w)
	}
	return creator.Create(ctx, workloads)
}

// flushRegularly keeps the file close behind the run, and ends the run when it cannot be written, on a full disk say.
func (r *run) flushRegularly(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := r.trace.Flush(); err != nil {
				return err
			}
			if r.options.Progress != nil {
				r.options.Progress(r.progress())
			}
		}
	}
}

func (r *run) progress() Progress {
	phase, state := r.status.describe()
	return Progress{Run: r.number, Runs: r.of, Arm: r.arm.Name, Seed: uint64(r.seed), Elapsed: time.Since(r.start), Phase: phase, State: state}
}
