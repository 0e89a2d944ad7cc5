package kubelet

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// TestAdmission holds the decisions and texts of kubelet-behaviour against the real handler, as the model feeds it.
func TestAdmission(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	requests := func(pairs ...string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: amounts(pairs...)}
	}
	for _, tc := range []struct {
		name string
		// machine and pod change a node of 4 cpu, 8 GiB and 110 pods with static pods of 3 cpu, and a pod of 1 cpu.
		machine func(*Machine)
		pod     func(*corev1.Pod)
		// reason and message are empty for an admitted pod.
		reason, message string
		// rejection is what the trace says, without the list of pods.
		rejection trace.Rejection
	}{
		{
			name: "it just fits",
		},
		{
			name:      "cpu",
			pod:       func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("cpu", "1001m") },
			reason:    "OutOfcpu",
			message:   "Node didn't have enough resource: cpu, requested: 1001, used: 3000, capacity: 4000",
			rejection: trace.Rejection{Resource: "cpu", Requested: 1001, Used: 3000, Capacity: 4000, Static: 3000},
		},
		{
			name:      "memory, in bytes",
			pod:       func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("memory", "9Gi") },
			reason:    "OutOfmemory",
			message:   "Node didn't have enough resource: memory, requested: 9663676416, used: 0, capacity: 8589934592",
			rejection: trace.Rejection{Resource: "memory", Requested: 9 << 30, Capacity: 8 << 30},
		},
		{
			name:      "of cpu and memory only cpu is reported",
			pod:       func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("cpu", "2", "memory", "9Gi") },
			reason:    "OutOfcpu",
			message:   "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000",
			rejection: trace.Rejection{Resource: "cpu", Requested: 2000, Used: 3000, Capacity: 4000, Static: 3000},
		},
		{
			name:      "pods",
			machine:   func(m *Machine) { m.Capacity["pods"] = amounts("pods", "2")["pods"] },
			reason:    "OutOfpods",
			message:   "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
			rejection: trace.Rejection{Resource: "pods", Requested: 1, Used: 2, Capacity: 2, Static: 2},
		},
		{
			name:      "ephemeral storage",
			pod:       func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("ephemeral-storage", "11Gi") },
			reason:    "OutOfephemeral-storage",
			message:   "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240",
			rejection: trace.Rejection{Resource: "ephemeral-storage", Requested: 11 << 30, Capacity: 10 << 30},
		},
		{
			name:    "allocatable counts, not capacity",
			machine: func(m *Machine) { m.Allocatable = amounts("cpu", "3900m") },
			reason:  "OutOfcpu", message: "Node didn't have enough resource: cpu, requested: 1000, used: 3000, capacity: 3900",
			rejection: trace.Rejection{Resource: "cpu", Requested: 1000, Used: 3000, Capacity: 3900, Static: 3000},
		},
		{
			name: "the largest init container counts",
			pod: func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Name: "a", Resources: requests("cpu", "1500m")}, {Name: "b", Resources: requests("cpu", "1")}}
			},
			reason: "OutOfcpu", message: "Node didn't have enough resource: cpu, requested: 1500, used: 3000, capacity: 4000",
			rejection: trace.Rejection{Resource: "cpu", Requested: 1500, Used: 3000, Capacity: 4000, Static: 3000},
		},
		{
			name: "sidecars are added",
			pod: func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Name: "a", RestartPolicy: &always, Resources: requests("cpu", "200m")}}
			},
			reason: "OutOfcpu", message: "Node didn't have enough resource: cpu, requested: 1200, used: 3000, capacity: 4000",
			rejection: trace.Rejection{Resource: "cpu", Requested: 1200, Used: 3000, Capacity: 4000, Static: 3000},
		},
		{
			name:   "overhead is added",
			pod:    func(p *corev1.Pod) { p.Spec.Overhead = amounts("cpu", "100m") },
			reason: "OutOfcpu", message: "Node didn't have enough resource: cpu, requested: 1100, used: 3000, capacity: 4000",
			rejection: trace.Rejection{Resource: "cpu", Requested: 1100, Used: 3000, Capacity: 4000, Static: 3000},
		},
		{
			name: "pod-level resources count",
			pod: func(p *corev1.Pod) {
				r := requests("cpu", "1300m")
				p.Spec.Resources = &r
			},
			reason: "OutOfcpu", message: "Node didn't have enough resource: cpu, requested: 1300, used: 3000, capacity: 4000",
			rejection: trace.Rejection{Resource: "cpu", Requested: 1300, Used: 3000, Capacity: 4000, Static: 3000},
		},
		{
			name: "unknown extended resources are dropped",
			pod:  func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("example.com/gpu", "1") },
		},
		{
			name:   "node selector",
			pod:    func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} },
			reason: "NodeAffinity", message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		},
		{
			name:    "node selector that matches",
			machine: func(m *Machine) { m.Labels = map[string]string{"disk": "ssd"} },
			pod:     func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} },
		},
		{
			name: "NoSchedule taints are ignored",
			machine: func(m *Machine) {
				m.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
			},
		},
		{
			name: "NoExecute taints are not",
			machine: func(m *Machine) {
				m.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
			},
			reason: "TaintToleration", message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
		},
		{
			name: "NoExecute taints that are tolerated are",
			machine: func(m *Machine) {
				m.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
			},
			pod: func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
		},
		{
			name: "nothing to evict for a critical pod",
			pod: func(p *corev1.Pod) {
				critical := int32(2_000_000_000)
				p.Spec.Priority = &critical
				p.Spec.Containers[0].Resources = requests("cpu", "1500m")
			},
			reason: "UnexpectedAdmissionError",
			message: "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: " +
				"no set of running pods found to reclaim resources: [(res: cpu, q: 500), ]",
			rejection: trace.Rejection{Resource: "cpu", Requested: 1500, Used: 3000, Capacity: 4000, Static: 3000},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inCluster(t, Config{}, func(c *cluster) {
				m := newMachine("n0", manifest("a", "2"), manifest("b", "1"))
				if tc.machine != nil {
					tc.machine(&m)
				}
				c.run(m)
				pod := newPod("web", "n0", "1")
				if tc.pod != nil {
					tc.pod(pod)
				}
				c.bind(pod)
				if tc.reason == "" {
					same(c, "decision", len(c.recorded(trace.PodAdmitted)), 1)
					return
				}
				rejected := c.recorded(trace.PodRejected)
				if len(rejected) != 1 {
					c.Fatalf("got %v, want a rejection", c.kinds())
				}
				same(c, "reason", rejected[0].Reason, tc.reason)
				same(c, "message", rejected[0].Message, tc.message)
				for _, static := range c.recorded(trace.StaticPodStarted) {
					tc.rejection.Pods = append(tc.rejection.Pods, static.UID)
				}
				same(c, "rejection", rejected[0].Rejection, &tc.rejection)
				c.wait(time.Second)
				same(c, "status", c.pod("default", "web").Status.Message, "Pod was rejected: "+tc.message)
			})
		})
	}
}

