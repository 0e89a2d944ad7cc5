package controllers_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mirrorgap/mirrorgap/controllers"
	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
	"github.com/mirrorgap/mirrorgap/controllers/manifests"
)

// One control plane serves all specs. Each spec has nodes of its own, which a label tells apart.
var (
	cluster *envtest.Environment
	admin   *rest.Config
	api     client.WithWatch
	// kubeconfig is a file with the admin's configuration.
	kubeconfig string
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	// Generous, because the machine may be busy: specs assert order and outcome, not speed.
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "controllers")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	logf.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	var err error
	cluster, admin, err = startCluster()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	api, err = newClient(admin)
	Expect(err).NotTo(HaveOccurred())

	kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, cluster.KubeConfig, 0o600)).To(Succeed())

	Expect(manifests.InstallCRD(ctx, admin)).To(Succeed())
	Expect(manifests.Apply(ctx, admin, manifests.RBAC())).To(Succeed())
})

// startCluster starts etcd and kube-apiserver from $KUBEBUILDER_ASSETS, or from the nearest bin/assets above the working directory.
func startCluster() (*envtest.Environment, *rest.Config, error) {
	assets, err := findAssets()
	if err != nil {
		return nil, nil, err
	}
	env := &envtest.Environment{BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute}
	env.ControlPlane.GetAPIServer().Configure().Set("authorization-mode", "RBAC").Set("disable-admission-plugins", "ServiceAccount")
	if _, err := env.Start(); err != nil {
		_ = env.Stop() // a kube-apiserver that did not become healthy would stay
		return nil, nil, fmt.Errorf("start the control plane: %w", err)
	}
	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
	if err != nil {
		_ = env.Stop()
		return nil, nil, fmt.Errorf("add the user admin: %w", err)
	}
	return env, user.Config(), nil
}

func findAssets() (string, error) {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		return assets, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		assets := filepath.Join(dir, "bin", "assets")
		if _, err := os.Stat(filepath.Join(assets, "kube-apiserver")); err == nil {
			return assets, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no bin/assets with etcd and kube-apiserver above the working directory: run make assets")
		}
	}
}

func newClient(cfg *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.NewWithWatch(cfg, client.Options{Scheme: scheme})
}

// asServiceAccount is the configuration of the controller's own identity, so that every spec also tries its permissions.
func asServiceAccount() *rest.Config {
	cfg := rest.CopyConfig(admin)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: manifests.ServiceAccountUser,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
	}
	return cfg
}

// startController runs a controller until stop is called or the spec ends. The wrappers see its requests.
func startController(opts controllers.Options, wrappers ...transport.WrapperFunc) (stop func()) {
	GinkgoHelper()
	if opts.StatusInterval == 0 {
		opts.StatusInterval = 50 * time.Millisecond
	}
	opts.Logger = GinkgoLogr
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	cfg := asServiceAccount()
	for _, wrapper := range wrappers {
		cfg.Wrap(wrapper)
	}
	go func() { ended <- controllers.Run(ctx, cfg, opts) }()
	stopped := false
	stop = func() {
		GinkgoHelper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		Eventually(ended).Should(Receive(BeNil()), "Run returns nil when its context ends")
	}
	DeferCleanup(stop)
	return stop
}

// specLabel is on the nodes of a spec, with its group's name.
const specLabel = "spec"

// group is the nodes and rules of one spec.
type group struct{ name string }

func newGroup() group {
	return group{fmt.Sprintf("g%d", time.Now().UnixNano())}
}

func (g group) condition() string { return "readiness.example.com/" + g.name }

func (g group) taint() corev1.Taint {
	return corev1.Taint{Key: v1alpha1.TaintKeyPrefix + g.name, Effect: corev1.TaintEffectNoSchedule}
}

// rule makes a bootstrap-only rule on the group's nodes, changed by the options. It is not created.
func (g group) rule(name string, options ...func(*v1alpha1.NodeReadinessRule)) *v1alpha1.NodeReadinessRule {
	rule := &v1alpha1.NodeReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: g.name + "-" + name},
		Spec: v1alpha1.NodeReadinessRuleSpec{
			NodeSelector:    metav1.LabelSelector{MatchLabels: map[string]string{specLabel: g.name}},
			Conditions:      []v1alpha1.ConditionRequirement{{Type: g.condition(), RequiredStatus: corev1.ConditionTrue}},
			Taint:           g.taint(),
			EnforcementMode: v1alpha1.EnforcementModeBootstrapOnly,
		},
	}
	for _, option := range options {
		option(rule)
	}
	return rule
}

func continuous(rule *v1alpha1.NodeReadinessRule) {
	rule.Spec.EnforcementMode = v1alpha1.EnforcementModeContinuous
}

