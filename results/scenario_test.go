package results

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

var update = flag.Bool("update", false, "write the traces and golden files in testdata")

// script writes the trace of a small cluster by hand. Times are seconds.
type script struct {
	t      *testing.T
	header trace.Header
	events []trace.Event
	now    time.Duration
}

var (
	gate = &trace.Gate{
		TaintKey: "readiness.k8s.io/StaticPodsMirrored", TaintEffect: "NoSchedule", Condition: "readiness.example.com/StaticPodsMirrored",
	}
	held     = trace.Taint{Key: gate.TaintKey, Value: "pending", Effect: "NoSchedule"}
	notReady = trace.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}
	infra    = trace.Taint{Key: "example.com/dedicated", Value: "web", Effect: "NoSchedule"}

	// four is the allocatable of the nodes here: 4 cpu, 16 GB, 110 pods. proxy is their static pod, web a pod of which four seem to fit.
	four  = trace.Resources{"cpu": 4000, "memory": 16_000_000_000, "pods": 110}
	proxy = trace.Resources{"cpu": 300}
	web   = trace.Resources{"cpu": 1000, "memory": 1_000_000_000}
)

func newScript(t *testing.T, arm string, g *trace.Gate) *script {
	return &script{t: t, header: trace.Header{
		Schema: trace.Schema, Experiment: "by-hand", Arm: arm, Seed: 1, Engine: "live", Gate: g,
		Start:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Versions: map[string]string{"kubernetes": "v1.37.2"}, Machine: trace.Machine{OS: "linux", Arch: "amd64", CPUs: 2},
	}}
}

// at moves to a time.
func (s *script) at(seconds float64) *script {
	next := time.Duration(seconds * float64(time.Second))
	if next < s.now {
		s.t.Fatalf("script goes back from %v to %v", s.now, next)
	}
	s.now = next
	return s
}

func (s *script) add(source string, e trace.Event) *script {
	e.T, e.Source = s.now, source
	s.events = append(s.events, e)
	return s
}

func (s *script) api(e trace.Event) *script     { return s.add(trace.SourceAPI, e) }
func (s *script) kubelet(e trace.Event) *script { return s.add(trace.SourceKubelet, e) }
func (s *script) phase(name string) *script {
	return s.add(trace.SourceRun, trace.Event{Kind: trace.Phase, Message: name})
}
func (s *script) end(reason string) *script {
	return s.add(trace.SourceRun, trace.Event{Kind: trace.RunEnded, Reason: reason})
}

// register adds a Node of UID <node>-uid.
func (s *script) register(node string, initial bool, taints ...trace.Taint) *script {
	return s.api(trace.Event{Kind: trace.NodeRegistered, Node: node, NodeUID: node + "-uid", Taints: taints,
		NodeInfo: &trace.NodeInfo{Group: "workers", Allocatable: four, Capacity: four, Initial: initial}})
}

func (s *script) taints(node string, taints ...trace.Taint) *script {
	return s.api(trace.Event{Kind: trace.NodeTaints, Node: node, NodeUID: node + "-uid", Taints: taints})
}

func (s *script) ready(node string) *script {
	return s.api(trace.Event{Kind: trace.NodeReady, Node: node, NodeUID: node + "-uid"})
}

func (s *script) condition(node string) *script {
	return s.api(trace.Event{Kind: trace.NodeCondition, Node: node, NodeUID: node + "-uid", Condition: gate.Condition, Status: "True"})
}

// static starts the static pod kube-proxy, of hash <node>-hash.
func (s *script) static(node string, requests trace.Resources) *script {
	return s.kubelet(trace.Event{Kind: trace.StaticPodStarted, Node: node, Pod: "kube-system/kube-proxy-" + node, UID: node + "-hash",
		Requests: requests})
}

// mirror shows its mirror.
func (s *script) mirror(node string, requests trace.Resources) *script {
	return s.staleMirror(node, node+"-hash", node+"-uid", requests)
}

func (s *script) staleMirror(node, hash, owner string, requests trace.Resources) *script {
	return s.api(trace.Event{Kind: trace.PodCreated, Pod: "kube-system/kube-proxy-" + node, UID: "mirror-of-" + hash + "-" + owner, Node: node,
		PodInfo: &trace.PodInfo{Requests: requests, Owner: "Node/" + node, Mirror: true, MirrorHash: hash, OwnerUID: owner}})
}

