package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// jumble makes events out of bytes, four each: of a few nodes, static pods and pods, to which things happen in any order, at any time and more than once.
func jumble(data []byte) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	put := func(line any) {
		if err := enc.Encode(line); err != nil {
			panic(err) // plain data into memory
		}
	}
	header := trace.Header{Schema: trace.Schema, Experiment: "jumble", Arm: "any"}
	if len(data) > 0 && data[0]%2 == 0 {
		header.Gate = gate
	}
	put(header)
	apiOnly := len(data) > 0 && data[0]%3 == 0
	var now time.Duration
	for ; len(data) >= 4; data = data[4:] {
		now += time.Duration(data[3]%16) * 100 * time.Millisecond
		e := jumbled(data[0], int(data[1]), int(data[2]))
		e.T = now
		if e.Source != trace.SourceKubelet || !apiOnly {
			put(e)
		}
	}
	put(trace.Event{T: now, Kind: trace.RunEnded, Source: trace.SourceRun, Reason: trace.EndTimeLimit})
	return out.Bytes()
}

func jumbled(kind byte, a, b int) trace.Event {
	node, static := fmt.Sprintf("n%d", a%3), fmt.Sprintf("s%d", b%2)
	nodeUID, hash := fmt.Sprintf("%s-%d", node, a/3%2), fmt.Sprintf("%s-%s-%d", static, node, b/2%2)
	pod := func(e trace.Event) trace.Event {
		e.Source, e.Node, e.Pod, e.UID = trace.SourceAPI, node, fmt.Sprintf("default/p%d", b%8), fmt.Sprintf("p%d", b%8)
		return e
	}
	mirror := func(e trace.Event) trace.Event {
		e.Source, e.Node, e.Pod, e.UID = trace.SourceAPI, node, "kube-system/"+static+"-"+node, fmt.Sprintf("m%d-%s", b%4, node)
		e.PodInfo = &trace.PodInfo{Requests: proxy, Mirror: true, MirrorHash: hash, OwnerUID: nodeUID, Existing: a%16 == 0}
		return e
	}
	kubelet := func(kind trace.Kind) trace.Event {
		return trace.Event{Kind: kind, Source: trace.SourceKubelet, Node: node, Pod: "kube-system/" + static + "-" + node, UID: hash, Requests: proxy}
	}
	ofNode := func(kind trace.Kind) trace.Event {
		return trace.Event{Kind: kind, Source: trace.SourceAPI, Node: node, NodeUID: nodeUID, Taints: [][]trace.Taint{nil, {held}, {notReady}, {held, notReady}}[b%4]}
	}
	infos := []*trace.PodInfo{
		{Requests: web, Owner: "ReplicaSet/web", Workload: "web"}, {Requests: web, Owner: "ReplicaSet/web", Workload: "web", Pinned: true},
		{Requests: proxy, Owner: "DaemonSet/agent"}, {Requests: proxy, Check: true}, {Requests: trace.Resources{"cpu": 3000, "memory": 1}, Existing: true}, nil,
	}
	reasons := []string{"OutOfcpu", "OutOfmemory", "NodeAffinity", "Evicted", "Weird"}
	switch kind % 20 {
	case 0:
		e := ofNode(trace.NodeRegistered)
		if a%16 != 15 {
			e.NodeInfo = &trace.NodeInfo{Allocatable: four, Initial: a%8 == 0}
		}
		return e
	case 1:
		return ofNode(trace.NodeReady)
	case 2:
		return ofNode(trace.NodeTaints)
	case 3:
		e := ofNode(trace.NodeCondition)
		e.Condition, e.Status = gate.Condition, "True"
		return e
	case 4:
		return ofNode(trace.NodeDeleted)
	case 5:
		e := pod(trace.Event{Kind: trace.PodCreated, PodInfo: infos[a%len(infos)]})
		if e.PodInfo == nil || !e.PodInfo.Pinned {
			e.Node = ""
		}
		return e
	case 6, 7:
		return pod(trace.Event{Kind: trace.PodBound})
	case 8:
		return pod(trace.Event{Kind: trace.PodRunning})
	case 9:
		return pod(trace.Event{Kind: trace.PodSucceeded})
	case 10, 11:
		e := pod(trace.Event{Kind: trace.PodFailed, Reason: reasons[a%len(reasons)]})
		_, e.Message = outOf("cpu", 1000, 3300, 4000)
		return e
	case 12:
		return pod(trace.Event{Kind: trace.PodDeleted})
	case 13:
		return pod(trace.Event{Kind: trace.PodUnschedulable})
	case 14:
		return kubelet(trace.StaticPodStarted)
	case 15:
		return kubelet([]trace.Kind{trace.StaticPodStopped, trace.KubeletStopped}[a%2])
	case 16:
		e := pod(trace.Event{Kind: trace.PodRejected, Reason: reasons[a%len(reasons)]})
		e.Source = trace.SourceKubelet
		if a%2 == 0 {
			e.Rejection = &trace.Rejection{Resource: "cpu", Requested: 1000, Used: 3300, Capacity: 4000, Pods: []string{hash}}
		}
		return e
	case 17:
		return mirror(trace.Event{Kind: trace.PodCreated})
	case 18:
		return mirror(trace.Event{Kind: []trace.Kind{trace.PodDeleted, trace.PodFailed}[a%2], Reason: reasons[a%len(reasons)]})
	}
	return trace.Event{Kind: trace.Phase, Source: trace.SourceRun, Message: []string{trace.PhaseWorkload, trace.PhaseScaleUp}[a%2]}
}

