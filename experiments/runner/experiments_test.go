package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// newNodes are the nodes that were not there from the start.
func newNodes(r *results.Run) []*results.Node {
	return slices.DeleteFunc(slices.Clone(r.Nodes), func(n *results.Node) bool { return n.Initial })
}

// node is the last node of a name.
func node(r *results.Run, name string) *results.Node {
	GinkgoHelper()
	for _, n := range slices.Backward(r.Nodes) {
		if n.Name == name {
			return n
		}
	}
	Fail("there is no node " + name)
	return nil
}

func rejected(r *results.Run) int {
	var n int
	for _, p := range r.Pods {
		if p.Rejection != nil {
			n++
		}
	}
	return n
}

// containerLogsOf reads what the containers of the pods whose name begins so have written in a run.
func containerLogsOf(o outcome, arm, pod string) string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(o.dir, arm, "seed-1", "logs", containerLogs, "*_"+pod+"*", "*.log"))
	Expect(err).NotTo(HaveOccurred())
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		Expect(err).NotTo(HaveOccurred())
		all.Write(data)
	}
	return all.String()
}

var _ = Describe("an experiment", func() {
	BeforeEach(leavesNothing)

	It("reproduces the race and closes it", limit, func(ctx SpecContext) {
		o := conduct(ctx, fromLibrary("quick"), Options{})
		Expect(o.err).NotTo(HaveOccurred())

		By("looking at the ungated arm")
		ungated := o.run("ungated")
		Expect(ungated.Settled()).To(BeTrue())
		Expect(newNodes(ungated)).To(HaveLen(3))
		for _, n := range newNodes(ungated) {
			Expect(n.Rejected).To(BeNumerically(">", 0), "every new node must have rejected pods, but %s did not", n.Name)
			Expect(n.Exposure).NotTo(BeNil())
			Expect(n.Exposure.Duration).To(BeNumerically(">", time.Second), "mirrors come 3 to 5 s after the node, which is Ready within one")
			Expect(n.FirstWave.HiddenRejected).To(BeNumerically(">", 0))
		}
		for _, p := range ungated.Pods {
			if p.Rejection != nil {
				Expect(p.Rejection.Reason).To(Equal("OutOfcpu"))
				Expect(p.Rejection.Cause).To(BeElementOf(results.CauseHiddenStaticPod, results.CauseMirrorInFlight), "%s on %s", p.Name, p.Node)
				Expect(p.Rejection.SeenByKubelet).To(BeTrue())
				Expect(p.Rejection.SeenByAPI).To(BeTrue())
			}
		}
		Expect(causes(ungated)[results.CauseHiddenStaticPod]).To(BeNumerically(">=", 3))
		for _, n := range ungated.Nodes[:3] {
			Expect(n.Initial).To(BeTrue())
			Expect(n.Rejected).To(BeZero(), "an established node rejects nothing")
		}

		By("looking at the gated arm")
		gated := o.run("gated")
		Expect(gated.Settled()).To(BeTrue())
		Expect(rejected(gated)).To(BeZero())
		Expect(newNodes(gated)).To(HaveLen(3))
		for _, n := range newNodes(gated) {
			Expect(n.Hold).NotTo(BeNil())
			Expect(n.Hold.OutOfOrder).To(BeFalse())
			Expect(*n.MirrorsVisible).To(BeNumerically("<=", *n.ConditionTrue))
			Expect(*n.ConditionTrue).To(BeNumerically("<=", *n.Released))
			Expect(*n.Released).To(BeNumerically("<=", *n.FirstBind))
			Expect(n.Exposure.Duration).To(BeZero())
		}

		By("looking at what both have in common")
		for _, r := range []*results.Run{ungated, gated} {
			Expect(r.KubeletEvidence).To(BeTrue())
			state := pods(r)
			Expect(state[results.StateRunning]).To(Equal(18), "three pods of 1 cpu fit beside 100m on each of 6 nodes of 4")
			Expect(state[results.StateUnschedulable]).To(Equal(6), "the surplus must end Pending")
			Expect(state[results.StatePending]).To(BeZero())
			Expect(r.Phases).To(And(HaveKey(trace.PhaseInitial), HaveKey(trace.PhaseWorkload), HaveKey(trace.PhaseScaleUp)))
		}
		Expect(o.summary.Arms).To(HaveLen(2))

		By("looking into the results folder")
		for _, file := range []string{
			"experiment.yaml", "summary.json", "summary.txt", "ungated/seed-1/trace.jsonl", "ungated/seed-1/nodes.csv", "gated/seed-1/pods.csv",
			"gated/seed-1/summary.json", "gated/seed-1/logs/etcd.log", "gated/seed-1/logs/kube-apiserver.log", "gated/seed-1/logs/kube-scheduler.log",
			"gated/seed-1/logs/kube-controller-manager.log", "gated/seed-1/logs/readiness-controller.log",
		} {
			info, err := os.Stat(filepath.Join(o.dir, file))
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Size()).To(BeNumerically(">", 0), file)
		}
		Expect(filepath.Join(o.dir, "ungated/seed-1/logs/readiness-controller.log")).NotTo(BeAnExistingFile())
		Expect(containerLogsOf(o, "gated", "static-pod-mirror-check")).To(ContainSubstring("waiting for mirror pods: kube-system/kube-proxy-pool-"))
	})

	It("fills what is free on several groups that grow in their own ways", limit, func(ctx SpecContext) {
		o := conduct(ctx, experiment(`
  timeLimit: 2m
  stop: {settle: 3s}
  kubelet: {mirrorDelay: {uniform: {min: 1s, max: 2s}}}
  nodeGroups:
    - name: even
      capacity: {cpu: 4, memory: 8Gi}
      scaleUp: {to: 3, arrival: {evenly: 4s}}
      staticPods: [&proxy {manifest: {apiVersion: v1, kind: Pod, metadata: {name: proxy}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}}}]
    - name: listed
      capacity: {cpu: 2, memory: 8Gi}
      initial: 1
      scaleUp: {to: 3, after: 1s, arrival: {times: [0s, 3s]}}
      staticPods: [*proxy]
    - {name: other, capacity: {cpu: 4, memory: 8Gi}, initial: 1}
  workloads:
    - {name: fill, generate: {kind: Deployment, requests: {cpu: 500m}}, fill: free, groups: [even, listed]}
    - {name: agent, generate: {kind: DaemonSet, requests: {cpu: 100m}}}
  arms: [{name: gated, gate: true}]
`), Options{})
		Expect(o.err).NotTo(HaveOccurred())
		r := o.run("gated")
		Expect(r.Settled()).To(BeTrue())
		Expect(rejected(r)).To(BeZero())
		state := pods(r)
		// 4000m − 100m static − 100m agent − 11m check holds 7 pods of 500m, 2000m holds 3; and an agent on each of 7 nodes.
		Expect(state[results.StateRunning]).To(Equal(3*7 + 3*3 + 7))
		Expect(state).To(HaveLen(1), "all must run, none be left Pending")
		fill := on(r, "fill", results.StateRunning)
		for i := range 3 {
			Expect(fill).To(HaveKeyWithValue(fmt.Sprintf("even-%d", i), 7))
			Expect(fill).To(HaveKeyWithValue(fmt.Sprintf("listed-%d", i), 3))
		}
		Expect(fill).NotTo(HaveKey("other-0"))

		By("comparing arrivals with the experiment")
		start := r.Phases[trace.PhaseScaleUp]
		for name, at := range map[string]time.Duration{"even-0": 0, "even-1": 2 * time.Second, "even-2": 4 * time.Second, "listed-1": time.Second, "listed-2": 4 * time.Second} {
			Expect(node(r, name).Registered).To(BeNumerically(">=", start+at), name)
		}
		Expect(node(r, "even-1").Registered).To(And(BeNumerically(">", node(r, "listed-1").Registered), BeNumerically("<", node(r, "even-2").Registered)))
		Expect(node(r, "listed-0").Registered).To(BeNumerically("<", start))
	})

	It("attributes pods with a node name to themselves", limit, func(ctx SpecContext) {
		o := conduct(ctx, soon(fromLibrary("pinned")), Options{})
		Expect(o.err).NotTo(HaveOccurred())
		for _, arm := range []string{"ungated", "gated"} {
			r := o.run(arm)
			Expect(r.Settled()).To(BeTrue())
			Expect(causes(r)).To(Equal(map[results.Cause]int{results.CausePinned: 1}), arm)
			Expect(pods(r)).To(Equal(map[results.State]int{results.StateRunning: 3, results.StateFailed: 1}), arm)
		}
	})

	It("follows the life of nodes and static pods", limit, func(ctx SpecContext) {
		o := conduct(ctx, experiment(`
  timeLimit: 2m
  stop: {settle: 3s}
  kubelet: {mirrorDelay: {constant: 2s}, mirrorResync: {constant: 3s}, podSourceDelay: {constant: 1s}}
  nodeGroups:
    - name: pool
      capacity: {cpu: 4, memory: 8Gi}
      initial: 4
      staticPods: [{manifest: {apiVersion: v1, kind: Pod, metadata: {name: proxy}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}}}]
      actions:
        - {at: 0s, nodes: [0], leave: {return: 2s}}
        - {at: 0s, nodes: [1], reboot: {down: 2s}}
        - {at: 1s, nodes: [2], deleteMirror: proxy}
        - {at: 1s, nodes: [3], putStaticPod: {fileName: late.yaml, manifest: {apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {containers: [{name: c, image: i}]}}}}
        - {at: 4s, nodes: [3], removeStaticPod: late.yaml}
  workloads: [{name: fill, generate: {requests: {cpu: 1}}, fill: allocatable}]
  arms: [{name: ungated}, {name: gated, gate: true}]
`), Options{})
		Expect(o.err).NotTo(HaveOccurred())
		for _, arm := range []string{"ungated", "gated"} {
			r := o.run(arm)
			Expect(r.Settled()).To(BeTrue(), "%s: %s", arm, r.EndMessage)
			Expect(r.Nodes).To(HaveLen(5))
			returned := r.Nodes[4]
			Expect(returned.Name).To(Equal("pool-0"))
			Expect(returned.Initial).To(BeFalse(), "a node that returns is a new one")
			Expect(node(r, "pool-0")).To(BeIdenticalTo(returned))
			Expect(r.Nodes[:4]).To(ContainElement(And(HaveField("Name", "pool-0"), HaveField("Gone", Not(BeNil())))))
			if arm == "gated" { // without the gate it depends on when the old Node's mirror pod is collected
				Expect(returned.Exposure.Duration).To(BeZero(), "the check waits for a mirror pod of the node itself")
			}
			Expect(returned.Hold != nil).To(Equal(arm == "gated"), "the gate holds the node that returns")
			Expect(node(r, "pool-1").Exposure.Duration).To(BeNumerically("<", time.Second), "the mirror pod stays over a reboot")
			Expect(node(r, "pool-2").Exposure.Duration).To(BeNumerically(">", 2*time.Second), "a mirror pod that is deleted opens the gap until it is back")
			Expect(node(r, "pool-3").StaticPods).To(Equal(2))
		}
		// 900m are free on a node, 1000m for a scheduler that does not see the static pod; beside the check it would not fit either.
		rejections := on(o.run("ungated"), "fill", results.StateFailed)
		Expect(rejections).To(HaveKey("pool-2"))
		Expect(rejections).NotTo(HaveKey("pool-1"))
		Expect(rejections).NotTo(HaveKey("pool-3"))
		Expect(rejected(o.run("gated"))).To(BeZero())
	})

	It("goes on without a node that can never be released", limit, func(ctx SpecContext) {
		o := conduct(ctx, soon(fromLibrary("invalid-static-pod")), Options{})
		Expect(o.err).NotTo(HaveOccurred())
		ungated := o.run("ungated")
		Expect(pods(ungated)).To(HaveKeyWithValue(results.StateRunning, 9), "without the gate a manifest that nobody can use hurts nobody")
		gated := o.run("gated")
		Expect(gated.Settled()).To(BeTrue(), gated.EndMessage)
		for _, name := range []string{"broken-0", "broken-1"} {
			n := node(gated, name)
			Expect(n.Ready).NotTo(BeNil())
			Expect(n.MirrorsVisible).NotTo(BeNil(), "the other static pod has its mirror")
			Expect(n.ConditionTrue).To(BeNil())
			Expect(n.Released).To(BeNil())
			Expect(n.Bound).To(BeZero())
		}
		Expect(node(gated, "pool-0").Released).NotTo(BeNil())
		Expect(pods(gated)).To(Equal(map[results.State]int{results.StateRunning: 3, results.StateUnschedulable: 6}))
		Expect(containerLogsOf(o, "gated", "static-pod-mirror-check")).To(ContainSubstring("waiting for mirror pods: default/Not_A_Name-broken-0\n"))
	})

	It("ends by its time limit when a part of the gate is missing", limit, func(ctx SpecContext) {
		o := conduct(ctx, experiment(`
  timeLimit: 12s
  kubelet: {mirrorDelay: {constant: 1s}}
  nodeGroups: [{name: pool, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]
  workloads: [{name: fill, generate: {requests: {cpu: 1}}, replicas: 1}]
  arms: [{name: by-hand, gate: true, leaveOut: [controller]}]
`), Options{})
		Expect(o.err).NotTo(HaveOccurred(), "a time limit is no error")
		r := o.run("by-hand")
		Expect(r.End).To(Equal(trace.EndTimeLimit))
		Expect(r.EndMessage).To(ContainSubstring("in phase initial with pods 0 rejected, 0 running, 0 pending; nodes 1/1 ready, 1 held, 0 unmirrored"))
		Expect(r.Conclusive()).To(BeTrue())
		Expect(r.Settled()).To(BeFalse())
		Expect(o.summary.Arms[0].Runs[0].Settled).To(BeFalse())
		Expect(r.Phases).NotTo(HaveKey(trace.PhaseWorkload), "the initial node was not released")
		n := node(r, "pool-0")
		Expect(n.ConditionTrue).NotTo(BeNil(), "the check passes by itself")
		Expect(n.Released).To(BeNil())
		Expect(n.Hold.Total.Censored).To(BeTrue())
	})

	It("runs the scheduler under its own configuration", limit, func(ctx SpecContext) {
		o := conduct(ctx, experiment(`
  timeLimit: 2m
  stop: {settle: 2s}
  controlPlane:
    scheduler:
      config:
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles:
          - schedulerName: default-scheduler
          - schedulerName: packing
            plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 1}]}}
            pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}]
  kubelet: {mirrorDelay: {constant: 1s}}
  nodeGroups: [{name: pool, capacity: {cpu: 8, memory: 32Gi}, initial: 3}]
  workloads:
    - {name: spread, generate: {kind: Deployment, requests: {cpu: 100m}}, replicas: 6}
    - name: packed
      replicas: 6
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: packed}
        spec:
          selector: {matchLabels: {app: packed}}
          template:
            metadata: {labels: {app: packed}}
            spec: {schedulerName: packing, containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}
  arms: [{name: ungated}]
`), Options{})
		Expect(o.err).NotTo(HaveOccurred())
		r := o.run("ungated")
		Expect(r.Settled()).To(BeTrue())
		Expect(on(r, "spread", results.StateRunning)).To(Equal(map[string]int{"pool-0": 2, "pool-1": 2, "pool-2": 2}), "the default profile spreads")
		Expect(on(r, "packed", results.StateRunning)).To(HaveLen(1), "the other one packs all pods on one node")
	})
})

