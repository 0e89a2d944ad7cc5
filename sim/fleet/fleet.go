package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

// Kubelets boots and stops the machines; *kubelet.Kubelets is one.
type Kubelets interface {
	Start(ctx context.Context, m kubelet.Machine) error
	Restart(node string) error
	Stop(node string)
	PutStaticPod(node, file string, manifest []byte) error
	RemoveStaticPod(node, file string) error
}

// Config is what a fleet needs.
type Config struct {
	// Groups are the node groups, with their defaults set.
	Groups []sim.NodeGroup
	// Taint is the readiness taint that nodes register with; nil for none.
	Taint    *corev1.Taint
	Seed     random.Seed
	Kubelets Kubelets
	// Access deletes Node objects and mirror pods.
	Access *rest.Config
}

// Fleet is all machines of a cluster.
type Fleet struct {
	config Config
	client kubernetes.Interface
	// size is the number of machines of each group so far, in the order of Config.Groups.
	size []int
}

// New makes a fleet without machines.
func New(config Config) (*Fleet, error) {
	client, err := kubernetes.NewForConfig(config.Access)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &Fleet{config: config, client: client, size: make([]int, len(config.Groups))}, nil
}

// Initial starts the machines that are there from the beginning. It does not wait until they are Ready.
func (f *Fleet) Initial(ctx context.Context) error {
	for g := range f.config.Groups {
		for range f.config.Groups[g].Initial {
			if err := f.join(ctx, g, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// Size is the number of machines that have joined so far.
func (f *Fleet) Size() int {
	sum := 0
	for _, n := range f.size {
		sum += n
	}
	return sum
}

// Grow plays the scale-ups and actions of all groups, counted from the call, and returns after the last one.
func (f *Fleet) Grow(ctx context.Context) error {
	start := time.Now()
	for _, s := range f.script() {
		if err := sleepUntil(ctx, start.Add(s.at)); err != nil {
			return err
		}
		if err := s.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// step is something that happens to the fleet at a time.
type step struct {
	at time.Duration
	do func(context.Context) error
}

// script lists all steps in the order of their times; steps of the same time keep the order of the experiment.
func (f *Fleet) script() []step {
	var steps []step
	for g := range f.config.Groups {
		group := &f.config.Groups[g]
		if s := group.ScaleUp; s != nil {
			for _, at := range arrivals(group.Name, s, s.To-group.Initial, f.config.Seed) {
				steps = append(steps, step{at, func(ctx context.Context) error { return f.join(ctx, g, false) }})
			}
		}
		for i := range group.Actions {
			steps = append(steps, f.steps(g, &group.Actions[i])...)
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// join starts the next machine of a group.
func (f *Fleet) join(ctx context.Context, g int, initial bool) error {
	index := f.size[g]
	f.size[g]++
	if err := f.config.Kubelets.Start(ctx, f.machine(g, index, initial)); err != nil {
		return fmt.Errorf("add a machine to node group %s: %w", f.config.Groups[g].Name, err)
	}
	return nil
}

func (f *Fleet) machine(g, index int, initial bool) kubelet.Machine {
	group := &f.config.Groups[g]
	taints := slices.Clone(group.Taints)
	if f.config.Taint != nil {
		taints = append(taints, *f.config.Taint)
	}
	return kubelet.Machine{
		Name:        group.NodeName(index),
		Group:       group.Name,
		Capacity:    group.Capacity,
		Allocatable: group.Allocatable,
		Labels:      group.Labels,
		Taints:      taints,
		Initial:     initial,
		Established: initial,
		Behaviour:   *group.Kubelet,
		StaticPods:  group.StaticPods,
	}
}

// steps are what an action consists of.
func (f *Fleet) steps(g int, a *sim.Action) []step {
	var nodes []int // those that the action meets; later steps of it go on with the same ones
	first := func(do func(ctx context.Context, node string) error) step {
		return step{a.At.Duration, func(ctx context.Context) error {
			nodes = f.existing(g, a.Nodes)
			return f.each(ctx, g, nodes, do)
		}}
	}
	later := func(after time.Duration, do func(ctx context.Context, index int) error) step {
		return step{a.At.Duration + after, func(ctx context.Context) error {
			for _, index := range nodes {
				if err := do(ctx, index); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	name := f.config.Groups[g].NodeName
	switch {
	case a.Leave != nil && a.Leave.Return != nil:
		return []step{first(f.leave), later(a.Leave.Return.Duration, func(ctx context.Context, index int) error {
			return f.config.Kubelets.Start(ctx, f.machine(g, index, false))
		})}
	case a.Leave != nil:
		return []step{first(f.leave)}
	case a.Reboot != nil:
		stop := func(_ context.Context, node string) error { f.config.Kubelets.Stop(node); return nil }
		return []step{first(stop), later(a.Reboot.Down.Duration, func(_ context.Context, index int) error {
			return f.config.Kubelets.Restart(name(index))
		})}
	case a.PutStaticPod != nil:
		return []step{first(func(_ context.Context, node string) error {
			return f.config.Kubelets.PutStaticPod(node, a.PutStaticPod.FileName, a.PutStaticPod.Content())
		})}
	case a.RemoveStaticPod != "":
		return []step{first(func(_ context.Context, node string) error {
			return f.config.Kubelets.RemoveStaticPod(node, a.RemoveStaticPod)
		})}
	default:
		return []step{first(func(ctx context.Context, node string) error { return f.deleteMirror(ctx, node, a.DeleteMirror) })}
	}
}

// existing are the indices of an action's nodes, all machines so far when it names none.
func (f *Fleet) existing(g int, named []int) []int {
	if len(named) > 0 {
		return named
	}
	all := make([]int, f.size[g])
	for i := range all {
		all[i] = i
	}
	return all
}

func (f *Fleet) each(ctx context.Context, g int, nodes []int, do func(context.Context, string) error) error {
	group := &f.config.Groups[g]
	for _, index := range nodes {
		if err := do(ctx, group.NodeName(index)); err != nil {
			return fmt.Errorf("node group %s: %w", group.Name, err)
		}
	}
	return nil
}

// leave ends a machine and deletes its Node, as a cloud's node controller does for an instance that is gone.
func (f *Fleet) leave(ctx context.Context, node string) error {
	f.config.Kubelets.Stop(node)
	if err := f.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node %s: %w", node, err)
	}
	return nil
}

// deleteMirror deletes a mirror pod at once, as kubectl delete --force does: a graceful deletion would keep it in the scheduler's view until
// the kubelet replaces it.
func (f *Fleet) deleteMirror(ctx context.Context, node, staticPod string) error {
	mirror := staticPod + "-" + strings.ToLower(node)
	pods, err := f.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.AndSelectors(
			fields.OneTermEqualSelector("spec.nodeName", node), fields.OneTermEqualSelector("metadata.name", mirror)).String(),
	})
	if err != nil {
		return fmt.Errorf("look for mirror pod %s: %w", mirror, err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("delete mirror pod %s: node %s has none of that name yet: let the action come later", mirror, node)
	}
	now := int64(0)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if err := f.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return fmt.Errorf("delete mirror pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
