package readiness

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// ruleReconciler gives a new rule its finalizer, and withdraws a deleted one from the nodes.
type ruleReconciler struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the API server
	inFlight *inFlight
	metrics  *Metrics
}

// Reconcile implements reconcile.Reconciler.
func (r *ruleReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var rule v1alpha1.NodeReadinessRule
	err := r.client.Get(ctx, req.NamespacedName, &rule)
	switch {
	case apierrors.IsNotFound(err):
		r.metrics.forget(req.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("get rule %s from the cache: %w", req.Name, err)
	case rule.DeletionTimestamp.IsZero():
		err = r.setFinalizer(ctx, &rule, controllerutil.AddFinalizer)
	case controllerutil.ContainsFinalizer(&rule, v1alpha1.Finalizer):
		err = r.withdraw(ctx, &rule)
	}
	return reconcile.Result{}, err
}

// withdraw takes the rule's taint and annotation off all nodes and then lets the rule go. Node reconciles that begin from now on find the rule
// deleted in the cache, as this one did; those under way are waited for, and then the nodes are read from the API server, which has what they
// wrote.
func (r *ruleReconciler) withdraw(ctx context.Context, rule *v1alpha1.NodeReadinessRule) error {
	if err := r.inFlight.drain(ctx); err != nil {
		return err
	}
	rules, err := listRules(ctx, r.client)
	if err != nil {
		return err
	}
	nodes, err := listNodes(ctx, r.live)
	if err != nil {
		return err
	}
	own := scope(rule)
	var failed []error
	for i := range nodes {
		if node := &nodes[i]; own.Selects(node) || completed(rule, node) {
			failed = append(failed, r.withdrawFrom(ctx, rule, rules, node))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return r.setFinalizer(ctx, rule, controllerutil.RemoveFinalizer)
}

// withdrawFrom leaves the taint where another rule holds the node with it: between removing and adding it again pods could be scheduled.
func (r *ruleReconciler) withdrawFrom(ctx context.Context, rule *v1alpha1.NodeReadinessRule, rules RuleSet, node *corev1.Node) error {
	err := retry.RetryOnConflict(conflictBackoff, func() error {
		wanted := node.DeepCopy()
		if !Withdraw(rule, wanted, rules.Holds(node, &rule.Spec.Taint)) {
			return nil
		}
		err := r.client.Patch(ctx, wanted, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			*node = corev1.Node{}
			if err := r.live.Get(ctx, client.ObjectKeyFromObject(wanted), node); err != nil {
				return err
			}
		}
		return err
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("withdraw deleted rule %s from node %s: %w", rule.Name, node.Name, err)
	}
	return nil
}

// setFinalizer adds or removes the controller's finalizer, if it is not so already.
func (r *ruleReconciler) setFinalizer(ctx context.Context, rule *v1alpha1.NodeReadinessRule, set func(client.Object, string) bool) error {
	wanted := rule.DeepCopy()
	if !set(wanted, v1alpha1.Finalizer) {
		return nil
	}
	// A list of finalizers is replaced as a whole, so nobody else may have changed it since.
	err := r.client.Patch(ctx, wanted, client.MergeFromWithOptions(rule, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch finalizers of rule %s: %w", rule.Name, err)
	}
	return nil
}
