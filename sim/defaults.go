package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	check "github.com/mirrorgap/mirrorgap/checker/manifests"
	readiness "github.com/mirrorgap/mirrorgap/controllers/manifests"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

// Client-side throttles of the real components.
var (
	// DefaultSchedulerClient is kube-scheduler's own (pkg/scheduler/apis/config/v1/defaults.go).
	DefaultSchedulerClient = Client{QPS: 50, Burst: 100}
	// DefaultControllerManagerClient is kube-controller-manager's own (pkg/controller/apis/config/v1alpha1/defaults.go).
	DefaultControllerManagerClient = Client{QPS: 20, Burst: 30}
	// DefaultReadinessControllerClient is what the upstream readiness controller got from controller-runtime before its
	// --kube-api-qps and --kube-api-burst flags (pkg/client/config, before v0.21).
	DefaultReadinessControllerClient = Client{QPS: 20, Burst: 30}
)

// DefaultMaxPods is the capacity for pods of a node that does not say (pkg/kubelet/apis/config/v1beta1/defaults.go, MaxPods).
const DefaultMaxPods = 110

// DefaultTaintValue is the value of the readiness taint at registration, as in the published guide (--register-with-taints).
const DefaultTaintValue = "pending"

// DefaultKubelet is how the kubelets behave that are not told otherwise. The fields' comments name the sources.
func DefaultKubelet() Kubelet {
	return Kubelet{
		Implementation: KubeletModel,
		APIUnreachable: &metav1.Duration{},
		ReadyDelay:     measuredReadyDelay(),
		MirrorDelay:    random.Named(random.PresetKubelet122),
		MirrorRetry:    random.Uniform(60*time.Second, 90*time.Second),
		MirrorResync:   random.Uniform(0, 90*time.Second),
		StatusDelay:    random.Uniform(0, 10*time.Millisecond),
		StatusTick:     &metav1.Duration{Duration: 10 * time.Second},
		Housekeeping:   &metav1.Duration{Duration: 2 * time.Second},
		PodSourceDelay: random.Constant(time.Second),
	}
}

// measuredReadyDelay are the 5th, 15th, … and 95th percentile of the time from Node CREATE to Ready=True of 120 real kubelets v1.37.2, one started every few
// seconds, by mirrorgap validate-model (docs/model-agreement.md). They are of two kinds because kubelets look every 100 ms whether they are Ready.
func measuredReadyDelay() *random.Delay {
	var values []time.Duration
	for _, ms := range []int{227, 232, 259, 328, 329, 330, 331, 333, 335, 338} {
		values = append(values, time.Duration(ms)*time.Millisecond)
	}
	return random.Empirical(values...)
}

// DefaultCheck is how the mirror-pod check behaves that is not told otherwise. The fields' comments name the sources.
func DefaultCheck() Check {
	return Check{
		DaemonSet:    publishedCheck(),
		StartDelay:   random.Constant(2 * time.Second),
		PollInterval: &metav1.Duration{Duration: 2 * time.Second},
		Accept:       AcceptOwnMirror,
	}
}

// SetDefaults sets every field that is not set and has a default, and merges Kubelet into the node groups' own settings, so that a component
// needs to look at its group only. It is idempotent.
func SetDefaults(c *Cluster) {
	c.ControlPlane.setDefaults()
	c.Kubelet = c.Kubelet.orElse(DefaultKubelet())
	for i := range c.NodeGroups {
		c.NodeGroups[i].setDefaults(c.Kubelet)
	}
	for i := range c.Workloads {
		c.Workloads[i].Phase = cmp.Or(c.Workloads[i].Phase, WorkloadBefore)
		if g := c.Workloads[i].Generate; g != nil && g.Kind == "" {
			g.Kind = "ReplicaSet"
		}
	}
	c.Gate.setDefaults()
	if c.Autoscaler != nil {
		c.Autoscaler.setDefaults()
	}
}

func (a *Autoscaler) setDefaults() {
	a.ScanInterval = orElse(a.ScanInterval, &metav1.Duration{Duration: 10 * time.Second})
	a.ProvisionDelay = orElse(a.ProvisionDelay, random.Constant(0))
}

