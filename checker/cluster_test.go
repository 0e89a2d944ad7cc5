package checker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mirrorgap/mirrorgap/checker/manifests"
)

func TestOnAControlPlane(t *testing.T) {
	binaries = assets(t)
	RegisterFailHandler(Fail)
	RunSpecs(t, "mirror-pod check on a control plane")
}

// limit is for a machine that is busy with other things; a spec takes a second.
const limit = SpecTimeout(2 * time.Minute)

var (
	binaries string
	cluster  *envtest.Environment
	admin    *kubernetes.Clientset
	binding  *rbacv1.ClusterRoleBinding
	nodes    int
)

var _ = BeforeSuite(func(ctx SpecContext) {
	cluster = &envtest.Environment{BinaryAssetsDirectory: binaries}
	flags := cluster.ControlPlane.GetAPIServer().Configure()
	flags.Set("authorization-mode", "RBAC")
	flags.Append("disable-admission-plugins", "ServiceAccount")
	config, err := cluster.Start()
	DeferCleanup(cluster.Stop)
	Expect(err).NotTo(HaveOccurred())
	admin, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	deploy(ctx)
})

// deploy creates the published objects that the check's identity needs.
func deploy(ctx context.Context) {
	account, err := manifests.ServiceAccount()
	Expect(err).NotTo(HaveOccurred())
	// The API server creates kube-system a moment after it is ready.
	Eventually(ctx, func() error {
		_, err := admin.CoreV1().ServiceAccounts(manifests.Namespace).Create(ctx, account, metav1.CreateOptions{})
		return err
	}).Should(Succeed())
	role, err := manifests.ClusterRole()
	Expect(err).NotTo(HaveOccurred())
	_, err = admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	binding, err = manifests.ClusterRoleBinding()
	Expect(err).NotTo(HaveOccurred())
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("the check under its own identity", func() {
	var node string
	kubeProxy := fstest.MapFS{"kube-proxy.yaml": {Data: []byte(podNamed("kube-proxy"))}}

	BeforeEach(func(ctx SpecContext) {
		nodes++
		node = fmt.Sprintf("n%d", nodes)
		registerNode(ctx, node)
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})).To(Succeed())
		})
	})

	It("waits for the mirror pod, then sets its condition and touches no other", limit, func(ctx SpecContext) {
		before := getNode(ctx, node).Status.Conditions
		check := start(ctx, kubeProxy, node)
		Eventually(ctx, check.waiting).Should(Receive(ConsistOf("kube-system/kube-proxy-" + node)))
		Expect(getNode(ctx, node).Status.Conditions).To(Equal(before))

		createMirror(ctx, "kube-proxy", node)
		Eventually(ctx, check.done).Should(Receive(Succeed()))

		after := getNode(ctx, node).Status.Conditions
		Expect(after[:len(before)]).To(Equal(before))
		Expect(after).To(HaveLen(len(before) + 1))
		condition := after[len(before)]
		Expect(condition.LastHeartbeatTime).To(Equal(condition.LastTransitionTime))
		Expect(condition).To(And(
			HaveField("Type", corev1.NodeConditionType(DefaultCondition)), HaveField("Status", corev1.ConditionTrue),
			HaveField("Reason", "MirrorPodsRegistered"), HaveField("Message", "All static pods have mirror pods in the API server"),
		))
		Expect(ownedFields(ctx, node)).To(Equal([]string{"f:status/f:conditions/" + `k:{"type":"` + DefaultCondition + `"}`}))

		By("surviving the status patch of a kubelet")
		heartbeat := `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`
		_, err := admin.CoreV1().Nodes().PatchStatus(ctx, node, []byte(heartbeat))
		Expect(err).NotTo(HaveOccurred())
		Expect(getNode(ctx, node).Status.Conditions).To(ContainElement(condition))
	})

	It("passes again after a reboot", limit, func(ctx SpecContext) {
		createMirror(ctx, "kube-proxy", node)
		for range 2 {
			Eventually(ctx, start(ctx, kubeProxy, node).done).Should(Receive(Succeed()))
		}
		Expect(getNode(ctx, node).Status.Conditions).To(HaveLen(5))
	})

	It("does not take the condition from another owner", limit, func(ctx SpecContext) {
		foreign := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":{"conditions":[{"type":%q,"status":"False"}]}}`, node, DefaultCondition)
		_, err := admin.CoreV1().Nodes().Patch(ctx, node, types.ApplyPatchType, []byte(foreign), metav1.PatchOptions{FieldManager: "another"}, "status")
		Expect(err).NotTo(HaveOccurred())
		check := start(ctx, fstest.MapFS{}, node)
		Eventually(ctx, check.log).Should(gbytes.Say(`conflict with "another"`))
		check.stop()
		Eventually(ctx, check.done).Should(Receive(MatchError(context.Canceled)))
		Expect(getNode(ctx, node).Status.Conditions).To(ContainElement(HaveField("Status", corev1.ConditionFalse)))
	})

	It("has no rights beyond those it needs", limit, func(ctx SpecContext) {
		client := impersonate()
		_, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "list pods: %v", err)
		_, err = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "list nodes: %v", err)
		_, err = client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "patch node: %v", err)
	})

	It("says so when it lacks them, and passes once it has them", limit, func(ctx SpecContext) {
		Expect(admin.RbacV1().ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{})).To(Succeed())
		// The API server's authorizer learns of the deletion through a watch.
		Eventually(ctx, func() error {
			_, err := impersonate().CoreV1().Pods("default").Get(ctx, "x", metav1.GetOptions{})
			return err
		}).Should(Satisfy(apierrors.IsForbidden))
		createMirror(ctx, "kube-proxy", node)
		check := start(ctx, kubeProxy, node)
		Eventually(ctx, check.log).Should(gbytes.Say("get node %s, to tell its mirror pods from others: .* is forbidden: ", node))
		_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, check.done).Should(Receive(Succeed()))
	})
})