// TestWhoCounts fills a node of 4 cpu with pods of 1 cpu beside a static pod of 1 cpu, and frees room in each of the ways there are.
func TestWhoCounts(t *testing.T) {
	admits := func(c *cluster, name string) bool {
		before := len(c.recorded(trace.PodAdmitted))
		c.bind(newPod(name, "n0", "1"))
		return len(c.recorded(trace.PodAdmitted)) > before
	}
	for _, tc := range []struct {
		name  string
		event func(*cluster)
		frees bool
	}{
		{"nothing happens", func(*cluster) {}, false},
		{"a pod fails", func(c *cluster) {
			c.change("default", "p0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		}, true},
		{"a pod succeeds", func(c *cluster) {
			c.change("default", "p0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		}, true},
		{"a pod terminates", func(c *cluster) {
			c.change("default", "p0", func(p *corev1.Pod) {
				now := metav1.Now()
				p.DeletionTimestamp, p.Finalizers = &now, []string{"example.com/wait"}
			})
		}, false},
		{"a pod is gone", func(c *cluster) { c.deletePod("default", "p0") }, true},
		{"the mirror appears", func(c *cluster) { c.until(20 * time.Second) }, false},
		{"the mirror is deleted", func(c *cluster) {
			c.until(20 * time.Second)
			c.deletePod("kube-system", "agent-n0")
		}, false},
		{"a rejected pod is gone", func(c *cluster) { c.deletePod("default", "surplus") }, false},
		{"the manifest is removed", func(c *cluster) {
			if err := c.kubelets.RemoveStaticPod("n0", "0.yaml"); err != nil {
				c.Fatal(err)
			}
		}, true},
		{"a pod that was bound here already ended", func(c *cluster) {
			pod := newPod("done", "n0", "1")
			pod.Status.Phase = corev1.PodSucceeded
			c.bind(pod)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inCluster(t, Config{}, func(c *cluster) {
				c.run(newMachine("n0", manifest("agent", "1")))
				for i := range 3 {
					if !admits(c, fmt.Sprintf("p%d", i)) {
						c.Fatalf("pod %d was rejected", i)
					}
				}
				if admits(c, "surplus") {
					c.Fatal("a fourth pod was admitted")
				}
				tc.event(c)
				same(c, "room", admits(c, "late"), tc.frees)
				if got := c.recorded(trace.PodRejected)[0].Pod; got != "default/surplus" {
					c.Errorf("first rejection: got %s", got)
				}
				same(c, "the rejected pod is not looked at again", func() (n int) {
					for _, e := range append(c.recorded(trace.PodRejected), c.recorded(trace.PodAdmitted)...) {
						if e.Pod == "default/surplus" {
							n++
						}
					}
					return n
				}(), 1)
			})
		})
	}
}

// Pods bound before the kubelet sees the API come as one batch by creation time; later ones in the order of their binding.
func TestAdmissionOrder(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		created := func(pod *corev1.Pod, seconds int) *corev1.Pod {
			pod.CreationTimestamp = metav1.NewTime(c.start.Add(time.Duration(seconds) * time.Second))
			return pod
		}
		c.bind(created(newPod("young", "n0", "1"), -1))
		c.bind(created(newPod("old-b", "n0", "1"), -60))
		c.bind(created(newPod("old-a", "n0", "1"), -60))
		c.bind(newPod("elsewhere", "n1", "1"))
		c.boot(newMachine("n0", manifest("agent", "1500m")))
		c.until(900 * time.Millisecond)
		c.bind(created(newPod("oldest", "n0", "1"), -120))
		c.until(5 * time.Second)
		c.bind(created(newPod("late", "n0", "100m"), 0))
		c.bind(created(newPod("later", "n0", "100m"), -600))
		same(c, "decisions", c.kinds(trace.KubeletStarted), []string{
			"StaticPodStarted kube-system/agent-n0",
			"PodAdmitted default/oldest", "PodAdmitted default/old-a", "PodRejected default/old-b", "PodRejected default/young",
			"PodAdmitted default/late", "PodAdmitted default/later",
		})
		same(c, "time of the batch", c.recorded(trace.PodAdmitted)[0].At, time.Second)
	})
}

// A late manifest evicts pods that run, whatever its priority.
func TestLateStaticPodPreempts(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.run(newMachine("n0"))
		c.bind(newPod("large", "n0", "2"))
		c.bind(newPod("small", "n0", "1"))
		c.bind(newPod("victim", "n0", "1"))
		c.wait(time.Second)
		running := func(p *corev1.Pod) {
			now := metav1.Now()
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
			p.Status.ContainerStatuses[0].Ready = true
			for i := range p.Status.Conditions {
				p.Status.Conditions[i].Status = corev1.ConditionTrue
			}
		}
		c.change("default", "victim", running)
		if err := c.kubelets.PutStaticPod("n0", "agent.yaml", []byte(manifest("agent", "500m"))); err != nil {
			c.Fatal(err)
		}
		c.wait(time.Second)
		same(c, "decisions", c.kinds(trace.KubeletStarted, trace.PodAdmitted), []string{"StaticPodStarted kube-system/agent-n0"})
		c.isGolden("preempted-status.yaml", c.pod("default", "victim").Status)
		if !c.hasPod("kube-system", "agent-n0") {
			c.Error("a manifest that comes later has its mirror at once; there is none")
		}
		// The room that is left counts for the next pod.
		c.bind(newPod("next", "n0", "500m"))
		c.bind(newPod("surplus", "n0", "500m"))
		same(c, "decisions", c.kinds(trace.KubeletStarted)[4:], []string{"PodAdmitted default/next", "PodRejected default/surplus"})
	})
}

// The reverse race (kubernetes/website#12897): a static pod that does not fit and may not evict anything is itself not started.
func TestStaticPodLargerThanTheNode(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.boot(newMachine("n0", manifest("agent", "5")))
		c.until(time.Minute)
		rejected := c.recorded(trace.PodRejected)
		if len(rejected) != 1 {
			c.Fatalf("got %v, want a rejection", c.kinds())
		}
		same(c, "reason", rejected[0].Reason, "UnexpectedAdmissionError")
		same(c, "no static pod counts", c.kinds(trace.KubeletStarted), []string{"PodRejected kube-system/agent-n0"})
		same(c, "phase of its mirror", c.pod("kube-system", "agent-n0").Status.Phase, corev1.PodFailed)
	})
}

func TestBackOff(t *testing.T) {
	var got []time.Duration
	for restarts := range int32(8) {
		got = append(got, backOff(restarts+1)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{10, 20, 40, 80, 160, 300, 300, 300}, got); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}
