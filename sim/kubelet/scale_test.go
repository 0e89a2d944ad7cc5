package kubelet

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Two runs of one seed give the same delays and decisions on every node; another seed gives other delays.
func TestSameSeedSameRun(t *testing.T) {
	play := func(seed random.Seed) (events []string) {
		inCluster(t, Config{Seed: seed}, func(c *cluster) {
			for i := range 5 {
				m := newMachine(fmt.Sprintf("n%d", i), manifest("a", "1"), manifest("b", "500m"))
				m.Behaviour.MirrorDelay = random.Uniform(60*time.Second, 90*time.Second)
				m.Behaviour.StatusDelay = random.Uniform(50*time.Millisecond, 130*time.Millisecond)
				m.Behaviour.PodSourceDelay = random.Uniform(time.Second, 2*time.Second)
				c.boot(m)
			}
			for i := range 30 {
				c.bind(newPod(fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i%5), "600m"))
				c.wait(300 * time.Millisecond)
			}
			c.until(2 * time.Minute)
			for _, e := range c.events {
				events = append(events, fmt.Sprint(e.Node, e.At, e.Kind, e.Pod, e.UID, e.Message))
			}
			for _, a := range c.actions {
				events = append(events, fmt.Sprint(a.at, a.GetVerb(), a.GetResource(), actionName(a.Action)))
			}
			slices.Sort(events)
		})
		return events
	}
	first, second, other := play(1), play(1), play(2)
	if !slices.Equal(first, second) {
		t.Errorf("two runs of one seed differ: %d and %d events", len(first), len(second))
	}
	if slices.Equal(first, other) {
		t.Error("two seeds gave the same run")
	}
}

// An idle kubelet has no goroutine.
func TestIdleKubeletsCostNoGoroutines(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		before := runtime.NumGoroutine()
		for i := range 200 {
			c.boot(newMachine(fmt.Sprintf("n%d", i), manifest("agent", "1")))
		}
		c.until(time.Minute)
		if after := runtime.NumGoroutine(); after > before+10 {
			c.Errorf("200 idle kubelets have %d goroutines", after-before)
		}
		if got := strings.Count(strings.Join(c.kinds(), "\n"), string(trace.StaticPodStarted)); got != 200 {
			c.Errorf("got %d static pods, want 200", got)
		}
	})
}

// BenchmarkAdmission measures the decisions about 10,000 pods, bound round-robin to 1,000 nodes with a static pod each, of which the last of each node
// is rejected. The API is left out: pods come as from the watch, and statuses are not written.
func BenchmarkAdmission(b *testing.B) {
	const nodes, podsPerNode = 1000, 10
	for b.Loop() {
		b.StopTimer()
		var decided atomic.Int64
		all := make(chan struct{})
		k, err := newKubelets(Config{Recorder: trace.RecorderFunc(func(e trace.Event) {
			decision := e.Kind == trace.PodAdmitted || e.Kind == trace.PodRejected
			if decision && decided.Add(1) == nodes*podsPerNode {
				close(all)
			}
		})}, fake.NewClientset())
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- k.Run(ctx) }()
		for i := range nodes {
			m := newMachine(fmt.Sprintf("n%d", i), manifest("agent", "500m"))
			m.Behaviour.StatusDelay = random.Constant(time.Hour)
			m.Behaviour.PodSourceDelay = random.Constant(time.Hour)
			if err := k.Start(ctx, m); err != nil {
				b.Fatal(err)
			}
			k.tell(m.Name, func(n *node) { n.sourceOpen = true })
		}
		for len(k.nodes.GetStore().ListKeys()) < nodes {
			time.Sleep(10 * time.Millisecond)
		}
		var pods []*corev1.Pod
		for i := range nodes * podsPerNode {
			pod := newPod(fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i%nodes), "380m")
			pod.UID = types.UID(pod.Name)
			pods = append(pods, pod)
		}
		b.StartTimer()
		for _, pod := range pods {
			k.tell(pod.Spec.NodeName, func(n *node) { n.podAdded(pod) })
		}
		<-all
		b.StopTimer()
		cancel()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(nodes*podsPerNode*b.N)/b.Elapsed().Seconds(), "pods/s")
}
