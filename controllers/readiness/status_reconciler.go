package readiness

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// statusReconciler writes the status of a rule. It is the only writer, and a rule is never reconciled twice at a time, so that however many
// nodes change, no two writes of one status compete.
type statusReconciler struct {
	client   client.Client // reads from the cache
	events   events.EventRecorder
	metrics  *Metrics
	ledger   *ledger
	interval time.Duration
}

// Reconcile implements reconcile.Reconciler.
func (r *statusReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	rules, err := listRules(ctx, r.client)
	if err != nil {
		return reconcile.Result{}, err
	}
	rule, ok := rules.Named(req.Name)
	if !ok || !rule.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	nodes, err := listNodes(ctx, r.client)
	if err != nil {
		return reconcile.Result{}, err
	}
	nodes = slices.DeleteFunc(nodes, func(node corev1.Node) bool { return !rule.Selects(&node) })

	err = r.write(ctx, rule, nodes)
	if apierrors.IsConflict(err) {
		// Somebody edited the rule, or the cache does not have the last status yet.
		return reconcile.Result{RequeueAfter: r.interval}, nil
	}
	r.metrics.lastReconciliation.WithLabelValues(rule.Name).SetToCurrentTime()
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

func (r *statusReconciler) write(ctx context.Context, rule ScopedRule, nodes []corev1.Node) error {
	failureOf := func(node *corev1.Node) *v1alpha1.NodeFailure { return r.ledger.failure(rule.UID, node) }
	status := Report(rule, nodes, failureOf, time.Now())
	if equality.Semantic.DeepEqual(status, rule.Status) {
		return nil
	}
	// Only the status differs; the rest is shared with the cache and not written to.
	reported := *rule.NodeReadinessRule
	reported.Status = status
	patch := client.MergeFromWithOptions(rule.NodeReadinessRule, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, reported.DeepCopy(), patch); err != nil {
		return fmt.Errorf("patch status of rule %s: %w", rule.Name, err)
	}
	r.warn(rule)
	return nil
}

// warn says once for every generation of a rule that it cannot work.
func (r *statusReconciler) warn(rule ScopedRule) {
	if rule.Status.ObservedGeneration == rule.Generation {
		return
	}
	switch {
	case rule.Err != nil:
		r.metrics.failures.WithLabelValues(rule.Name, FailureEvaluation).Inc()
		r.events.Eventf(rule.NodeReadinessRule, nil, corev1.EventTypeWarning, FailureEvaluation, "Evaluate", "%v", rule.Err)
	case rule.Blocker != nil:
		r.events.Eventf(rule.NodeReadinessRule, rule.Blocker, corev1.EventTypeWarning, FailureBlocked, "Evaluate", "%s", blockedMessage(rule))
	}
}
