package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

var (
	testGate  = &trace.Gate{TaintKey: "gate", TaintEffect: "NoSchedule", Condition: "Mirrored"}
	gateTaint = trace.Taint{Key: "gate", Value: "pending", Effect: "NoSchedule"}
	// otherTaints do not hold a node, as far as the gate goes.
	otherTaints = []trace.Taint{{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}, {Key: "gate", Effect: "PreferNoSchedule"}}
)

// The events of a short life, as recorder and kubelets record them.

func nodeEvent(kind trace.Kind, node string, taints ...trace.Taint) trace.Event {
	return trace.Event{Kind: kind, Node: node, Taints: taints}
}

func staticPod(kind trace.Kind, node, hash string) trace.Event {
	return trace.Event{Kind: kind, Node: node, UID: hash}
}

func mirrorCreated(node, hash, uid string) trace.Event {
	return trace.Event{Kind: trace.PodCreated, Node: node, UID: uid, PodInfo: &trace.PodInfo{Mirror: true, MirrorHash: hash}}
}

func workloadCreated(uid string) trace.Event {
	return trace.Event{Kind: trace.PodCreated, UID: uid, PodInfo: &trace.PodInfo{Workload: "fill"}}
}

func podEvent(kind trace.Kind, uid string) trace.Event {
	return trace.Event{Kind: kind, UID: uid, Node: "a"}
}

// established is what it takes for a node to be established without a gate.
func established(node string) []trace.Event {
	return []trace.Event{
		nodeEvent(trace.KubeletStarted, node), staticPod(trace.StaticPodStarted, node, "h"), nodeEvent(trace.NodeRegistered, node),
		nodeEvent(trace.NodeReady, node), mirrorCreated(node, "h", "mirror-of-"+node),
	}
}

func apply(s *status, lists ...[]trace.Event) {
	for _, list := range lists {
		for _, e := range list {
			s.apply(e)
		}
	}
}

func TestEstablished(t *testing.T) {
	started, ready := nodeEvent(trace.KubeletStarted, "a"), nodeEvent(trace.NodeReady, "a")
	for name, c := range map[string]struct {
		events []trace.Event
		want   bool
	}{
		"no nodes":                              {nil, true},
		"a kubelet that has not registered":     {[]trace.Event{started}, false},
		"registered and not Ready":              {[]trace.Event{started, nodeEvent(trace.NodeRegistered, "a")}, false},
		"Ready, no static pods":                 {[]trace.Event{started, nodeEvent(trace.NodeRegistered, "a"), ready}, true},
		"Ready, with its mirror":                {established("a"), true},
		"Ready, a mirror missing":               {append(established("a"), staticPod(trace.StaticPodStarted, "a", "h2")), false},
		"the same static pod on another node":   {append(established("a"), nodeEvent(trace.NodeReady, "b"), staticPod(trace.StaticPodStarted, "b", "h")), false},
		"that static pod gone again":            {append(established("a"), staticPod(trace.StaticPodStarted, "a", "h2"), staticPod(trace.StaticPodStopped, "a", "h2")), true},
		"its mirror deleted":                    {append(established("a"), podEvent(trace.PodDeleted, "mirror-of-a")), false},
		"its mirror replaced":                   {append(established("a"), podEvent(trace.PodDeleted, "mirror-of-a"), mirrorCreated("a", "h", "another")), true},
		"no longer Ready":                       {append(established("a"), nodeEvent(trace.NodeNotReady, "a")), false},
		"held at registration":                  {append(established("a"), nodeEvent(trace.NodeRegistered, "a", gateTaint)), false},
		"held later":                            {append(established("a"), nodeEvent(trace.NodeTaints, "a", gateTaint)), false},
		"released":                              {append(established("a"), nodeEvent(trace.NodeTaints, "a", gateTaint), nodeEvent(trace.NodeTaints, "a")), true},
		"other taints":                          {append(established("a"), nodeEvent(trace.NodeTaints, "a", otherTaints...)), true},
		"held for ever, by a refused manifest":  {append(established("a"), nodeEvent(trace.NodeTaints, "a", gateTaint), nodeEvent(trace.StaticPodRefused, "a")), true},
		"a refused manifest and a missing one":  {append(established("a"), nodeEvent(trace.StaticPodRefused, "a"), staticPod(trace.StaticPodStarted, "a", "h2")), false},
		"left":                                  {[]trace.Event{started, nodeEvent(trace.NodeDeleted, "a")}, true},
		"returned, the old mirror adopted":      {append(established("a"), append([]trace.Event{nodeEvent(trace.NodeDeleted, "a")}, established("a")[:4]...)...), true},
		"returned, the old mirror deleted":      {append(established("a"), append([]trace.Event{nodeEvent(trace.NodeDeleted, "a"), podEvent(trace.PodDeleted, "mirror-of-a")}, established("a")[:4]...)...), false},
		"one of two":                            {append(established("a"), nodeEvent(trace.KubeletStarted, "b")), false},
		"events about pods that nobody created": {[]trace.Event{podEvent(trace.PodRunning, "x"), podEvent(trace.PodDeleted, "x")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStatus(testGate)
			apply(s, c.events)
			if got := s.established(); got != c.want {
				t.Errorf("established: %v", got)
			}
		})
	}
}

