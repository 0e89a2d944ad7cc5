package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/checker"
	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// checkScript is how a container is recognised as the mirror-pod check, whatever its image and DaemonSet are called: by the published script's name.
const checkScript = "wait-for-mirrors"

// Checks runs the mirror-pod check where a node's kubelet would run the published script's image.
type Checks struct {
	spec   *sim.Check
	access *rest.Config
	seed   random.Seed
	trace  trace.Recorder
}

// NewChecks makes the program that stands in for the check's image. cfg must be allowed to impersonate the pods' ServiceAccounts.
func NewChecks(spec *sim.Check, cfg *rest.Config, seed random.Seed, out trace.Recorder) *Checks {
	return &Checks{spec: spec, access: cfg, seed: seed, trace: out}
}

// Program is for kubelet.Config.Programs: the check for its container, nil for every other.
func (c *Checks) Program(_ *corev1.Pod, container *corev1.Container) kubelet.Program {
	if !isCheck(container) {
		return nil
	}
	return c.run
}

// IsCheck tells the pods of the mirror-pod check from others.
func IsCheck(pod *corev1.Pod) bool {
	return checker.IsWitness(pod) || slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return isCheck(&c) })
}

func isCheck(container *corev1.Container) bool {
	return container.Name == checkScript || slices.ContainsFunc(container.Command, func(word string) bool { return strings.Contains(word, checkScript) })
}

// run is the check in one container: it takes its time to start, then it is the shipped checker under the pod's own ServiceAccount.
func (c *Checks) run(ctx context.Context, container kubelet.ContainerContext) error {
	delay := c.spec.StartDelay.Sample(c.seed.Stream("check/start", container.Node))
	if err := sim.Sleep(ctx, delay); err != nil {
		return err
	}
	client, err := c.clientOf(container.Pod)
	if err != nil {
		return err
	}
	event := trace.Event{Source: trace.SourceCheck, Node: container.Node, Pod: container.Pod.Namespace + "/" + container.Pod.Name, UID: string(container.Pod.UID)}
	record := func(kind trace.Kind, missing []string) {
		e := event
		e.Kind, e.Missing = kind, missing
		c.trace.Record(e)
	}
	record(trace.CheckStarted, nil)
	return checker.Run(ctx, checker.Config{
		Client:            client.CoreV1(),
		Folder:            container.Manifests,
		StaticPods:        c.spec.StaticPods,
		NodeName:          container.Node,
		Accept:            checker.Accept(c.spec.Accept),
		Settle:            c.spec.Settle.Duration,
		Continuous:        c.spec.Continuous,
		ConfirmSchedulers: c.spec.ConfirmSchedulers,
		Condition:         environment(container.Container, "CONDITION"),
		PollInterval:      c.spec.PollInterval.Duration,
		Log:               container.Log,
		OnWaiting:         func(missing []string) { record(trace.CheckWaiting, missing) },
		OnPassed:          func() { record(trace.CheckPassed, nil) },
	})
}

// clientOf makes a client with the rights of the pod's ServiceAccount.
func (c *Checks) clientOf(pod *corev1.Pod) (kubernetes.Interface, error) {
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	cfg := rest.CopyConfig(c.access)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: fmt.Sprintf("system:serviceaccount:%s:%s", pod.Namespace, account),
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + pod.Namespace, "system:authenticated"},
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", cfg.Impersonate.UserName, err)
	}
	return client, nil
}

// environment is the literal value of a variable, or empty.
func environment(container *corev1.Container, name string) string {
	for _, v := range container.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}
