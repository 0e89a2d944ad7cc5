package sim

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mirrorgap/mirrorgap/sim/random"
)

func TestDefaultsAreValidAndIdempotent(t *testing.T) {
	c := cluster(t, `nodeGroups: [{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1, staticPods: [`+kubeProxy+`]}]`)
	first, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	SetDefaults(c)
	second, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("defaults set a second time change the cluster (-first +second):\n%s", diff)
	}
	if name := c.NodeGroups[0].StaticPods[0].FileName; name != "p.yaml" {
		t.Errorf("static pod is in file %q, want p.yaml", name)
	}
	if pods := c.NodeGroups[0].Allocatable.Pods().Value(); pods != DefaultMaxPods {
		t.Errorf("a node has room for %d pods, want %d", pods, DefaultMaxPods)
	}
}

// TestKubeletsAreMerged: a group's own setting wins over the cluster's, that over the default.
func TestKubeletsAreMerged(t *testing.T) {
	c := cluster(t, `
kubelet: {mirrorDelay: {constant: 2s}, readyDelay: {constant: 3s}}
nodeGroups:
  - {name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1, kubelet: {mirrorDelay: {constant: 1s}, statusTick: 4s}}
  - {name: b, capacity: {cpu: 4, memory: 8Gi}, initial: 1}`)
	a, b := c.NodeGroups[0].Kubelet, c.NodeGroups[1].Kubelet
	for _, got := range []struct {
		what string
		is   time.Duration
		want time.Duration
	}{
		{"mirrorDelay of a", a.MirrorDelay.Upper(), time.Second},
		{"mirrorDelay of b", b.MirrorDelay.Upper(), 2 * time.Second},
		{"readyDelay of a", a.ReadyDelay.Upper(), 3 * time.Second},
		{"statusTick of a", a.StatusTick.Duration, 4 * time.Second},
		{"statusTick of b", b.StatusTick.Duration, 10 * time.Second},
		{"mirrorRetry of a", a.MirrorRetry.Upper(), 90 * time.Second},
	} {
		if got.is != got.want {
			t.Errorf("%s is %v, want %v", got.what, got.is, got.want)
		}
	}
}

// TestPublishedGate: the defaults of the gate are the published manifests, and they fit together.
func TestPublishedGate(t *testing.T) {
	c := cluster(t, `nodeGroups: [{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]`)
	rule, err := c.Gate.DecodeRule()
	if err != nil {
		t.Fatal(err)
	}
	if rule.Spec.Taint.Key != "readiness.k8s.io/StaticPodsMirrored" || rule.Spec.Conditions[0].Type != "readiness.example.com/StaticPodsMirrored" {
		t.Errorf("default rule has taint %v and conditions %v", rule.Spec.Taint, rule.Spec.Conditions)
	}
	set, err := c.Gate.Check.DecodeDaemonSet()
	if err != nil {
		t.Fatal(err)
	}
	if set.Name != "static-pod-mirror-check" || len(set.Spec.Template.Spec.InitContainers) != 1 {
		t.Errorf("default check is DaemonSet %s with %d init containers", set.Name, len(set.Spec.Template.Spec.InitContainers))
	}
}

func TestContent(t *testing.T) {
	for manifest, want := range map[string]string{`"any: text\n"`: "any: text\n", `{"kind":"Pod"}`: `{"kind":"Pod"}`} {
		if got := string((&StaticPod{Manifest: json.RawMessage(manifest)}).Content()); got != want {
			t.Errorf("%s is put on the node as %q, want %q", manifest, got, want)
		}
	}
}

// TestInheritedDelayIsReportedOnce: what is wrong in the cluster's kubelet settings is not repeated for each group.
func TestInheritedDelayIsReportedOnce(t *testing.T) {
	c := &Cluster{Kubelet: Kubelet{MirrorDelay: random.Constant(-time.Second)}, NodeGroups: make([]NodeGroup, 2)}
	SetDefaults(c)
	var found int
	for _, err := range c.Validate(nil) {
		if err.BadValue == "-1s" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("reported %d times", found)
	}
}

// TestSchedulerConfigurationKeepsItsThrottle: the default throttle must not win over the clientConnection of a configuration.
func TestSchedulerConfigurationKeepsItsThrottle(t *testing.T) {
	const group = "nodeGroups: [{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]\n"
	if c := cluster(t, group); c.ControlPlane.Scheduler.Client != DefaultSchedulerClient {
		t.Errorf("without a configuration: %+v", c.ControlPlane.Scheduler.Client)
	}
	c := cluster(t, group+`controlPlane: {scheduler: {config: {apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}}}`)
	if c.ControlPlane.Scheduler.Client != (Client{}) {
		t.Errorf("with a configuration: %+v", c.ControlPlane.Scheduler.Client)
	}
}