var _ = Describe("a run that cannot go on", func() {
	BeforeEach(leavesNothing)
	const small = `
  timeLimit: 2m
  nodeGroups: [{name: pool, capacity: {cpu: 4, memory: 8Gi}, initial: 1, scaleUp: {to: 2}}]
  arms: [{name: ungated}, {name: never}]
`
	// kept checks that what was recorded is kept and reported, and that no other run was begun.
	kept := func(o outcome) *results.Run {
		GinkgoHelper()
		r := o.run("ungated")
		Expect(r.Conclusive()).To(BeFalse())
		Expect(node(r, "pool-0").Ready).NotTo(BeNil(), "what was recorded before must be kept")
		Expect(o.summary.Arms).To(HaveLen(1))
		Expect(o.summary.Arms[0].Runs[0].Conclusive).To(BeFalse())
		Expect(filepath.Join(o.dir, "summary.txt")).To(BeARegularFile())
		Expect(filepath.Join(o.dir, "never")).NotTo(BeADirectory())
		return r
	}

	DescribeTable("names the server that died", func(ctx SpecContext, server string) {
		o := conduct(ctx, experiment(small), Options{BeforeScaleUp: func(ctx context.Context) error {
			kill(ctx, server)
			<-ctx.Done()
			return ctx.Err()
		}})
		Expect(o.err).To(MatchError(And(ContainSubstring("arm ungated, seed 1"), ContainSubstring(server+" died in mid-run"), ContainSubstring("end of "+server+".log"))))
		r := kept(o)
		Expect(r.End).To(Equal(trace.EndError))
		Expect(r.EndMessage).To(ContainSubstring(server + " died"))
		Expect(r.Died).To(HaveLen(1))
		Expect(r.Died[0].Component).To(Equal(server))
	},
		Entry(nil, limit, "etcd"),
		Entry(nil, limit, "kube-apiserver"),
	)

	It("is interrupted", limit, func(ctx SpecContext) {
		ctrlC, cancel := context.WithCancel(ctx)
		defer cancel()
		o := conduct(ctrlC, experiment(small), Options{BeforeScaleUp: func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}})
		Expect(o.err).To(MatchError(context.Canceled))
		r := kept(o)
		Expect(r.End).To(Equal(trace.EndInterrupted))
		Expect(r.Died).To(BeEmpty(), "nothing died; it was told to end")
	})

	It("is told so by what it calls", limit, func(ctx SpecContext) {
		no := errors.New("no, said the user")
		o := conduct(ctx, experiment(small), Options{BeforeScaleUp: func(context.Context) error { return no }})
		Expect(o.err).To(MatchError(no))
		Expect(kept(o).End).To(Equal(trace.EndError))
	})
})