// pod creates a pod of the ReplicaSet web.
func (s *script) pod(name string, requests trace.Resources) *script {
	return s.api(trace.Event{Kind: trace.PodCreated, Pod: "default/" + name, UID: name,
		PodInfo: &trace.PodInfo{Requests: requests, Owner: "ReplicaSet/web", Workload: "web"}})
}

func (s *script) pods(kind trace.Kind, node string, names ...string) *script {
	for _, name := range names {
		s.api(trace.Event{Kind: kind, Pod: "default/" + name, UID: name, Node: node})
	}
	return s
}

func (s *script) bind(node string, names ...string) *script {
	return s.pods(trace.PodBound, node, names...)
}

// run has the kubelet admit pods and the API show them Running.
func (s *script) run(node string, names ...string) *script {
	for _, name := range names {
		s.kubelet(trace.Event{Kind: trace.PodAdmitted, Node: node, Pod: "default/" + name, UID: name})
	}
	return s.pods(trace.PodRunning, node, names...)
}

func outOf(resource string, requested, used, capacity int64) (reason, message string) {
	return "OutOf" + resource,
		fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", resource, requested, used, capacity)
}

// reject has the kubelet reject a pod for a resource, counting the static pod and others.
func (s *script) reject(node, name, resource string, requested, used, capacity int64, counted ...string) *script {
	reason, message := outOf(resource, requested, used, capacity)
	return s.kubelet(trace.Event{Kind: trace.PodRejected, Node: node, Pod: "default/" + name, UID: name, Reason: reason, Message: message,
		Rejection: &trace.Rejection{Resource: resource, Requested: requested, Used: used, Capacity: capacity, Pods: append(counted, node+"-hash")}})
}

// fail has the API show it.
func (s *script) fail(node, name, reason, message string) *script {
	return s.api(trace.Event{Kind: trace.PodFailed, Pod: "default/" + name, UID: name, Node: node, Reason: reason,
		Message: "Pod was rejected: " + message})
}

// cpu has the fourth web pod of a node rejected, and the API show it 0.1 s later.
func (s *script) cpu(node, name string) *script {
	reason, message := outOf("cpu", 1000, 3300, 4000)
	s.reject(node, name, "cpu", 1000, 3300, 4000)
	return s.at(s.now.Seconds()+0.1).fail(node, name, reason, message)
}

func (s *script) bytes() []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	if err := enc.Encode(s.header); err != nil {
		s.t.Fatal(err)
	}
	for _, e := range s.events {
		if err := enc.Encode(e); err != nil {
			s.t.Fatal(err)
		}
	}
	return out.Bytes()
}

// golden compares got with a file in testdata, or writes it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run go test with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs from what was written (-file +now):\n%s", path, diff)
	}
}

// analyze checks the script against testdata/<name>.jsonl, and analyses that file.
func (s *script) analyze(name string) *Run {
	s.t.Helper()
	golden(s.t, name+".jsonl", s.bytes())
	return analyzeFile(s.t, filepath.Join("testdata", name+".jsonl"))
}

func analyzeFile(t *testing.T, path string) *Run {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	reader, err := trace.NewReader(path, f)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Analyze(reader)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// node and rejected look things up by name.
func (r *Run) node(t *testing.T, uid string) *Node {
	t.Helper()
	for _, n := range r.Nodes {
		if n.UID == uid {
			return n
		}
	}
	t.Fatalf("no node of UID %s", uid)
	return nil
}

func (r *Run) rejection(t *testing.T, uid string) Rejection {
	t.Helper()
	for _, p := range r.Pods {
		if p.UID == uid && p.Rejection != nil {
			return *p.Rejection
		}
	}
	t.Fatalf("no rejected pod of UID %s", uid)
	return Rejection{}
}

// value is a metric of the run; it must have one.
func (r *Run) value(t *testing.T, name string, key ...string) float64 {
	t.Helper()
	o := r.observation(t, name, key...)
	if o == nil {
		t.Fatalf("%s %v: not measured", name, key)
	}
	return o.Value
}

func (r *Run) observation(t *testing.T, name string, key ...string) *Observation {
	t.Helper()
	for _, m := range metricsOf([]*Digest{r.Digest()}) {
		if m.Name == name && (len(key) == 0 || m.Key == key[0]) {
			return m.RunValue(r)
		}
	}
	t.Fatalf("no metric %s %v", name, key)
	return nil
}

func check[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func s(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
