package readiness

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

func testScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// nodeBench is a node reconciler on a fake API server.
type nodeBench struct {
	nodeReconciler
	events   *events.FakeRecorder
	reported []string
}

func newNodeBench(t testing.TB, funcs interceptor.Funcs, objects ...client.Object) *nodeBench {
	t.Helper()
	api := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	recorder := events.NewFakeRecorder(100)
	bench := &nodeBench{events: recorder}
	bench.nodeReconciler = nodeReconciler{
		client: api, live: api, events: recorder, metrics: NewMetrics("test"), ledger: newLedger(), inFlight: newInFlight(1), started: time.Now(),
		report: func(rule string) { bench.reported = append(bench.reported, rule) },
	}
	return bench
}

func (b *nodeBench) node(t testing.TB, name string) *corev1.Node {
	t.Helper()
	var node corev1.Node
	if err := b.client.Get(context.Background(), client.ObjectKey{Name: name}, &node); err != nil {
		t.Fatal(err)
	}
	return &node
}

// told drains the events' reasons.
func (b *nodeBench) told() []string {
	var reasons []string
	for {
		select {
		case e := <-b.events.Events:
			reasons = append(reasons, strings.Fields(e)[1])
		default:
			return reasons
		}
	}
}

// Without rules to decide by, nothing may be decided: not "no rules, so no taint" (kubernetes-sigs/node-readiness-controller#253).
func TestNodeReconcilerDoesNotActWithoutRules(t *testing.T) {
	bench := newNodeBench(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("cache not synced")
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			t.Error("patched a node without knowing the rules")
			return nil
		},
	}, nodeNamed("n", tainted(held), reporting(mirrored, "True")))
	if _, err := bench.Reconcile(context.Background(), requestFor("n")); err == nil {
		t.Error("want an error, so that the node is tried again")
	}
}

// On a conflict the decision is made again on the node as it is now.
func TestNodeReconcilerDecidesAgainOnConflict(t *testing.T) {
	conflicts := 0
	bench := newNodeBench(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if conflicts == 0 { // another writer is faster, and the condition is lost meanwhile
				conflicts++
				var node corev1.Node
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), &node); err != nil {
					return err
				}
				node.Spec.Taints = append(node.Spec.Taints, notReady)
				if err := c.Update(ctx, &node); err != nil {
					return err
				}
				node.Status.Conditions[0].Status = corev1.ConditionFalse
				if err := c.Status().Update(ctx, &node); err != nil {
					return err
				}
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}, ruleNamed("r"), nodeNamed("n", tainted(held), reporting(mirrored, "True")))
	if _, err := bench.Reconcile(context.Background(), requestFor("n")); err != nil {
		t.Fatal(err)
	}
	if conflicts != 1 {
		t.Fatal("the test made no conflict")
	}
	if got := bench.node(t, "n").Spec.Taints; !slices.Equal(got, []corev1.Taint{held, notReady}) {
		t.Errorf("taints: got %v, want the rule's and the other writer's", got)
	}
	if got := testutil.CollectAndCount(bench.metrics.failures); got != 0 {
		t.Error("a resolved conflict was counted as a failure")
	}
}

func TestNodeReconcilerReportsAFailureAndItsEnd(t *testing.T) {
	broken := true
	bench := newNodeBench(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if broken {
				return apierrors.NewForbidden(corev1.Resource("nodes"), obj.GetName(), errors.New("no RBAC"))
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}, ruleNamed("r"), nodeNamed("n", tainted(held), reporting(mirrored, "True")))
	ctx := context.Background()

	if _, err := bench.Reconcile(ctx, requestFor("n")); err == nil {
		t.Fatal("want an error, so that the node is tried again")
	}
	node, rule := bench.node(t, "n"), ruleNamed("r")
	if got := bench.ledger.failure(rule.UID, node); got == nil || got.Reason != FailureRemoveTaint || !strings.Contains(got.Message, "no RBAC") {
		t.Errorf("failure: got %+v", got)
	}
	if got := testutil.ToFloat64(bench.metrics.failures.WithLabelValues("r", FailureRemoveTaint)); got != 1 {
		t.Errorf("node_readiness_failures_total: got %v, want 1", got)
	}
	if told := bench.told(); len(told) > 0 {
		t.Errorf("told of %v, which did not happen", told)
	}

	broken = false
	if _, err := bench.Reconcile(ctx, requestFor("n")); err != nil {
		t.Fatal(err)
	}
	if got := bench.ledger.failure(rule.UID, node); got != nil {
		t.Errorf("the failure outlived its cause: %+v", got)
	}
	if !slices.Equal(bench.reported, []string{"r", "r"}) {
		t.Errorf("asked for the status of %v, want r at the failure and at its end", bench.reported)
	}
	if told := bench.told(); !slices.Equal(told, []string{"TaintRemoved"}) {
		t.Errorf("told of %v, want TaintRemoved", told)
	}
}

