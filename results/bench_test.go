package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// pen writes events, a millisecond apart, and keeps the first error.
type pen struct {
	enc *json.Encoder
	now time.Duration
	err error
}

// newPen writes the header of a trace and the start of its scale-up.
func newPen(w io.Writer) *pen {
	p := &pen{enc: json.NewEncoder(w)}
	p.err = p.enc.Encode(trace.Header{Schema: trace.Schema, Experiment: "scale", Arm: "ungated", Start: time.Unix(0, 0).UTC()})
	p.put(trace.SourceRun, trace.Event{Kind: trace.Phase, Message: trace.PhaseScaleUp})
	return p
}

func (p *pen) put(source string, e trace.Event) {
	p.now += time.Millisecond
	e.T, e.Source = p.now, source
	if p.err == nil {
		p.err = p.enc.Encode(e)
	}
}

// node registers a node with a static pod that has no mirror.
func (p *pen) node(name string, cpu int64) {
	p.put(trace.SourceKubelet, trace.Event{Kind: trace.StaticPodStarted, Node: name, Pod: "kube-system/proxy-" + name, UID: name + "-hash", Requests: proxy})
	p.put(trace.SourceAPI, trace.Event{Kind: trace.NodeRegistered, Node: name, NodeUID: name + "-uid", Taints: []trace.Taint{notReady},
		NodeInfo: &trace.NodeInfo{Allocatable: trace.Resources{"cpu": cpu, "memory": 1 << 40, "pods": 110}}})
	p.put(trace.SourceAPI, trace.Event{Kind: trace.NodeTaints, Node: name, NodeUID: name + "-uid"})
}

func (p *pen) mirror(node string) {
	p.put(trace.SourceAPI, trace.Event{Kind: trace.PodCreated, Pod: "kube-system/proxy-" + node, UID: "mirror-" + node, Node: node,
		PodInfo: &trace.PodInfo{Requests: proxy, Mirror: true, MirrorHash: node + "-hash", OwnerUID: node + "-uid"}})
}

func (p *pen) create(pod trace.Event) {
	pod.Kind, pod.Node = trace.PodCreated, ""
	pod.PodInfo = &trace.PodInfo{Requests: web, Owner: "ReplicaSet/web", Workload: "web"}
	p.put(trace.SourceAPI, pod)
}

func (p *pen) pod(kind trace.Kind, pod trace.Event) {
	pod.Kind = kind
	p.put(trace.SourceAPI, pod)
}

// reject has the kubelet reject a pod beside others that fill the node but for less than a pod, and the API show it.
func (p *pen) reject(pod trace.Event, others int64) {
	used, capacity := 1000*others+300, 1000*(others+1)
	pod.Reason, pod.Message = outOf("cpu", 1000, used, capacity)
	rejected := pod
	rejected.Kind = trace.PodRejected
	rejected.Rejection = &trace.Rejection{Resource: "cpu", Requested: 1000, Used: used, Capacity: capacity, Pods: []string{pod.Node + "-hash"}}
	p.put(trace.SourceKubelet, rejected)
	p.pod(trace.PodFailed, pod)
}

// end ends the trace as settled and returns what went wrong while it was written.
func (p *pen) end() error {
	p.put(trace.SourceRun, trace.Event{Kind: trace.RunEnded, Reason: trace.EndSettled})
	return p.err
}

// scenario is a trace of some size.
type scenario interface {
	fmt.Stringer
	write(io.Writer) error
}

// cluster writes a trace of many nodes that fill up one after another, while their ReplicaSet still creates its pods. Each node rejects its last
// pod once, which the ReplicaSet replaces in the end; before that it idles for a number of events that say nothing new.
type cluster struct {
	nodes, podsPerNode, idle int
}

func (c cluster) String() string {
	return fmt.Sprintf("cluster/nodes=%d,pods=%d,idle=%d", c.nodes, c.nodes*c.podsPerNode, c.idle)
}

func (c cluster) write(w io.Writer) error {
	p := newPen(w)
	each := func(f func(node string)) {
		for i := range c.nodes {
			f(fmt.Sprintf("workers-%d", i))
		}
	}
	each(func(node string) { p.node(node, int64(1000*c.podsPerNode)) })
	each(func(node string) {
		for i := range c.podsPerNode {
			pod := trace.Event{Node: node, Pod: fmt.Sprintf("default/web-%s-%d", node, i), UID: fmt.Sprintf("00000000-0000-%s-%d", node, i)}
			p.create(pod)
			p.pod(trace.PodBound, pod)
			if i < c.podsPerNode-1 {
				p.pod(trace.PodRunning, pod)
			} else {
				p.reject(pod, int64(i))
			}
		}
	})
	for range c.idle {
		p.put(trace.SourceAPI, trace.Event{Kind: trace.NodeNotReady, Node: "workers-0", NodeUID: "workers-0-uid"})
		p.put(trace.SourceCheck, trace.Event{Kind: trace.CheckWaiting, Node: "workers-0", Missing: []string{"kube-system/proxy-workers-0"}})
	}
	each(func(node string) {
		p.mirror(node)
		p.create(trace.Event{Pod: "default/again-" + node, UID: "again-" + node})
	})
	return p.end()
}

