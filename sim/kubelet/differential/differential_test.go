package differential

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

var (
	sequences = flag.Int("sequences", 200, "how many random sequences are played; MIRRORGAP_LONG=1 plays 1,000")
	seed      = flag.Uint64("seed", 1, "seed of the random sequences")
	parallel  = flag.Int("parallel", 8, "how many sequences are played at once")
	trials    = flag.Int("shrink", 60, "how often a disagreeing sequence is played again, at most, to find a smaller one")
)

// TestMain makes the test binary its own etcd, kube-apiserver and kubelet, as mirrorgap is.
func TestMain(m *testing.M) {
	live.DispatchTool(os.Args)
	live.TuneGC()
	klog.LogToStderr(false) // what the model's kubelets log is no failure
	klog.SetOutput(discard{})
	os.Exit(m.Run())
}

type discard struct{}

func (discard) Write(data []byte) (int, error) { return len(data), nil }

const regressions = "testdata/regressions"

// TestDifferential plays the regressions and random sequences into both sides.
func TestDifferential(t *testing.T) {
	if os.Getenv("MIRRORGAP_LONG") == "1" {
		*sequences = 1000
	}
	access := startControlPlane(t)
	known, err := ReadAll(regressions)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("agreement", func(t *testing.T) {
		start := time.Now()
		report, err := Run(t.Context(), Config{
			Access: access, LogDir: os.Getenv("KUBELET_LOGS"), Seed: random.Seed(*seed), Sequences: *sequences, Regressions: known, Parallel: *parallel, ShrinkTrials: *trials,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d sequences (%d of them played again) with %d pods in %s: decisions %v, rejections %v, coverage %v",
			report.Sequences, report.Repeated, report.Pods, time.Since(start).Round(time.Second), report.Decisions, report.Reasons, report.Coverage)
		for _, d := range report.Disagreements {
			small, err := json.Marshal(d.Sequence)
			if err != nil {
				t.Fatal(err)
			}
			t.Errorf("model and real kubelet disagree (flaky: %t): keep this in %s when it is fixed:\n%s\n%v", d.Flaky, regressions, small, d.Differences)
		}
		if never := report.Never(); len(never) > 0 && report.Sequences >= 200 {
			t.Errorf("never exercised: %v", never)
		}
	})
	t.Run("disagreement", func(t *testing.T) { testBroken(t, access) })
}

// testBroken: a model that is a little wrong is found out, and the case becomes small.
func testBroken(t *testing.T, access sim.Access) {
	b, err := newBench(t.Context(), Config{Access: access, Parallel: 4, ShrinkTrials: 25})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	}()
	b.nodes = 1 << 20 // names of their own
	b.model = generous{b.model}
	sequence := &Sequence{Name: "broken", Node: Node{Capacity: nodeOf("1")}, Steps: []Step{
		{Create: []Pod{{Name: "fits", Containers: []Container{{Requests: amounts("cpu", "1")}}}}},
		{Create: []Pod{{Name: "surplus", Containers: []Container{{Requests: amounts("cpu", "1m")}}}}},
		{Finish: "surplus"},
	}}
	b.Regressions = []*Sequence{sequence}
	report, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Disagreements) != 1 {
		t.Fatalf("disagreements %v, want 1", report.Disagreements)
	}
	d := report.Disagreements[0]
	if d.Flaky || len(d.Differences) != 1 || !strings.Contains(d.Differences[0].Detail, "OutOfcpu") {
		t.Errorf("disagreement %v: want a rejection with OutOfcpu by the real kubelet alone", d)
	}
	if got := d.Sequence.Pods(); got != 2 {
		t.Errorf("it was shrunk to %d pods, want the 2 that are needed", got)
	}
	if len(d.Sequence.Steps) != 2 {
		t.Errorf("it was shrunk to the steps %v, want the two creations", d.Sequence.Steps)
	}
}

// generous kubelets have a millicore more than they should.
type generous struct{ Kubelets }

func (g generous) Start(ctx context.Context, m kubelet.Machine) error {
	m.Capacity = m.Capacity.DeepCopy()
	cpu := m.Capacity[corev1.ResourceCPU]
	cpu.Add(milli(1))
	m.Capacity[corev1.ResourceCPU] = cpu
	return g.Kubelets.Start(ctx, m)
}

func startControlPlane(t *testing.T) sim.Access {
	t.Helper()
	engine, err := live.Start(t.Context(), live.Options{LogDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Stop(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

func nodeOf(cpu string) corev1.ResourceList {
	return amounts("cpu", cpu, "memory", "1Gi", "pods", "10", "ephemeral-storage", "10Gi")
}

func TestGenerate(t *testing.T) {
	coverage := map[Feature]int{}
	const n = 1000
	for i := range n {
		s := Generate(1, i)
		if diff := cmp.Diff(s, Generate(1, i)); diff != "" {
			t.Fatalf("sequence %d is another the second time:\n%s", i, diff)
		}
		if diff := cmp.Diff(s, s.clone()); diff != "" {
			t.Fatalf("sequence %d changes when it is written and read:\n%s", i, diff)
		}
		for _, f := range s.Exercises() {
			coverage[f]++
		}
	}
	for _, f := range Features() {
		if coverage[f] < n/50 {
			t.Errorf("%q is in %d of %d sequences, too few for 200 of them to exercise it surely", f, coverage[f], n)
		}
	}
	if cmp.Equal(Generate(1, 0).Steps, Generate(2, 0).Steps) {
		t.Error("seeds 1 and 2 give the same sequence")
	}
}