// TestNoGateHoldsNothing: in an arm without the gate its taint, put there by hand, does not keep the run from going on.
func TestNoGateHoldsNothing(t *testing.T) {
	s := newStatus(nil)
	apply(s, established("a"), []trace.Event{nodeEvent(trace.NodeTaints, "a", gateTaint)})
	if !s.established() {
		t.Error("a node is held though there is no gate")
	}
}

// TestInitialNodesAreCounted: before the first of them has started nothing is established.
func TestInitialNodesAreCounted(t *testing.T) {
	s := newStatus(nil)
	two := initial(2)
	for i, events := range [][]trace.Event{nil, established("a"), established("b")} {
		apply(s, events)
		if got, want := two(s), i == 2; got != want {
			t.Errorf("with %d of 2 nodes: %v", i, got)
		}
	}
}

func TestPlaced(t *testing.T) {
	created := workloadCreated("p")
	for name, c := range map[string]struct {
		events []trace.Event
		want   bool
	}{
		"no pods":                        {nil, true},
		"created":                        {[]trace.Event{created}, false},
		"bound":                          {[]trace.Event{created, podEvent(trace.PodBound, "p")}, false},
		"admitted":                       {[]trace.Event{created, podEvent(trace.PodBound, "p"), podEvent(trace.PodAdmitted, "p")}, false},
		"rejected, not yet in the API":   {[]trace.Event{created, podEvent(trace.PodBound, "p"), podEvent(trace.PodRejected, "p")}, false},
		"Running":                        {[]trace.Event{created, podEvent(trace.PodBound, "p"), podEvent(trace.PodRunning, "p")}, true},
		"Failed":                         {[]trace.Event{created, podEvent(trace.PodBound, "p"), podEvent(trace.PodFailed, "p")}, true},
		"Failed, and its replacement":    {[]trace.Event{created, podEvent(trace.PodFailed, "p"), workloadCreated("q")}, false},
		"Succeeded":                      {[]trace.Event{created, podEvent(trace.PodSucceeded, "p")}, true},
		"unschedulable":                  {[]trace.Event{created, podEvent(trace.PodUnschedulable, "p")}, true},
		"unschedulable, and bound then":  {[]trace.Event{created, podEvent(trace.PodUnschedulable, "p"), podEvent(trace.PodBound, "p")}, false},
		"deleted":                        {[]trace.Event{created, podEvent(trace.PodDeleted, "p")}, true},
		"pinned":                         {[]trace.Event{{Kind: trace.PodCreated, UID: "p", Node: "a", PodInfo: &trace.PodInfo{Workload: "fill", Pinned: true}}}, false},
		"a pod of no workload":           {[]trace.Event{{Kind: trace.PodCreated, UID: "p", PodInfo: &trace.PodInfo{Check: true}}}, true},
		"a mirror, which does not count": {[]trace.Event{mirrorCreated("a", "h", "m")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStatus(nil)
			apply(s, c.events)
			if got := s.placed(); got != c.want {
				t.Errorf("placed: %v", got)
			}
			if got := s.settled(); got != c.want {
				t.Errorf("settled: %v, though there are no nodes to wait for", got)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	s := newStatus(testGate)
	apply(s, []trace.Event{{Kind: trace.Phase, Message: trace.PhaseScaleUp}}, established("a"), []trace.Event{
		nodeEvent(trace.KubeletStarted, "b"), staticPod(trace.StaticPodStarted, "b", "h"), nodeEvent(trace.NodeRegistered, "b", gateTaint),
		workloadCreated("p"), podEvent(trace.PodBound, "p"), podEvent(trace.PodRejected, "p"), podEvent(trace.PodFailed, "p"),
		workloadCreated("q"), podEvent(trace.PodUnschedulable, "q"), workloadCreated("r"), podEvent(trace.PodRunning, "r"),
	})
	phase, state := s.describe()
	want := "1 rejected, 1 running, 1 pending; nodes 1/2 ready, 1 held, 1 unmirrored"
	if phase != trace.PhaseScaleUp || state != want {
		t.Errorf("got %q, %q, want %q", phase, state, want)
	}
}

// TestStandstill: a mirror pod that is refused time and again is why nothing happens.
func TestStandstill(t *testing.T) {
	s := newStatus(nil)
	apply(s, []trace.Event{
		{Kind: trace.Phase, Message: trace.PhaseInitial}, nodeEvent(trace.KubeletStarted, "a"), staticPod(trace.StaticPodStarted, "a", "h"),
		{Kind: trace.MirrorFailed, Node: "a", Pod: "agents/p-a", Message: "namespaces \"agents\" not found"},
	})
	want := `in phase initial with pods 0 rejected, 0 running, 0 pending; nodes 0/1 ready, 0 held, 1 unmirrored; ` +
		`mirror pod agents/p-a was refused: namespaces "agents" not found`
	if got := s.standstill(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// waited runs wait in a bubble and tells how long it took.
func waited(ctx context.Context, s *status, quiet time.Duration, condition func(*status) bool) (time.Duration, error) {
	start := time.Now()
	err := s.wait(ctx, quiet, condition)
	return time.Since(start), err
}

func TestWait(t *testing.T) {
	after := func(d time.Duration, s *status, events ...trace.Event) {
		time.AfterFunc(d, func() { apply(s, events) })
	}
	for name, c := range map[string]struct {
		events func(*status)
		want   time.Duration
	}{
		"holds already, and nothing happens": {func(*status) {}, 4 * time.Second},
		"held for long before":               {func(*status) { time.Sleep(time.Hour) }, 4 * time.Second},
		"comes true late": {func(s *status) {
			s.apply(workloadCreated("p"))
			after(time.Hour, s, podEvent(trace.PodRunning, "p"))
		}, time.Hour + 4*time.Second},
		"an event in the quiet time begins it anew": {func(s *status) {
			after(3*time.Second, s, podEvent(trace.MirrorFailed, ""))
			after(6*time.Second, s, podEvent(trace.MirrorFailed, ""))
		}, 10 * time.Second},
		"not true for a moment": {func(s *status) {
			after(3*time.Second, s, workloadCreated("p"))
			after(20*time.Second, s, podEvent(trace.PodUnschedulable, "p"))
		}, 24 * time.Second},
		"a check that waits is no change": {func(s *status) {
			for i := range 10 {
				after(time.Duration(i)*time.Second, s, trace.Event{Kind: trace.CheckWaiting, Node: "a"})
			}
		}, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStatus(testGate)
				c.events(s)
				if took, err := waited(t.Context(), s, 4*time.Second, (*status).placed); err != nil || took != c.want {
					t.Errorf("took %v (%v), want %v", took, err, c.want)
				}
			})
		})
	}
}

// TestWaitWithoutQuiet: the initial nodes are waited for, but not a moment longer.
func TestWaitWithoutQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStatus(nil)
		time.AfterFunc(time.Second, func() { apply(s, established("a")) })
		if took, err := waited(t.Context(), s, 0, initial(1)); err != nil || took != time.Second {
			t.Errorf("took %v (%v), want 1s", took, err)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errTimeLimit)
		defer cancel()
		took, err := waited(ctx, newStatus(nil), 0, initial(1))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), errTimeLimit) || took != time.Minute {
			t.Errorf("took %v: %v", took, err)
		}
	})
}

// TestStatusIsATap: status follows a trace while others record into it.
func TestStatusIsATap(t *testing.T) {
	w, err := trace.NewWriter(&strings.Builder{}, trace.Header{Start: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	s := newStatus(nil)
	w.Tap(s.apply)
	go func() {
		for _, e := range established("a") {
			w.Record(e)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.wait(ctx, 0, initial(1)); err != nil {
		t.Error(err)
	}
}
