package checker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
)

// Client is the part of the API that the check needs: to get pods and to patch the status of nodes. A clientset's CoreV1() is one.
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
	// NodeName is the name of the Node object. Required.
	NodeName string
	// Condition is the type of the node condition to set. Default DefaultCondition.
	Condition string
	// PollInterval is the wait between two looks, and between two attempts to set the condition. Positive; default DefaultPollInterval.
	PollInterval time.Duration
	// Log gets the script's log lines. Default: none. A write error does not stop the check.
	Log io.Writer

	// OnWaiting, if set, is called after each look that did not pass, with the missing mirror pods and files; empty when the folder could not be read.
	OnWaiting func(missing []string)
	// OnPassed, if set, is called once the condition is set.
	OnPassed func()
}

// Run looks every PollInterval until each static pod of the node has its mirror pod, then sets the node condition to True, trying until it
// succeeds, and returns nil. It returns early only with an error about cfg, at once, or with the cause of ctx's end.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.complete(); err != nil {
		return fmt.Errorf("start the mirror-pod check: %w", err)
	}
	if err := cfg.waitForMirrors(ctx); err != nil {
		return err
	}
	if err := cfg.setCondition(ctx); err != nil {
		return err
	}
	if cfg.OnPassed != nil {
		cfg.OnPassed()
	}
	return nil
}

// complete fills in defaults and reports what is missing or out of range.
func (c *Config) complete() error {
	if c.Condition == "" {
		c.Condition = DefaultCondition
	}
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
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
	if c.PollInterval < 0 {
		errs = append(errs, fmt.Errorf("poll interval %s is negative: give a positive one", c.PollInterval))
	}
	return errors.Join(errs...)
}

// waitForMirrors returns when a look has passed, or with the cause of ctx's end.
func (c *Config) waitForMirrors(ctx context.Context) error {
	for {
		missing, failures := Evaluate(c.Folder, c.NodeName, c.lookup(ctx))
		if ctx.Err() != nil {
			return c.interrupted(ctx, "wait for mirror pods")
		}
		if len(missing) == 0 && len(failures) == 0 {
			return nil
		}
		for _, failure := range failures {
			c.logf("%v", failure)
		}
		if len(missing) > 0 {
			c.logf("waiting for mirror pods: %s", strings.Join(missing, " "))
		}
		if c.OnWaiting != nil {
			c.OnWaiting(missing)
		}
		if !sleep(ctx, c.PollInterval) {
			return c.interrupted(ctx, "wait for mirror pods")
		}
	}
}

// lookup asks the API server for single pods, the only right that the check has.
func (c *Config) lookup(ctx context.Context) Lookup {
	return func(namespace, name string) (bool, error) {
		_, err := c.Client.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}
}

// setCondition applies the condition until that succeeds. It owns nothing but this one condition, and does not take it from another owner.
func (c *Config) setCondition(ctx context.Context) error {
	now := metav1.Now()
	node := applycorev1.Node(c.NodeName).WithStatus(applycorev1.NodeStatus().WithConditions(
		applycorev1.NodeCondition().
			WithType(corev1.NodeConditionType(c.Condition)).
			WithStatus(corev1.ConditionTrue).
			WithReason(conditionReason).
			WithMessage(conditionMessage).
			WithLastHeartbeatTime(now).
			WithLastTransitionTime(now),
	))
	for {
		_, err := c.Client.Nodes().ApplyStatus(ctx, node, metav1.ApplyOptions{FieldManager: FieldManager})
		if err == nil {
			c.logf("set %s=True on %s", c.Condition, c.NodeName)
			return nil
		}
		if ctx.Err() == nil {
			c.logf("setting %s=True on %s failed: %v", c.Condition, c.NodeName, err)
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
