package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/klog/v2"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// AutoscalerConfig is what an autoscaler needs.
type AutoscalerConfig struct {
	// Cluster is the cluster, with its Autoscaler set; Gated tells whether nodes run the mirror-pod check, whose requests then count.
	Cluster *sim.Cluster
	Gated   bool
	// Fleet grows. Its Config has the readiness taint.
	Fleet *Fleet
	// Access reads nodes and pods.
	Access *rest.Config
	Seed   random.Seed
}

// Autoscaler is a simple model of a cluster autoscaler: it adds nodes to one group while pods are Pending. Modelled, after cluster-autoscaler's scan loop: at
// every scan the unschedulable pods are placed, the oldest first, onto the room of nodes that could take them, then onto nodes that are still coming, then
// onto as many further ones as they need. A node that is still coming has the room of an empty node of the group, beside its static pods, DaemonSets and
// the check. Registered nodes that are not Ready are still coming; so are, if the autoscaler knows startup taints, those with the readiness taint. One that
// does not know them sees a Ready node which no pending pod tolerates. Left out: scaling down, several groups and their choice, priorities, affinity
// between pods, back-off after failures.
type Autoscaler struct {
	config AutoscalerConfig
	client kubernetes.Interface
	spec   *sim.Autoscaler
	index  int // of the group
	group  *sim.NodeGroup
	empty  trace.Resources // room of an empty node
	coming []time.Time     // when machines that were asked for start
	idle   atomic.Bool
}

// NewAutoscaler makes the autoscaler of a cluster.
func NewAutoscaler(config AutoscalerConfig) (*Autoscaler, error) {
	client, err := kubernetes.NewForConfig(config.Access)
	if err != nil {
		return nil, fmt.Errorf("make client of the autoscaler: %w", err)
	}
	return newAutoscaler(config, client)
}

func newAutoscaler(config AutoscalerConfig, client kubernetes.Interface) (a *Autoscaler, err error) {
	a = &Autoscaler{config: config, client: client, spec: config.Cluster.Autoscaler}
	a.index = slices.IndexFunc(config.Cluster.NodeGroups, func(g sim.NodeGroup) bool { return g.Name == a.spec.Group })
	if a.index < 0 {
		return nil, fmt.Errorf("make autoscaler: there is no node group %s", a.spec.Group)
	}
	a.group = &config.Cluster.NodeGroups[a.index]
	a.empty, err = config.Cluster.EmptyNode(a.group, config.Gated)
	return a, err
}

// Idle tells whether the last scan found nothing to do and no machine is on its way. At the beginning it is not.
func (a *Autoscaler) Idle() bool { return a.idle.Load() }

// Run scans until ctx ends, and returns early only with an error that keeps it from going on.
func (a *Autoscaler) Run(ctx context.Context) error {
	delays := a.config.Seed.Stream("autoscaler/provision", a.group.Name)
	scan := time.Now()
	for {
		next := scan
		if len(a.coming) > 0 && a.coming[0].Before(next) {
			next = a.coming[0]
		}
		if err := sim.Sleep(ctx, time.Until(next)); err != nil {
			return nil //nolint:nilerr // the end of ctx is its end
		}
		if next.Before(scan) {
			a.coming = a.coming[1:]
			if err := a.config.Fleet.join(ctx, a.index, false); err != nil {
				return errors.Join(err, ctx.Err())
			}
			continue
		}
		scan = scan.Add(a.spec.ScanInterval.Duration)
		missing, err := a.scan(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of ctx is its end
		case err != nil:
			return fmt.Errorf("autoscaler: %w", err)
		}
		for range missing {
			a.coming = append(a.coming, time.Now().Add(a.spec.ProvisionDelay.Sample(delays)))
		}
		slices.SortFunc(a.coming, time.Time.Compare)
		a.idle.Store(len(a.coming) == 0)
	}
}

// scan returns how many nodes are missing.
func (a *Autoscaler) scan(ctx context.Context) (int, error) {
	pods, err := a.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list pods: %w", err)
	}
	nodes, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: sim.LabelGroup + "=" + a.group.Name})
	if err != nil {
		return 0, fmt.Errorf("list nodes: %w", err)
	}
	bins := a.bins(nodes.Items, pods.Items)
	size := a.config.Fleet.size(a.index) + len(a.coming)
	missing := 0
	for _, pod := range pending(pods.Items) {
		asked := footprint(pod)
		if place(bins, asked) || size+missing >= a.spec.Max || !fits(asked, a.empty) {
			continue
		}
		missing++
		bins = append(bins, minus(a.empty, asked))
	}
	if missing > 0 {
		klog.FromContext(ctx).Info("Adding nodes", "group", a.group.Name, "nodes", missing, "size", size)
	}
	return missing, nil
}

// bins are the rooms that pods can be placed in: first those of nodes that take pods, then those of nodes that are still coming.
func (a *Autoscaler) bins(nodes []corev1.Node, pods []corev1.Pod) []trace.Resources {
	var open []trace.Resources
	coming := a.config.Fleet.size(a.index) + len(a.coming)
	for i := range nodes {
		switch node := &nodes[i]; {
		case a.isComing(node):
		case a.isHeld(node):
			coming--
		default:
			coming--
			open = append(open, free(node, pods))
		}
	}
	for range coming {
		open = append(open, minus(a.empty, nil))
	}
	return open
}

// isComing tells whether the autoscaler counts on a registered node although it takes no pods yet.
func (a *Autoscaler) isComing(node *corev1.Node) bool {
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	return ready == nil || ready.Status != corev1.ConditionTrue || a.spec.StartupTaints && a.isHeld(node)
}

// isHeld tells whether a node has the readiness taint.
func (a *Autoscaler) isHeld(node *corev1.Node) bool {
	taint := a.config.Fleet.config.Taint
	return taint != nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(taint) })
}

// pending are the pods that the scheduler found no room for, the oldest first.
func pending(pods []corev1.Pod) []*corev1.Pod {
	var unschedulable []*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && isUnschedulable(pod) {
			unschedulable = append(unschedulable, pod)
		}
	}
	slices.SortFunc(unschedulable, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	return unschedulable
}

func isUnschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// free is the room of a node beside its pods, as the scheduler counts it.
func free(node *corev1.Node, pods []corev1.Pod) trace.Resources {
	room := sim.Amounts(node.Status.Allocatable)
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName == node.Name && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			room = minus(room, footprint(pod))
		}
	}
	return room
}

// footprint is what a pod takes of a node, its own place included.
func footprint(pod *corev1.Pod) trace.Resources {
	taken := trace.Resources{string(corev1.ResourcePods): 1}
	for name, amount := range sim.PodAmounts(pod) {
		taken[name] += amount
	}
	return taken
}

// place takes room for a pod out of the first bin that has it.
func place(bins []trace.Resources, asked trace.Resources) bool {
	for i, room := range bins {
		if fits(asked, room) {
			bins[i] = minus(room, asked)
			return true
		}
	}
	return false
}

func fits(asked, room trace.Resources) bool {
	for name, amount := range asked {
		if amount > room[name] {
			return false
		}
	}
	return true
}

// minus is a new room, without what is taken.
func minus(room, taken trace.Resources) trace.Resources {
	left := trace.Resources{}
	for name, amount := range room {
		left[name] = amount - taken[name]
	}
	return left
}
