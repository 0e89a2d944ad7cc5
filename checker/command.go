package checker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// DefaultFolder is where the kubelet of a kubeadm node reads static pods from.
const DefaultFolder = "/etc/kubernetes/manifests"

// ErrBadInput marks errors of the command that another attempt with the same flags and environment would only repeat; programs exit with 2 for it.
var ErrBadInput = errors.New("bad input")

// NewCommand returns the command that runs the check on a real node, as the published DaemonSet's init container. Its flags default to the environment
// variables of the published script (MANIFEST_DIR, CONDITION, NODE_NAME), read when NewCommand is called. It succeeds once the condition is set, and
// fails with an error that wraps ErrBadInput when flags, environment, folder or kubeconfig cannot be used.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "mirror-check",
		Short: "Wait until every static pod of this node has a mirror pod, then set the node condition",
		Long: `Wait until every static pod of this node has a mirror pod in the API server, then set the node condition that a NodeReadinessRule waits for.

For the init container of the static-pod-mirror-check DaemonSet. Needs the rights to get pods and nodes, and to patch nodes/status.`,
		Args:         func(cmd *cobra.Command, args []string) error { return badInput(cobra.NoArgs(cmd, args)) },
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return badInput(err) })
	flags := cmd.Flags()
	flags.StringVar(&o.folder, "manifest-dir", envOr("MANIFEST_DIR", DefaultFolder), "the kubelet's `folder` of static pods ($MANIFEST_DIR)")
	flags.StringVar(&o.condition, "condition", envOr("CONDITION", DefaultCondition), "`type` of the node condition to set ($CONDITION)")
	flags.StringVar(&o.nodeName, "node-name", os.Getenv("NODE_NAME"), "`name` of this node ($NODE_NAME)")
	flags.StringSliceVar(&o.staticPods, "static-pod", nil, "`namespace/name` of a static pod that is not in the folder; may be given more than once")
	flags.StringVar(&o.accept, "accept", string(AcceptOwnMirror), "which `pods` to take for mirrors: own-mirror, or name, as the published script does")
	flags.DurationVar(&o.settle, "settle", 0, "`time` for which all mirror pods must have been there")
	flags.StringSliceVar(&o.confirmSchedulers, "confirm-scheduler", nil, "`name` of a scheduler that must be seen to know of the mirror pods; may be given more than once")
	flags.BoolVar(&o.continuous, "continuous", false, "go on after passing, and take the condition back while a mirror pod is missing")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file`; in a pod leave it out to use the ServiceAccount")
	flags.DurationVar(&o.pollInterval, "poll-interval", DefaultPollInterval, "`time` between two looks")
	return cmd
}

// options are the command's flags.
type options struct {
	folder, nodeName, condition, kubeconfig string
	pollInterval, settle                    time.Duration
	staticPods, confirmSchedulers           []string
	accept                                  string
	continuous                              bool
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	if err := o.validate(); err != nil {
		return badInput(err)
	}
	client, err := newClient(o.kubeconfig)
	if err != nil {
		return badInput(err)
	}
	cfg := o.config(out)
	cfg.Client = client
	return Run(ctx, cfg)
}

func (o *options) config(out io.Writer) Config {
	return Config{
		Folder:            os.DirFS(o.folder),
		StaticPods:        o.staticPods,
		NodeName:          o.nodeName,
		Accept:            Accept(o.accept),
		Condition:         o.condition,
		PollInterval:      o.pollInterval,
		Settle:            o.settle,
		Continuous:        o.continuous,
		ConfirmSchedulers: o.confirmSchedulers,
		Log:               out,
	}
}

// validate reports everything that is wrong at once. A folder that is not there is an error, although a kubelet without one has no static pods: far more
// often it is the wrong folder, and the node would pass unchecked.
func (o *options) validate() error {
	var errs []error
	if o.nodeName == "" {
		errs = append(errs, errors.New("no node name: set NODE_NAME from spec.nodeName, or --node-name"))
	}
	if o.pollInterval <= 0 {
		errs = append(errs, fmt.Errorf("poll interval %s: give a positive one", o.pollInterval))
	}
	cfg := o.config(io.Discard)
	errs = append(errs, cfg.problems()...)
	info, err := os.Stat(o.folder)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("look at the folder of static pods, set by --manifest-dir or MANIFEST_DIR: %w", err))
	case !info.IsDir():
		errs = append(errs, fmt.Errorf("%s is not a folder: give the kubelet's staticPodPath to --manifest-dir or MANIFEST_DIR", o.folder))
	}
	return errors.Join(errs...)
}

// newClient uses the kubeconfig file, or the ServiceAccount of the pod if none is given.
func newClient(kubeconfig string) (Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the API server; outside a pod give --kubeconfig: %w", err)
	}
	config.UserAgent = FieldManager
	client, err := clientcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}

func badInput(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrBadInput, err)
}

func envOr(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}
