package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mirrorgap/mirrorgap/controllers"
	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
	"github.com/mirrorgap/mirrorgap/controllers/manifests"
)

// BenchmarkRelease1000Nodes releases 1,000 held nodes whose condition is met as fast as eight writers can say so. It reports the time from a
// condition's write having returned to the watch showing the node without its taint, and the CPU time of this process, which includes the
// writers and the watch.
func BenchmarkRelease1000Nodes(b *testing.B) {
	const nodes, writers = 1000, 8
	ctx := context.Background()
	env, cfg, err := startCluster()
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			b.Error(err)
		}
	}()
	c, err := newClient(cfg)
	if err != nil {
		b.Fatal(err)
	}
	if err := manifests.InstallCRD(ctx, cfg); err != nil {
		b.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- controllers.Run(running, cfg, controllers.Options{}) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()

	for b.Loop() {
		b.StopTimer()
		g := newGroup()
		if err := c.Create(ctx, g.rule("scale")); err != nil {
			b.Fatal(err)
		}
		each := func(f func(name string) error) {
			names := make(chan string)
			var workers sync.WaitGroup
			for range writers {
				workers.Go(func() {
					for name := range names {
						if err := f(name); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for i := range nodes {
				names <- fmt.Sprintf("%s-%04d", g.name, i)
			}
			close(names)
			workers.Wait()
		}
		each(func(name string) error {
			return c.Create(ctx, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{specLabel: g.name}},
				Spec:       corev1.NodeSpec{Taints: []corev1.Taint{g.taint()}},
			})
		})
		w, err := c.Watch(ctx, &corev1.NodeList{}, client.MatchingLabels{specLabel: g.name})
		if err != nil {
			b.Fatal(err)
		}
		released := make(chan map[string]time.Time, 1)
		go func() {
			at := map[string]time.Time{}
			for event := range w.ResultChan() {
				if node, ok := event.Object.(*corev1.Node); ok && !hasTaint(node, g.taint()) && at[node.Name].IsZero() {
					if at[node.Name] = time.Now(); len(at) == nodes {
						break
					}
				}
			}
			released <- at
		}()
		cpu := cpuTime()
		b.StartTimer()

		var mu sync.Mutex
		met := map[string]time.Time{}
		each(func(name string) error {
			patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, g.condition())
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			err := c.Status().Patch(ctx, node, client.RawPatch("application/strategic-merge-patch+json", []byte(patch)))
			mu.Lock()
			defer mu.Unlock()
			met[name] = time.Now()
			return err
		})
		at := <-released

		b.StopTimer()
		b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s")
		w.Stop()
		var latencies []time.Duration
		for name, t := range at {
			latencies = append(latencies, t.Sub(met[name]))
		}
		slices.Sort(latencies)
		for _, p := range []int{50, 90, 99} {
			b.ReportMetric(float64(latencies[len(latencies)*p/100-1].Milliseconds()), fmt.Sprintf("p%d-ms", p))
		}
		if err := c.DeleteAllOf(ctx, &v1alpha1.NodeReadinessRule{}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
