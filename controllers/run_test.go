package controllers_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mirrorgap/mirrorgap/controllers"
	"github.com/mirrorgap/mirrorgap/controllers/manifests"
)

var _ = Describe("Run", func() {
	It("refuses options that make no sense", func(ctx SpecContext) {
		Expect(controllers.Run(ctx, admin, controllers.Options{NodeConcurrentReconciles: -1})).To(MatchError(ContainSubstring("must not be negative")))
	})

	It("runs several times in one process, at once and one after another", func(ctx SpecContext) {
		g := newGroup()
		rule := create(ctx, g.rule("shared", continuous))
		startController(controllers.Options{})
		stop := startController(controllers.Options{})
		node := g.node(ctx, "n")
		Eventually(taintKeys(ctx, node)).Should(ContainElement(rule.Spec.Taint.Key))
		stop()
		startController(controllers.Options{})
		report(ctx, node, g.condition(), isTrue)
		Eventually(taintKeys(ctx, node)).ShouldNot(ContainElement(rule.Spec.Taint.Key))
	})

	It("lets one of several act with leader election, and the other one once that ends", func(ctx SpecContext) {
		g := newGroup()
		rule := create(ctx, g.rule("led", continuous))
		first := startController(controllers.Options{LeaderElection: true})
		node := g.node(ctx, "n")
		Eventually(taintKeys(ctx, node)).Should(ContainElement(rule.Spec.Taint.Key))
		startController(controllers.Options{LeaderElection: true})
		first()
		report(ctx, node, g.condition(), isTrue)
		Eventually(taintKeys(ctx, node)).ShouldNot(ContainElement(rule.Spec.Taint.Key))
	})
})

var _ = Describe("The permissions", func() {
	It("let the controller do no more than it needs", func(ctx SpecContext) {
		c, err := newClient(asServiceAccount())
		Expect(err).NotTo(HaveOccurred())
		allowed := func(group, resource, subresource, verb string) bool {
			GinkgoHelper()
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: subresource, Verb: verb},
			}}
			Expect(c.Create(ctx, review)).To(Succeed())
			return review.Status.Allowed
		}
		const group = "readiness.node.x-k8s.io"
		Expect(allowed("", "nodes", "", "patch")).To(BeTrue())
		Expect(allowed("", "nodes", "status", "patch")).To(BeFalse())
		Expect(allowed("", "nodes", "", "delete")).To(BeFalse())
		Expect(allowed("", "pods", "", "list")).To(BeFalse())
		Expect(allowed("", "secrets", "", "get")).To(BeFalse())
		Expect(allowed(group, "nodereadinessrules", "status", "patch")).To(BeTrue())
		Expect(allowed(group, "nodereadinessrules", "", "delete")).To(BeFalse())
		Expect(allowed(group, "nodereadinessrules", "", "create")).To(BeFalse())
		Expect(allowed("apiextensions.k8s.io", "customresourcedefinitions", "", "update")).To(BeFalse())
	})

	It("belong to the ServiceAccount of a Deployment that the API server accepts", func(ctx SpecContext) {
		Expect(manifests.Apply(ctx, admin, manifests.Deployment())).To(Succeed())
		var deployment appsv1.Deployment
		Expect(api.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "node-readiness-controller"}, &deployment)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(api.Delete(ctx, &deployment)).To(Succeed()) })
		pod := deployment.Spec.Template.Spec
		Expect("system:serviceaccount:" + deployment.Namespace + ":" + pod.ServiceAccountName).To(Equal(manifests.ServiceAccountUser))

		// Every argument is one that the command knows.
		cmd := controllers.NewCommand()
		Expect(pod.Containers[0].Command[1]).To(Equal(cmd.Name()))
		Expect(cmd.ParseFlags(pod.Containers[0].Args)).To(Succeed())
	})
})

var _ = Describe("The command", func() {
	It("has upstream's flags and runs the controller with metrics and health", func(ctx SpecContext) {
		g := newGroup()
		rule := create(ctx, g.rule("command"))
		metrics, health := freeAddress(), freeAddress()
		cmd := controllers.NewCommand()
		cmd.SetArgs([]string{
			"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + health,
			"--kube-api-qps=50", "--kube-api-burst=100", "--node-concurrent-reconciles=2", "--rule-concurrent-reconciles=1",
		})
		running, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- cmd.ExecuteContext(running) }()
		DeferCleanup(cancel)

		node := g.node(ctx, "n", g.taint())
		report(ctx, node, g.condition(), isTrue)
		Eventually(taintKeys(ctx, node)).ShouldNot(ContainElement(rule.Spec.Taint.Key))
		Eventually(get).WithArguments(ctx, "http://"+health+"/healthz").Should(Equal("ok"))
		Eventually(get).WithArguments(ctx, "http://"+metrics+"/metrics").Should(ContainSubstring(
			fmt.Sprintf(`node_readiness_taint_operations_total{operation="remove",rule=%q} 1`, rule.Name)))
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})

	It("says what to do without a cluster", func(ctx SpecContext) {
		cmd := controllers.NewCommand()
		cmd.SetArgs([]string{"--kubeconfig=" + filepath.Join(GinkgoT().TempDir(), "none")})
		Expect(cmd.ExecuteContext(ctx)).To(MatchError(ContainSubstring("load client configuration (name one with --kubeconfig)")))
	})

	It("ends when its address is in use", func(ctx SpecContext) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		err = controllers.Run(ctx, rest.CopyConfig(admin), controllers.Options{HealthProbeBindAddress: listener.Addr().String()})
		Expect(err).To(MatchError(ContainSubstring("address already in use")))
	})
})

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(listener.Close()).To(Succeed()) }()
	return listener.Addr().String()
}

func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	return strings.TrimSpace(string(body)), errorOr(err, response.Body.Close())
}

func errorOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
