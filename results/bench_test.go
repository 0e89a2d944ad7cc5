package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// cluster writes a trace of many nodes that fill up one after another, while their ReplicaSet still creates its pods. Each node rejects its last
// pod once, which the ReplicaSet replaces in the end; before that it idles for a number of events that say nothing new.
type cluster struct {
	nodes, podsPerNode, idle int
}

func (c cluster) write(w io.Writer) error {
	enc := json.NewEncoder(w)
	now := time.Duration(0)
	var failed error
	put := func(source string, e trace.Event) {
		now += time.Millisecond
		e.T, e.Source = now, source
		if err := enc.Encode(e); err != nil {
			failed = err
		}
	}
	if err := enc.Encode(trace.Header{Schema: trace.Schema, Experiment: "scale", Arm: "ungated", Start: time.Unix(0, 0).UTC()}); err != nil {
		return err
	}
	each := func(f func(node string)) {
		for i := range c.nodes {
			f(fmt.Sprintf("workers-%d", i))
		}
	}
	put(trace.SourceRun, trace.Event{Kind: trace.Phase, Message: trace.PhaseScaleUp})
	each(func(node string) {
		put(trace.SourceKubelet, trace.Event{Kind: trace.StaticPodStarted, Node: node, Pod: "kube-system/proxy-" + node, UID: node + "-hash",
			Requests: proxy})
		put(trace.SourceAPI, trace.Event{Kind: trace.NodeRegistered, Node: node, NodeUID: node + "-uid", Taints: []trace.Taint{notReady},
			NodeInfo: &trace.NodeInfo{Allocatable: trace.Resources{"cpu": int64(1000 * c.podsPerNode), "memory": 1 << 40, "pods": 110}}})
		put(trace.SourceAPI, trace.Event{Kind: trace.NodeTaints, Node: node, NodeUID: node + "-uid"})
	})
	each(func(node string) {
		for i := range c.podsPerNode {
			pod := trace.Event{Node: node, Pod: fmt.Sprintf("default/web-%s-%d", node, i), UID: fmt.Sprintf("00000000-0000-%s-%d", node, i)}
			created := pod
			created.Kind, created.Node = trace.PodCreated, ""
			created.PodInfo = &trace.PodInfo{Requests: web, Owner: "ReplicaSet/web", Workload: "web"}
			put(trace.SourceAPI, created)
			pod.Kind = trace.PodBound
			put(trace.SourceAPI, pod)
			if i < c.podsPerNode-1 {
				pod.Kind = trace.PodRunning
				put(trace.SourceAPI, pod)
				continue
			}
			used, capacity := int64(1000*i+300), int64(1000*c.podsPerNode)
			pod.Reason, pod.Message = outOf("cpu", 1000, used, capacity)
			pod.Kind = trace.PodRejected
			pod.Rejection = &trace.Rejection{Resource: "cpu", Requested: 1000, Used: used, Capacity: capacity, Pods: []string{node + "-hash"}}
			put(trace.SourceKubelet, pod)
			pod.Kind, pod.Rejection = trace.PodFailed, nil
			put(trace.SourceAPI, pod)
		}
	})
	for range c.idle {
		put(trace.SourceAPI, trace.Event{Kind: trace.NodeNotReady, Node: "workers-0", NodeUID: "workers-0-uid"})
		put(trace.SourceCheck, trace.Event{Kind: trace.CheckWaiting, Node: "workers-0", Missing: []string{"kube-system/proxy-workers-0"}})
	}
	each(func(node string) {
		put(trace.SourceAPI, trace.Event{Kind: trace.PodCreated, Pod: "kube-system/proxy-" + node, UID: "mirror-" + node, Node: node,
			PodInfo: &trace.PodInfo{Requests: proxy, Mirror: true, MirrorHash: node + "-hash", OwnerUID: node + "-uid"}})
		put(trace.SourceAPI, trace.Event{Kind: trace.PodCreated, Pod: "default/again-" + node, UID: "again-" + node,
			PodInfo: &trace.PodInfo{Requests: web, Owner: "ReplicaSet/web", Workload: "web"}})
	})
	put(trace.SourceRun, trace.Event{Kind: trace.RunEnded, Reason: trace.EndSettled})
	return failed
}

func TestClosedFormHoldsOnEveryNodeOfALargeCluster(t *testing.T) {
	var data bytes.Buffer
	if err := (cluster{nodes: 50, podsPerNode: 10}).write(&data); err != nil {
		t.Fatal(err)
	}
	run := analyzeBytes(t, data.Bytes())
	check(t, "nodes with a rejection", run.value(t, MetricNewNodesWithRejection), 50)
	check(t, "nodes where the closed form applies", run.value(t, MetricClosedFormNodes), 50)
	check(t, "expected", run.value(t, MetricClosedFormRejections), 50)
	check(t, "seen", run.value(t, MetricClosedFormObserved), 50)
	check(t, "storm", run.value(t, MetricStormRejections), 0)
	check(t, "rate of no storm", run.observation(t, MetricStormRate), nil)
	check(t, "hidden", run.value(t, MetricRejectedPodsByCause, string(CauseHiddenStaticPod)), 50)
}

// TestMemoryDoesNotGrowWithEvents compares what is kept of a trace with what is kept of one that has fifty times as many events about the same
// nodes and pods.
func TestMemoryDoesNotGrowWithEvents(t *testing.T) {
	kept := func(c cluster) uint64 {
		in, out := io.Pipe()
		go func() { _ = out.CloseWithError(c.write(out)) }() // the reader sees the error
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		reader, err := trace.NewReader("pipe", in)
		if err != nil {
			t.Fatal(err)
		}
		l := newLedger(reader.Header())
		for {
			e, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			l.enter(e)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(l)
		return after.HeapAlloc - before.HeapAlloc
	}
	few, many := cluster{nodes: 20, podsPerNode: 10}, cluster{nodes: 20, podsPerNode: 10, idle: 20_000}
	kept(few) // warm up what is kept for ever
	if short, long := kept(few), kept(many); long > short+short/2 {
		t.Errorf("%d bytes are kept of a short trace, %d of one with 40,000 more events", short, long)
	}
}

func BenchmarkAnalyze(b *testing.B) {
	for _, c := range []cluster{{nodes: 100, podsPerNode: 10}, {nodes: 1000, podsPerNode: 10}, {nodes: 5000, podsPerNode: 10}} {
		b.Run(fmt.Sprintf("nodes=%d/pods=%d", c.nodes, c.nodes*c.podsPerNode), func(b *testing.B) {
			var data bytes.Buffer
			if err := c.write(&data); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(data.Len()))
			b.ReportAllocs()
			for b.Loop() {
				reader, err := trace.NewReader("bench", bytes.NewReader(data.Bytes()))
				if err != nil {
					b.Fatal(err)
				}
				run, err := Analyze(reader)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Summarize([]*Digest{run.Digest()}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
