package runner

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/shirou/gopsutil/v4/process"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// TestMain makes the test binary its own etcd and kube-apiserver, as mirrorgap is.
func TestMain(m *testing.M) {
	live.DispatchTool(os.Args)
	live.TuneGC()
	SilenceLogs()
	os.Exit(m.Run())
}

// TestOnAControlPlane runs the specs, each on real control planes of its own.
func TestOnAControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	// Generous, because the machine may be busy: specs assert order and outcome, not speed.
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "runs on a control plane")
}

// limit is for a machine that is busy with other things.
const limit = SpecTimeout(5 * time.Minute)

// leavesNothing has it checked, when the spec is over, that no process and no temporary file is left.
func leavesNothing() {
	temporary := GinkgoT().TempDir()
	GinkgoT().Setenv("TMPDIR", temporary)
	DeferCleanup(func() {
		Expect(children()).To(BeEmpty(), "processes left")
		Expect(os.ReadDir(temporary)).To(BeEmpty(), "temporary files left")
	})
}

// servers are the running child processes of the test, by the name they were called by.
func servers() (map[string]*process.Process, error) {
	self, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return nil, err
	}
	list, err := self.Children()
	if err != nil {
		return nil, err
	}
	byName := map[string]*process.Process{}
	for _, p := range list {
		if args, err := p.CmdlineSlice(); err == nil && len(args) > 0 {
			byName[filepath.Base(args[0])] = p
		}
	}
	return byName, nil
}

// children are the servers for a spec.
func children() map[string]*process.Process {
	GinkgoHelper()
	list, err := servers()
	Expect(err).NotTo(HaveOccurred())
	return list
}

// kill ends a server without giving it a chance.
func kill(ctx context.Context, server string) {
	GinkgoHelper()
	Expect(children()).To(HaveKey(server))
	Expect(children()[server].KillWithContext(ctx)).To(Succeed())
}

// experiment parses an experiment's spec.
func experiment(spec string) *experiments.Experiment {
	GinkgoHelper()
	e, err := parse(spec)
	Expect(err).NotTo(HaveOccurred())
	return e
}

func fromLibrary(name string) *experiments.Experiment {
	GinkgoHelper()
	e, err := library.Get(name)
	Expect(err).NotTo(HaveOccurred())
	return e
}

// soon has an experiment's runs settle sooner than a person would want.
func soon(e *experiments.Experiment) *experiments.Experiment {
	e.Spec.Stop.Settle.Duration = 3 * time.Second
	return e
}

// outcome is what a run of an experiment left behind.
type outcome struct {
	dir     string
	summary *results.Summary
	err     error
}

// conduct makes the runs of an experiment.
func conduct(ctx context.Context, e *experiments.Experiment, options Options) outcome {
	GinkgoHelper()
	options.Dir = filepath.Join(GinkgoT().TempDir(), "out")
	o := outcome{dir: options.Dir}
	o.summary, o.err = Run(ctx, e, options)
	if o.err == nil {
		AddReportEntry("table", ReportEntryVisibilityFailureOrVerbose, func() string {
			table, _ := os.ReadFile(filepath.Join(o.dir, results.TableFile))
			return string(table)
		}())
	}
	return o
}

// run is the run of an arm with seed 1, analyzed from its trace.
func (o outcome) run(arm string) *results.Run {
	GinkgoHelper()
	path := filepath.Join(o.dir, arm, "seed-1", results.TraceFile)
	file, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	reader, err := trace.NewReader(path, file)
	Expect(err).NotTo(HaveOccurred())
	run, err := results.Analyze(reader)
	Expect(err).NotTo(HaveOccurred())
	return run
}

// pods counts the workloads' pods by their state at the end.
func pods(r *results.Run) map[results.State]int {
	count := map[results.State]int{}
	for _, p := range r.Pods {
		if p.Workload != "" {
			count[p.State]++
		}
	}
	return count
}

// causes counts the rejections by their cause.
func causes(r *results.Run) map[results.Cause]int {
	count := map[results.Cause]int{}
	for _, p := range r.Pods {
		if p.Rejection != nil {
			count[p.Rejection.Cause]++
		}
	}
	return count
}

// on lists the workload's pods that ended in a state, by node.
func on(r *results.Run, workload string, state results.State) map[string]int {
	count := map[string]int{}
	for _, p := range r.Pods {
		if p.Workload == workload && p.State == state {
			count[p.Node]++
		}
	}
	return count
}
