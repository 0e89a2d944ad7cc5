package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/sim/random"
)

const (
	// knownResource is an extended resource that some nodes have, unknownResource one that none has.
	knownResource   corev1.ResourceName = "example.com/gpu"
	unknownResource corev1.ResourceName = "example.com/unknown"

	// manyPods is the number of pods a node allows unless that is scarce: the kubelet's own default (maxPods).
	manyPods = 110

	labelKey   = "example.com/pool"
	labelValue = "a"
)

// overhead is the RuntimeClass of pods with overhead.
var overhead = nodev1.RuntimeClass{
	ObjectMeta: metav1.ObjectMeta{Name: "overhead"},
	Handler:    "overhead",
	Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("120m"), corev1.ResourceMemory: resource.MustParse("70Mi"),
	}},
}

// Generate makes the random sequence of a seed and an index. The same arguments always give the same one.
func Generate(seed random.Seed, index int) *Sequence {
	g := &generator{Rand: seed.Stream("differential", fmt.Sprint(index))}
	g.sequence.Name = fmt.Sprintf("seed-%d-sequence-%d", seed, index)
	g.node()
	for range g.IntN(4) {
		g.sequence.Static = append(g.sequence.Static, g.staticPod())
	}
	for g.sequence.leftToChance() {
		g.sequence.Static = g.sequence.Static[:len(g.sequence.Static)-1]
	}
	if g.chance(0.08) { // few: a rejection that early is written by the kubelet 10 s after its start
		for range 1 + g.IntN(2) {
			g.sequence.Early = append(g.sequence.Early, g.earlyPod())
		}
	}
	for range 5 + g.IntN(6) {
		g.step()
	}
	return &g.sequence
}

// generator keeps an account of what is probably free, so that amounts can be near the edge.
type generator struct {
	*rand.Rand
	sequence             Sequence
	cpu, memory          int64 // probably free: millicores and bytes
	pods                 int
	created              []string
	terminating, removed []string
	bestEffort           bool
}

func (g *generator) chance(p float64) bool { return g.Float64() < p }

func (g *generator) node() {
	g.cpu = int64(1+g.IntN(8)) * 1000
	g.memory = (2<<30 + g.Int64N(6<<30)) &^ 1023
	pods := manyPods
	if g.chance(0.2) {
		pods = 3 + g.IntN(5)
	}
	n := &g.sequence.Node
	n.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: milli(g.cpu), corev1.ResourceMemory: bytes(g.memory), corev1.ResourcePods: count(int64(pods)),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"),
	}
	if g.chance(0.4) {
		g.cpu -= g.Int64N(g.cpu / 4)
		g.memory -= g.Int64N(g.memory/4) &^ 1023
		n.Allocatable = corev1.ResourceList{corev1.ResourceCPU: milli(g.cpu), corev1.ResourceMemory: bytes(g.memory)}
	}
	if g.chance(0.4) {
		n.Capacity[knownResource] = count(int64(1 + g.IntN(3)))
	}
	if g.chance(0.5) {
		n.Labels = map[string]string{labelKey: labelValue}
	}
	if g.chance(0.2) {
		n.Taints = []corev1.Taint{{Key: "example.com/dedicated", Value: "x", Effect: corev1.TaintEffectNoExecute}}
	}
}

// step adds one random step. Nothing critical comes while a pod terminates that does not end: to preempt such a pod is not compared (see doc.go).
func (g *generator) step() {
	add := func(s Step) { g.sequence.Steps = append(g.sequence.Steps, s) }
	switch draw := g.Float64(); {
	case draw < 0.12 && len(g.created) > 0:
		name := g.take(&g.created)
		add(Step{Delete: name})
		g.terminating = append(g.terminating, name)
	case draw < 0.22 && len(g.terminating) > 0:
		add(Step{Gone: g.take(&g.terminating)})
	case draw < 0.30 && len(g.created) > 0:
		add(Step{Finish: g.take(&g.created)})
	case draw < 0.36:
		g.endTerminating()
		p := g.staticPod()
		add(Step{PutStatic: &p})
	case draw < 0.40 && len(g.sequence.Static) > len(g.removed):
		name := g.sequence.Static[len(g.removed)].Name // only those that were there at the start have a mirror in any case, whose end can be waited for
		g.removed = append(g.removed, name)
		add(Step{RemoveStatic: name})
	default:
		g.create()
	}
}