// One write serves all rules of a node, and each rule's action is told of.
func TestNodeReconcilerWritesOnceForAllRules(t *testing.T) {
	network := ruleNamed("network", continuous, conditions("", v1alpha1.ConditionRequirement{Type: other, RequiredStatus: "True"}),
		func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Key = "readiness.k8s.io/Network" })
	patches := 0
	bench := newNodeBench(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			patches++
			return c.Patch(ctx, obj, patch, opts...)
		},
	}, ruleNamed("r"), network, nodeNamed("n", tainted(held), reporting(mirrored, "True")))
	if _, err := bench.Reconcile(context.Background(), requestFor("n")); err != nil {
		t.Fatal(err)
	}
	if got := bench.node(t, "n").Spec.Taints; patches != 1 || len(got) != 1 || got[0].Key != network.Spec.Taint.Key {
		t.Errorf("after %d patches the taints are %v, want after one only that of network", patches, got)
	}
	told := bench.told()
	slices.Sort(told)
	if !slices.Equal(told, []string{"TaintAdded", "TaintRemoved"}) {
		t.Errorf("told of %v", told)
	}
}

// Adoption is news once: not at every reconcile, not again after a restart, but again for a new machine of the same name.
func TestAdoptionIsToldOnce(t *testing.T) {
	ctx := context.Background()
	rule := ruleNamed("r")
	bench := newNodeBench(t, interceptor.Funcs{}, rule, nodeNamed("n", tainted(held)))
	reconcileTwice := func() []string {
		t.Helper()
		for range 2 {
			if _, err := bench.Reconcile(ctx, requestFor("n")); err != nil {
				t.Fatal(err)
			}
		}
		return bench.told()
	}
	if told := reconcileTwice(); !slices.Equal(told, []string{"TaintAdopted"}) {
		t.Errorf("at first: told of %v", told)
	}

	// The status can be written before the node is reconciled, with the second in which the process started.
	rule.Status = report(t, rule, time.Now(), nodeNamed("n", tainted(held)))
	bench = newNodeBench(t, interceptor.Funcs{}, rule, nodeNamed("n", tainted(held)))
	bench.started = rule.Status.NodeEvaluations[0].LastEvaluationTime.Add(time.Second - 1)
	if told := reconcileTwice(); !slices.Equal(told, []string{"TaintAdopted"}) {
		t.Errorf("with a status of this process: told of %v", told)
	}

	node := nodeNamed("n", tainted(held))
	node.CreationTimestamp.Time = time.Now().Add(-time.Minute)
	bench = newNodeBench(t, interceptor.Funcs{}, rule, node)
	bench.started = time.Now().Add(time.Second)
	if told := reconcileTwice(); len(told) > 0 {
		t.Errorf("after a restart: told of %v", told)
	}

	again := nodeNamed("n", tainted(held))
	again.CreationTimestamp.Time = time.Now().Add(time.Minute)
	bench = newNodeBench(t, interceptor.Funcs{}, rule, again)
	bench.started = time.Now().Add(2 * time.Minute)
	if told := reconcileTwice(); !slices.Equal(told, []string{"TaintAdopted"}) {
		t.Errorf("a new machine of the same name: told of %v", told)
	}
}

func TestNodeChanged(t *testing.T) {
	base := func() *corev1.Node {
		return nodeNamed("n", tainted(held), reporting("Ready", "True"), annotated("a", "1"))
	}
	for _, test := range []struct {
		name   string
		change func(*corev1.Node)
		want   bool
	}{
		{"heartbeat", func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime.Time = noon }, false},
		{"images", func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}} }, false},
		{"condition", func(n *corev1.Node) { n.Status.Conditions[0].Status = "False" }, true},
		{"new condition", reporting(mirrored, "True"), true},
		{"taint added", tainted(notReady), true},
		{"taint removed", func(n *corev1.Node) { n.Spec.Taints = nil }, true},
		{"label", func(n *corev1.Node) { n.Labels["pool"] = "x" }, true},
		{"annotation", annotated("a", "2"), true},
	} {
		after := base()
		test.change(after)
		if got := nodeChanged().Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: base(), ObjectNew: after}); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
}

// The withdrawal of a rule waits for the node reconciles under way, and those for the withdrawal to have begun.
func TestInFlightDrain(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	flying := newInFlight(2)
	done, err := flying.enter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	drained := make(chan error)
	go func() { drained <- flying.drain(ctx) }()
	select {
	case <-drained:
		t.Fatal("drained while a reconcile was under way")
	case <-time.After(20 * time.Millisecond):
	}
	done()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := flying.enter(context.Background()); err != nil {
		t.Errorf("a reconcile after the drain: %v", err)
	}
	if err := flying.drain(ctx); err == nil {
		t.Error("drained with a reconcile under way and an ended context")
	}
}

