package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

func TestStartOfANode(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		m := newMachine("n0", manifest("agent", "500m"))
		m.Labels = map[string]string{"disk": "ssd"}
		m.Taints = []corev1.Taint{{Key: "readiness.k8s.io/StaticPodsMirrored", Value: "pending", Effect: corev1.TaintEffectNoSchedule}}
		m.Initial = true
		m.Allocatable = amounts("cpu", "3500m")
		c.boot(m)
		c.until(time.Minute)

		same(c, "trace", c.kinds(), []string{"KubeletStarted", "StaticPodStarted kube-system/agent-n0"})
		same(c, "requests of the static pod", c.recorded(trace.StaticPodStarted)[0].Requests, trace.Resources{"cpu": 500})
		created := c.times("create", "nodes", "n0")
		same(c, "Node creation", created, []time.Duration{100 * time.Millisecond})
		same(c, "mirror creation", c.times("create", "pods", "agent-n0"), []time.Duration{created[0] + 15*time.Second})
		same(c, "status of the mirror", c.times("patch", "pods", "agent-n0"), []time.Duration{20 * time.Second})

		node, err := c.client.CoreV1().Nodes().Get(c.Context(), "n0", metav1.GetOptions{})
		if err != nil {
			c.Fatal(err)
		}
		node.ManagedFields = nil
		c.isGolden("node.yaml", node)
		mirror := c.pod("kube-system", "agent-n0")
		mirror.ManagedFields = nil
		c.isGolden("mirror-pod.yaml", mirror)
	})
}

func TestEstablishedNodeHasMirrorsAtOnce(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		m := newMachine("n0", manifest("a", "100m"), manifest("b", "100m"))
		m.Established = true
		c.boot(m)
		c.until(time.Second)
		want := []time.Duration{100 * time.Millisecond}
		same(c, "mirror of a", c.times("create", "pods", "a-n0"), want)
		same(c, "mirror of b", c.times("create", "pods", "b-n0"), want)
	})
}

func TestStatusOfAnAdmittedPod(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.run(newMachine("n0"))
		pod := newPod("web", "n0", "1")
		pod.Spec.InitContainers = []corev1.Container{{Name: "prepare", Image: "registry.example.com/prepare:v1"}}
		bound := time.Since(c.start)
		c.bind(pod)
		c.wait(time.Second)
		same(c, "decision", c.kinds(trace.KubeletStarted), []string{"PodAdmitted default/web"})
		same(c, "status writes", c.times("patch", "pods", "web"), []time.Duration{bound + 80*time.Millisecond})
		c.isGolden("admitted-status.yaml", c.pod("default", "web").Status)
	})
}

func TestStatusOfARejectedPod(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.run(newMachine("n0", manifest("agent", "3500m")))
		bound := time.Since(c.start)
		c.bind(newPod("web", "n0", "1"))
		c.wait(time.Second)

		same(c, "status writes", c.times("patch", "pods", "web"), []time.Duration{bound + 80*time.Millisecond})
		c.isGolden("rejected-status.yaml", c.pod("default", "web").Status)

		static := c.recorded(trace.StaticPodStarted)[0].UID
		rejected := c.recorded(trace.PodRejected)
		same(c, "trace", rejected, []seen{{bound, trace.Event{
			Kind: trace.PodRejected, Source: trace.SourceKubelet, Node: "n0", Pod: "default/web", UID: string(c.pod("default", "web").UID),
			Reason:  "OutOfcpu",
			Message: "Node didn't have enough resource: cpu, requested: 1000, used: 3500, capacity: 4000",
			Rejection: &trace.Rejection{
				Resource: "cpu", Requested: 1000, Used: 3500, Capacity: 4000, Static: 3500, Pods: []string{static},
			},
		}}})

		events, err := c.client.CoreV1().Events("default").List(c.Context(), metav1.ListOptions{})
		if err != nil {
			c.Fatal(err)
		}
		if len(events.Items) != 1 {
			c.Fatalf("got %d events, want 1", len(events.Items))
		}
		e := events.Items[0]
		same(c, "event", []string{e.Type, e.Reason, e.Message, e.Source.Component, e.Source.Host, e.InvolvedObject.Name}, []string{
			"Warning", "OutOfcpu", "Node didn't have enough resource: cpu, requested: 1000, used: 3500, capacity: 4000", "kubelet", "n0", "web",
		})
	})
}

