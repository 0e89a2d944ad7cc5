package runner

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
	"github.com/mirrorgap/mirrorgap/sim/gate"
)

// probes is time enough for an engine to look after its servers more than twice.
const probes = 2 * time.Second

// startEngine starts an engine that the spec's end stops.
func startEngine(ctx context.Context) *live.Engine {
	GinkgoHelper()
	engine, err := live.Start(ctx, live.Options{LogDir: GinkgoT().TempDir()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(engine.Stop)
	return engine
}

func configFor(engine *live.Engine, user string, groups ...string) *rest.Config {
	GinkgoHelper()
	cfg, err := engine.ConfigFor(user, groups...)
	Expect(err).NotTo(HaveOccurred())
	return cfg
}

func clientFor(engine *live.Engine, user string, groups ...string) kubernetes.Interface {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(configFor(engine, user, groups...))
	Expect(err).NotTo(HaveOccurred())
	return clients
}

var _ = Describe("the live engine", func() {
	BeforeEach(leavesNothing)

	It("serves on loopback, with RBAC on, and is gone when it is stopped", limit, func(ctx SpecContext) {
		engine := startEngine(ctx)

		By("asking as one who may")
		admin := clientFor(engine, "admin", sim.Masters)
		_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		version, err := admin.Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(version.GitVersion).To(HavePrefix("v"))

		By("asking as one who may not")
		nobody := clientFor(engine, "nobody")
		_, err = nobody.CoreV1().Pods("a").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "a user without rights got %v", err)
		scheduler := clientFor(engine, "system:kube-scheduler")
		_, err = scheduler.CoreV1().Pods("a").List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred(), "the bootstrap role of kube-scheduler lets it list pods")
		_, err = scheduler.CoreV1().Secrets("a").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "kube-scheduler may not list secrets, but got %v", err)

		By("asking with a kubeconfig")
		kubeconfig, err := engine.Kubeconfig("nobody")
		Expect(err).NotTo(HaveOccurred())
		cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		by, err := kubernetes.NewForConfig(cfg)
		Expect(err).NotTo(HaveOccurred())
		_, err = by.CoreV1().Pods("a").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the kubeconfig's user got %v", err)

		By("looking at the open ports")
		servers := children()
		Expect(servers).To(And(HaveLen(2), HaveKey("etcd"), HaveKey("kube-apiserver")))
		var listening int
		for name, server := range servers {
			connections, err := server.ConnectionsWithContext(ctx)
			Expect(err).NotTo(HaveOccurred())
			for _, c := range connections {
				if c.Status == "LISTEN" {
					listening++
					Expect(net.ParseIP(c.Laddr.IP).IsLoopback()).To(BeTrue(), "%s listens on %s", name, c.Laddr)
				}
			}
		}
		Expect(listening).To(BeNumerically(">=", 2))

		By("watching it")
		watched, cancel := context.WithTimeout(ctx, probes)
		defer cancel()
		Expect(engine.Watch(watched)).To(Succeed())

		By("stopping it, twice")
		Expect(engine.Stop()).To(Succeed())
		Expect(engine.Stop()).To(Succeed())
		host, err := url.Parse(cfg.Host)
		Expect(err).NotTo(HaveOccurred())
		_, err = new(net.Dialer).DialContext(ctx, "tcp", host.Host)
		Expect(err).To(MatchError(syscall.ECONNREFUSED))
	})

	It("says why kube-apiserver does not start", limit, func(ctx SpecContext) {
		_, err := live.Start(ctx, live.Options{LogDir: GinkgoT().TempDir(), APIServerFlags: map[string]string{"no-such-flag": "1"}})
		Expect(err).To(MatchError(And(ContainSubstring("start control plane"), ContainSubstring("end of kube-apiserver.log"), ContainSubstring("unknown flag: --no-such-flag"))))
	})

	It("takes further flags for kube-apiserver", limit, func(ctx SpecContext) {
		engine, err := live.Start(ctx, live.Options{LogDir: GinkgoT().TempDir(), APIServerFlags: map[string]string{"default-not-ready-toleration-seconds": "17"}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(engine.Stop)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		pod, err = clientFor(engine, "admin", sim.Masters).CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(pod.Spec.Tolerations).To(ContainElement(HaveField("TolerationSeconds", HaveValue(BeEquivalentTo(17)))))
	})

	It("gives up when it is not wanted any more, however long a server takes", limit, func(ctx SpecContext) {
		flags := map[string]string{"anonymous-auth": "false"} // with which envtest's health check never passes
		unwanted, cancel := context.WithTimeout(ctx, probes)
		defer cancel()
		start := time.Now()
		_, err := live.Start(unwanted, live.Options{LogDir: GinkgoT().TempDir(), APIServerFlags: flags})
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(time.Since(start)).To(BeNumerically("<", time.Minute), "the servers' own start timeout is 2 minutes")
		_, err = live.Start(unwanted, live.Options{LogDir: GinkgoT().TempDir()})
		Expect(err).To(MatchError(context.DeadlineExceeded))
	})

	It("says where logs cannot be written", limit, func(ctx SpecContext) {
		_, err := live.Start(ctx, live.Options{LogDir: "/nonexistent"})
		Expect(err).To(And(MatchError(os.ErrNotExist), MatchError(ContainSubstring("open log of etcd"))))
	})

	DescribeTable("notices the death of", func(ctx SpecContext, server string) {
		logs := GinkgoT().TempDir()
		engine, err := live.Start(ctx, live.Options{LogDir: logs})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(engine.Stop)
		died := make(chan error, 1)
		go func() { died <- engine.Watch(ctx) }()
		Consistently(died).WithTimeout(probes).ShouldNot(Receive())
		kill(ctx, server)
		Eventually(died).Should(Receive(&err))
		var death *live.DiedError
		Expect(errors.As(err, &death)).To(BeTrue(), "got %v", err)
		Expect(death.Server).To(Equal(server))
		Expect(death.Log).To(Equal(filepath.Join(logs, server+".log")))
		Expect(death.Tail).To(ContainSubstring("end of " + server + ".log"))
	},
		Entry(nil, limit, "etcd"),
		Entry(nil, limit, "kube-apiserver"),
	)

	It("takes the parts of the readiness gate that are not left out", limit, func(ctx SpecContext) {
		engine := startEngine(ctx)
		admin := configFor(engine, "admin", sim.Masters)
		scheme := runtime.NewScheme()
		Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
		api, err := client.New(admin, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		Expect(gate.InstallAPI(ctx, admin)).To(Succeed())
		parts := func() []string {
			GinkgoHelper()
			var rules v1alpha1.NodeReadinessRuleList
			Expect(api.List(ctx, &rules)).To(Succeed())
			sets, err := clientFor(engine, "admin", sim.Masters).AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, r := range rules.Items {
				names = append(names, "rule "+r.Name)
			}
			for _, s := range sets.Items {
				names = append(names, "check "+s.Name)
			}
			return names
		}
		install := func(leaveOut ...sim.GatePart) {
			GinkgoHelper()
			spec := fromLibrary("quick").Spec.Gate
			g, err := gate.New(&spec, leaveOut)
			Expect(err).NotTo(HaveOccurred())
			Expect(g.Install(ctx, admin)).To(Succeed())
		}
		Expect(parts()).To(BeEmpty(), "the API alone is no gate")
		install(sim.GateCheck, sim.GateRule)
		Expect(parts()).To(BeEmpty())
		install(sim.GateCheck)
		Expect(parts()).To(ConsistOf("rule static-pods-mirrored"))
		install(sim.GateController)
		Expect(parts()).To(ConsistOf("rule static-pods-mirrored", "check static-pod-mirror-check"))
	})
})
