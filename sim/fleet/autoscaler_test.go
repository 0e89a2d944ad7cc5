package fleet

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/mirrorgap/mirrorgap/sim"
)

var readiness = corev1.Taint{Key: "readiness.k8s.io/StaticPodsMirrored", Effect: corev1.TaintEffectNoSchedule}

// testAutoscaler makes an autoscaler of a group pool of nodes of 4 cpu with 100m in static pods, over an API server that has the given objects.
func testAutoscaler(t *testing.T, spec string, objects ...runtime.Object) (*Autoscaler, *machines) {
	t.Helper()
	var c sim.Cluster
	text := `
nodeGroups:
- name: pool
  capacity: {cpu: 4, memory: 8Gi}
  staticPods: [{manifest: {apiVersion: v1, kind: Pod, metadata: {name: s}, spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 100m}}}]}}}]
autoscaler: ` + spec
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	sim.SetDefaults(&c)
	m := &machines{start: time.Now()}
	api := fake.NewSimpleClientset(objects...)
	f := newFleet(Config{Groups: c.NodeGroups, Seed: 1, Taint: &readiness, Kubelets: map[sim.Implementation]Kubelets{sim.KubeletModel: m}}, api)
	a, err := newAutoscaler(AutoscalerConfig{Cluster: &c, Fleet: f, Seed: 1}, api)
	if err != nil {
		t.Fatal(err)
	}
	return a, m
}

// waiting are pods of 1 cpu that the scheduler found no room for.
func waiting(n int) []runtime.Object {
	var pods []runtime.Object
	for i := range n {
		pod := podOn("", fmt.Sprintf("waiting-%d", i))
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		pods = append(pods, pod)
	}
	return pods
}

func podOn(node, name string) *corev1.Pod {
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu}}}},
	}
}

func poolNode(name string, ready bool, taints ...corev1.Taint) *corev1.Node {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{sim.LabelGroup: "pool"}},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status:     corev1.NodeStatus{Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
	}
}

// TestAutoscalerAsks: as many nodes as the pods need that have no room on nodes which are there, or are still coming.
func TestAutoscalerAsks(t *testing.T) {
	tests := map[string]struct {
		spec    string
		size    int // machines that were started before
		objects []runtime.Object
		want    int
	}{
		"nothing waits":                         {"{group: pool, max: 9}", 1, []runtime.Object{poolNode("pool-0", true)}, 0},
		"three pods fit onto a node":            {"{group: pool, max: 9}", 0, waiting(7), 3},
		"no more than the largest size":         {"{group: pool, max: 2}", 0, waiting(7), 2},
		"a node that is not registered":         {"{group: pool, max: 9}", 1, waiting(7), 2},
		"a node that is not Ready":              {"{group: pool, max: 9}", 1, append(waiting(7), poolNode("pool-0", false)), 2},
		"a node with room":                      {"{group: pool, max: 9}", 1, append(waiting(7), poolNode("pool-0", true), podOn("pool-0", "a")), 2},
		"a full node":                           {"{group: pool, max: 9}", 1, append(waiting(1), poolNode("pool-0", true), podOn("pool-0", "a"), podOn("pool-0", "b"), podOn("pool-0", "c"), podOn("pool-0", "d")), 1},
		"a held node, taint unknown":            {"{group: pool, max: 9}", 1, append(waiting(3), poolNode("pool-0", true, readiness)), 1},
		"a held node, taint known as startup":   {"{group: pool, max: 9, startupTaints: true}", 1, append(waiting(3), poolNode("pool-0", true, readiness)), 0},
		"no room on any node of the group":      {"{group: pool, max: 9}", 0, []runtime.Object{large()}, 0},
		"a pod that the scheduler has not seen": {"{group: pool, max: 9}", 0, []runtime.Object{podOn("", "new")}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, _ := testAutoscaler(t, test.spec, test.objects...)
			for range test.size {
				if err := a.config.Fleet.join(t.Context(), 0, false); err != nil {
					t.Fatal(err)
				}
			}
			got, err := a.scan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("it asked for %d nodes, want %d", got, test.want)
			}
		})
	}
}

func large() *corev1.Pod {
	pod := waiting(1)[0].(*corev1.Pod)
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("4")
	return pod
}

// TestAutoscalerProvides: machines start their provision delay after the scan that asked for them, and later scans count on them meanwhile.
func TestAutoscalerProvides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, m := testAutoscaler(t, "{group: pool, max: 9, scanInterval: 10s, provisionDelay: {constant: 25s}}", waiting(4)...)
		ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
		defer cancel()
		if a.Idle() {
			t.Error("it is idle before it has scanned")
		}
		if err := a.Run(ctx); err != nil {
			t.Fatal(err)
		}
		expect(t, m, "25s start pool-0", "25s start pool-1")
		if a.Idle() {
			t.Error("it was idle although its last scan found machines on their way")
		}
	})
}
