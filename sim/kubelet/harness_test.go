package kubelet

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// seen is a trace event and when it was recorded.
type seen struct {
	At time.Duration
	trace.Event
}

// cluster is a fake API server with kubelets, inside a bubble of virtual time.
type cluster struct {
	*testing.T
	client   *fake.Clientset
	kubelets *Kubelets
	start    time.Time

	mu      sync.Mutex
	events  []seen
	actions []timedAction
	created int
}

type timedAction struct {
	at time.Duration
	clienttesting.Action
}

// inCluster runs a test in virtual time, with kubelets that run.
func inCluster(t *testing.T, config Config, test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, config)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.kubelets.Run(ctx) }()
		<-c.kubelets.running
		c.mu.Lock()
		c.start = time.Now()
		c.mu.Unlock()
		test(c)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func newCluster(t *testing.T, config Config) *cluster {
	t.Helper()
	c := &cluster{T: t, client: fake.NewClientset(), start: time.Now()}
	c.client.PrependReactor("*", "*", c.note)
	c.client.PrependReactor("create", "*", c.identify)
	config.Recorder = trace.RecorderFunc(func(e trace.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, seen{time.Since(c.start), e})
	})
	kubelets, err := newKubelets(config, c.client)
	if err != nil {
		t.Fatal(err)
	}
	c.kubelets = kubelets
	return c
}

// note keeps the time of each request.
func (c *cluster) note(action clienttesting.Action) (bool, runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.actions = append(c.actions, timedAction{time.Since(c.start), action})
	return false, nil, nil
}

// identify gives objects what a real API server gives them: a UID and a creation time.
func (c *cluster) identify(action clienttesting.Action) (bool, runtime.Object, error) {
	object, ok := action.(clienttesting.CreateAction).GetObject().(metav1.Object)
	if !ok || action.GetSubresource() != "" {
		return false, nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created++
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", c.created)))
	if created := object.GetCreationTimestamp(); created.IsZero() {
		object.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
	object.SetGeneration(1)
	return false, nil, nil
}

// refuse makes the API server refuse the next requests of a kind.
func (c *cluster) refuse(verb, resource string, times int) {
	c.client.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if times == 0 {
			return false, nil, nil
		}
		times--
		_, _, _ = c.note(action)
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), actionName(action), errors.New("no PriorityClass"))
	})
}

// wait lets virtual time pass.
func (c *cluster) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// until waits until so long after the start.
func (c *cluster) until(d time.Duration) { c.wait(d - time.Since(c.start)) }

// run starts a machine and lets the start-up pass, up to the first housekeeping.
func (c *cluster) run(m Machine) {
	c.Helper()
	c.boot(m)
	c.wait(2500 * time.Millisecond)
}

func (c *cluster) boot(m Machine) {
	c.Helper()
	if err := c.kubelets.Start(c.Context(), m); err != nil {
		c.Fatal(err)
	}
}

// bind creates a pod that is bound to its node already, and lets the kubelet decide about it.
func (c *cluster) bind(pod *corev1.Pod) *corev1.Pod {
	c.Helper()
	created, err := c.client.CoreV1().Pods(pod.Namespace).Create(c.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	synctest.Wait()
	return created
}

func (c *cluster) pod(namespace, name string) *corev1.Pod {
	c.Helper()
	pod, err := c.client.CoreV1().Pods(namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return pod
}

func (c *cluster) hasPod(namespace, name string) bool {
	_, err := c.client.CoreV1().Pods(namespace).Get(c.Context(), name, metav1.GetOptions{})
	return err == nil
}

// change updates a pod in the API, as somebody else than the kubelet does.
func (c *cluster) change(namespace, name string, mutate func(*corev1.Pod)) {
	c.Helper()
	pod := c.pod(namespace, name)
	mutate(pod)
	if _, err := c.client.CoreV1().Pods(namespace).Update(c.Context(), pod, metav1.UpdateOptions{}); err != nil {
		c.Fatal(err)
	}
	synctest.Wait()
}

func (c *cluster) deletePod(namespace, name string) {
	c.Helper()
	if err := c.client.CoreV1().Pods(namespace).Delete(c.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	synctest.Wait()
}

// kinds are the trace events so far as "Kind pod", without those of the kinds to leave out.
func (c *cluster) kinds(leaveOut ...trace.Kind) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kinds []string
	for _, e := range c.events {
		if !slices.Contains(leaveOut, e.Kind) {
			kinds = append(kinds, strings.TrimSpace(string(e.Kind)+" "+e.Pod))
		}
	}
	return kinds
}

// recorded are the trace events of a kind.
func (c *cluster) recorded(kind trace.Kind) []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.events), func(e seen) bool { return e.Kind != kind })
}

