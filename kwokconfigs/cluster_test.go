package kwokconfigs

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
)

func TestOnAControlPlane(t *testing.T) {
	binaries = assets(t)
	RegisterFailHandler(Fail)
	RunSpecs(t, "KWOK stages on a control plane")
}

// limit is for a machine that is busy with other things; a spec takes seconds.
const limit = SpecTimeout(2 * time.Minute)

var (
	binaries string
	admin    *kubernetes.Clientset
)

var _ = BeforeSuite(func() {
	cluster := &envtest.Environment{BinaryAssetsDirectory: binaries}
	flags := cluster.ControlPlane.GetAPIServer().Configure()
	flags.Set("authorization-mode", "RBAC")
	flags.Append("disable-admission-plugins", "ServiceAccount")
	config, err := cluster.Start()
	DeferCleanup(cluster.Stop)
	Expect(err).NotTo(HaveOccurred())
	admin, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	startKWOK(config)
})

// startKWOK runs KWOK's controllers with the stages until the suite ends.
func startKWOK(config *rest.Config) {
	dynamicClient, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	stages, err := Stages()
	Expect(err).NotTo(HaveOccurred())
	groups := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, stage := range stages {
		groups[stage.Spec.ResourceRef] = append(groups[stage.Spec.ResourceRef], stage)
	}
	raw := rest.CopyConfig(config)
	raw.GroupVersion, raw.NegotiatedSerializer = &schema.GroupVersion{}, scheme.Codecs.WithoutConversion()
	restClient, err := rest.RESTClientFor(raw)
	Expect(err).NotTo(HaveOccurred())
	controller, err := controllers.NewController(controllers.Config{
		TypedClient: admin, DynamicClient: dynamicClient, RESTClient: restClient,
		RESTMapper:     restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(admin.Discovery())),
		ManageAllNodes: true, LocalStages: groups, ID: "test",
		CIDR: "10.0.0.1/24", NodeIP: "192.0.2.1", NodePort: 10247,
		NodeLeaseDurationSeconds: 40, NodeLeaseParallelism: 1, NodePlayStageParallelism: 1, PodPlayStageParallelism: 1, PodsOnNodeSyncParallelism: 1,
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	Expect(controller.Start(log.NewContext(ctx, log.NewLogger(GinkgoWriter, log.LevelInfo)))).To(Succeed())
}

var _ = Describe("nodes", Ordered, func() {
	const ready = 2 * time.Second
	var readyAt time.Time

	It("become Ready at their time and not before, keeping what others wrote", limit, func(ctx SpecContext) {
		readyAt = time.Now().Add(ready)
		node := createNode(ctx, "n0", map[string]string{AnnotationReadyAt: readyAt.Format(time.RFC3339Nano)})
		Eventually(ctx, getNode).WithArguments(ctx, "n0").Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue),
		))))
		Expect(time.Now()).To(BeTemporally(">=", readyAt))
		after := getNode(ctx, "n0")
		Expect(after.Status.Conditions).To(HaveLen(5))
		Expect(after.Status.Conditions).To(ContainElement(node.Status.Conditions[0]))
		Expect(after.Status.Capacity).To(Equal(node.Status.Capacity))
		Expect(after.Status.Allocatable).To(Equal(node.Status.Allocatable))
		Expect(after.Status.DaemonEndpoints.KubeletEndpoint.Port).To(BeEquivalentTo(10247))
	})

	It("become Ready at once without a time", limit, func(ctx SpecContext) {
		createNode(ctx, "bare", nil)
		Eventually(ctx, getNode).WithArguments(ctx, "bare").Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue),
		))))
	})
})