var _ = It("reads the published manifests as kubectl does", limit, func(ctx SpecContext) {
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, cluster.KubeConfig, 0o600)).To(Succeed())
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "kubectl"), "--kubeconfig", kubeconfig, "apply", "--server-side", "--dry-run=server", "-f", "-")
	cmd.Stdin = bytes.NewReader(manifests.YAML)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	Expect(string(out)).To(ContainSubstring("daemonset.apps/static-pod-mirror-check serverside-applied"))
})

// running is a check in the background.
type running struct {
	log     *gbytes.Buffer
	waiting chan []string
	done    chan error
	stop    context.CancelFunc
}

// start runs the check as the ServiceAccount of the published DaemonSet.
func start(ctx context.Context, folder fs.FS, node string) running {
	ctx, stop := context.WithCancel(ctx)
	DeferCleanup(stop)
	r := running{log: gbytes.NewBuffer(), waiting: make(chan []string, 1), done: make(chan error, 1), stop: stop}
	go func() {
		r.done <- Run(ctx, Config{
			Client: impersonate().CoreV1(), Folder: folder, NodeName: node, PollInterval: 50 * time.Millisecond, Log: r.log,
			OnWaiting: func(missing []string) {
				select {
				case r.waiting <- missing:
				default:
				}
			},
		})
	}()
	return r
}

func impersonate() *kubernetes.Clientset {
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + manifests.Namespace + ":" + manifests.ServiceAccountName,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + manifests.Namespace, "system:authenticated"},
	}
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}

// registerNode creates a node with the conditions of a kubelet.
func registerNode(ctx context.Context, name string) {
	node, err := admin.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	now := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
	for _, condition := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: condition, Status: corev1.ConditionFalse, Reason: "Test", LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	_, err = admin.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func getNode(ctx context.Context, name string) *corev1.Node {
	node, err := admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return node
}

// createMirror creates the mirror pod of a static pod as the kubelet would.
func createMirror(ctx context.Context, static, node string) {
	name := static + "-" + node
	controller := true
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node, UID: getNode(ctx, node).UID, Controller: &controller}
	_, err := admin.CoreV1().Pods("kube-system").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "hash"}, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(admin.CoreV1().Pods("kube-system").Delete(ctx, name, *metav1.NewDeleteOptions(0))).To(Succeed())
	})
}

// ownedFields returns the conditions that the check's field manager owns, and anything else it owns.
func ownedFields(ctx context.Context, node string) []string {
	var owned []string
	for _, entry := range getNode(ctx, node).ManagedFields {
		if entry.Manager != FieldManager {
			continue
		}
		Expect(entry.Operation).To(Equal(metav1.ManagedFieldsOperationApply))
		Expect(entry.Subresource).To(Equal("status"))
		var fields map[string]map[string]map[string]any
		Expect(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)).To(Succeed())
		for top, second := range fields {
			for field, keys := range second {
				for key := range keys {
					owned = append(owned, strings.Join([]string{top, field, key}, "/"))
				}
			}
		}
	}
	return owned
}