// storm writes a trace of nodes with room for four pods, of which a static pod without mirror takes a part: each runs three, and rejects one after
// another. Of every rejected pod there are seven events.
type storm struct{ nodes, rejected int }

func (s storm) String() string { return fmt.Sprintf("storm/nodes=%d,rejected=%d", s.nodes, s.rejected) }

func (s storm) write(w io.Writer) error {
	const running = 3
	p := newPen(w)
	for i := range s.nodes {
		p.node(fmt.Sprintf("workers-%d", i), 1000*(running+1))
	}
	for i := range s.nodes*running + s.rejected {
		pod := trace.Event{Node: fmt.Sprintf("workers-%d", i%s.nodes), Pod: fmt.Sprintf("default/web-5d9c8b7f6-%07x", i), UID: fmt.Sprintf("6a1f0000-0000-4000-8000-%012x", i)}
		p.create(pod)
		p.pod(trace.PodUnschedulable, pod)
		p.pod(trace.PodBound, pod)
		if i < s.nodes*running {
			p.pod(trace.PodRunning, pod)
			continue
		}
		p.reject(pod, running)
		p.pod(trace.PodTerminating, pod)
		p.pod(trace.PodDeleted, pod)
	}
	for i := range s.nodes {
		p.mirror(fmt.Sprintf("workers-%d", i))
	}
	return p.end()
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

// kept is how many bytes are kept of a trace when its last event was read.
func kept(t *testing.T, c scenario) uint64 {
	t.Helper()
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

// TestMemoryDoesNotGrowWithEvents compares what is kept of a trace with what is kept of one that has fifty times as many events about the same
// nodes and pods.
func TestMemoryDoesNotGrowWithEvents(t *testing.T) {
	few, many := cluster{nodes: 20, podsPerNode: 10}, cluster{nodes: 20, podsPerNode: 10, idle: 20_000}
	kept(t, few) // warm up what is kept for ever
	if short, long := kept(t, few), kept(t, many); long > short+short/2 {
		t.Errorf("%d bytes are kept of a short trace, %d of one with 40,000 more events", short, long)
	}
}

// TestMemoryOfAStorm bounds what is kept of a rejected pod: of 1.4 million pods, 1 GB.
func TestMemoryOfAStorm(t *testing.T) {
	const pods, limit = 5_000, 700
	if each := kept(t, storm{nodes: 20, rejected: pods}) / pods; each > limit {
		t.Errorf("%d bytes are kept of each pod, want at most %d", each, limit)
	}
}

// BenchmarkAnalyze reads traces from a file and puts them together, and tells the process' peak memory. One core decodes JSON; the other collects garbage.
func BenchmarkAnalyze(b *testing.B) {
	for _, c := range []scenario{
		cluster{nodes: 100, podsPerNode: 10},
		cluster{nodes: 5000, podsPerNode: 10},
		cluster{nodes: 5000, podsPerNode: 10, idle: 5_000_000},
		storm{nodes: 1, rejected: 100_000},
		storm{nodes: 200, rejected: 1_430_000},
	} {
		b.Run(c.String(), func(b *testing.B) {
			path, size := writeScenario(b, c)
			resetPeak(b)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				run, err := ReadTrace(path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Summarize([]*Digest{run.Digest()}); err != nil {
					b.Fatal(err)
				}
			}
			if peak := peakMemory(); peak > 0 {
				b.ReportMetric(float64(peak), "peak-B")
			}
		})
	}
}

// writeScenario writes its trace into a file and tells its size.
func writeScenario(b *testing.B, c scenario) (path string, size int64) {
	b.Helper()
	path = filepath.Join(b.TempDir(), TraceFile)
	if err := ReplaceFile(path, c.write); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return path, info.Size()
}

// resetPeak forgets the most memory that the process took so far, where the operating system can.
func resetPeak(b *testing.B) {
	b.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Logf("the peak is that of all benchmarks so far: %v", err)
	}
}

// peakMemory is the process' peak resident set in bytes; 0 where the operating system does not tell (proc_pid_status(5)).
func peakMemory() uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	match := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(status)
	if match == nil {
		return 0
	}
	kB, _ := strconv.ParseUint(string(match[1]), 10, 64) // digits
	return kB * 1024
}
