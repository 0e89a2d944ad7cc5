package readiness

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// Options configures the controller. All fields are required.
type Options struct {
	// NodeConcurrentReconciles is the number of nodes that are reconciled at a time.
	NodeConcurrentReconciles int
	// RuleConcurrentReconciles is the number of rules that are reconciled at a time.
	RuleConcurrentReconciles int
	// StatusInterval is how long changes of nodes are gathered before they are written to a rule's status.
	StatusInterval time.Duration
	// Metrics is where the controller measures. The caller registers it.
	Metrics *Metrics
}

// Setup adds the controller to a manager whose scheme has nodes and rules.
func Setup(mgr manager.Manager, opts Options) error {
	var (
		seen     = newLedger()
		flying   = newInFlight(opts.NodeConcurrentReconciles)
		recorder = mgr.GetEventRecorder("node-readiness-controller")
		reports  = &reportQueue{interval: opts.StatusInterval}
	)
	nodes := &nodeReconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), events: recorder,
		metrics: opts.Metrics, ledger: seen, inFlight: flying, report: reports.add, started: time.Now(),
	}
	rules := &ruleReconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), inFlight: flying, metrics: opts.Metrics}
	status := &statusReconciler{client: mgr.GetClient(), events: recorder, metrics: opts.Metrics, ledger: seen, interval: opts.StatusInterval}

	// Each controller waits for the caches of all its sources before its first reconcile, so no node is ever decided about with rules missing.
	return errors.Join(
		add(mgr, "node", opts.NodeConcurrentReconciles, nodes,
			source.Kind(mgr.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{}, nodeChanged()),
			source.Kind(mgr.GetCache(), &v1alpha1.NodeReadinessRule{}, everyNode(mgr.GetClient()), ruleChanged())),
		add(mgr, "rule", opts.RuleConcurrentReconciles, rules,
			source.Kind(mgr.GetCache(), &v1alpha1.NodeReadinessRule{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.NodeReadinessRule]{},
				ruleChanged())),
		add(mgr, "rule-status", opts.RuleConcurrentReconciles, status,
			source.Kind(mgr.GetCache(), &v1alpha1.NodeReadinessRule{}, everyRule[*v1alpha1.NodeReadinessRule](mgr.GetClient(), 0), ruleChanged()),
			source.Kind(mgr.GetCache(), &corev1.Node{}, everyRule[*corev1.Node](mgr.GetClient(), opts.StatusInterval), nodeChanged()),
			source.Func(reports.start)),
	)
}

// add adds a reconciler with its sources to the manager.
func add(mgr manager.Manager, name string, concurrent int, r reconcile.Reconciler, sources ...source.Source) error {
	c, err := controller.New(name, mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: concurrent})
	if err != nil {
		return fmt.Errorf("add the %s controller: %w", name, err)
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watch for the %s controller: %w", name, err)
		}
	}
	return nil
}
