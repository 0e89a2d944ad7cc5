package checker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// What the published script uses, and the check by default.
const (
	// DefaultCondition is the type of the node condition that the published NodeReadinessRule waits for.
	DefaultCondition = "readiness.example.com/StaticPodsMirrored"
	// DefaultPollInterval is the wait between two looks.
	DefaultPollInterval = 2 * time.Second
	// FieldManager owns the condition in server-side apply.
	FieldManager = "static-pod-mirror-check"

	conditionReason  = "MirrorPodsRegistered"
	conditionMessage = "All static pods have mirror pods in the API server"
	// missingReason is the reason of a condition that was taken back.
	missingReason = "MirrorPodsMissing"
)

// Client is the part of the API that the check needs: pods, nodes, and the status of nodes. A clientset's CoreV1() is one.
type Client interface {
	clientcorev1.PodsGetter
	clientcorev1.NodesGetter
}

// Config is what the check of one node needs.
type Config struct {
	// Client reaches the API server with at least the rights of the published ClusterRole. Required.
	Client Client
	// Folder holds the manifests of the node's static pods: os.DirFS(staticPodPath) on a node. It may change while the check runs. Required.
	Folder fs.FS
	// StaticPods names further static pods, as namespace/name: those that the kubelet has from a URL, or from another folder.
	StaticPods []string
	// NodeName is the name of the Node object. Required.
	NodeName string
	// Accept says which pods are taken for mirrors. Default AcceptOwnMirror, for which the client must be allowed to get its node.
	Accept Accept
	// Condition is the type of the node condition to set. Default DefaultCondition.
	Condition string
	// PollInterval is the wait between two looks, and between two attempts to set the condition. Positive; default DefaultPollInterval.
	PollInterval time.Duration
	// Settle is how long all mirror pods must have been there, look by look, before the condition is set. Not negative; default 0.
	Settle time.Duration
	// ConfirmSchedulers names the schedulers that must then be seen to know of the mirror pods: of each, one that has decided about a pod which was created
	// after them. For that the client must be allowed to create, get and delete pods in manifests.WitnessNamespace. Default none.
	ConfirmSchedulers []string
	// Continuous has Run go on once it passed: the condition becomes False when a mirror pod is missing, and True again. For a NodeReadinessRule that is
	// enforced continuously.
	Continuous bool
	// Log gets the script's log lines. Default: none. A write error does not stop the check.
	Log io.Writer

	// OnWaiting, if set, is called after each look that did not pass, with the missing mirror pods and files; empty when the folder could not be read.
	OnWaiting func(missing []string)
	// OnPassed, if set, is called when the condition is set to True.
	OnPassed func()
}

// Run looks every PollInterval until each static pod of the node has its mirror pod, then sets the node condition to True, trying until it
// succeeds, and returns nil, unless it is to go on. It returns early only with an error about cfg, at once, or with the cause of ctx's end.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.complete(); err != nil {
		return fmt.Errorf("start the mirror-pod check: %w", err)
	}
	for {
		if err := cfg.waitForMirrors(ctx); err != nil {
			return err
		}
		if err := cfg.confirm(ctx); err != nil {
			return err
		}
		if err := cfg.setCondition(ctx, corev1.ConditionTrue, conditionReason, conditionMessage); err != nil {
			return err
		}
		if cfg.OnPassed != nil {
			cfg.OnPassed()
		}
		if !cfg.Continuous {
			return nil
		}
		missing, err := cfg.waitForLoss(ctx)
		if err != nil {
			return err
		}
		if err := cfg.setCondition(ctx, corev1.ConditionFalse, missingReason, "Without mirror pod: "+strings.Join(missing, " ")); err != nil {
			return err
		}
	}
}

// complete fills in defaults and reports what is missing or out of range.
func (c *Config) complete() error {
	if c.Condition == "" {
		c.Condition = DefaultCondition
	}
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.Accept == "" {
		c.Accept = AcceptOwnMirror
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	var errs []error
	if c.Client == nil {
		errs = append(errs, errors.New("no client: set Client"))
	}
	if c.Folder == nil {
		errs = append(errs, errors.New("no folder of static pods: set Folder"))
	}
	if c.NodeName == "" {
		errs = append(errs, errors.New("no node name: set NodeName"))
	}
	errs = append(errs, c.problems()...)
	if c.PollInterval < 0 {
		errs = append(errs, fmt.Errorf("poll interval %s is negative: give a positive one", c.PollInterval))
	}
	return errors.Join(errs...)
}

// problems are what is wrong with the fields that say what to look for.
func (c *Config) problems() []error {
	var errs []error
	for _, pod := range c.StaticPods {
		if namespace, name, ok := strings.Cut(pod, "/"); !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			errs = append(errs, fmt.Errorf("static pod %q is not namespace/name: give the names of its manifest", pod))
		}
	}
	if c.Accept != AcceptOwnMirror && c.Accept != AcceptName {
		errs = append(errs, fmt.Errorf("accept %q is neither %s nor %s", c.Accept, AcceptOwnMirror, AcceptName))
	}
	if slices.Contains(c.ConfirmSchedulers, "") {
		errs = append(errs, errors.New("a scheduler without a name cannot confirm: give the schedulerName of pods, such as default-scheduler"))
	}
	if c.Settle < 0 {
		errs = append(errs, fmt.Errorf("settle time %s is negative: give a positive one, or 0", c.Settle))
	}
	return errs
}

