package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
)

// BenchmarkControlPlane takes the control plane from nothing to an API that serves, and back.
func BenchmarkControlPlane(b *testing.B) {
	var ready, stop time.Duration
	for b.Loop() {
		start := time.Now()
		engine, err := live.Start(b.Context(), live.Options{LogDir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		ready += time.Since(start)
		start = time.Now()
		if err := engine.Stop(); err != nil {
			b.Fatal(err)
		}
		stop += time.Since(start)
	}
	b.ReportMetric(ready.Seconds()/float64(b.N), "s/ready")
	b.ReportMetric(stop.Seconds()/float64(b.N), "s/stop")
}

// BenchmarkExperiment makes a run of each arm of the experiments that are about speed and size. It is to be run with -benchtime 1x: the longest takes
// some ten minutes.
func BenchmarkExperiment(b *testing.B) {
	for _, name := range []string{"quick", library.Default, "scale-100", "scale-1000", "scale-1000-default"} {
		e, err := library.Get(name)
		if err != nil {
			b.Fatal(err)
		}
		for _, arm := range e.Spec.Arms {
			one := *e
			one.Spec.Arms = []experiments.Arm{arm}
			b.Run(name+"/"+arm.Name, func(b *testing.B) {
				for b.Loop() {
					measure(b, &one)
				}
			})
		}
	}
}

// measure makes the run of an experiment with one arm, and reports its times and what memory its processes took at most.
func measure(b *testing.B, e *experiments.Experiment) {
	b.Helper()
	memory := peaks{}
	memory.reset(b)
	dir := filepath.Join(b.TempDir(), "out")
	summary, err := Run(b.Context(), e, Options{Dir: dir, Progress: func(Progress) { memory.look() }})
	if err != nil {
		b.Fatal(err)
	}
	arm := &summary.Arms[0]
	if !arm.Runs[0].Settled {
		b.Errorf("it did not settle: %s", arm.Runs[0].EndMessage)
	}
	for metric, unit := range map[string]string{
		results.MetricRunningAfterWorkload: "s/all-running", results.MetricWallBeyondLastMirror: "s/after-last-mirror", results.MetricWall: "s/run",
	} {
		if f := arm.Figure(metric, ""); f != nil && f.Runs[0] != nil {
			b.ReportMetric(f.Runs[0].Value, unit)
		}
	}
	for process, bytes := range memory {
		b.ReportMetric(float64(bytes)/1e6, "peak-MB/"+process)
	}
}

// peaks are the most memory (resident set, bytes) that processes took, by name.
type peaks map[string]uint64

// reset forgets what the test's own process took before.
func (p peaks) reset(b *testing.B) {
	b.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Logf("the peak of the process itself is that of all benchmarks so far: %v", err)
	}
}

// look notes the peaks so far; a process that cannot be looked at, or an operating system that does not tell, is left out.
func (p peaks) look() {
	pids := map[string]int32{"mirrorgap": int32(os.Getpid())}
	if list, err := servers(); err == nil {
		for name, server := range list {
			pids[name] = server.Pid
		}
	}
	for name, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		if kB := highWater.FindSubmatch(status); kB != nil {
			n, _ := strconv.ParseUint(string(kB[1]), 10, 64) // digits
			p[name] = max(p[name], n*1024)
		}
	}
}

// highWater finds the peak resident set in what Linux tells of a process (proc_pid_status(5)).
var highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)