// Before the first housekeeping the phase of a rejected pod stays Pending until the status tick, and the scheduler counts the pod until then.
func TestRejectionBeforeTheFirstHousekeeping(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.boot(newMachine("n0", manifest("agent", "3500m")))
		c.until(1500 * time.Millisecond)
		c.bind(newPod("web", "n0", "1"))
		c.until(9 * time.Second)
		same(c, "status before the tick", c.pod("default", "web").Status, corev1.PodStatus{
			Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, ObservedGeneration: 1,
			StartTime: c.pod("default", "web").Status.StartTime})
		c.until(11 * time.Second)
		same(c, "phase after the tick", c.pod("default", "web").Status.Phase, corev1.PodFailed)
		same(c, "status writes", c.times("patch", "pods", "web"), []time.Duration{1580 * time.Millisecond, 10 * time.Second})
	})
}

// A mirror's status goes out with any other status of the node, without waiting for the tick.
func TestMirrorStatusGoesOutWithAnother(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		m := newMachine("n0", manifest("agent", "500m"))
		m.Established = true
		c.boot(m)
		c.until(4 * time.Second)
		same(c, "status of the mirror", c.times("patch", "pods", "agent-n0"), nil)
		c.bind(newPod("web", "n0", "1"))
		c.wait(time.Second)
		same(c, "status of the mirror", c.times("patch", "pods", "agent-n0"), []time.Duration{4080 * time.Millisecond})
	})
}

func TestRegistrationIsRetried(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.refuse("create", "nodes", 4)
		c.boot(newMachine("n0", manifest("agent", "500m")))
		c.until(time.Minute)
		same(c, "Node creation", c.times("create", "nodes", "n0"), milliseconds(100, 300, 700, 1500, 3100))
		same(c, "mirror creation", c.times("create", "pods", "agent-n0"), milliseconds(18100))
	})
}

func TestExistingNodeIsReconciled(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", Labels: map[string]string{"by": "hand", corev1.LabelHostname: "wrong"}}}
		if _, err := c.client.CoreV1().Nodes().Create(c.Context(), old, metav1.CreateOptions{}); err != nil {
			c.Fatal(err)
		}
		m := newMachine("n0")
		m.Labels = map[string]string{"disk": "ssd"}
		c.run(m)
		node, err := c.client.CoreV1().Nodes().Get(c.Context(), "n0", metav1.GetOptions{})
		if err != nil {
			c.Fatal(err)
		}
		same(c, "hostname", node.Labels[corev1.LabelHostname], "n0")
		same(c, "label of others", node.Labels["by"], "hand")
		same(c, "labels of the registration", node.Labels["disk"], "")
		same(c, "cpu", node.Status.Capacity.Cpu().String(), "4")
		if node.Annotations[AnnotationReadyAt] == "" {
			c.Error("the node will never become Ready: annotation ready-at is missing")
		}
	})
}

func TestStartFails(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.run(newMachine("n0"))
		noName, noCPU, noDelay, noFile := newMachine(""), newMachine("n1"), newMachine("n1"), newMachine("n1", manifest("a", "1"))
		delete(noCPU.Capacity, corev1.ResourceCPU)
		noDelay.Behaviour.MirrorRetry = nil
		noFile.StaticPods[0].FileName = ""
		for _, tc := range []struct {
			machine Machine
			want    string
		}{
			{newMachine("n0"), "start kubelet n0: it runs already"},
			{noName, "start kubelet : the machine has no name"},
			{noCPU, "start kubelet n1: its capacity has no cpu"},
			{noDelay, "start kubelet n1: its behaviour has no mirrorRetry"},
			{noFile, "start kubelet n1: static pod 0 has no file name or no manifest"},
		} {
			if err := c.kubelets.Start(c.Context(), tc.machine); err == nil || err.Error() != tc.want {
				c.Errorf("got error %v, want %s", err, tc.want)
			}
		}
		for want, err := range map[string]error{
			"restart kubelet n0: it runs already":                   c.kubelets.Restart("n0"),
			"restart kubelet n9: there is no machine of that name":  c.kubelets.Restart("n9"),
			"write static pod a.yaml: there is no machine n9":       c.kubelets.PutStaticPod("n9", "a.yaml", nil),
			"remove static pod a.yaml: there is no machine n9":      c.kubelets.RemoveStaticPod("n9", "a.yaml"),
			"remove static pod a.yaml: machine n0 has no such file": c.kubelets.RemoveStaticPod("n0", "a.yaml"),
		} {
			if err == nil || err.Error() != want {
				c.Errorf("got error %v, want %s", err, want)
			}
		}
		c.kubelets.Stop("n9") // does nothing
	})
}
