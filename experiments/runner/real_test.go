package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// eventsOf reads the events of a run that one node is concerned with.
func (o outcome) eventsOf(arm, node string) []trace.Event {
	GinkgoHelper()
	path := filepath.Join(o.dir, arm, "seed-1", results.TraceFile)
	file, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	reader, err := trace.NewReader(path, file)
	Expect(err).NotTo(HaveOccurred())
	var events []trace.Event
	for {
		e, err := reader.Next()
		if err != nil {
			return events
		}
		if e.Node == node {
			events = append(events, e)
		}
	}
}

// kinds counts events by their kind.
func kinds(events []trace.Event) map[trace.Kind]int {
	count := map[trace.Kind]int{}
	for _, e := range events {
		count[e.Kind]++
	}
	return count
}

// first is when the first event of a kind happened.
func first(events []trace.Event, kind trace.Kind) time.Duration {
	GinkgoHelper()
	for _, e := range events {
		if e.Kind == kind {
			return e.T
		}
	}
	Fail("there is no " + string(kind))
	return 0
}

// withRefusedMirrors is a cluster of both implementations in which mirror pods cannot be created at first, for four reasons.
const withRefusedMirrors = `
  timeLimit: 4m
  stop: {settle: 3s}
  apiFaults:
    - {refuseMirrors: {groups: [real, model]}, until: 2s}
    - {missingNamespace: agents, until: 2s}
    - {missingPriorityClass: {name: agent, value: 1000}, until: 2s}
  kubelet: {mirrorDelay: {preset: kubelet-1.32}}
  nodeGroups:
    - &group
      name: real
      kubelet: {implementation: real}
      capacity: {cpu: 4, memory: 8Gi}
      scaleUp: {to: 2}
      staticPods:
        - manifest: &pod {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: kube-system}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]}}
    - name: model
      kubelet: {implementation: model}
      capacity: {cpu: 4, memory: 8Gi}
      scaleUp: {to: 2}
      staticPods: [{manifest: *pod}]
    - name: real-ns
      kubelet: {implementation: real}
      capacity: {cpu: 4, memory: 8Gi}
      scaleUp: {to: 1}
      staticPods: &ns
        - manifest: {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: agents}, spec: {containers: [{name: c, image: i}]}}
    - name: model-ns
      kubelet: {implementation: model}
      capacity: {cpu: 4, memory: 8Gi}
      scaleUp: {to: 1}
      staticPods: *ns
    - name: real-class
      kubelet: {implementation: real}
      capacity: {cpu: 4, memory: 8Gi}
      scaleUp: {to: 1}
      staticPods: &class
        - manifest: {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: kube-system}, spec: {priorityClassName: agent, containers: [{name: c, image: i}]}}
    - name: model-class
      kubelet: {implementation: model}
      capacity: {cpu: 4, memory: 8Gi}
      scaleUp: {to: 1}
      staticPods: *class
    - name: real-cut-off
      kubelet: {implementation: real, apiUnreachable: 4s}
      capacity: {cpu: 4, memory: 8Gi}
      scaleUp: {to: 1}
    - name: model-cut-off
      kubelet: {implementation: model, apiUnreachable: 4s}
      capacity: {cpu: 4, memory: 8Gi}
      scaleUp: {to: 1}
  workloads:
    - {name: on-real, groups: [real], generate: {requests: {cpu: 1}}, fill: allocatable}
    - {name: on-model, groups: [model], generate: {requests: {cpu: 1}}, fill: allocatable}
  arms: [{name: ungated}]
`