// create adds one pod, or several at once.
func (g *generator) create() {
	burst := 1
	if g.chance(0.3) {
		burst += 1 + g.IntN(3)
	}
	var pods []Pod
	for i := range burst {
		p := g.pod("p")
		p.Critical = g.chance(0.1)
		p.Overhead = p.Overhead && i == burst-1 // it counts twice as soon as its status shows: for those that follow at once, that is left to chance
		pods = append(pods, p)
	}
	if slices.ContainsFunc(pods, func(p Pod) bool { return p.Critical }) {
		g.endTerminating()
	}
	g.sequence.Steps = append(g.sequence.Steps, Step{Create: pods})
	for _, p := range pods {
		g.created = append(g.created, p.Name)
	}
}

func (g *generator) endTerminating() {
	for _, name := range g.terminating {
		g.sequence.Steps = append(g.sequence.Steps, Step{Gone: name})
	}
	g.terminating = nil
}

// take removes a random element.
func (g *generator) take(list *[]string) string {
	i := g.IntN(len(*list))
	name := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return name
}

// staticPod has no RuntimeClass: a static pod cannot refer to objects of the API.
func (g *generator) staticPod() Pod {
	p := g.pod("s")
	p.Overhead, p.Tolerates = false, false
	return p
}

func (g *generator) earlyPod() Pod {
	p := g.pod("e")
	if g.chance(0.3) {
		p.Phase = corev1.PodSucceeded
	}
	return p
}

func (g *generator) pod(kind string) Pod {
	g.pods++
	p := Pod{Name: fmt.Sprintf("%s%d", kind, g.pods), Containers: []Container{{}}}
	if !g.bestEffort && g.chance(0.05) { // one at most: which of two equal pods is preempted, the kubelet leaves to chance
		g.bestEffort = true
		return p
	}
	cpu, memory := g.amount(g.cpu, 10), g.amount(g.memory, 1<<20)
	g.requests(&p, cpu, memory)
	if cpu <= g.cpu && memory <= g.memory {
		g.cpu, g.memory = g.cpu-cpu, g.memory-memory
	}
	g.peculiarities(&p)
	return p
}

// amount is what a pod requests in all: often about what is free, to the unit.
func (g *generator) amount(free, least int64) int64 {
	if g.chance(0.3) {
		return max(free+int64(g.IntN(3))-1, 1)
	}
	return least + g.Int64N(max(free*6/10, least))
}

// requests spreads an amount over a pod, in one of the ways that make the kubelet arrive at it.
func (g *generator) requests(p *Pod, cpu, memory int64) {
	main := &p.Containers[0]
	main.Requests = request(cpu, memory)
	half := request(max(cpu/2, 1), max(memory/2, 1))
	rest := request(max(cpu-cpu/2, 1), max(memory-memory/2, 1))
	switch draw := g.Float64(); {
	case draw < 0.12:
		p.Init = []Container{{Requests: main.Requests}}
		main.Requests = half
	case draw < 0.24:
		p.Init = []Container{{Requests: half, Sidecar: true}}
		main.Requests = rest
	case draw < 0.32: // a sidecar, and an init container that runs beside it
		p.Init = []Container{{Requests: half, Sidecar: true}, {Requests: rest}}
		main.Requests = request(1, 1)
	case draw < 0.42:
		p.Requests = main.Requests
		main.Requests = half
	case draw < 0.52:
		o := overhead.Overhead.PodFixed
		p.Overhead = true
		main.Requests = request(max(cpu-o.Cpu().MilliValue(), 1), max(memory-o.Memory().Value(), 1))
	case draw < 0.60:
		main.Requests = half
		p.Containers = append(p.Containers, Container{Requests: rest})
	case draw < 0.70:
		main.Limited = true
	}
}

// peculiarities gives a pod what may keep it from the node beside cpu and memory.
func (g *generator) peculiarities(p *Pod) {
	main := &p.Containers[0]
	if g.chance(0.12) {
		main.Requests[knownResource] = count(int64(1 + g.IntN(2)))
	}
	if g.chance(0.08) {
		main.Requests[unknownResource] = count(1)
	}
	if g.chance(0.08) {
		main.Requests[corev1.ResourceEphemeralStorage] = bytes(1<<30 + g.Int64N(8<<30))
	}
	if g.chance(0.15) {
		main.HostPort = int32(8080 + g.IntN(2))
	}
	if g.chance(0.12) {
		p.NodeSelector = map[string]string{labelKey: []string{labelValue, "b"}[g.IntN(2)]}
	}
	p.Tolerates = g.chance(0.8)
}

func request(cpu, memory int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: milli(cpu), corev1.ResourceMemory: bytes(memory)}
}

func milli(n int64) resource.Quantity { return *resource.NewMilliQuantity(n, resource.DecimalSI) }
func bytes(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }
func count(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
