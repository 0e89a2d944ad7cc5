package checker

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mirrorgap/mirrorgap/checker/manifests"
)

// A witness is a pod without requests that only this node can take, made when all mirror pods are there. A scheduler that has said anything about it has seen
// the mirror pods too, whatever the lag of its watch: it gets all pods through one watch, in the order in which they were written, and hands them to its cache
// and its queue in that order (pkg/scheduler/eventhandlers.go: one handler for all pods). Nothing like that holds between its watches of pods and of nodes.

const (
	// witnessLabel marks witnesses.
	witnessLabel = "readiness.example.com/static-pod-mirror-witness"
	// witnessPoll is the wait between two looks at a witness, unless the poll interval is shorter.
	witnessPoll = 250 * time.Millisecond
	// witnessCleanup is how long an interrupted check tries to delete its witness.
	witnessCleanup = 2 * time.Second
)

// IsWitness tells the witnesses of checks from other pods.
func IsWitness(pod *corev1.Pod) bool {
	_, ok := pod.Labels[witnessLabel]
	return ok
}

// confirm returns when each of ConfirmSchedulers has seen the mirror pods, or with the cause of ctx's end.
func (c *Config) confirm(ctx context.Context) error {
	for _, scheduler := range c.ConfirmSchedulers {
		if err := c.confirmBy(ctx, scheduler); err != nil {
			return err
		}
	}
	return nil
}

// confirmBy makes a witness, waits for the scheduler's word about it, and deletes it. Whatever fails is tried again.
func (c *Config) confirmBy(ctx context.Context, scheduler string) error {
	c.logf("all mirror pods are there; waiting for scheduler %s to see them", scheduler)
	for {
		seen, err := c.testify(ctx, scheduler)
		if ctx.Err() != nil {
			return c.interrupted(ctx, "wait for scheduler "+scheduler)
		}
		switch {
		case err != nil:
			c.logf("asking scheduler %s for the mirror pods failed: %v", scheduler, err)
		case seen:
			c.logf("scheduler %s has seen the mirror pods", scheduler)
			return nil
		}
		if !sleep(ctx, c.PollInterval) {
			return c.interrupted(ctx, "wait for scheduler "+scheduler)
		}
	}
}

// testify has one witness testify. It reports whether the scheduler said anything about it.
func (c *Config) testify(ctx context.Context, scheduler string) (seen bool, err error) {
	node, err := c.Client.Nodes().Get(ctx, c.NodeName, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get node %s: %w", c.NodeName, err)
	}
	witness, err := c.Client.Pods(manifests.WitnessNamespace).Create(ctx, newWitness(node, scheduler), metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("create a witness pod: %w", err)
	}
	defer c.dismiss(ctx, witness.Name)
	for {
		if !sleep(ctx, min(witnessPoll, c.PollInterval)) {
			return false, nil
		}
		pod, err := c.Client.Pods(witness.Namespace).Get(ctx, witness.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			return false, fmt.Errorf("get witness pod %s: %w", witness.Name, err)
		case isDecided(pod):
			return true, nil
		}
	}
}

// dismiss deletes a witness, also after ctx's end. One that it cannot delete goes with its owner, the Node.
func (c *Config) dismiss(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), witnessCleanup)
	defer cancel()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	if err := c.Client.Pods(manifests.WitnessNamespace).Delete(ctx, name, now); err != nil && !apierrors.IsNotFound(err) {
		c.logf("deleting witness pod %s failed: %v", name, err)
	}
}

// isDecided tells whether a scheduler has bound a pod, or found no room for it.
func isDecided(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" {
		return true
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason != corev1.PodReasonSchedulingGated {
			return true
		}
	}
	return false
}

// newWitness is bound past all taints, before other pods that wait, and goes with its node. It meets the strictest Pod Security Standard.
func newWitness(node *corev1.Node, scheduler string) *corev1.Pod {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	onNode := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "witness-", Namespace: manifests.WitnessNamespace, Labels: map[string]string{witnessLabel: ""}, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PodSpec{
			SchedulerName:                 scheduler,
			PriorityClassName:             "system-node-critical",
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken:  ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			RestartPolicy:                 corev1.RestartPolicyNever,
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{onNode}}},
			}}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65535), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "witness", Image: "registry.k8s.io/pause:3.10",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
