package experiments

import (
	"errors"
	"strings"
	"testing"

	"github.com/mirrorgap/mirrorgap/sim"
)

func TestUseKubelets(t *testing.T) {
	const file = `{apiVersion: mirrorgap.dev/v1alpha1, kind: Experiment, metadata: {name: x}, spec: {arms: [{name: a}],
		nodeGroups: [{name: a, capacity: {cpu: %, memory: 1Gi}, initial: 1, kubelet: {implementation: model}}, {name: b, capacity: {cpu: 1, memory: 1Gi}}]}}`
	parse := func(cpu string) *Experiment {
		e, err := Parse("x.yaml", []byte(strings.ReplaceAll(file, "%", cpu)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := parse("2")
	if err := e.UseKubelets(sim.KubeletReal); err != nil {
		t.Fatal(err)
	}
	for _, g := range e.Spec.NodeGroups {
		if g.Kubelet.Implementation != sim.KubeletReal {
			t.Errorf("group %s has kubelets of implementation %s", g.Name, g.Kubelet.Implementation)
		}
	}
	for what, err := range map[string]error{
		"a part of a core":          parse("1500m").UseKubelets(sim.KubeletReal),
		"an unknown implementation": parse("1").UseKubelets("hollow"),
	} {
		if !errors.As(err, new(*BadInput)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
