package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
	"github.com/mirrorgap/mirrorgap/controllers/readiness"
)

const (
	// DefaultNodeConcurrentReconciles is how many nodes are reconciled at a time. A write takes a few milliseconds of waiting for the API
	// server and nodes are independent of each other, so ten shorten the hold of a large scale-up and cost nothing. Upstream's default is 1.
	DefaultNodeConcurrentReconciles = 10
	// DefaultRuleConcurrentReconciles is how many rules are reconciled at a time. Clusters have few of them; as upstream.
	DefaultRuleConcurrentReconciles = 1
	// DefaultStatusInterval is how long changes of nodes are gathered before they are written to a rule's status: a status has up to 0.75 MiB.
	DefaultStatusInterval = time.Second

	noListener        = "0"
	leaderElectionID  = "node-readiness-controller"
	leaderElectionFor = "kube-system"
)

// Options configures Run. The zero value runs one controller without any listener, leader election or log.
type Options struct {
	// MetricsBindAddress is where the metrics of Registry are served over HTTP, such as ":8080". Empty or "0": nowhere.
	MetricsBindAddress string
	// HealthProbeBindAddress is where /healthz and /readyz are served. Empty or "0": nowhere.
	HealthProbeBindAddress string
	// LeaderElection lets one of several controllers act, by the Lease node-readiness-controller in the namespace kube-system.
	LeaderElection bool
	// NodeConcurrentReconciles is how many nodes are reconciled at a time; 0 means DefaultNodeConcurrentReconciles.
	NodeConcurrentReconciles int
	// RuleConcurrentReconciles is how many rules are reconciled at a time; 0 means DefaultRuleConcurrentReconciles.
	RuleConcurrentReconciles int
	// StatusInterval is how long changes of nodes are gathered before they are written to a rule's status; 0 means DefaultStatusInterval.
	StatusInterval time.Duration
	// Registry gets the controller's metrics while Run runs. Nil: one of its own, so that several controllers fit into one process. What
	// MetricsBindAddress serves is controller-runtime's own registry, so a binary that serves metrics passes that one.
	Registry prometheus.Registerer
	// Logger gets the controller's log. The zero value logs nothing.
	Logger logr.Logger
}

func (o *Options) setDefaults() {
	if o.MetricsBindAddress == "" {
		o.MetricsBindAddress = noListener
	}
	if o.NodeConcurrentReconciles == 0 {
		o.NodeConcurrentReconciles = DefaultNodeConcurrentReconciles
	}
	if o.RuleConcurrentReconciles == 0 {
		o.RuleConcurrentReconciles = DefaultRuleConcurrentReconciles
	}
	if o.StatusInterval == 0 {
		o.StatusInterval = DefaultStatusInterval
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Logger.GetSink() == nil {
		o.Logger = logr.New(logf.NullLogSink{})
	}
}

func (o *Options) validate() error {
	if o.NodeConcurrentReconciles < 0 || o.RuleConcurrentReconciles < 0 || o.StatusInterval < 0 {
		return fmt.Errorf("concurrent reconciles and the status interval must not be negative: got %d nodes, %d rules, %v",
			o.NodeConcurrentReconciles, o.RuleConcurrentReconciles, o.StatusInterval)
	}
	return nil
}

// Run runs the controller against the API server of cfg, whose QPS and Burst are its throttle, until ctx ends; then it returns nil once
// everything it started has stopped. It returns early with an error if an address cannot be listened on, if the leadership is lost, or if
// nodes and rules could not be listed for two minutes: is the CustomResourceDefinition installed, has the user of cfg the permissions in
// controllers/manifests?
func Run(ctx context.Context, cfg *rest.Config, opts Options) error {
	opts.setDefaults()
	if err := opts.validate(); err != nil {
		return err
	}
	mgr, err := newManager(cfg, opts)
	if err != nil {
		return err
	}
	metrics := readiness.NewMetrics(version())
	unregister, err := metrics.Register(opts.Registry, mgr.GetCache())
	if err != nil {
		return err
	}
	defer unregister()
	if err := readiness.Setup(mgr, readiness.Options{
		NodeConcurrentReconciles: opts.NodeConcurrentReconciles,
		RuleConcurrentReconciles: opts.RuleConcurrentReconciles,
		StatusInterval:           opts.StatusInterval,
		Metrics:                  metrics,
	}); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the readiness controller: %w", err)
	}
	return nil
}

func newManager(cfg *rest.Config, opts Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	skipNameValidation := true // controllers of the same names may run in one process
	mgr, err := manager.New(cfg, manager.Options{
		Scheme:                  scheme,
		MapperProvider:          staticMapper,
		Cache:                   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Logger:                  opts.Logger,
		Metrics:                 metricsserver.Options{BindAddress: opts.MetricsBindAddress},
		HealthProbeBindAddress:  opts.HealthProbeBindAddress,
		LeaderElection:          opts.LeaderElection,
		LeaderElectionID:        leaderElectionID,
		LeaderElectionNamespace: leaderElectionFor,
		// Safe because the manager waits for its reconcilers before it steps down, and a successor need not wait for the lease to expire.
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: &skipNameValidation, Logger: opts.Logger},
	})
	if err != nil {
		return nil, fmt.Errorf("make the controller manager: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, fmt.Errorf("add health checks: %w", err)
	}
	return mgr, nil
}

// staticMapper knows the two resources that the controller uses, which saves the discovery of all others at every start.
func staticMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind("NodeReadinessRule"), meta.RESTScopeRoot)
	return mapper, nil
}

// version of the running binary, as the Go toolchain recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
