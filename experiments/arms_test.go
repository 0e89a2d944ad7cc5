package experiments

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mirrorgap/mirrorgap/sim"
)

const withArms = `apiVersion: mirrorgap.dev/v1alpha1
kind: Experiment
metadata: {name: x}
spec:
  nodeGroups:
    - {name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1}
    - {name: b, capacity: {cpu: 4, memory: 8Gi}, initial: 1, kubelet: {mirrorDelay: {constant: 1s}}}
  arms:
    - name: plain
      gate: true
    - name: changed
      gate: true
      set:
`

// TestArmsChangeFields: an arm's cluster is the experiment's with its changes, also after the experiment was resolved, written and loaded again.
func TestArmsChangeFields(t *testing.T) {
	e, err := Parse("x.yaml", []byte(withArms+`
        spec.gate.check.settle: 5s
        spec.kubelet.mirrorDelay: {constant: 7s}
        spec.nodeGroups[1].capacity: {cpu: 8, memory: 8Gi}
        spec.apiFaults: [{refuseMirrors: {}, until: 3s}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(e *Experiment) {
		t.Helper()
		plain, changed := e.ClusterOf(e.Spec.Arms[0]), e.ClusterOf(e.Spec.Arms[1])
		if plain != &e.Spec.Cluster {
			t.Error("an arm without changes has a cluster of its own")
		}
		cpu := changed.NodeGroups[1].Allocatable["cpu"]
		got := []any{
			plain.Gate.Check.Settle.Duration, changed.Gate.Check.Settle.Duration, changed.Kubelet.MirrorDelay.Constant.Duration,
			changed.NodeGroups[0].Kubelet.MirrorDelay.Constant.Duration, changed.NodeGroups[1].Kubelet.MirrorDelay.Constant.Duration, cpu.String(), len(changed.APIFaults),
		}
		want := []any{time.Duration(0), 5 * time.Second, 7 * time.Second, 7 * time.Second, time.Second, "8", 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	check(e)
	data, err := e.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", data, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	check(again)
	if diff := cmp.Diff(e.ClusterOf(e.Spec.Arms[1]), again.ClusterOf(again.Spec.Arms[1]), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the cluster of an arm changes when it is loaded again (-first +again)\n%s", diff)
	}

	if err := e.UseKubelets(sim.KubeletReal); err != nil {
		t.Fatal(err)
	}
	if data, err = e.YAML(); err != nil {
		t.Fatal(err)
	}
	if again, err = Parse("again.yaml", data, nil); err != nil {
		t.Fatal(err)
	}
	for _, g := range again.ClusterOf(again.Spec.Arms[1]).NodeGroups {
		if g.Kubelet.Implementation != sim.KubeletReal {
			t.Errorf("group %s of an arm has kubelets of implementation %s", g.Name, g.Kubelet.Implementation)
		}
	}
}

func TestBadChangesOfArms(t *testing.T) {
	for set, want := range map[string]string{
		"spec.workloads: []":                    "x.yaml:14: spec.arms[1].set[spec.workloads]: an arm can change",
		"nonsense: 1":                           "x.yaml:14: spec.arms[1].set[nonsense]: an arm can change",
		"spec.gate.check.setle: 5s":             "x.yaml:14: spec.arms[1].set[spec.gate.check.setle]: spec.gate.check.setle: unknown field",
		"spec.nodeGroups[7].initial: 1":         "has no entry [7]",
		"spec.nodeGroups[1].capacity: {cpu: 8}": "x.yaml:14: spec.arms[1].set[spec.nodeGroups[1].capacity]: spec.nodeGroups[1].capacity[memory]: Required",
		"{spec.gate.check: {settle: 1s}, spec.gate.check.settle: 5s}": "is within spec.gate.check, which is set too",
	} {
		_, err := Parse("x.yaml", []byte(withArms+"        "+set+"\n"), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
}