func TestMetrics(t *testing.T) {
	ctx := context.Background()
	bench := newNodeBench(t, interceptor.Funcs{},
		ruleNamed("r"), ruleNamed("c", continuous, func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint = noExecute }),
		nodeNamed("held", tainted(held, noExecute)), nodeNamed("due", tainted(held, noExecute), reporting(mirrored, "True")))
	registry := prometheus.NewRegistry()
	unregister, err := bench.metrics.Register(registry, bench.client)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"held", "due"} {
		if _, err := bench.Reconcile(ctx, requestFor(name)); err != nil {
			t.Fatal(err)
		}
	}
	bench.metrics.lastReconciliation.WithLabelValues("r").Set(42)
	const want = `
# HELP node_readiness_bootstrap_completed_total Nodes marked as completed by a bootstrap-only rule.
# TYPE node_readiness_bootstrap_completed_total counter
node_readiness_bootstrap_completed_total{rule="r"} 1
# HELP node_readiness_build_info Always 1.
# TYPE node_readiness_build_info gauge
node_readiness_build_info{version="test"} 1
# HELP node_readiness_condition_failures_total Evaluations in which a condition did not have the required status. A node that is held adds one whenever it is evaluated.
# TYPE node_readiness_condition_failures_total counter
node_readiness_condition_failures_total{condition="readiness.example.com/StaticPodsMirrored",rule="c"} 1
node_readiness_condition_failures_total{condition="readiness.example.com/StaticPodsMirrored",rule="r"} 1
# HELP node_readiness_nodes_by_state Nodes that a rule selects: ready if its conditions are satisfied or were once (bootstrap-only), else bootstrapping (bootstrap-only) or not_ready.
# TYPE node_readiness_nodes_by_state gauge
node_readiness_nodes_by_state{rule="c",state="bootstrapping"} 0
node_readiness_nodes_by_state{rule="c",state="not_ready"} 1
node_readiness_nodes_by_state{rule="c",state="ready"} 1
node_readiness_nodes_by_state{rule="r",state="bootstrapping"} 1
node_readiness_nodes_by_state{rule="r",state="not_ready"} 0
node_readiness_nodes_by_state{rule="r",state="ready"} 1
# HELP node_readiness_rule_last_reconciliation_timestamp_seconds Unix time of the last report on the rule.
# TYPE node_readiness_rule_last_reconciliation_timestamp_seconds gauge
node_readiness_rule_last_reconciliation_timestamp_seconds{rule="r"} 42
# HELP node_readiness_rule_nodes Nodes that a rule selects, by whether they carry its taint (held) or not (released).
# TYPE node_readiness_rule_nodes gauge
node_readiness_rule_nodes{rule="c",state="held"} 1
node_readiness_rule_nodes{rule="c",state="released"} 1
node_readiness_rule_nodes{rule="r",state="held"} 1
node_readiness_rule_nodes{rule="r",state="released"} 1
# HELP node_readiness_rules_total Rules in the cluster.
# TYPE node_readiness_rules_total gauge
node_readiness_rules_total 2
# HELP node_readiness_taint_operations_total Taints added to and removed from nodes.
# TYPE node_readiness_taint_operations_total counter
node_readiness_taint_operations_total{operation="remove",rule="c"} 1
node_readiness_taint_operations_total{operation="remove",rule="r"} 1
`
	names := []string{
		"node_readiness_bootstrap_completed_total", "node_readiness_build_info", "node_readiness_condition_failures_total",
		"node_readiness_nodes_by_state", "node_readiness_rule_last_reconciliation_timestamp_seconds", "node_readiness_rule_nodes",
		"node_readiness_rules_total", "node_readiness_taint_operations_total", "node_readiness_failures_total",
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(bench.metrics.evaluationDuration, "node_readiness_evaluation_duration_seconds"); n != 2 {
		t.Errorf("node_readiness_evaluation_duration_seconds has %d series, want one for each rule", n)
	}
	if n := testutil.CollectAndCount(bench.metrics.bootstrapDuration, "node_readiness_bootstrap_duration_seconds"); n != 1 {
		t.Errorf("node_readiness_bootstrap_duration_seconds has %d series, want one", n)
	}

	bench.metrics.forget("r")
	for _, vec := range []prometheus.Collector{bench.metrics.taintOperations, bench.metrics.conditionFailures, bench.metrics.evaluationDuration} {
		if n := testutil.CollectAndCount(vec); n != 1 {
			t.Errorf("after rule r is forgotten, %d series are left, want that of c", n)
		}
	}

	// A second controller in the process: with the same registry it is an error and no panic, and fine once the first has ended.
	second := NewMetrics("test")
	if _, err := second.Register(registry, bench.client); err == nil {
		t.Error("registered twice")
	}
	unregister()
	if _, err := second.Register(registry, bench.client); err != nil {
		t.Errorf("register after the first controller has ended: %v", err)
	}
}
