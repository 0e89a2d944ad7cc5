package sim

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// cluster reads a cluster and sets its defaults. It must be valid.
func cluster(t *testing.T, text string) *Cluster {
	t.Helper()
	c := new(Cluster)
	if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	SetDefaults(c)
	if errs := c.Validate(nil); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return c
}

// kubeProxy is a node group's static pod of 100m.
const kubeProxy = `{manifest: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}}}`

func TestFillReplicas(t *testing.T) {
	for _, c := range []struct {
		name, groups, workloads string
		withCheck               bool
		want                    int32
	}{
		{"allocatable is what the scheduler sees", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 3, scaleUp: {to: 20}, staticPods: [` + kubeProxy + `]}]`,
			`[{name: w, generate: {requests: {cpu: 1}}, fill: allocatable}]`, true, 80},
		{"free leaves room for the static pod", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 3, scaleUp: {to: 20}, staticPods: [` + kubeProxy + `]}]`,
			`[{name: w, generate: {requests: {cpu: 1}}, fill: free}]`, false, 60},
		// 4000m − 100m − 11m for the check = 3889m.
		{"free without the check", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1, staticPods: [` + kubeProxy + `]}]`,
			`[{name: w, generate: {requests: {cpu: 3890m}}, fill: free}, {name: x, generate: {requests: {cpu: 1}}, replicas: 9}]`, false, 1},
		{"free with the check", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 2, staticPods: [` + kubeProxy + `]}]`,
			`[{name: w, generate: {requests: {cpu: 1944m}}, fill: free}]`, true, 4},
		{"the scarcest resource counts", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]`,
			`[{name: w, generate: {requests: {cpu: 100m, memory: 3Gi}}, fill: allocatable}]`, false, 2},
		{"pods are a resource", `[{name: a, capacity: {cpu: 4, memory: 8Gi, pods: 3}, initial: 1, staticPods: [` + kubeProxy + `]}]`,
			`[{name: w, generate: {requests: {cpu: 1m}}, fill: free}]`, false, 2},
		{"floor on every node, not on the sum", `[{name: a, capacity: {cpu: 1500m, memory: 8Gi}, initial: 4}]`,
			`[{name: w, generate: {requests: {cpu: 1}}, fill: allocatable}]`, false, 4},
		{"only the named groups", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1}, {name: b, capacity: {cpu: 2, memory: 8Gi}, initial: 1}]`,
			`[{name: w, generate: {requests: {cpu: 1}}, fill: allocatable, groups: [b]}]`, false, 2},
		{"all groups when none is named", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1}, {name: b, capacity: {cpu: 2, memory: 8Gi}, initial: 1}]`,
			`[{name: w, generate: {requests: {cpu: 1}}, fill: allocatable}]`, false, 6},
		{"allocatable, not capacity", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, allocatable: {cpu: 3920m}, initial: 1}]`,
			`[{name: w, generate: {requests: {cpu: 980m}}, fill: allocatable}]`, false, 4},
		{"an invalid static pod takes nothing",
			`[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1, staticPods: [{fileName: x, invalid: true, manifest: nonsense}]}]`,
			`[{name: w, generate: {requests: {cpu: 4}}, fill: free}]`, false, 1},
		{"DaemonSets that run on the group", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1, taints: [{key: k, effect: NoSchedule}], labels: {zone: z}}]`,
			`[{name: w, generate: {requests: {cpu: 1}}, fill: free},
			  {name: tolerates, generate: {kind: DaemonSet, requests: {cpu: 500m}, tolerations: [{operator: Exists}]}},
			  {name: repelled, generate: {kind: DaemonSet, requests: {cpu: 3}}},
			  {name: selects, manifest: {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {selector: {}, template: {spec: {
			    nodeSelector: {zone: z}, tolerations: [{key: k, operator: Exists}], containers: [{name: c, image: i, resources: {limits: {cpu: 1600m}}}]}}}}},
			  {name: elsewhere, manifest: {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: e}, spec: {selector: {}, template: {spec: {
			    nodeSelector: {zone: north}, tolerations: [{operator: Exists}], containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}}}}}]`,
			false, 1},
		{"init containers, sidecars and overhead of a manifest", `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]`,
			`[{name: w, fill: allocatable, manifest: {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {
			   overhead: {cpu: 100m},
			   initContainers: [{name: i, image: i, resources: {requests: {cpu: 1800m}}},
			                    {name: s, image: i, restartPolicy: Always, resources: {requests: {cpu: 100m}}}],
			   containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}}}}}]`, false, 2}, // max(1800, 100+500)+100 = 1900m
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := cluster(t, "nodeGroups: "+c.groups+"\nworkloads: "+c.workloads)
			got, err := cl.FillReplicas(&cl.Workloads[0], c.withCheck)
			if err != nil || got != c.want {
				t.Errorf("got %d replicas (%v), want %d", got, err, c.want)
			}
		})
	}
}

// TestImpossibleFill: a fill that has no sensible number is an error of the experiment, not an endless or an empty workload.
func TestImpossibleFill(t *testing.T) {
	for workload, want := range map[string]string{
		`{name: w, generate: {requests: {}}, fill: free}`:                                 "the pods request nothing",
		`{name: w, generate: {requests: {cpu: 0}}, fill: allocatable}`:                    "the pods request nothing",
		`{name: w, generate: {requests: {cpu: 5}}, fill: allocatable}`:                    "not one of its pods fits on a node",
		`{name: w, generate: {requests: {example.com/gpu: 1}}, fill: allocatable}`:        "not one of its pods fits",
		`{name: w, generate: {requests: {cpu: 4001m}}, fill: free}`:                       "not one of its pods fits",
		`{name: w, generate: {kind: DaemonSet, requests: {cpu: 1}}, fill: allocatable}`:   "a DaemonSet has one pod a node",
		`{name: w, generate: {requests: {cpu: -1}}, fill: allocatable}`:                   "must not be negative",
		`{name: w, generate: {requests: {cpu: 1}}, fill: allocatable, groups: [nowhere]}`: "there is no such node group",
	} {
		c := new(Cluster)
		text := "nodeGroups: [{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]\nworkloads: [" + workload + "]"
		if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
			t.Fatal(err)
		}
		SetDefaults(c)
		if errs := c.Validate(nil); len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), want) {
			t.Errorf("%s: got %v, want %q", workload, errs, want)
		}
	}
}