func (p *ControlPlane) setDefaults() {
	if len(p.Scheduler.Config) == 0 { // else its clientConnection has them
		p.Scheduler.Client = p.Scheduler.orElse(DefaultSchedulerClient)
	}
	p.ControllerManager = p.ControllerManager.orElse(DefaultControllerManagerClient)
	p.ReadinessController.Client = p.ReadinessController.orElse(DefaultReadinessControllerClient)
}

func (c Client) orElse(d Client) Client {
	if c.QPS == 0 {
		c.QPS = d.QPS
	}
	if c.Burst == 0 {
		c.Burst = d.Burst
	}
	return c
}

func (k Kubelet) orElse(d Kubelet) Kubelet {
	return Kubelet{
		Implementation: cmp.Or(k.Implementation, d.Implementation),
		APIUnreachable: orElse(k.APIUnreachable, d.APIUnreachable),
		ReadyDelay:     orElse(k.ReadyDelay, d.ReadyDelay),
		MirrorDelay:    orElse(k.MirrorDelay, d.MirrorDelay),
		MirrorRetry:    orElse(k.MirrorRetry, d.MirrorRetry),
		MirrorResync:   orElse(k.MirrorResync, d.MirrorResync),
		StatusDelay:    orElse(k.StatusDelay, d.StatusDelay),
		StatusTick:     orElse(k.StatusTick, d.StatusTick),
		Housekeeping:   orElse(k.Housekeeping, d.Housekeeping),
		PodSourceDelay: orElse(k.PodSourceDelay, d.PodSourceDelay),
	}
}

func orElse[T any](p, otherwise *T) *T {
	if p != nil {
		return p
	}
	return otherwise
}

func (g *NodeGroup) setDefaults(kubelet Kubelet) {
	if g.Kubelet != nil {
		kubelet = g.Kubelet.orElse(kubelet)
	}
	g.Kubelet = &kubelet
	g.Capacity = filled(g.Capacity, corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(DefaultMaxPods, resource.DecimalSI)})
	g.Allocatable = filled(g.Allocatable, g.Capacity)
	for i := range g.StaticPods {
		g.StaticPods[i].setDefaults()
	}
	for i := range g.Actions {
		if put := g.Actions[i].PutStaticPod; put != nil {
			put.setDefaults()
		}
		if leave := g.Actions[i].Leave; leave != nil {
			for j := range leave.StaticPods {
				leave.StaticPods[j].setDefaults()
			}
		}
	}
}

// filled is list with what only defaults has.
func filled(list, defaults corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	maps.Copy(all, defaults)
	maps.Copy(all, list)
	return all
}

func (s *StaticPod) setDefaults() {
	s.Source = cmp.Or(s.Source, SourceFolder)
	if s.FileName != "" {
		return
	}
	if pod, err := s.Pod(); err == nil && pod.Name != "" {
		s.FileName = pod.Name + ".yaml"
	}
}

func (g *Gate) setDefaults() {
	if len(g.Rule) == 0 {
		g.Rule = publishedRule()
	}
	if g.TaintValue == "" {
		g.TaintValue = DefaultTaintValue
	}
	d := DefaultCheck()
	if len(g.Check.DaemonSet) == 0 {
		g.Check.DaemonSet = d.DaemonSet
	}
	g.Check.StartDelay = orElse(g.Check.StartDelay, d.StartDelay)
	g.Check.PollInterval = orElse(g.Check.PollInterval, d.PollInterval)
	g.Check.Accept = cmp.Or(g.Check.Accept, d.Accept)
}

// publishedRule is the embedded rule static-pods-mirrored.
func publishedRule() json.RawMessage { return must(yaml.YAMLToJSON(readiness.StaticPodsRule())) }

// publishedCheck is the embedded DaemonSet of the mirror-pod check, without the status that its Go type adds.
func publishedCheck() json.RawMessage {
	manifest := must(runtime.DefaultUnstructuredConverter.ToUnstructured(must(check.DaemonSet())))
	delete(manifest, "status")
	return must(json.Marshal(manifest))
}

// must is for embedded manifests only: they are part of the program, and tested.
func must[T any](x T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("read an embedded manifest: %v", err))
	}
	return x
}
