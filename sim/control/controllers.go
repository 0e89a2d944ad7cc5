package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/mirrorgap/mirrorgap/sim"
)

// controllerNames are the controllers of kube-controller-manager that run. The others have nothing to do in a simulation, except the garbage
// collector, which is left out because it lists and watches every resource: dependents of deleted objects stay.
var controllerNames = []string{
	names.DeploymentController,
	names.ReplicaSetController,
	names.DaemonSetController,
	names.JobController,
	names.NodeLifecycleController,
	names.TaintEvictionController,
	names.PodGarbageCollectorController,
	names.NamespaceController,
}

// controllerManagerUser watches for all controllers together; the bootstrap ClusterRole system:kube-controller-manager allows it to.
const controllerManagerUser = "system:kube-controller-manager"

// ControllerManager is kube-controller-manager with the controllers that the race involves.
type ControllerManager struct {
	access   sim.Access
	throttle sim.Client
}

// NewControllerManager makes the controllers. spec overrides kube-controller-manager's client QPS 20 and burst 30, which every controller has for itself.
func NewControllerManager(access sim.Access, spec sim.Client) *ControllerManager {
	return &ControllerManager{access: access, throttle: spec}
}

// Name implements sim.Component.
func (m *ControllerManager) Name() string { return "kube-controller-manager" }

// Run implements sim.Component. The controllers are built by kube-controller-manager's own descriptors from its own default configuration.
func (m *ControllerManager) Run(ctx context.Context) error {
	config, err := options.NewDefaultComponentConfig()
	if err != nil {
		return fmt.Errorf("make default configuration: %w", err)
	}
	clients := clientBuilder{access: m.access, configure: func(cfg *rest.Config) {
		connection := config.Generic.ClientConnection
		cfg.ContentType, cfg.QPS, cfg.Burst = connection.ContentType, connection.QPS, int(connection.Burst)
		throttle(cfg, m.throttle)
	}}
	watcher, err := clients.clientAs(controllerManagerUser)
	if err != nil {
		return err
	}
	started := make(chan struct{})
	controllerContext := app.ControllerContext{
		ClientBuilder:    clients,
		InformerFactory:  informers.NewSharedInformerFactoryWithOptions(watcher, config.Generic.MinResyncPeriod.Duration, informers.WithTransform(dropManagedFields)),
		ComponentConfig:  config,
		InformersStarted: started,
		ResyncPeriod:     func() time.Duration { return config.Generic.MinResyncPeriod.Duration },
	}
	controllers, err := buildControllers(ctx, controllerContext)
	if err != nil {
		return err
	}
	controllerContext.InformerFactory.Start(ctx.Done())
	defer controllerContext.InformerFactory.Shutdown()
	close(started)
	var running sync.WaitGroup
	for _, c := range controllers {
		running.Go(func() { c.Run(ctx) })
	}
	running.Wait()
	return nil
}

func buildControllers(ctx context.Context, controllerContext app.ControllerContext) ([]app.Controller, error) {
	descriptors := app.NewControllerDescriptors()
	controllers := make([]app.Controller, 0, len(controllerNames))
	for _, name := range controllerNames {
		descriptor, ok := descriptors[name]
		if !ok {
			return nil, fmt.Errorf("kube-controller-manager of this version has no %s", name)
		}
		c, err := descriptor.BuildController(ctx, controllerContext)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", name, err)
		}
		controllers = append(controllers, c)
	}
	return controllers, nil
}

// clientBuilder gives each controller the identity that --use-service-account-credentials gives it, so that its bootstrap RBAC role counts.
type clientBuilder struct {
	access    sim.Access
	configure func(*rest.Config)
}

var _ clientbuilder.ControllerClientBuilder = clientBuilder{}

// Config implements clientbuilder.ControllerClientBuilder.
func (b clientBuilder) Config(name string) (*rest.Config, error) {
	return b.configAs("system:serviceaccount:kube-system:"+name, "system:serviceaccounts", "system:serviceaccounts:kube-system")
}

func (b clientBuilder) configAs(user string, groups ...string) (*rest.Config, error) {
	cfg, err := b.access.ConfigFor(user, groups...)
	if err != nil {
		return nil, err
	}
	b.configure(cfg)
	return cfg, nil
}

func (b clientBuilder) clientAs(user string) (kubernetes.Interface, error) {
	cfg, err := b.configAs(user)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(cfg)
}

// Client implements clientbuilder.ControllerClientBuilder.
func (b clientBuilder) Client(name string) (kubernetes.Interface, error) {
	cfg, err := b.Config(name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(cfg)
}

// DiscoveryClient implements clientbuilder.ControllerClientBuilder.
func (b clientBuilder) DiscoveryClient(name string) (discovery.DiscoveryInterface, error) {
	client, err := b.Client(name)
	if err != nil {
		return nil, err
	}
	return client.Discovery(), nil
}

// ConfigOrDie implements clientbuilder.ControllerClientBuilder; like its siblings it is not called by the controllers above.
func (b clientBuilder) ConfigOrDie(name string) *rest.Config { return orDie(b.Config(name)) }

// ClientOrDie implements clientbuilder.ControllerClientBuilder.
func (b clientBuilder) ClientOrDie(name string) kubernetes.Interface { return orDie(b.Client(name)) }

// DiscoveryClientOrDie implements clientbuilder.ControllerClientBuilder.
func (b clientBuilder) DiscoveryClientOrDie(name string) discovery.DiscoveryInterface {
	return orDie(b.DiscoveryClient(name))
}

func orDie[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("make a controller's client: %v", err))
	}
	return v
}

// dropManagedFields saves the memory that managed fields take in the informers' caches, as kube-controller-manager does.
func dropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