// waitForMirrors returns when all looks within Settle have passed, or with the cause of ctx's end.
func (c *Config) waitForMirrors(ctx context.Context) error {
	var since time.Time // all mirror pods have been there; zero while they are not
	for {
		missing, failures := c.look(ctx)
		if ctx.Err() != nil {
			return c.interrupted(ctx, "wait for mirror pods")
		}
		wait := c.PollInterval
		switch {
		case len(missing) > 0 || len(failures) > 0:
			since = time.Time{}
			c.tell(missing, failures)
		case since.IsZero() && c.Settle > 0:
			since = time.Now()
			c.logf("all mirror pods are there; waiting for another %s", c.Settle)
			wait = min(wait, c.Settle)
		case time.Since(since) >= c.Settle:
			return nil
		default:
			wait = min(wait, c.Settle-time.Since(since))
		}
		if !sleep(ctx, wait) {
			return c.interrupted(ctx, "wait for mirror pods")
		}
	}
}

// waitForLoss returns what is missing at the first look that certainly misses something: one that fails leaves the condition as it is.
func (c *Config) waitForLoss(ctx context.Context) ([]string, error) {
	for sleep(ctx, c.PollInterval) {
		missing, failures := c.look(ctx)
		if ctx.Err() != nil {
			break
		}
		if len(missing) == 0 && len(failures) == 0 {
			continue
		}
		c.tell(missing, failures)
		if len(failures) == 0 {
			return missing, nil
		}
	}
	return nil, c.interrupted(ctx, "watch mirror pods")
}

// tell says what a look has missed.
func (c *Config) tell(missing []string, failures []error) {
	for _, failure := range failures {
		c.logf("%v", failure)
	}
	if len(missing) > 0 {
		c.logf("waiting for mirror pods: %s", strings.Join(missing, " "))
	}
	if c.OnWaiting != nil {
		c.OnWaiting(missing)
	}
}

// look looks once.
func (c *Config) look(ctx context.Context) (missing []string, failures []error) {
	l := Look{Folder: c.Folder, StaticPods: c.StaticPods, NodeName: c.NodeName, Accept: c.Accept, Lookup: c.lookup(ctx)}
	if c.Accept == AcceptOwnMirror {
		node, err := c.Client.Nodes().Get(ctx, c.NodeName, metav1.GetOptions{})
		if err != nil {
			return nil, []error{fmt.Errorf("get node %s, to tell its mirror pods from others: %w", c.NodeName, err)}
		}
		l.NodeUID = node.UID
	}
	return l.Evaluate()
}

// lookup asks the API server for single pods, the only right to pods that the check has.
func (c *Config) lookup(ctx context.Context) Lookup {
	return func(namespace, name string) (*corev1.Pod, error) {
		pod, err := c.Client.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return pod, err
	}
}

// setCondition applies the condition until that succeeds. It owns nothing but this one condition, and does not take it from another owner.
func (c *Config) setCondition(ctx context.Context, status corev1.ConditionStatus, reason, message string) error {
	now := metav1.Now()
	node := applycorev1.Node(c.NodeName).WithStatus(applycorev1.NodeStatus().WithConditions(
		applycorev1.NodeCondition().
			WithType(corev1.NodeConditionType(c.Condition)).
			WithStatus(status).
			WithReason(reason).
			WithMessage(message).
			WithLastHeartbeatTime(now).
			WithLastTransitionTime(now),
	))
	for {
		_, err := c.Client.Nodes().ApplyStatus(ctx, node, metav1.ApplyOptions{FieldManager: FieldManager})
		if err == nil {
			c.logf("set %s=%s on %s", c.Condition, status, c.NodeName)
			return nil
		}
		if ctx.Err() == nil {
			c.logf("setting %s=%s on %s failed: %v", c.Condition, status, c.NodeName, err)
		}
		if !sleep(ctx, c.PollInterval) {
			return c.interrupted(ctx, "set "+c.Condition)
		}
	}
}

func (c *Config) interrupted(ctx context.Context, doing string) error {
	return fmt.Errorf("%s on node %s: %w", doing, c.NodeName, context.Cause(ctx))
}

// logf writes a line as the published script does.
func (c *Config) logf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	_, _ = fmt.Fprintf(c.Log, "%s [StaticPodMirrorCheck] %s\n", time.Now().UTC().Format("2006-01-02T15:04:05Z"), line)
}

// sleep waits for d and reports whether ctx outlived it.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