// KWOK plays one pod stage at a time here, in the order of events: what a later pod got, an earlier one would have got too.
var _ = Describe("pods", func() {
	BeforeEach(func(ctx SpecContext) {
		createNode(ctx, "pods", nil)
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.CoreV1().Nodes().Delete(ctx, "pods", metav1.DeleteOptions{})).To(Succeed())
			Expect(admin.CoreV1().Pods("default").DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{})).To(Succeed())
		})
	})

	It("run once admitted, never when rejected or merely bound", limit, func(ctx SpecContext) {
		createPod(ctx, "bound", nil)
		createPod(ctx, "rejected", nil)
		reject(ctx, "rejected")
		createPod(ctx, "initialising", nil)
		admit(ctx, "initialising", corev1.ConditionFalse)
		createPod(ctx, "mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"} })
		admit(ctx, "mirror", corev1.ConditionTrue)
		createPod(ctx, "admitted", nil)
		admit(ctx, "admitted", corev1.ConditionTrue)
		for _, name := range []string{"mirror", "admitted"} {
			Eventually(ctx, getPod).WithArguments(ctx, name).Should(And(
				HaveField("Status.Phase", corev1.PodRunning), HaveField("Status.PodIP", Not(BeEmpty())), HaveField("Status.HostIP", "192.0.2.1"),
				HaveField("Status.StartTime.Time", BeTemporally("==", admittedAt.Time)),
			))
		}
		Expect(getPod(ctx, "bound").Status.Phase).To(Equal(corev1.PodPending))
		Expect(getPod(ctx, "initialising").Status.Phase).To(Equal(corev1.PodPending))
		Expect(getPod(ctx, "rejected").Status).To(And(HaveField("Phase", corev1.PodFailed), HaveField("Reason", "OutOfcpu")))
	})

	It("are not brought back from Failed by a decision about an older copy", limit, func(ctx SpecContext) {
		// Not on a node, so that KWOK itself leaves it alone.
		createPod(ctx, "stale", func(p *corev1.Pod) { p.Spec.NodeName = "" })
		admit(ctx, "stale", corev1.ConditionTrue)
		copied := getPod(ctx, "stale")
		copied.Spec.NodeName = "pods"
		patch := patchOf(GinkgoTB(), "pod-ready", copied)
		reject(ctx, "stale")
		_, err := admin.CoreV1().Pods("default").Patch(ctx, "stale", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "got %v", err)
		Expect(getPod(ctx, "stale").Status.Phase).To(Equal(corev1.PodFailed))
	})

	It("of a Job succeed", limit, func(ctx SpecContext) {
		createPod(ctx, "job", func(p *corev1.Pod) {
			p.Annotations = map[string]string{AnnotationRunFor: "10ms"}
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "u", Controller: new(true)}}
		})
		admit(ctx, "job", corev1.ConditionTrue)
		Eventually(ctx, getPod).WithArguments(ctx, "job").Should(And(
			HaveField("Status.Phase", corev1.PodSucceeded),
			HaveField("Status.ContainerStatuses", ContainElement(HaveField("State.Terminated.Reason", "Completed"))),
		))
	})

	It("end when deleted, held by finalizers only; mirror pods are left to the kubelet", limit, func(ctx SpecContext) {
		createPod(ctx, "mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"} })
		createPod(ctx, "held", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} })
		createPod(ctx, "free", nil)
		for _, name := range []string{"mirror", "held", "free"} {
			Expect(admin.CoreV1().Pods("default").Delete(ctx, name, *metav1.NewDeleteOptions(30))).To(Succeed())
		}
		Eventually(ctx, podExists).WithArguments(ctx, "free").Should(BeFalse())
		Expect(*getPod(ctx, "mirror").DeletionGracePeriodSeconds).To(BeEquivalentTo(30))
		Expect(*getPod(ctx, "held").DeletionGracePeriodSeconds).To(BeEquivalentTo(0))
		release := []byte(`{"metadata":{"finalizers":null}}`)
		_, err := admin.CoreV1().Pods("default").Patch(ctx, "held", types.MergePatchType, release, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(podExists(ctx, "held")).To(BeFalse())
	})
})

// createNode registers a node with capacity and one condition that is none of the kubelet's.
func createNode(ctx context.Context, name string, annotations map[string]string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	node, err := admin.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{
				Type: "readiness.example.com/StaticPodsMirrored", Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now,
			}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return node
}

func getNode(ctx context.Context, name string) *corev1.Node {
	node, err := admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return node
}

// createPod creates a pod that is bound to the node from its start.
func createPod(ctx context.Context, name string, change func(*corev1.Pod)) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: "pods", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if change != nil {
		change(pod)
	}
	// The API server creates the namespace default a moment after it is ready.
	Eventually(ctx, func() error {
		_, err := admin.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		return err
	}).Should(Succeed())
}

func getPod(ctx context.Context, name string) *corev1.Pod {
	pod, err := admin.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

func podExists(ctx context.Context, name string) bool {
	_, err := admin.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	Expect(err).To(Or(BeNil(), Satisfy(apierrors.IsNotFound)))
	return err == nil
}

var admittedAt = metav1.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// admit writes what a kubelet writes on admission.
func admit(ctx context.Context, name string, initialized corev1.ConditionStatus) {
	patchStatus(ctx, name, corev1.PodStatus{
		Phase: corev1.PodPending, StartTime: &admittedAt,
		Conditions: []corev1.PodCondition{{Type: corev1.PodInitialized, Status: initialized}},
	})
}

// reject writes what a kubelet writes on rejection.
func reject(ctx context.Context, name string) {
	patchStatus(ctx, name, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", StartTime: &admittedAt})
}

func patchStatus(ctx context.Context, name string, status corev1.PodStatus) {
	patch, err := json.Marshal(map[string]any{"status": status})
	Expect(err).NotTo(HaveOccurred())
	_, err = admin.CoreV1().Pods("default").Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
}

// assets returns the folder of control-plane binaries: $KUBEBUILDER_ASSETS, or the nearest bin/assets above the working directory.
func assets(t testing.TB) string {
	t.Helper()
	if folder := os.Getenv("KUBEBUILDER_ASSETS"); folder != "" {
		return folder
	}
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; folder = filepath.Dir(folder) {
		candidate := filepath.Join(folder, "bin", "assets")
		if _, err := os.Stat(candidate); err == nil {
			return candidate
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("no bin/assets folder: run make assets")
		}
	}
}
