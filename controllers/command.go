package controllers

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// NewCommand is "readiness-controller", which runs the controller until the command's context ends. Its flags are those of
// kubernetes-sigs/node-readiness-controller, without the ones for a webhook.
func NewCommand() *cobra.Command {
	var (
		kubeconfig string
		qps        float32
		burst      int
		// controller-runtime's metrics server serves this registry.
		opts = Options{Registry: ctrlmetrics.Registry}
	)
	cmd := &cobra.Command{
		Use:   "readiness-controller",
		Short: "Hold nodes with a taint until the conditions of a NodeReadinessRule are met",
		Long: `Run the NodeReadinessRule controller against a cluster.

Rules, flags, events and metrics are compatible with kubernetes-sigs/node-readiness-controller. The CustomResourceDefinition, the permissions and
a Deployment are in controllers/manifests.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := clientConfig(kubeconfig)
			if err != nil {
				return err
			}
			cfg.QPS, cfg.Burst = qps, burst
			opts.Logger = klog.Background()
			logf.SetLogger(opts.Logger) // some of controller-runtime's own messages go to its global logger
			return Run(cmd.Context(), cfg, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "path of a kubeconfig; default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount")
	flags.BoolVar(&opts.LeaderElection, "leader-elect", false, "let one of several controllers act")
	flags.StringVar(&opts.MetricsBindAddress, "metrics-bind-address", noListener, `address to serve metrics on, such as ":8080"; "0" for none`)
	flags.StringVar(&opts.HealthProbeBindAddress, "health-probe-bind-address", noListener, `address to serve /healthz and /readyz on; "0" for none`)
	flags.Float32Var(&qps, "kube-api-qps", -1, "sustained requests per second to the API server; -1 for no limit")
	flags.IntVar(&burst, "kube-api-burst", -1, "requests that may exceed --kube-api-qps for a moment")
	flags.IntVar(&opts.NodeConcurrentReconciles, "node-concurrent-reconciles", DefaultNodeConcurrentReconciles, "nodes reconciled at a time")
	flags.IntVar(&opts.RuleConcurrentReconciles, "rule-concurrent-reconciles", DefaultRuleConcurrentReconciles, "rules reconciled at a time")
	return cmd
}

// clientConfig loads a kubeconfig in kubectl's order of precedence, and the ServiceAccount of a pod if there is none.
func clientConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("load client configuration (name one with --kubeconfig): %w", err)
	}
	return cfg, nil
}
