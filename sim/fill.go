package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// FinalSize is the number of nodes in the group after its scale-up.
func (g *NodeGroup) FinalSize() int {
	if g.ScaleUp != nil {
		return g.ScaleUp.To
	}
	return g.Initial
}

// NodeName is the name of a node of the group.
func (g *NodeGroup) NodeName(index int) string { return g.Name + "-" + strconv.Itoa(index) }

// FillReplicas is the number of replicas that w.Fill stands for: the pods that fit on each node of the workload's groups at their final size,
// summed. FillAllocatable counts against the nodes' allocatable; FillFree first takes off what the group's static pods, the DaemonSets among
// the workloads and, withCheck, the mirror-pod check request. Workloads of other kinds are not taken off. An experiment counts the check in
// every arm as soon as one arm has it, so that its arms ask for the same room. No pod at all, or more than MaxPods, is an error.
// c must be valid and have its defaults.
func (c *Cluster) FillReplicas(w *Workload, withCheck bool) (int32, error) {
	pod, err := w.Pod()
	if err != nil {
		return 0, fmt.Errorf("workload %s: count the pods that fit: %w", w.Name, err)
	}
	each := podAmounts(pod)
	var total int64
	for i := range c.NodeGroups {
		g := &c.NodeGroups[i]
		if !w.targets(g) {
			continue
		}
		var taken trace.Resources
		if w.Fill == FillFree {
			if taken, err = c.taken(g, withCheck); err != nil {
				return 0, fmt.Errorf("workload %s: count the pods that fit: %w", w.Name, err)
			}
		}
		total += int64(g.FinalSize()) * fit(Amounts(g.Allocatable), taken, each)
	}
	if total == 0 {
		return 0, fmt.Errorf("workload %s: not one of its pods fits on a node: make the nodes larger, or the requests smaller", w.Name)
	}
	if total > MaxPods {
		return 0, fmt.Errorf("workload %s: fill makes %d pods; Kubernetes supports at most %d", w.Name, total, MaxPods)
	}
	return int32(total), nil
}

// targets tells whether the workload's pods may run in the group.
func (w *Workload) targets(g *NodeGroup) bool {
	return len(w.Groups) == 0 || slices.Contains(w.Groups, g.Name)
}

// taken is what a node of the group has to give to static pods, DaemonSets and the check.
func (c *Cluster) taken(g *NodeGroup, withCheck bool) (trace.Resources, error) {
	taken, err := g.staticAmounts()
	if err != nil {
		return nil, err
	}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if w.Kind() != "DaemonSet" || !w.targets(g) {
			continue
		}
		pod, err := w.Pod()
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", w.Name, err)
		}
		if g.runs(pod) {
			taken = plus(taken, podAmounts(pod))
		}
	}
	if !withCheck {
		return taken, nil
	}
	check, err := c.Gate.Check.DecodeDaemonSet()
	if err != nil {
		return nil, fmt.Errorf("mirror-pod check: %w", err)
	}
	if pod := (&corev1.Pod{Spec: check.Spec.Template.Spec}); g.runs(pod) {
		taken = plus(taken, podAmounts(pod))
	}
	return taken, nil
}

// EmptyNode is the room for workloads on an empty node of a group: its allocatable beside static pods, DaemonSets of the cluster and, withCheck, the mirror-pod
// check. c must be valid and have its defaults.
func (c *Cluster) EmptyNode(g *NodeGroup, withCheck bool) (trace.Resources, error) {
	taken, err := c.taken(g, withCheck)
	if err != nil {
		return nil, err
	}
	room := Amounts(g.Allocatable)
	for name, amount := range taken {
		room[name] -= amount
	}
	return room, nil
}

// staticAmounts sums the static pods of a node that the kubelet will accept.
func (g *NodeGroup) staticAmounts() (trace.Resources, error) {
	sum := trace.Resources{}
	for i := range g.StaticPods {
		if g.StaticPods[i].Invalid {
			continue
		}
		pod, err := g.StaticPods[i].Pod()
		if err != nil {
			return nil, fmt.Errorf("node group %s: static pod %s: %w", g.Name, g.StaticPods[i].FileName, err)
		}
		sum = plus(sum, podAmounts(pod))
	}
	return sum, nil
}

// nodeLabels are the labels that matter for placing a DaemonSet's pod: the group's, and those that every kubelet sets.
func (g *NodeGroup) nodeLabels(index int) map[string]string {
	labels := map[string]string{
		LabelGroup:           g.Name,
		corev1.LabelHostname: g.NodeName(index),
		corev1.LabelOSStable: "linux",
	}
	maps.Copy(labels, g.Labels)
	return labels
}

// runs tells whether a DaemonSet's pod belongs on the group's nodes, as its controller decides it: node selector and affinity match, and the
// taints that stay on the nodes are tolerated.
func (g *NodeGroup) runs(pod *corev1.Pod) bool {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: g.NodeName(0), Labels: g.nodeLabels(0)}, Spec: corev1.NodeSpec{Taints: g.Taints}}
	if match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !match {
		return false
	}
	_, untolerated := schedulingcorev1.FindMatchingUntoleratedTaint(klog.Background(), g.Taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	}, false)
	return !untolerated
}

// podAmounts is what a pod takes of a node, its own place among the pods included.
func podAmounts(pod *corev1.Pod) trace.Resources {
	return plus(PodAmounts(withLimits(pod)), trace.Resources{string(corev1.ResourcePods): 1})
}

func plus(a, b trace.Resources) trace.Resources {
	sum := maps.Clone(a)
	if sum == nil {
		sum = trace.Resources{}
	}
	for name, x := range b {
		sum[name] += x
	}
	return sum
}

// fit is how many pods that take each fit into room beside what is taken. A resource that room lacks has none.
func fit(room, taken, each trace.Resources) int64 {
	n := int64(math.MaxInt64)
	for name, x := range each {
		if x > 0 {
			n = min(n, max(room[name]-taken[name], 0)/x)
		}
	}
	return n
}
