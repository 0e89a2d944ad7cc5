package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// status follows the trace of a run and knows where the cluster stands: whether the run may go on to its next phase, and what to show as progress.
type status struct {
	gate *trace.Gate

	mu    sync.Mutex
	nodes map[string]*nodeStatus
	pods  map[string]*podStatus
	// mirrors are the mirror pods in the API. They outlive a Node, and a machine that returns under its name adopts them.
	mirrors map[mirrorKey]bool
	phase   string
	rejects int
	// refusal is what the API server said last when it refused a mirror pod.
	refusal string
	changed time.Time
	wake    chan struct{}
}

// nodeStatus is what is known of a node, from its kubelet and from the API.
type nodeStatus struct {
	ready, held bool
	// refused: the kubelet refused a manifest, so a mirror-pod check on this node can never pass.
	refused bool
	// static are the static pods that the kubelet counts, by config hash.
	static map[string]bool
}

// mirrorKey is a mirror pod by its node and its config hash.
type mirrorKey struct{ node, hash string }

type podStatus struct {
	workload bool
	state    podState
	node     string
	// mirror is the config hash of a mirror pod, else empty.
	mirror string
}

type podState int

const (
	podPending podState = iota
	podUnschedulable
	podBound
	podRunning
	podDone
)

func newStatus(gate *trace.Gate) *status {
	return &status{
		gate:    gate,
		nodes:   map[string]*nodeStatus{},
		pods:    map[string]*podStatus{},
		mirrors: map[mirrorKey]bool{},
		changed: time.Now(),
		wake:    make(chan struct{}, 1),
	}
}

// apply takes the next event of the trace; it is a trace tap.
func (s *status) apply(e trace.Event) {
	if e.Kind == trace.CheckWaiting { // says the same at every poll: no change
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applyNode(e)
	s.applyPod(e)
	switch e.Kind {
	case trace.Phase:
		s.phase = e.Message
	case trace.MirrorFailed:
		s.refusal = fmt.Sprintf("mirror pod %s was refused: %s", e.Pod, e.Message)
	}
	s.changed = time.Now()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *status) node(name string) *nodeStatus {
	n, ok := s.nodes[name]
	if !ok {
		n = &nodeStatus{static: map[string]bool{}}
		s.nodes[name] = n
	}
	return n
}

func (s *status) applyNode(e trace.Event) {
	switch e.Kind {
	case trace.KubeletStarted:
		s.node(e.Node) // from now on there is a node to wait for
	case trace.NodeRegistered, trace.NodeTaints:
		s.node(e.Node).held = s.holds(e.Taints)
	case trace.NodeReady:
		s.node(e.Node).ready = true
	case trace.NodeNotReady:
		s.node(e.Node).ready = false
	case trace.NodeDeleted:
		delete(s.nodes, e.Node)
	case trace.KubeletStopped:
		clear(s.node(e.Node).static)
	case trace.StaticPodStarted:
		s.node(e.Node).static[e.UID] = true
	case trace.StaticPodStopped:
		delete(s.node(e.Node).static, e.UID)
	case trace.StaticPodRefused:
		s.node(e.Node).refused = true
	}
}

func (s *status) holds(taints []trace.Taint) bool {
	for _, t := range taints {
		if s.gate != nil && t.Key == s.gate.TaintKey && t.Effect == s.gate.TaintEffect {
			return true
		}
	}
	return false
}

func (s *status) applyPod(e trace.Event) {
	if e.Kind == trace.PodCreated {
		s.pods[e.UID] = newPodStatus(e)
		if e.PodInfo.Mirror {
			s.mirrors[mirrorKey{e.Node, e.PodInfo.MirrorHash}] = true
		}
		return
	}
	p, ok := s.pods[e.UID]
	if !ok { // a static pod's own UID, or no pod at all
		return
	}
	switch e.Kind {
	case trace.PodBound:
		p.state, p.node = podBound, e.Node
	case trace.PodUnschedulable:
		p.state = podUnschedulable
	case trace.PodRunning:
		p.state = podRunning
	case trace.PodSucceeded, trace.PodFailed:
		p.state = podDone
	case trace.PodRejected:
		s.rejects++
	case trace.PodDeleted:
		delete(s.pods, e.UID)
		delete(s.mirrors, mirrorKey{p.node, p.mirror})
	}
}

func newPodStatus(e trace.Event) *podStatus {
	p := &podStatus{workload: e.PodInfo.Workload != "", node: e.Node, mirror: e.PodInfo.MirrorHash}
	if e.Node != "" {
		p.state = podBound
	}
	return p
}

// initial: the n nodes that are there from the start are established.
func initial(n int) func(*status) bool {
	return func(s *status) bool { return len(s.nodes) >= n && s.established() }
}

// established: every node is Ready, all its static pods have mirrors, and the gate, if any, has released it.
func (s *status) established() bool {
	for name, n := range s.nodes {
		if !n.ready || !s.mirrored(name) || n.held && !n.refused {
			return false
		}
	}
	return true
}

// mirrored: every static pod of the node has its mirror.
func (s *status) mirrored(node string) bool {
	for hash := range s.nodes[node].static {
		if !s.mirrors[mirrorKey{node, hash}] {
			return false
		}
	}
	return true
}

// placed: no pod of a workload is on its way: each runs, has ended, or has been found unschedulable.
func (s *status) placed() bool {
	for _, p := range s.pods {
		if p.workload && (p.state == podPending || p.state == podBound) {
			return false
		}
	}
	return true
}

// settled: nothing more is going to happen by itself.
func (s *status) settled() bool { return s.established() && s.placed() }

// wait returns when condition has held with no event for the time quiet, counted from the call at the earliest, or when ctx ends. What was done just
// before the call may still have to show.
func (s *status) wait(ctx context.Context, quiet time.Duration, condition func(*status) bool) error {
	s.mu.Lock()
	s.changed = time.Now()
	s.mu.Unlock()
	for {
		left, holds := s.check(quiet, condition)
		if holds && left <= 0 {
			return nil
		}
		var timer <-chan time.Time
		if holds {
			timer = time.After(left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
		case <-timer:
		}
	}
}

func (s *status) check(quiet time.Duration, condition func(*status) bool) (left time.Duration, holds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return quiet - time.Since(s.changed), condition(s)
}

// describe gives the phase, and the state of the cluster in a few words.
func (s *status) describe() (phase, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ready, held, unmirrored int
	for name, n := range s.nodes {
		ready += one(n.ready)
		held += one(n.held)
		unmirrored += one(!s.mirrored(name))
	}
	var running, pending int
	for _, p := range s.pods {
		running += one(p.workload && p.state == podRunning)
		pending += one(p.workload && p.state < podRunning)
	}
	return s.phase, fmt.Sprintf("%d rejected, %d running, %d pending; nodes %d/%d ready, %d held, %d unmirrored",
		s.rejects, running, pending, ready, len(s.nodes), held, unmirrored)
}

// standstill says why the run goes no further, as far as it is known.
func (s *status) standstill() string {
	phase, state := s.describe()
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("in phase %s with pods %s", phase, state)
	if s.refusal != "" {
		text += "; " + s.refusal
	}
	return text
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
