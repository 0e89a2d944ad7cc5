package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
)

// machines is a Kubelets that writes down what is asked of it and when. It is used in a bubble, where times are exact.
type machines struct {
	start   time.Time
	log     []string
	started []kubelet.Machine
	fail    error
}

func (m *machines) note(format string, args ...any) error {
	m.log = append(m.log, fmt.Sprintf("%v ", time.Since(m.start))+fmt.Sprintf(format, args...))
	return m.fail
}

func (m *machines) Start(_ context.Context, machine kubelet.Machine) error {
	m.started = append(m.started, machine)
	return m.note("start %s", machine.Name)
}
func (m *machines) Restart(node string) error { return m.note("restart %s", node) }
func (m *machines) Stop(node string)          { _ = m.note("stop %s", node) }
func (m *machines) Kill(node string)          { _ = m.note("kill %s", node) }
func (m *machines) PutStaticPod(node, file string, manifest []byte) error {
	return m.note("put %s on %s: %s", file, node, manifest)
}
func (m *machines) RemoveStaticPod(node, file string) error {
	return m.note("remove %s from %s", file, node)
}

// testFleet makes a fleet of the groups in text. The API server has the given objects; deletions are written down among what the kubelets do.
func testFleet(t *testing.T, text string, objects ...runtime.Object) (*Fleet, *machines) {
	t.Helper()
	var c sim.Cluster
	if err := yaml.UnmarshalStrict([]byte("nodeGroups: "+text), &c); err != nil {
		t.Fatal(err)
	}
	sim.SetDefaults(&c)
	m := &machines{start: time.Now()}
	api := fake.NewSimpleClientset(objects...)
	api.PrependReactor("delete", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		d := a.(ktesting.DeleteActionImpl)
		grace := "the default"
		if p := d.DeleteOptions.GracePeriodSeconds; p != nil {
			grace = fmt.Sprint(*p)
		}
		return false, nil, m.note("delete %s %s with grace %s", d.Resource.Resource, d.Name, grace)
	})
	return newFleet(Config{Groups: c.NodeGroups, Seed: 1, Kubelets: map[sim.Implementation]Kubelets{sim.KubeletModel: m}}, api), m
}

func expect(t *testing.T, m *machines, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, m.log); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func nodes(names ...string) []runtime.Object {
	var list []runtime.Object
	for _, name := range names {
		list = append(list, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list
}

// TestScaleUps: groups grow at the same time, each in its own way, counted from the call of Grow.
func TestScaleUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := testFleet(t, `[
			{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 2, scaleUp: {to: 4, after: 5s}},
			{name: b, capacity: {cpu: 4, memory: 8Gi}, scaleUp: {to: 3, arrival: {evenly: 10s}}},
			{name: c, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]`)
		if err := f.Initial(t.Context()); err != nil || f.Size() != 3 {
			t.Fatalf("%d machines at the start (%v), want 3", f.Size(), err)
		}
		time.Sleep(time.Hour)
		if err := f.Grow(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(t, m, "0s start a-0", "0s start a-1", "0s start c-0",
			"1h0m0s start b-0", "1h0m5s start a-2", "1h0m5s start a-3", "1h0m5s start b-1", "1h0m10s start b-2")
		if f.Size() != 8 {
			t.Errorf("%d machines at the end, want 8", f.Size())
		}
	})
}

