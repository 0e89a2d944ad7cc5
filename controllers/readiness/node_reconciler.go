package readiness

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// nodeReconciler brings a node to what the rules want. It is the only writer of taints and completion annotations, but for the withdrawal of
// deleted rules.
type nodeReconciler struct {
	client client.Client // reads from the cache
	live   client.Reader // reads from the API server
	events events.EventRecorder

	metrics  *Metrics
	ledger   *ledger
	inFlight *inFlight
	// report asks for a new status of a rule.
	report func(rule string)
	// started is when this process began; what a status says from before then, another process saw.
	started time.Time
}

// conflictBackoff is the wait between decisions about a node that others are writing at the same time. It is short, because the time between
// the condition and the release is time in which the node is not used.
var conflictBackoff = wait.Backoff{Steps: 6, Duration: time.Millisecond, Factor: 3, Jitter: 0.5}

// Reconcile implements reconcile.Reconciler.
func (r *nodeReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	done, err := r.inFlight.enter(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	defer done()

	var node corev1.Node
	if err := r.client.Get(ctx, req.NamespacedName, &node); apierrors.IsNotFound(err) {
		r.ledger.forget(req.Name)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("get node %s from the cache: %w", req.Name, err)
	}
	// A conflict means that the node is not what was decided about. Decide again, on what the API server has now: waiting for the cache would
	// keep the node held for longer.
	err = retry.RetryOnConflict(conflictBackoff, func() error {
		err := r.govern(ctx, &node)
		if apierrors.IsConflict(err) {
			node = corev1.Node{}
			if err := r.live.Get(ctx, req.NamespacedName, &node); err != nil {
				return fmt.Errorf("get node %s after a conflict: %w", req.Name, err)
			}
		}
		return err
	})
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// verdict is the decision of one of the rules that govern a node.
type verdict struct {
	rule ScopedRule
	Decision
}

// govern decides for every rule that acts on the node, and writes what they want in one patch.
func (r *nodeReconciler) govern(ctx context.Context, node *corev1.Node) error {
	start := time.Now()
	verdicts, err := r.decide(ctx, node)
	if err != nil {
		return err
	}
	err = r.write(ctx, node, verdicts)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return err
	}
	r.account(node, verdicts, err, time.Since(start))
	return err
}

func (r *nodeReconciler) decide(ctx context.Context, node *corev1.Node) ([]verdict, error) {
	rules, err := listRules(ctx, r.client)
	if err != nil {
		return nil, err
	}
	var verdicts []verdict
	for _, rule := range rules {
		if rule.Acts() && rule.Selects(node) {
			seen := r.ledger.seen(rule.UID, node) || evaluatedBefore(rule.NodeReadinessRule, node, r.started)
			verdicts = append(verdicts, verdict{rule, Decide(rule.NodeReadinessRule, node, seen)})
		}
	}
	return verdicts, nil
}

// evaluatedBefore says whether the rule's status has an evaluation of this node from before the given time, to the second, as the API has it.
func evaluatedBefore(rule *v1alpha1.NodeReadinessRule, node *corev1.Node, t time.Time) bool {
	t = t.Truncate(time.Second)
	return slices.ContainsFunc(rule.Status.NodeEvaluations, func(e v1alpha1.NodeEvaluation) bool {
		return e.NodeName == node.Name && e.LastEvaluationTime.Time.Before(t) && !e.LastEvaluationTime.Before(&node.CreationTimestamp)
	})
}

// write patches the node to what the verdicts want. The patch names the resource version that they were made on, so it fails with a conflict
// if anybody has changed the node since, and can neither undo another writer's taint nor act on a condition that is no longer there.
func (r *nodeReconciler) write(ctx context.Context, node *corev1.Node, verdicts []verdict) error {
	wanted := node.DeepCopy()
	changes := false
	for _, v := range verdicts {
		v.Apply(v.rule.NodeReadinessRule, wanted)
		changes = changes || v.Action != ActionNone && v.Action != ActionAdoptTaint
	}
	if !changes {
		return nil
	}
	if err := r.client.Patch(ctx, wanted, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch taints of node %s: %w", node.Name, err)
	}
	return nil
}

// account tells of what was done, or of the failure to do it: events, metrics, and the ledger for the rules' status.
func (r *nodeReconciler) account(node *corev1.Node, verdicts []verdict, err error, took time.Duration) {
	seen := make(map[types.UID]*v1alpha1.NodeFailure, len(verdicts))
	for _, v := range verdicts {
		r.metrics.evaluated(v.rule.Name, v.Decision)
		r.metrics.evaluationDuration.WithLabelValues(v.rule.Name).Observe(took.Seconds())
		seen[v.rule.UID] = nil
		if reason := failureReason(v.Action); err != nil && reason != "" {
			r.metrics.failures.WithLabelValues(v.rule.Name, reason).Inc()
			seen[v.rule.UID] = &v1alpha1.NodeFailure{NodeName: node.Name, Reason: reason, Message: err.Error()}
		} else {
			r.tell(node, v)
		}
	}
	seenBefore := r.ledger.record(node, seen)
	for _, v := range verdicts {
		if seen[v.rule.UID] != nil || seenBefore[v.rule.UID] != nil {
			r.report(v.rule.Name)
		}
	}
}

// failureReason is what the failure to do an action is called; empty for an action that writes nothing.
func failureReason(action Action) string {
	switch action {
	case ActionAddTaint:
		return FailureAddTaint
	case ActionRemoveTaint:
		return FailureRemoveTaint
	case ActionComplete:
		return FailureEvaluation
	}
	return ""
}

// tell records an action that was done.
func (r *nodeReconciler) tell(node *corev1.Node, v verdict) {
	rule, taint := v.rule.Name, &v.rule.Spec.Taint
	event := func(reason, action, verb string) {
		r.events.Eventf(node, v.rule.NodeReadinessRule, corev1.EventTypeNormal, reason, action, "Taint %s:%s %s rule %s", taint.Key, taint.Effect, verb, rule)
	}
	switch v.Action {
	case ActionAddTaint:
		r.metrics.operated(rule, operationAdd, v.Decision)
		event("TaintAdded", "AddTaint", "added by")
	case ActionRemoveTaint:
		r.metrics.operated(rule, operationRemove, v.Decision)
		event("TaintRemoved", "RemoveTaint", "removed by")
	case ActionAdoptTaint:
		event("TaintAdopted", "AdoptTaint", "is now managed by")
	}
	if bootstrapOnly(v.rule.NodeReadinessRule) && (v.Action == ActionRemoveTaint || v.Action == ActionComplete) {
		r.metrics.completed(rule, node.CreationTimestamp.Time)
	}
}