// times are when the kubelets made a request so far, such as "create pods", or "patch pods" with a name.
func (c *cluster) times(verb, resource, name string) []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var times []time.Duration
	for _, a := range c.actions {
		if a.GetVerb() == verb && a.GetResource().Resource == resource && actionName(a.Action) == name {
			times = append(times, a.at)
		}
	}
	return times
}

func actionName(action clienttesting.Action) string {
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		return a.GetObject().(metav1.Object).GetName()
	case clienttesting.PatchActionImpl:
		return a.GetName()
	case clienttesting.DeleteActionImpl:
		return a.GetName()
	default:
		return ""
	}
}

// isGolden compares an object with testdata/<name>.
func (c *cluster) isGolden(name string, object any) {
	c.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		c.Fatal(err)
	}
	got = bytes.ReplaceAll(got, []byte(": "+goruntime.GOARCH+"\n"), []byte(": amd64\n")) // golden files are those of one architecture
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			c.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		c.Fatalf("%v (run go test -update to write it)", err)
	}
	if !bytes.Equal(got, want) {
		c.Errorf("%s (run go test -update if the change is meant):\n%s", path, cmp.Diff(string(want), string(got)))
	}
}

// same fails the test when got is not want.
func same[T any](c *cluster, what string, got, want T) {
	c.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// newMachine is a machine of 4 cpu and 8 GiB whose delays are constants that tell each other apart.
func newMachine(name string, manifests ...string) Machine {
	m := Machine{
		Name: name, Group: "workers",
		Capacity:  amounts("cpu", "4", "memory", "8Gi", "pods", "110", "ephemeral-storage", "10Gi"),
		Behaviour: behaviour(),
	}
	for _, manifest := range manifests {
		m.StaticPods = append(m.StaticPods, sim.StaticPod{FileName: fmt.Sprintf("%d.yaml", len(m.StaticPods)), Manifest: []byte(manifest)})
	}
	return m
}

func behaviour() sim.Kubelet {
	return sim.Kubelet{
		ReadyDelay:     random.Constant(300 * time.Millisecond),
		MirrorDelay:    random.Constant(15 * time.Second),
		MirrorRetry:    random.Constant(75 * time.Second),
		MirrorResync:   random.Constant(40 * time.Second),
		StatusDelay:    random.Constant(80 * time.Millisecond),
		StatusTick:     &metav1.Duration{Duration: 10 * time.Second},
		Housekeeping:   &metav1.Duration{Duration: 2 * time.Second},
		PodSourceDelay: random.Constant(time.Second),
	}
}

// amounts makes a resource list of pairs.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// manifest is a static pod with a cpu request.
func manifest(name, cpu string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: kube-system, labels: {app: %[1]s}}
spec:
  containers:
  - name: main
    image: registry.example.com/%[1]s:v1
    resources: {requests: {cpu: %s}}
`, name, cpu)
}

// newPod is a pod bound to a node, as a scheduler leaves it.
func newPod(name, nodeName, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{
			NodeName:      nodeName,
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/app:v1",
				Resources: corev1.ResourceRequirements{Requests: amounts("cpu", cpu)},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
			}},
		},
	}
}

func milliseconds(times ...int) []time.Duration {
	var durations []time.Duration
	for _, t := range times {
		durations = append(durations, time.Duration(t)*time.Millisecond)
	}
	return durations
}