// TestMachines: what a kubelet gets to know about its machine.
func TestMachines(t *testing.T) {
	f, m := testFleet(t, `[{name: a, capacity: {cpu: 4, memory: 8Gi}, allocatable: {cpu: 3920m}, initial: 1, scaleUp: {to: 2},
		labels: {zone: z}, taints: [{key: own, effect: NoExecute}], kubelet: {statusTick: 3s},
		staticPods: [{fileName: p.yaml, manifest: {kind: Pod}}]}]`)
	f.config.Taint = &corev1.Taint{Key: "gate", Value: "pending", Effect: corev1.TaintEffectNoSchedule}
	if err := errors.Join(f.Initial(t.Context()), f.Grow(t.Context())); err != nil {
		t.Fatal(err)
	}
	group := f.config.Groups[0]
	want := kubelet.Machine{
		Name: "a-0", Group: "a", Capacity: group.Capacity, Allocatable: group.Allocatable, Labels: map[string]string{"zone": "z"},
		Taints:  []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoExecute}, *f.config.Taint},
		Initial: true, Established: true, Behaviour: *group.Kubelet, StaticPods: group.StaticPods,
	}
	if diff := cmp.Diff(want, m.started[0]); diff != "" {
		t.Errorf("initial machine (-want +got)\n%s", diff)
	}
	want.Name, want.Initial, want.Established = "a-1", false, false
	if diff := cmp.Diff(want, m.started[1]); diff != "" {
		t.Errorf("new machine (-want +got)\n%s", diff)
	}
	if len(group.Taints) != 1 {
		t.Errorf("the group itself got the readiness taint: %v", group.Taints)
	}
}

func TestActions(t *testing.T) {
	const group = `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 3, actions: [%s]}]`
	for name, c := range map[string]struct {
		actions string
		want    []string
	}{
		"leave": {`{at: 2s, nodes: [1], leave: {}}`, []string{"2s stop a-1", "2s delete nodes a-1 with grace the default"}},
		"leave and return": {`{at: 2s, nodes: [1], leave: {return: 5s}}`,
			[]string{"2s stop a-1", "2s delete nodes a-1 with grace the default", "7s start a-1"}},
		"reboot": {`{at: 2s, nodes: [2, 0], reboot: {down: 3s}}`, []string{"2s stop a-2", "2s stop a-0", "5s restart a-2", "5s restart a-0"}},
		"put a static pod, as text and as an object": {
			`{at: 2s, nodes: [0], putStaticPod: {fileName: p.yaml, manifest: "just: text\n"}},
			 {at: 3s, nodes: [0], putStaticPod: {fileName: p.yaml, manifest: {kind: Pod}}}`,
			[]string{"2s put p.yaml on a-0: just: text\n", `3s put p.yaml on a-0: {"kind":"Pod"}`}},
		"remove a static pod":      {`{at: 2s, nodes: [0], removeStaticPod: p.yaml}`, []string{"2s remove p.yaml from a-0"}},
		"delete a mirror, at once": {`{at: 2s, nodes: [0], deleteMirror: proxy}`, []string{"2s delete pods proxy-a-0 with grace 0"}},
		"all nodes that are there": {`{at: 1s, nodes: [1], leave: {}}, {at: 2s, reboot: {down: 1s}}`,
			[]string{"1s stop a-1", "1s delete nodes a-1 with grace the default", "2s stop a-0", "2s stop a-2", "3s restart a-0", "3s restart a-2"}},
		"who leaves during a reboot does not start again": {`{at: 1s, nodes: [0], reboot: {down: 4s}}, {at: 2s, nodes: [0], leave: {}}`,
			[]string{"1s stop a-0", "2s stop a-0", "2s delete nodes a-0 with grace the default"}},
		"in the order of time, and as written at the same time": {
			`{at: 5s, nodes: [0], removeStaticPod: last}, {at: 1s, nodes: [0], removeStaticPod: first},
			 {at: 5s, nodes: [0], removeStaticPod: very-last}, {at: 0s, nodes: [0], reboot: {down: 2s}}`,
			[]string{"0s stop a-0", "1s remove first from a-0", "2s restart a-0", "5s remove last from a-0", "5s remove very-last from a-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mirror := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "proxy-a-0"}, Spec: corev1.PodSpec{NodeName: "a-0"}}
				f, m := testFleet(t, fmt.Sprintf(group, c.actions), append(nodes("a-0", "a-1", "a-2"), mirror)...)
				if err := f.Initial(t.Context()); err != nil {
					t.Fatal(err)
				}
				m.log = nil
				if err := f.Grow(t.Context()); err != nil {
					t.Fatal(err)
				}
				expect(t, m, c.want...)
			})
		})
	}
}

