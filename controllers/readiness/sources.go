package readiness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// listRules reads all rules. They are shared with the cache if the reader is one: they are read only.
func listRules(ctx context.Context, reader client.Reader) (RuleSet, error) {
	var list v1alpha1.NodeReadinessRuleList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	return NewRuleSet(list.Items), nil
}

// listNodes reads all nodes. They are shared with the cache if the reader is one: they are read only.
func listNodes(ctx context.Context, reader client.Reader) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return list.Items, nil
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// everyNode queues all nodes: a rule that comes, goes or gets its finalizer can matter to nodes that it does not select, through the rules that
// it blocks. Rules change rarely.
func everyNode(reader client.Reader) handler.TypedEventHandler[*v1alpha1.NodeReadinessRule, reconcile.Request] {
	return onEvent[*v1alpha1.NodeReadinessRule](func(ctx context.Context, q queue) {
		nodes, err := listNodes(ctx, reader)
		if err != nil {
			logf.FromContext(ctx).Error(err, "queue nodes after a change of a rule")
		}
		for i := range nodes {
			q.Add(requestFor(nodes[i].Name))
		}
	})
}

// everyRule queues all rules after a wait; what happens until then adds nothing. A rule can matter to another one by blocking it.
func everyRule[T client.Object](reader client.Reader, after time.Duration) handler.TypedEventHandler[T, reconcile.Request] {
	return onEvent[T](func(ctx context.Context, q queue) {
		rules, err := listRules(ctx, reader)
		if err != nil {
			logf.FromContext(ctx).Error(err, "queue rules for their status")
		}
		for _, rule := range rules {
			q.AddAfter(requestFor(rule.Name), after)
		}
	})
}

// onEvent does the same at every event.
func onEvent[T client.Object](enqueue func(context.Context, queue)) handler.TypedFuncs[T, reconcile.Request] {
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(ctx context.Context, _ event.TypedCreateEvent[T], q queue) { enqueue(ctx, q) },
		UpdateFunc: func(ctx context.Context, _ event.TypedUpdateEvent[T], q queue) { enqueue(ctx, q) },
		DeleteFunc: func(ctx context.Context, _ event.TypedDeleteEvent[T], q queue) { enqueue(ctx, q) },
	}
}

// reportQueue lets the node reconciler ask for the status of a rule, for what no event tells: that a write failed.
type reportQueue struct {
	interval time.Duration
	mu       sync.Mutex
	queue    queue
}

// start is a source.Func.
func (r *reportQueue) start(_ context.Context, q queue) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = q
	return nil
}

// add queues the rule. Before the status controller has started there is nothing to do: it begins with every rule.
func (r *reportQueue) add(rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue != nil {
		r.queue.AddAfter(requestFor(rule), r.interval)
	}
}

// ruleChanged passes the changes of a rule that a decision can depend on. Its status is not among them.
func ruleChanged() predicate.TypedPredicate[*v1alpha1.NodeReadinessRule] {
	return predicate.TypedFuncs[*v1alpha1.NodeReadinessRule]{UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.NodeReadinessRule]) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.UID != after.UID || before.Generation != after.Generation ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || !slices.Equal(before.Finalizers, after.Finalizers)
	}}
}

// nodeChanged passes the changes of a node that a decision can depend on. Heartbeats and images are not among them.
func nodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.UID != after.UID ||
			!maps.Equal(before.Labels, after.Labels) ||
			!maps.Equal(before.Annotations, after.Annotations) ||
			!maps.Equal(taintsOf(before), taintsOf(after)) ||
			!maps.Equal(conditionsOf(before), conditionsOf(after))
	}}
}

func taintsOf(node *corev1.Node) map[corev1.Taint]bool {
	taints := make(map[corev1.Taint]bool, len(node.Spec.Taints))
	for _, t := range node.Spec.Taints {
		taints[corev1.Taint{Key: t.Key, Effect: t.Effect}] = true
	}
	return taints
}

func conditionsOf(node *corev1.Node) map[corev1.NodeConditionType]corev1.ConditionStatus {
	conditions := make(map[corev1.NodeConditionType]corev1.ConditionStatus, len(node.Status.Conditions))
	for i := range node.Status.Conditions {
		conditions[node.Status.Conditions[i].Type] = node.Status.Conditions[i].Status
	}
	return conditions
}