func dryRun(rule *v1alpha1.NodeReadinessRule) { rule.Spec.DryRun = true }

// tainting gives the rule another taint than the group's.
func tainting(name string) func(*v1alpha1.NodeReadinessRule) {
	return func(rule *v1alpha1.NodeReadinessRule) {
		rule.Spec.Taint.Key = v1alpha1.TaintKeyPrefix + rule.Name + name
	}
}

// create creates the rule, and removes it after the spec whether or not a controller runs then.
func create(ctx context.Context, rule *v1alpha1.NodeReadinessRule) *v1alpha1.NodeReadinessRule {
	GinkgoHelper()
	Expect(api.Create(ctx, rule)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(api.Patch(ctx, rule, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
		Expect(client.IgnoreNotFound(api.Delete(ctx, rule))).To(Succeed())
	})
	return rule
}

// node creates a node of the group as a kubelet would register it with these taints.
func (g group) node(ctx context.Context, name string, taints ...corev1.Taint) string {
	GinkgoHelper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: g.name + "-" + name, Labels: map[string]string{specLabel: g.name}},
		Spec:       corev1.NodeSpec{Taints: taints},
	}
	Expect(api.Create(ctx, node)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(api.Delete(ctx, node))).To(Succeed()) })
	return node.Name
}

func (g group) nodes(ctx context.Context) []corev1.Node {
	GinkgoHelper()
	var list corev1.NodeList
	Expect(api.List(ctx, &list, client.MatchingLabels{specLabel: g.name})).To(Succeed())
	return list.Items
}

// report sets the condition of a node, as the check on the node does.
func report(ctx context.Context, node, condition string, status corev1.ConditionStatus) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"lastTransitionTime":%q}]}}`,
		condition, status, time.Now().UTC().Format(time.RFC3339))
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	Expect(api.Status().Patch(ctx, object, client.RawPatch("application/strategic-merge-patch+json", []byte(patch)))).To(Succeed())
}

func getNode(ctx context.Context, name string) *corev1.Node {
	GinkgoHelper()
	var node corev1.Node
	Expect(api.Get(ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
	return &node
}

func getRule(ctx context.Context, name string) *v1alpha1.NodeReadinessRule {
	GinkgoHelper()
	var rule v1alpha1.NodeReadinessRule
	Expect(api.Get(ctx, client.ObjectKey{Name: name}, &rule)).To(Succeed())
	return &rule
}

// taintKeys polls the keys of a node's taints.
func taintKeys(ctx context.Context, node string) func() []string {
	return func() []string {
		var keys []string
		for _, taint := range getNode(ctx, node).Spec.Taints {
			keys = append(keys, taint.Key)
		}
		return keys
	}
}

// completion is the annotation of a released node; empty without one.
func completion(node *corev1.Node, rule *v1alpha1.NodeReadinessRule) string {
	return node.Annotations[rule.BootstrapCompletedAnnotation()]
}

// gone says whether the rule is no longer there.
func gone(ctx context.Context, rule *v1alpha1.NodeReadinessRule) func() bool {
	return func() bool {
		return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(rule), &v1alpha1.NodeReadinessRule{}))
	}
}

// eventReasons polls the reasons of the events on an object.
func eventReasons(ctx context.Context, name string) func() []string {
	return func() []string {
		GinkgoHelper()
		var list corev1.EventList
		Expect(api.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
		var reasons []string
		for _, event := range list.Items {
			if event.InvolvedObject.Name == name {
				reasons = append(reasons, event.Reason)
			}
		}
		slices.Sort(reasons)
		return reasons
	}
}

// history records every version of the group's nodes from now on.
func (g group) history() (versions func() []*corev1.Node) {
	GinkgoHelper()
	w, err := api.Watch(context.Background(), &corev1.NodeList{}, client.MatchingLabels{specLabel: g.name})
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan []*corev1.Node, 1)
	go func() {
		var seen []*corev1.Node
		for event := range w.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok {
				seen = append(seen, node)
			}
		}
		ended <- seen
	}()
	DeferCleanup(w.Stop)
	return func() []*corev1.Node {
		w.Stop()
		return <-ended
	}
}

func hasTaint(node *corev1.Node, taint corev1.Taint) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect })
}

func conditionStatus(node *corev1.Node, condition string) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if string(c.Type) == condition {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

// kubectl runs kubectl from the assets as admin, with the input as its stdin, and returns what it prints.
func kubectl(ctx context.Context, input string, args ...string) string {
	GinkgoHelper()
	assets, err := findAssets()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, filepath.Join(assets, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), out)
	return string(out)
}
