package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// soon is a deadline that only a failure reaches.
const soon = 30 * time.Second

// TestControlPlane runs kubelets against the real kube-apiserver and etcd, without scheduler, controllers or KWOK.
func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "kubelets on a control plane")
}

var (
	client   kubernetes.Interface
	kubelets *Kubelets
	recorded recording
)

// recording keeps trace events.
type recording struct {
	mu     sync.Mutex
	events []trace.Event
}

func (r *recording) Record(e trace.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// of returns the kinds of the events of a node so far.
func (r *recording) of(node string) []trace.Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []trace.Kind
	for _, e := range r.events {
		if e.Node == node {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

var _ = BeforeSuite(func() {
	env := &envtest.Environment{BinaryAssetsDirectory: assets()}
	args := env.ControlPlane.GetAPIServer().Configure()
	args.Set("authorization-mode", "Node", "RBAC")
	args.Append("disable-admission-plugins", "ServiceAccount")
	config, err := env.Start()
	Expect(err).NotTo(HaveOccurred(), "start the control plane")
	DeferCleanup(env.Stop)

	kubelets, err = New(Config{Access: config, Recorder: &recorded})
	Expect(err).NotTo(HaveOccurred())
	client = kubelets.client
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- kubelets.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
})

// assets is the folder with etcd and kube-apiserver.
func assets() string {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	Expect(err).NotTo(HaveOccurred())
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, "bin", "assets")
		if _, err := os.Stat(filepath.Join(candidate, "kube-apiserver")); err == nil {
			return candidate
		}
	}
	Fail("there is no bin/assets with etcd and kube-apiserver: run make assets")
	return ""
}

var _ = Describe("A kubelet", func() {
	var node string
	var machine Machine
	count := 0

	BeforeEach(func() {
		count++
		node = fmt.Sprintf("n%d", count)
		machine = newMachine(node, manifest("agent", "1500m"))
		machine.Behaviour = sim.Kubelet{
			ReadyDelay:     random.Constant(0),
			MirrorDelay:    random.Constant(300 * time.Millisecond),
			MirrorRetry:    random.Constant(500 * time.Millisecond),
			MirrorResync:   random.Constant(500 * time.Millisecond),
			StatusDelay:    random.Constant(20 * time.Millisecond),
			StatusTick:     &metav1.Duration{Duration: time.Second},
			Housekeeping:   &metav1.Duration{Duration: 200 * time.Millisecond},
			PodSourceDelay: random.Constant(100 * time.Millisecond),
		}
	})

	start := func(ctx SpecContext) {
		GinkgoHelper()
		Expect(kubelets.Start(ctx, machine)).To(Succeed())
		DeferCleanup(func() { kubelets.Stop(node) })
	}

	// run starts the machine and waits until the kubelet sees the API: it writes the status of its static pod into the mirror then.
	run := func(ctx SpecContext) {
		GinkgoHelper()
		start(ctx)
		Eventually(ctx, func() *metav1.Time { return mirrorOf(ctx, "agent-"+node).Status.StartTime }).ShouldNot(BeNil())
	}

	It("registers its node as the real one does", func(ctx SpecContext) {
		machine.Taints = []corev1.Taint{{Key: "readiness.k8s.io/StaticPodsMirrored", Value: "pending", Effect: corev1.TaintEffectNoSchedule}}
		start(ctx)
		object := nodeOf(ctx, node)
		Expect(object.Spec.Taints).To(HaveExactElements(
			corev1.Taint{Key: "readiness.k8s.io/StaticPodsMirrored", Value: "pending", Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		))
		var conditions []string
		for _, c := range object.Status.Conditions {
			conditions = append(conditions, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
		}
		Expect(conditions).To(Equal([]string{
			"MemoryPressure=False KubeletHasSufficientMemory", "DiskPressure=False KubeletHasNoDiskPressure",
			"PIDPressure=False KubeletHasSufficientPID", "Ready=False KubeletNotReady",
		}))
	}, SpecTimeout(soon))

	It("creates mirror pods that the API server completes as for a real kubelet", func(ctx SpecContext) {
		start(ctx)
		mirror := mirrorOf(ctx, "agent-"+node)
		hash := mirror.Annotations[kubetypes.ConfigHashAnnotationKey]
		Expect(mirror.Annotations).To(HaveLen(4))
		Expect(mirror.Annotations).To(HaveKeyWithValue(kubetypes.ConfigMirrorAnnotationKey, hash))
		Expect(mirror.Annotations).To(HaveKeyWithValue(kubetypes.ConfigSourceAnnotationKey, "file"))
		Expect(mirror.Annotations).To(HaveKey(kubetypes.ConfigFirstSeenAnnotationKey))
		Expect(mirror.UID).NotTo(BeEquivalentTo(hash))
		Expect(mirror.OwnerReferences).To(HaveExactElements(metav1.OwnerReference{
			APIVersion: "v1", Kind: "Node", Name: node, UID: nodeOf(ctx, node).UID, Controller: ptr.To(true),
		}))
		Expect(mirror.Spec.Tolerations).To(HaveExactElements(corev1.Toleration{
			Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		}))
		Expect(mirror.Spec.NodeName).To(Equal(node))
		Expect(mirror.Spec.Priority).To(HaveValue(BeZero()))
		Expect(mirror.Spec.PreemptionPolicy).To(HaveValue(Equal(corev1.PreemptLowerPriority)))
		Expect(mirror.Spec.ServiceAccountName).To(BeEmpty())
		By("writing the status that lets KWOK run it")
		Eventually(ctx, func() *metav1.Time { return mirrorOf(ctx, "agent-"+node).Status.StartTime }).ShouldNot(BeNil())
		Expect(mirrorOf(ctx, "agent-"+node).Status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.PodInitialized), HaveField("Status", corev1.ConditionTrue),
		)))
	}, SpecTimeout(soon))

	It("admits and rejects pods in bind order, with complete statuses", func(ctx SpecContext) {
		run(ctx)
		fits, surplus := boundPod(ctx, node, "2500m"), boundPod(ctx, node, "1")
		Eventually(ctx, func() corev1.PodPhase { return podOf(ctx, surplus).Status.Phase }).Should(Equal(corev1.PodFailed))
		status := podOf(ctx, surplus).Status
		Expect(status.StartTime).NotTo(BeNil())
		Expect(status).To(Equal(corev1.PodStatus{
			Phase:              corev1.PodFailed,
			Reason:             "OutOfcpu",
			Message:            "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 4000, capacity: 4000",
			ObservedGeneration: 1,
			QOSClass:           corev1.PodQOSBurstable,
			StartTime:          status.StartTime,
		}))
		Eventually(ctx, func() *metav1.Time { return podOf(ctx, fits).Status.StartTime }).ShouldNot(BeNil())
		Eventually(ctx, func(g Gomega) {
			events, err := client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + surplus})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(events.Items).To(HaveExactElements(And(
				HaveField("Type", "Warning"), HaveField("Reason", "OutOfcpu"),
				HaveField("Message", "Node didn't have enough resource: cpu, requested: 1000, used: 4000, capacity: 4000"),
				HaveField("Source", corev1.EventSource{Component: "kubelet", Host: node}),
			)))
		}).Should(Succeed())
	}, SpecTimeout(soon))

	It("brings back a mirror that was deleted", func(ctx SpecContext) {
		start(ctx)
		name := "agent-" + node
		By("with grace period 0: it is gone for a while")
		first := mirrorOf(ctx, name).UID
		Expect(client.CoreV1().Pods("kube-system").Delete(ctx, name, *metav1.NewDeleteOptions(0))).To(Succeed())
		_, err := client.CoreV1().Pods("kube-system").Get(ctx, name, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "got error %v", err)
		second := mirrorOf(ctx, name).UID
		Expect(second).NotTo(Equal(first))
		By("gracefully: it terminates until it is replaced")
		Eventually(ctx, func() *metav1.Time { return mirrorOf(ctx, name).Status.StartTime }).ShouldNot(BeNil())
		Expect(client.CoreV1().Pods("kube-system").Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, func() types.UID { return mirrorOf(ctx, name).UID }).ShouldNot(Equal(second))
		Expect(mirrorOf(ctx, name).DeletionTimestamp).To(BeNil())
	}, SpecTimeout(soon))

	It("follows its static pod folder", func(ctx SpecContext) {
		run(ctx)
		By("adding a manifest")
		Expect(kubelets.PutStaticPod(node, "late.yaml", []byte(manifest("late", "100m")))).To(Succeed())
		added := mirrorOf(ctx, "late-"+node)
		Eventually(ctx, func() *metav1.Time { return mirrorOf(ctx, "late-"+node).Status.StartTime }).ShouldNot(BeNil(), "the kubelet knows it")
		By("changing it")
		Expect(kubelets.PutStaticPod(node, "late.yaml", []byte(manifest("late", "200m")))).To(Succeed())
		Eventually(ctx, func() types.UID { return mirrorOf(ctx, "late-"+node).UID }).ShouldNot(Equal(added.UID))
		Expect(mirrorOf(ctx, "late-"+node).Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal("200m"))
		By("removing it")
		Expect(kubelets.RemoveStaticPod(node, "late.yaml")).To(Succeed())
		Eventually(ctx, func() bool {
			_, err := client.CoreV1().Pods("kube-system").Get(ctx, "late-"+node, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).Should(BeTrue())
		Expect(recorded.of(node)).To(Equal([]trace.Kind{
			trace.KubeletStarted, trace.StaticPodStarted, trace.StaticPodStarted,
			trace.StaticPodStopped, trace.StaticPodStarted, trace.StaticPodStopped,
		}))
	}, SpecTimeout(soon))

	It("refuses an invalid manifest, and the API server refuses the mirror of a valid one", func(ctx SpecContext) {
		invalid := strings.Replace(manifest("invalid", "1"), "image:", "images:", 1)
		unmirrored := strings.Replace(manifest("unmirrored", "100m"), "spec:", "spec:\n  priorityClassName: missing", 1)
		machine.StaticPods = append(machine.StaticPods,
			sim.StaticPod{FileName: "invalid.yaml", Manifest: []byte(invalid)}, sim.StaticPod{FileName: "unmirrored.yaml", Manifest: []byte(unmirrored)})
		start(ctx)
		mirrorOf(ctx, "agent-"+node)
		Eventually(ctx, func() []trace.Kind { return recorded.of(node) }).Should(HaveExactElements(
			trace.KubeletStarted, trace.StaticPodRefused, trace.StaticPodStarted, trace.StaticPodStarted, trace.MirrorFailed, trace.MirrorFailed,
		), "the one that is refused is tried again")
		pods, err := client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		Expect(err).NotTo(HaveOccurred())
		Expect(pods.Items).To(HaveExactElements(HaveField("Name", "agent-"+node)))
	}, SpecTimeout(soon))

	It("evicts pods for a static pod that comes late", func(ctx SpecContext) {
		run(ctx)
		victim := boundPod(ctx, node, "2500m")
		Eventually(ctx, func() *metav1.Time { return podOf(ctx, victim).Status.StartTime }).ShouldNot(BeNil())
		Expect(kubelets.PutStaticPod(node, "late.yaml", []byte(manifest("late", "100m")))).To(Succeed())
		Eventually(ctx, func() corev1.PodPhase { return podOf(ctx, victim).Status.Phase }).Should(Equal(corev1.PodFailed))
		status := podOf(ctx, victim).Status
		Expect(status.Reason).To(Equal("Preempting"))
		Expect(status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.DisruptionTarget), HaveField("Status", corev1.ConditionTrue), HaveField("Reason", "TerminationByKubelet"),
		)))
		mirrorOf(ctx, "late-"+node)
	}, SpecTimeout(soon))

	It("survives a reboot", func(ctx SpecContext) {
		run(ctx)
		before := mirrorOf(ctx, "agent-"+node).UID
		pod := boundPod(ctx, node, "1")
		Eventually(ctx, func() *metav1.Time { return podOf(ctx, pod).Status.StartTime }).ShouldNot(BeNil())
		uid := nodeOf(ctx, node).UID
		kubelets.Stop(node)
		Expect(kubelets.Restart(node)).To(Succeed())
		Eventually(ctx, func() []trace.Kind { return recorded.of(node) }).Should(Equal([]trace.Kind{
			trace.KubeletStarted, trace.StaticPodStarted, trace.PodAdmitted, trace.StaticPodStopped, trace.KubeletStopped,
			trace.KubeletStarted, trace.StaticPodStarted, trace.PodAdmitted,
		}))
		Expect(nodeOf(ctx, node).UID).To(Equal(uid))
		Expect(mirrorOf(ctx, "agent-"+node).UID).To(Equal(before))
	}, SpecTimeout(soon))

	It("adopts old mirrors when its machine returns under the same name", func(ctx SpecContext) {
		run(ctx)
		before := mirrorOf(ctx, "agent-"+node).UID
		old := nodeOf(ctx, node).UID
		kubelets.Stop(node)
		Expect(client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})).To(Succeed())
		Expect(kubelets.Start(ctx, machine)).To(Succeed())
		Expect(nodeOf(ctx, node).UID).NotTo(Equal(old))
		boundPod(ctx, node, "1")
		Eventually(ctx, func() []trace.Kind { return recorded.of(node) }).Should(ContainElement(trace.PodAdmitted), "the new kubelet sees the API")
		Expect(mirrorOf(ctx, "agent-"+node).UID).To(Equal(before))
		By("replacing the mirror once the garbage collector has taken it")
		Expect(client.CoreV1().Pods("kube-system").Delete(ctx, "agent-"+node, *metav1.NewDeleteOptions(0))).To(Succeed())
		Expect(mirrorOf(ctx, "agent-"+node).OwnerReferences[0].UID).To(Equal(nodeOf(ctx, node).UID))
	}, SpecTimeout(soon))
})

// nodeOf waits for a node.
func nodeOf(ctx context.Context, name string) *corev1.Node {
	GinkgoHelper()
	var object *corev1.Node
	Eventually(ctx, func() (err error) {
		object, err = client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err
	}).Should(Succeed())
	return object
}

// mirrorOf waits for a mirror pod.
func mirrorOf(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	var mirror *corev1.Pod
	Eventually(ctx, func() (err error) {
		mirror, err = client.CoreV1().Pods("kube-system").Get(ctx, name, metav1.GetOptions{})
		return err
	}).Should(Succeed())
	return mirror
}

func podOf(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

// boundPod creates a pod and binds it as a scheduler does. It returns the pod's name.
func boundPod(ctx context.Context, node, cpu string) string {
	GinkgoHelper()
	pod := newPod("", "", cpu)
	pod.GenerateName = "web-"
	created, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(client.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: created.Name, UID: created.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})).To(Succeed())
	return created.Name
}