// TestReturnedMachineIsNew: it is neither initial nor established, and has the group's static pods again.
func TestReturnedMachineIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := testFleet(t, `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1, staticPods: [{fileName: p.yaml, manifest: {kind: Pod}}],
			actions: [{at: 1s, leave: {return: 1s}}]}]`, nodes("a-0")...)
		if err := errors.Join(f.Initial(t.Context()), f.Grow(t.Context())); err != nil {
			t.Fatal(err)
		}
		want := m.started[0]
		want.Initial, want.Established = false, false
		if diff := cmp.Diff(want, m.started[1]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if f.Size() != 1 {
			t.Errorf("%d machines, want 1", f.Size())
		}
	})
}

// TestNamespacesOfStaticPods are created, those of late manifests too, so that their mirror pods can be, but not the one that is to be missing.
func TestNamespacesOfStaticPods(t *testing.T) {
	const pod = `{manifest: {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: %s}}}`
	f, _ := testFleet(t, fmt.Sprintf(`[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1, actions: [{at: 1s, putStaticPod: %s}],
		staticPods: [%s, %s, {manifest: {apiVersion: v1, kind: Pod, metadata: {name: p}}}, {manifest: nonsense, invalid: true}]}]`,
		fmt.Sprintf(pod, "late"), fmt.Sprintf(pod, "missing"), fmt.Sprintf(pod, "kube-system")),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	if err := f.CreateNamespaces(t.Context(), []string{"missing"}); err != nil {
		t.Fatal(err)
	}
	list, err := f.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"kube-system", "late"}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestImpossibleActions end with an error that names the node and says what to do about it.
func TestImpossibleActions(t *testing.T) {
	for name, c := range map[string]struct{ group, want string }{
		"a node that has not joined": {`{initial: 1, scaleUp: {to: 2, after: 1h}, actions: [{at: 1s, nodes: [1], reboot: {}}]`, "a-1, which is not there"},
		"a node that has left": {`{initial: 1, actions: [{at: 1s, nodes: [0], leave: {}}, {at: 2s, nodes: [0], removeStaticPod: p}]`,
			"a-0, which is not there"},
		"a mirror that does not exist": {`{initial: 1, actions: [{at: 1s, nodes: [0], deleteMirror: proxy}]`, "proxy-a-0: node a-0 has none of that name yet"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _ := testFleet(t, "["+c.group+", name: a, capacity: {cpu: 4, memory: 8Gi}}]", nodes("a-0")...)
				if err := f.Initial(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := f.Grow(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want an error that says %q", err, c.want)
				}
			})
		})
	}
}

// TestLeavesBeforeItRegistered: a machine may go before its kubelet has reached the API.
func TestLeavesBeforeItRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := testFleet(t, `[{initial: 1, scaleUp: {to: 2}, actions: [{at: 3s, nodes: [1], leave: {}}], name: a, capacity: {cpu: 4, memory: 8Gi}}]`, nodes("a-0")...)
		if err := f.Initial(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.Grow(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(t, m, "0s start a-0", "0s start a-1", "3s stop a-1", "3s delete nodes a-1 with grace the default")
	})
}

func TestKubeletErrorsEndTheScript(t *testing.T) {
	for _, action := range []string{
		`{at: 1s, putStaticPod: {fileName: p, manifest: {}}}`, `{at: 1s, removeStaticPod: p}`, `{at: 1s, reboot: {}}`, `{at: 1s, leave: {return: 0s}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			f, m := testFleet(t, `[{name: a, capacity: {cpu: 4, memory: 8Gi}, initial: 1, actions: [`+action+`, {at: 2s, removeStaticPod: never}]}]`, nodes("a-0")...)
			if err := f.Initial(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.fail = errors.New("no such luck")
			if err := f.Grow(t.Context()); !errors.Is(err, m.fail) || !strings.Contains(err.Error(), "node group a") {
				t.Errorf("%s: got %v, want the kubelet's error", action, err)
			}
			if slices.ContainsFunc(m.log, func(line string) bool { return strings.Contains(line, "never") }) {
				t.Errorf("%s: the script goes on", action)
			}
		})
	}
}

func TestGrowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := testFleet(t, `[{name: a, capacity: {cpu: 4, memory: 8Gi}, scaleUp: {to: 2, arrival: {times: [1s, 1h]}}}]`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := f.Grow(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		expect(t, m, "1s start a-0")
	})
}