// FuzzOrder reads traces in which nothing is as it should be: whatever a trace says, the figures of a run agree with each other.
func FuzzOrder(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		data := make([]byte, 4*(1+r.IntN(200)))
		for i := range data {
			data[i] = byte(r.UintN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		run := analyzeBytes(t, jumble(data))
		for _, n := range run.Nodes {
			agreesWithItself(t, run, n)
		}
		for _, p := range run.Pods {
			if p.Rejection != nil && (!slices.Contains(Causes(), p.Rejection.Cause) || !p.Rejection.SeenByAPI && !p.Rejection.SeenByKubelet) {
				t.Errorf("pod %s: rejection %+v", p.UID, p.Rejection)
			}
		}
		for _, c := range run.Controllers {
			if c.Wanted < 1 || c.Wanted > c.Created {
				t.Errorf("controller %+v", c)
			}
		}
		seriesAgree(t, run)
		summary, err := Summarize([]*Digest{run.Digest()})
		if err != nil {
			t.Fatal(err)
		}
		for _, figure := range summary.Arms[0].Figures {
			if o := figure.Runs[0]; o != nil && o.Value < 0 {
				t.Errorf("%s is %v", figure.Name, o.Value)
			}
		}
		var out bytes.Buffer
		if err := Table(&out, summary, MinTableWidth); err != nil {
			t.Error(err)
		}
	})
}

func agreesWithItself(t *testing.T, run *Run, n *Node) {
	t.Helper()
	life := run.Wall - n.Registered
	var exposed time.Duration
	for _, p := range n.Exposed {
		exposed += p.To - p.From
	}
	if n.Exposure != nil && n.Exposure.Duration != exposed {
		t.Errorf("node %s: exposure %+v, but %v", n.UID, n.Exposure, n.Exposed)
	}
	if w := n.FirstWave; w.HiddenRejected > w.Rejected || w.Rejected > w.Bound {
		t.Errorf("node %s: first wave %+v", n.UID, w)
	}
	spans := map[string]*Span{"exposure": n.Exposure}
	if h := n.Hold; h != nil {
		spans = map[string]*Span{"exposure": n.Exposure, "hold": &h.Total, "beyond Ready": h.BeyondReady, "mirrors": h.Mirrors, "checker": h.Checker, "controller": h.Controller}
		if h.Mirrors != nil && h.Checker != nil && h.Controller != nil && h.Mirrors.Duration+h.Checker.Duration+h.Controller.Duration != h.Total.Duration {
			t.Errorf("node %s: hold %+v is not the sum of %+v, %+v and %+v", n.UID, h.Total, h.Mirrors, h.Checker, h.Controller)
		}
		if h.Idle != nil && *h.Idle > float64(n.Allocatable[cpuResource])*h.BeyondReady.Duration.Seconds()+1e-6 {
			t.Errorf("node %s: %v millicore-seconds idle in %v", n.UID, *h.Idle, h.BeyondReady.Duration)
		}
	}
	for name, span := range spans {
		if span != nil && (span.Duration < 0 || span.Duration > life) {
			t.Errorf("node %s: %s takes %v of %v", n.UID, name, span.Duration, life)
		}
	}
}

// seriesAgree with the figures of the run.
func seriesAgree(t *testing.T, run *Run) {
	t.Helper()
	for _, s := range run.Series {
		last := s.Points[len(s.Points)-1]
		if last.At != run.Wall.Seconds() || s.Points[0].At != 0 {
			t.Errorf("%s is from %v to %v of %v", s.Name, s.Points[0].At, last.At, run.Wall)
		}
		for _, p := range s.Points {
			if p.Value < 0 {
				t.Errorf("%s is %v at %v s", s.Name, p.Value, p.At)
			}
		}
		if s.Name == SeriesRejected && last.Value != run.value(t, MetricRejectedPods) {
			t.Errorf("%v pods were rejected in the end, not %v", last.Value, run.value(t, MetricRejectedPods))
		}
	}
	if u := run.Usage; u.OvercommitSeconds > float64(u.PeakOvercommit)*run.Wall.Seconds()+1e-6 {
		t.Errorf("overcommit %+v in %v", u, run.Wall)
	}
}
