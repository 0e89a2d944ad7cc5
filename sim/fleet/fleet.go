package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

// Kubelets boots and stops machines; *kubelet.Kubelets and *real.Kubelets are such.
type Kubelets interface {
	Start(ctx context.Context, m kubelet.Machine) error
	// Restart starts the kubelet again after Stop, which switches the machine off, or Kill, which ends the kubelet alone.
	Restart(node string) error
	Stop(node string)
	Kill(node string)
	PutStaticPod(node, file string, manifest []byte) error
	RemoveStaticPod(node, file string) error
}

// Config is what a fleet needs.
type Config struct {
	// Groups are the node groups, with their defaults set.
	Groups []sim.NodeGroup
	// Taint is the readiness taint that nodes register with; nil for none.
	Taint *corev1.Taint
	Seed  random.Seed
	// Kubelets are those of each implementation that a group has.
	Kubelets map[sim.Implementation]Kubelets
	// Access deletes Node objects and mirror pods.
	Access *rest.Config
}

// Fleet is all machines of a cluster.
type Fleet struct {
	config Config
	client kubernetes.Interface
	// mu guards there: an autoscaler grows the fleet beside the script.
	mu sync.Mutex
	// there says of every machine that ever joined whether it is there, by group in the order of Config.Groups and by index.
	there [][]bool
}

// New makes a fleet without machines.
func New(config Config) (*Fleet, error) {
	client, err := kubernetes.NewForConfig(config.Access)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return newFleet(config, client), nil
}

func newFleet(config Config, client kubernetes.Interface) *Fleet {
	return &Fleet{config: config, client: client, there: make([][]bool, len(config.Groups))}
}

// CreateNamespaces creates the namespaces of all static pods that do not exist, except some: without them no mirror pod could ever be created.
func (f *Fleet) CreateNamespaces(ctx context.Context, except []string) error {
	for g := range f.config.Groups {
		group := &f.config.Groups[g]
		pods := group.EveryStaticPod()
		for i := range pods {
			if err := f.createNamespace(ctx, pods[i], except); err != nil {
				return fmt.Errorf("node group %s: %w", group.Name, err)
			}
		}
	}
	return nil
}

func (f *Fleet) createNamespace(ctx context.Context, p *sim.StaticPod, except []string) error {
	pod, err := p.Pod()
	if err != nil || pod.Namespace == "" || slices.Contains(except, pod.Namespace) { // a manifest that nobody can read needs no namespace
		return nil //nolint:nilerr // see above
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.Namespace}}
	if _, err := f.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s of static pod %s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
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

// Size is the number of machines that are there.
func (f *Fleet) Size() int {
	sum := 0
	for g := range f.there {
		sum += f.size(g)
	}
	return sum
}

// size is the number of machines of a group that are there.
func (f *Fleet) size(g int) int { return len(f.present(g)) }