var _ = Describe("real kubelets", func() {
	BeforeEach(leavesNothing)

	It("show the same race as the model when mirror pods cannot be created", limit, func(ctx SpecContext) {
		o := conduct(ctx, experiment(withRefusedMirrors), Options{})
		Expect(o.err).NotTo(HaveOccurred())
		r := o.run("ungated")
		Expect(r.Settled()).To(BeTrue())

		By("looking at the nodes that reject pods meanwhile")
		for _, group := range []string{"real", "model"} {
			var firstWave int
			for i := range 2 {
				n := node(r, fmt.Sprintf("%s-%d", group, i))
				firstWave += n.FirstWave.HiddenRejected
				Expect(*n.MirrorsVisible-n.Registered).To(BeNumerically(">=", time.Minute), "%s: a refused mirror is tried again after 60 to 90 s", n.Name)
			}
			// One node may have bounced all surplus pods before the other was Ready.
			Expect(firstWave).To(BeNumerically(">=", 2), "%s: of 4 pods of 1 cpu that are bound to a node, 2 fit beside 1500m", group)
		}
		messages := map[string]bool{}
		for _, p := range r.Pods {
			if p.Rejection == nil {
				continue
			}
			Expect(p.Rejection.Cause).To(BeElementOf(results.CauseHiddenStaticPod, results.CauseMirrorInFlight), "%s on %s", p.Name, p.Node)
			Expect(p.Rejection.SeenByKubelet).To(BeTrue())
			Expect(p.Rejection.SeenByAPI).To(BeTrue())
		}
		for _, name := range []string{"real-0", "real-1", "model-0", "model-1"} {
			for _, e := range o.eventsOf("ungated", name) {
				if e.Kind == trace.PodFailed {
					messages[e.Message] = true
				}
			}
		}
		Expect(messages).To(HaveLen(1), "model and real kubelet say the same")
		Expect(on(r, "on-real", results.StateRunning)).To(Equal(map[string]int{"real-0": 2, "real-1": 2}))
		Expect(on(r, "on-model", results.StateRunning)).To(Equal(map[string]int{"model-0": 2, "model-1": 2}))

		By("looking at the mirrors that lacked something")
		for _, name := range []string{"real-ns-0", "model-ns-0", "real-class-0", "model-class-0"} {
			n := node(r, name)
			Expect(*n.MirrorsVisible-n.Registered).To(BeNumerically(">=", time.Minute), "%s: its first attempt must have failed", name)
		}

		By("looking at the nodes that could not reach the API")
		for _, name := range []string{"real-cut-off-0", "model-cut-off-0"} {
			events := o.eventsOf("ungated", name)
			late := first(events, trace.NodeRegistered) - first(events, trace.KubeletStarted)
			Expect(late).To(BeNumerically(">=", 4*time.Second), name)
		}
	})

	It("survive crashes, reboots and new static pods, and run the check", limit, func(ctx SpecContext) {
		o := conduct(ctx, experiment(`
  timeLimit: 4m
  stop: {settle: 3s}
  kubelet: {implementation: real}
  nodeGroups:
    - name: pool
      capacity: {cpu: 4, memory: 8Gi, ephemeral-storage: 10Gi, example.com/gpu: 2}
      allocatable: {cpu: 3920m, memory: 7Gi}
      labels: {tier: a}
      taints: [{key: dedicated, value: x, effect: PreferNoSchedule}]
      initial: 1
      scaleUp: {to: 2}
      staticPods:
        - manifest: {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: kube-system}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 900m}}}]}}
        - source: url
          manifest: {apiVersion: v1, kind: Pod, metadata: {name: q, namespace: kube-system}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 20m}}}]}}
      actions:
        - {at: 3s, nodes: [0], restartKubelet: {down: 500ms}}
        - {at: 6s, nodes: [0], reboot: {down: 500ms}}
        - {at: 7s, nodes: [0], putStaticPod: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: late, namespace: kube-system}, spec: {containers: [{name: c, image: i}]}}}}
  workloads:
    - {name: fill, groups: [pool], generate: {requests: {cpu: 900m}}, replicas: 6}
    - {name: job, generate: {kind: Job, requests: {cpu: 100m}}, replicas: 1}
  arms: [{name: gated, gate: true}]
`), Options{})
		Expect(o.err).NotTo(HaveOccurred())
		r := o.run("gated")
		Expect(r.Settled()).To(BeTrue())
		Expect(rejected(r)).To(BeZero())
		Expect(on(r, "fill", results.StateRunning)).To(Equal(map[string]int{"pool-0": 3, "pool-1": 3}), "three of 900m beside 920m and the check on each node of 3920m")
		Expect(pods(r)[results.StateSucceeded]).To(Equal(1), "the job's pod ends")

		old := kinds(o.eventsOf("gated", "pool-0"))
		Expect(old[trace.KubeletStarted]).To(Equal(3))
		Expect(old[trace.NodeRegistered]).To(Equal(1), "the Node object stays")
		Expect(old[trace.StaticPodStarted]).To(Equal(3*2+1), "p and q with each start of the kubelet, and the late one")

		joined := node(r, "pool-1")
		Expect(joined.Hold).NotTo(BeNil())
		Expect(joined.Hold.OutOfOrder).To(BeFalse())
		Expect(joined.Allocatable).To(Equal(trace.Resources{"cpu": 3920, "memory": 7 << 30, "pods": 110, "ephemeral-storage": 10 << 30, "example.com/gpu": 2}))
		Expect(containerLogsOf(o, "gated", "static-pod-mirror-check")).To(ContainSubstring("set readiness.example.com/StaticPodsMirrored=True on pool-1"))
		log, err := os.ReadFile(filepath.Join(o.dir, "gated", "seed-1", "logs", "kubelets", "pool-1.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Contains(string(log), "Successfully registered node")).To(BeTrue())
	})
})
