package runner

import (
	"os"
	"strings"
	"testing"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
)

// BenchmarkControlPlane measures from nothing to an API that serves.
func BenchmarkControlPlane(b *testing.B) {
	for b.Loop() {
		engine, err := live.Start(b.Context(), live.Options{LogDir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := engine.Stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkExperiment runs experiments of the library, each arm once, and reports the figures of their results folders, and the largest resident set
// that was seen of each process.
func BenchmarkExperiment(b *testing.B) {
	for _, name := range []string{"quick", "scale-up-3-to-20", "scale-100", "scale-1000", "scale-1000-default"} {
		e, err := library.Get(name)
		if err != nil {
			b.Fatal(err)
		}
		for _, arm := range e.Spec.Arms {
			b.Run(name+"/"+arm.Name, func(b *testing.B) {
				only := *e
				only.Spec.Arms = only.Spec.Arms[:0:0]
				only.Spec.Arms = append(only.Spec.Arms, arm)
				for b.Loop() {
					peaks := peaks{}
					summary, err := Run(b.Context(), &only, Options{Dir: b.TempDir(), Progress: func(Progress) { peaks.sample(b) }})
					if err != nil {
						b.Fatal(err)
					}
					report(b, &summary.Arms[0])
					peaks.report(b)
				}
			})
		}
	}
}

// report turns the figures that tell of speed into the benchmark's metrics.
func report(b *testing.B, arm *results.Arm) {
	b.Helper()
	for _, f := range arm.Figures {
		if f.Unit == "s" && f.OverNodes == nil && f.Runs[0] != nil {
			b.ReportMetric(f.Runs[0].Value, f.Name)
		}
	}
}

// peaks is the largest resident set of each process, in bytes.
type peaks map[string]uint64

// sample looks at this process and its children, the servers.
func (p peaks) sample(b *testing.B) {
	b.Helper()
	self, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		b.Fatal(err)
	}
	children, _ := self.Children() // none at the very beginning and end
	p.add("mirrorgap", self)
	for _, child := range children {
		args, _ := child.CmdlineSlice() // it may just have ended
		if len(args) > 0 {
			p.add(args[0][strings.LastIndexByte(args[0], '/')+1:], child)
		}
	}
}

func (p peaks) add(name string, proc *process.Process) {
	if memory, err := proc.MemoryInfo(); err == nil {
		p[name] = max(p[name], memory.RSS)
	}
}

func (p peaks) report(b *testing.B) {
	b.Helper()
	for name, bytes := range p {
		b.ReportMetric(float64(bytes)/1e6, name+"-MB")
	}
}
