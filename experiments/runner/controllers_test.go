package runner

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
)

// The controllers of a cluster that is held, as by mirrorgap up, with two nodes.
var _ = Describe("a cluster that is held", Ordered, func() {
	var (
		api  kubernetes.Interface
		dir  string
		stop context.CancelFunc
		done chan error
	)
	labels := map[string]string{"app": "x"}
	template := func(edit func(*corev1.PodSpec)) corev1.PodTemplateSpec {
		t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if edit != nil {
			edit(&t.Spec)
		}
		return t
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	// namespace makes one for a spec.
	namespace := func(ctx context.Context, name string) {
		GinkgoHelper()
		_, err := api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: named(name)}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	// nodesOf tells where the Running pods of a namespace are.
	nodesOf := func(ctx context.Context, namespace string) []string {
		GinkgoHelper()
		list, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		var nodes []string
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				nodes = append(nodes, p.Spec.NodeName)
			}
		}
		return nodes
	}

	BeforeAll(func(ctx SpecContext) {
		held := make(chan *live.Engine, 1)
		var running context.Context
		running, stop = context.WithCancel(context.WithoutCancel(ctx)) // it outlives BeforeAll
		done = make(chan error, 1)
		out := filepath.Join(GinkgoT().TempDir(), "out")
		e := experiment(`
  timeLimit: 5s
  stop: {settle: 1s}
  kubelet: {mirrorDelay: {constant: 1s}}
  nodeGroups: [{name: pool, capacity: {cpu: 4, memory: 8Gi}, initial: 2}]
  arms: [{name: ungated}]
`)
		go func() {
			_, err := Run(running, e, Options{Dir: out, Hold: func(d string, engine *live.Engine) error {
				dir = d
				held <- engine
				return nil
			}})
			done <- err
		}()
		var engine *live.Engine
		Eventually(ctx, held).WithTimeout(2 * time.Minute).Should(Receive(&engine))
		api = clientFor(engine, "admin", sim.Masters)
		Eventually(ctx, func(g Gomega) {
			nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(nodes.Items).To(HaveLen(2))
			for _, n := range nodes.Items {
				g.Expect(n.Spec.Taints).To(BeEmpty(), "the node-lifecycle controller takes the not-ready taint off a node that is Ready")
			}
		}).Should(Succeed())
	}, NodeTimeout(3*time.Minute))

	AfterAll(func(ctx SpecContext) {
		stop()
		var err error
		Eventually(ctx, done).Should(Receive(&err))
		Expect(err).To(MatchError(context.Canceled))
		Expect(children()).To(BeEmpty(), "processes left")
	}, NodeTimeout(time.Minute))

	It("takes an orphaned pod, which the last spec looks for", limit, func(ctx SpecContext) {
		namespace(ctx, "orphans")
		pod := template(func(s *corev1.PodSpec) { s.NodeName = "long-gone" })
		_, err := api.CoreV1().Pods("orphans").Create(ctx, &corev1.Pod{ObjectMeta: named("orphan"), Spec: pod.Spec}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("runs the pods of a Deployment through a ReplicaSet", limit, func(ctx SpecContext) {
		namespace(ctx, "deployments")
		_, err := api.AppsV1().Deployments("deployments").Create(ctx, &appsv1.Deployment{
			ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector, Template: template(nil)},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) {
			web, err := api.AppsV1().Deployments("deployments").Get(ctx, "web", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(web.Status.AvailableReplicas).To(BeEquivalentTo(3))
		}).Should(Succeed())
		sets, err := api.AppsV1().ReplicaSets("deployments").List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(sets.Items).To(ConsistOf(HaveField("Status.ReadyReplicas", BeEquivalentTo(3))))
	})

	It("completes a Job", limit, func(ctx SpecContext) {
		namespace(ctx, "jobs")
		_, err := api.BatchV1().Jobs("jobs").Create(ctx, &batchv1.Job{ObjectMeta: named("once"), Spec: batchv1.JobSpec{
			Completions: new(int32(2)), Parallelism: new(int32(1)), Template: template(func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever }),
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) {
			job, err := api.BatchV1().Jobs("jobs").Get(ctx, "once", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(job.Status.Succeeded).To(BeEquivalentTo(2))
			g.Expect(job.Status.Conditions).To(ContainElement(And(
				HaveField("Type", batchv1.JobComplete), HaveField("Status", corev1.ConditionTrue))))
		}).Should(Succeed())
	})

	It("puts a DaemonSet's pod on every node", limit, func(ctx SpecContext) {
		namespace(ctx, "daemons")
		_, err := api.AppsV1().DaemonSets("daemons").Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: named("agent"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template(nil)},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, nodesOf).WithArguments(ctx, "daemons").Should(ConsistOf("pool-0", "pool-1"))
	})

	It("evicts pods from a node with a NoExecute taint", limit, func(ctx SpecContext) {
		namespace(ctx, "evictions")
		_, err := api.AppsV1().ReplicaSets("evictions").Create(ctx, &appsv1.ReplicaSet{
			ObjectMeta: named("web"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(4)), Selector: selector, Template: template(nil)},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, nodesOf).WithArguments(ctx, "evictions").Should(And(HaveLen(4), ContainElements("pool-0", "pool-1")))
		setTaints := func(taints ...corev1.Taint) {
			GinkgoHelper()
			Eventually(ctx, func() error {
				node, err := api.CoreV1().Nodes().Get(ctx, "pool-0", metav1.GetOptions{})
				if err != nil {
					return err
				}
				node.Spec.Taints = taints
				_, err = api.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
				return err
			}).Should(Succeed())
		}
		setTaints(corev1.Taint{Key: "example.com/repair", Effect: corev1.TaintEffectNoExecute})
		Eventually(ctx, nodesOf).WithArguments(ctx, "evictions").Should(HaveExactElements("pool-1", "pool-1", "pool-1", "pool-1"))
		setTaints()
	})

	It("deletes a namespace with everything in it", limit, func(ctx SpecContext) {
		namespace(ctx, "temporary")
		_, err := api.CoreV1().ConfigMaps("temporary").Create(ctx, &corev1.ConfigMap{ObjectMeta: named("c")}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = api.CoreV1().Pods("temporary").Create(ctx, &corev1.Pod{ObjectMeta: named("p"), Spec: template(nil).Spec}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, nodesOf).WithArguments(ctx, "temporary").Should(HaveLen(1))
		Expect(api.CoreV1().Namespaces().Delete(ctx, "temporary", metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, func() bool {
			_, err := api.CoreV1().Namespaces().Get(ctx, "temporary", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).Should(BeTrue())
	})

	It("is held beyond its time limit, and logs into its folder", func() {
		Consistently(done).ShouldNot(Receive())
		Expect(filepath.Join(dir, "logs", "kube-controller-manager.log")).To(BeARegularFile())
	})

	// Pod garbage collection looks every 20 s, and again after 40 s, before it believes that a node is gone.
	It("collects the orphaned pod", limit, func(ctx SpecContext) {
		Eventually(ctx, func() error {
			_, err := api.CoreV1().Pods("orphans").Get(ctx, "orphan", metav1.GetOptions{})
			return err
		}).WithTimeout(3 * time.Minute).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
	})
})

var _ = It("ends when the one who holds the cluster does not want it", limit, func(ctx SpecContext) {
	leavesNothing()
	no := errors.New("no room for a kubeconfig")
	o := conduct(ctx, experiment("  nodeGroups: [{name: pool, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]\n"+oneArm),
		Options{Hold: func(string, *live.Engine) error { return no }})
	Expect(o.err).To(MatchError(no))
})
