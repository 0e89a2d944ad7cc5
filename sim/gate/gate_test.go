package gate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// published is the gate with its defaults: the published rule and check.
func published() *sim.Gate {
	var c sim.Cluster
	sim.SetDefaults(&c)
	return &c.Gate
}

func newGate(t *testing.T, spec *sim.Gate, leaveOut ...sim.GatePart) *Gate {
	t.Helper()
	g, err := New(spec, leaveOut)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPublishedGate(t *testing.T) {
	g := newGate(t, published())
	// What --register-with-taints has in the published guide.
	want := &corev1.Taint{Key: "readiness.k8s.io/StaticPodsMirrored", Value: "pending", Effect: corev1.TaintEffectNoSchedule}
	if diff := cmp.Diff(want, g.Taint()); diff != "" {
		t.Errorf("taint (-want +got)\n%s", diff)
	}
	header := &trace.Gate{
		TaintKey: "readiness.k8s.io/StaticPodsMirrored", TaintEffect: "NoSchedule", Condition: "readiness.example.com/StaticPodsMirrored",
	}
	if diff := cmp.Diff(header, g.Trace()); diff != "" {
		t.Errorf("header of the trace (-want +got)\n%s", diff)
	}
	g.Taint().Value = "changed by a caller"
	if g.Taint().Value != "pending" {
		t.Error("callers share one taint")
	}
}

// TestGateFollowsItsRule: taint and condition are the rule's, the value of the taint is the experiment's.
func TestGateFollowsItsRule(t *testing.T) {
	spec := published()
	spec.TaintValue = "held"
	spec.Rule = []byte(`{"apiVersion": "readiness.node.x-k8s.io/v1alpha1", "kind": "NodeReadinessRule", "metadata": {"name": "r"}, "spec": {
		"conditions": [{"type": "example.com/Cni", "requiredStatus": "True"}], "enforcementMode": "continuous", "nodeSelector": {},
		"taint": {"key": "readiness.k8s.io/cni", "effect": "NoExecute"}}}`)
	g := newGate(t, spec)
	if diff := cmp.Diff(&corev1.Taint{Key: "readiness.k8s.io/cni", Value: "held", Effect: corev1.TaintEffectNoExecute}, g.Taint()); diff != "" {
		t.Errorf("taint (-want +got)\n%s", diff)
	}
	if condition := g.Trace().Condition; condition != "example.com/Cni" {
		t.Errorf("condition is %s", condition)
	}
}

func TestBrokenRule(t *testing.T) {
	for rule, want := range map[string]string{
		`{"kind": "NodeReadinessRule"}`: "apiVersion",
		`{"apiVersion": "readiness.node.x-k8s.io/v1alpha1", "kind": "NodeReadinessRule", "spec": {"tain": {}}}`: `unknown field "spec.tain"`,
	} {
		spec := published()
		spec.Rule = []byte(rule)
		if _, err := New(spec, nil); err == nil || !strings.Contains(err.Error(), "rule") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error about the rule that says %q", rule, err, want)
		}
	}
}

// access hands out a configuration that says for whom it is, or refuses.
type access struct{ err error }

func (a access) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	return &rest.Config{Username: user, Impersonate: rest.ImpersonationConfig{Groups: groups}, QPS: -1}, a.err
}

// TestLeaveOut: every part can be left out by itself. What concerns the API (check and rule) is tested on a control plane, in experiments/runner.
func TestLeaveOut(t *testing.T) {
	for _, left := range [][]sim.GatePart{nil, {sim.GateTaint}, {sim.GateController}, {sim.GateTaint, sim.GateController}, {sim.GateCheck, sim.GateRule}} {
		g := newGate(t, published(), left...)
		if got, want := g.Taint() != nil, !slices.Contains(left, sim.GateTaint); got != want {
			t.Errorf("without %v: has a taint: %v", left, got)
		}
		controller, err := g.Controller(access{}, &sim.ReadinessController{Client: sim.Client{QPS: 5, Burst: 6}}, nil, trace.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := controller != nil, !slices.Contains(left, sim.GateController); got != want {
			t.Errorf("without %v: has a controller: %v", left, got)
		}
		if g.Trace() == nil {
			t.Errorf("without %v the trace does not know what holds nodes", left)
		}
	}
}

// TestControllerIdentity: the controller is its ServiceAccount, with the throttle of the experiment.
func TestControllerIdentity(t *testing.T) {
	c, err := newGate(t, published()).Controller(access{}, &sim.ReadinessController{Client: sim.Client{QPS: 5, Burst: 6}}, nil, trace.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if user := c.config.Username; !strings.HasPrefix(user, "system:serviceaccount:") {
		t.Errorf("the controller is %s, not a ServiceAccount", user)
	}
	if !slices.Contains(c.config.Impersonate.Groups, "system:serviceaccounts") {
		t.Errorf("its groups are %v", c.config.Impersonate.Groups)
	}
	if c.config.QPS != 5 || c.config.Burst != 6 {
		t.Errorf("its throttle is %v, %v", c.config.QPS, c.config.Burst)
	}
	no := errors.New("no certificate")
	if _, err := newGate(t, published()).Controller(access{no}, &sim.ReadinessController{}, nil, trace.Discard); !errors.Is(err, no) {
		t.Errorf("got %v, want %v", err, no)
	}
}