// Grow plays the scale-ups and actions of all groups, counted from the call, and returns after the last one.
func (f *Fleet) Grow(ctx context.Context) error {
	start := time.Now()
	for _, s := range f.script() {
		if err := sim.Sleep(ctx, time.Until(start.Add(s.at))); err != nil {
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
	f.mu.Lock()
	index := len(f.there[g])
	f.there[g] = append(f.there[g], true)
	f.mu.Unlock()
	if err := f.kubelets(g).Start(ctx, f.machine(g, index, initial)); err != nil {
		return fmt.Errorf("add a machine to node group %s: %w", f.config.Groups[g].Name, err)
	}
	return nil
}

// kubelets are those of a group.
func (f *Fleet) kubelets(g int) Kubelets {
	return f.config.Kubelets[f.config.Groups[g].Kubelet.Implementation]
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
	kubelets, name := f.kubelets(g), f.config.Groups[g].NodeName
	var met []int // the machines that the action meets; what it does later happens to the same ones
	first := func(do func(ctx context.Context, index int) error) step {
		return step{a.At.Duration, func(ctx context.Context) (err error) {
			if met, err = f.meet(g, a.Nodes); err != nil {
				return err
			}
			return f.each(ctx, g, met, do)
		}}
	}
	later := func(after time.Duration, do func(ctx context.Context, index int) error) step {
		return step{a.At.Duration + after, func(ctx context.Context) error { return f.each(ctx, g, met, do) }}
	}
	leave := first(func(ctx context.Context, index int) error { return f.leave(ctx, g, index) })
	switch {
	case a.Leave != nil && a.Leave.Return != nil:
		return []step{leave, later(a.Leave.Return.Duration, func(ctx context.Context, index int) error {
			return f.comeBack(ctx, g, index, a.Leave.StaticPods)
		})}
	case a.Leave != nil:
		return []step{leave}
	case a.Reboot != nil:
		stop := func(_ context.Context, index int) error { kubelets.Stop(name(index)); return nil }
		return []step{first(stop), later(a.Reboot.Down.Duration, func(_ context.Context, index int) error { return f.restart(g, index) })}
	case a.RestartKubelet != nil:
		kill := func(_ context.Context, index int) error { kubelets.Kill(name(index)); return nil }
		return []step{first(kill), later(a.RestartKubelet.Down.Duration, func(_ context.Context, index int) error { return f.restart(g, index) })}
	case a.PutStaticPod != nil:
		return []step{first(func(_ context.Context, index int) error {
			return kubelets.PutStaticPod(name(index), a.PutStaticPod.FileName, a.PutStaticPod.Content())
		})}
	case a.RemoveStaticPod != "":
		return []step{first(func(_ context.Context, index int) error {
			return kubelets.RemoveStaticPod(name(index), a.RemoveStaticPod)
		})}
	case a.DeletePod != "":
		return []step{{a.At.Duration, func(ctx context.Context) error { return f.deletePod(ctx, a.DeletePod) }}}
	default:
		return []step{first(func(ctx context.Context, index int) error { return f.deleteMirror(ctx, name(index), a.DeleteMirror) })}
	}
}

// meet finds the machines of an action: those that it names, which must be there, or all that are there when it names none.
func (f *Fleet) meet(g int, named []int) ([]int, error) {
	present := f.present(g)
	if len(named) == 0 {
		return present, nil
	}
	for _, index := range named {
		if !slices.Contains(present, index) {
			return nil, fmt.Errorf("an action meets node %s, which is not there at that time: let it come after the node joins and before it leaves",
				f.config.Groups[g].NodeName(index))
		}
	}
	return named, nil
}

// present are the indices of the machines of a group that are there.
func (f *Fleet) present(g int) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var indices []int
	for index, there := range f.there[g] {
		if there {
			indices = append(indices, index)
		}
	}
	return indices
}

func (f *Fleet) setThere(g, index int, there bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there[g][index] = there
}

func (f *Fleet) each(ctx context.Context, g int, machines []int, do func(context.Context, int) error) error {
	for _, index := range machines {
		if err := do(ctx, index); err != nil {
			return fmt.Errorf("node group %s: %w", f.config.Groups[g].Name, err)
		}
	}
	return nil
}

// leave ends a machine and deletes its Node, as a cloud's node controller does for an instance that is gone.
func (f *Fleet) leave(ctx context.Context, g, index int) error {
	node := f.config.Groups[g].NodeName(index)
	f.setThere(g, index, false)
	f.kubelets(g).Stop(node)
	err := f.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // a kubelet that did not reach the API has not registered
		return fmt.Errorf("delete node %s: %w", node, err)
	}
	return nil
}

// comeBack starts a new machine in the place of one that left: under its name, with a fresh static pod folder, and not established. It has the group's
// static pods unless it brings its own.
func (f *Fleet) comeBack(ctx context.Context, g, index int, own []sim.StaticPod) error {
	f.setThere(g, index, true)
	m := f.machine(g, index, false)
	if len(own) > 0 {
		m.StaticPods = own
	}
	return f.kubelets(g).Start(ctx, m)
}

// restart ends a reboot, unless the machine left meanwhile.
func (f *Fleet) restart(g, index int) error {
	if !slices.Contains(f.present(g), index) {
		return nil
	}
	return f.kubelets(g).Restart(f.config.Groups[g].NodeName(index))
}

// deletePod deletes a pod at once.
func (f *Fleet) deletePod(ctx context.Context, pod string) error {
	namespace, name, _ := strings.Cut(pod, "/")
	now := int64(0)
	if err := f.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		return fmt.Errorf("delete pod %s: %w", pod, err)
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
	for i := range pods.Items {
		if err := f.deletePod(ctx, pods.Items[i].Namespace+"/"+pods.Items[i].Name); err != nil {
			return err
		}
	}
	return nil
}
