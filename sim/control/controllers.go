package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"

	"github.com/mirrorgap/mirrorgap/sim"
)

// controllerNames are the controllers of kube-controller-manager that always run. The others have nothing to do in a simulation, but for the garbage collector,
// which lists and watches every resource and so runs only where somebody needs it.
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
	collect  bool
}

// NewControllerManager makes the controllers. spec overrides kube-controller-manager's client QPS 20 and burst 30, which every controller has for itself.
// With collect the garbage collector runs, too: it deletes the mirror pods of Nodes that are gone.
func NewControllerManager(access sim.Access, spec sim.Client, collect bool) *ControllerManager {
	return &ControllerManager{access: access, throttle: spec, collect: collect}
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
	run := controllerNames
	startMetadata := func() {}
	if m.collect {
		if startMetadata, err = prepareGarbageCollector(ctx, &controllerContext); err != nil {
			return err
		}
		run = append(slices.Clone(run), names.GarbageCollectorController)
	}
	controllers, err := buildControllers(ctx, controllerContext, run)
	if err != nil {
		return err
	}
	startMetadata()
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

// prepareGarbageCollector adds to the context what the garbage collector needs, as kube-controller-manager does (CreateControllerContext). Start starts its
// informers of metadata.
func prepareGarbageCollector(ctx context.Context, c *app.ControllerContext) (start func(), err error) {
	const user = "generic-garbage-collector"
	cfg, err := c.ClientBuilder.Config(user)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make the garbage collector's client: %w", err)
	}
	discoverer, err := c.ClientBuilder.DiscoveryClient(user)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	go wait.Until(mapper.Reset, 30*time.Second, ctx.Done())
	c.RESTMapper = mapper
	metadataInformers := metadatainformer.NewSharedInformerFactoryWithOptions(client, c.ResyncPeriod(), metadatainformer.WithTransform(dropManagedFields))
	c.ObjectOrMetadataInformerFactory = informerfactory.NewInformerFactory(c.InformerFactory, metadataInformers)
	ignored := map[schema.GroupResource]struct{}{}
	for _, r := range c.ComponentConfig.GarbageCollectorController.GCIgnoredResources {
		ignored[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = struct{}{}
	}
	c.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(ctx, client, mapper, ignored, c.ObjectOrMetadataInformerFactory, c.InformersStarted)
	return func() { metadataInformers.Start(ctx.Done()) }, nil
}

func buildControllers(ctx context.Context, controllerContext app.ControllerContext, run []string) ([]app.Controller, error) {
	descriptors := app.NewControllerDescriptors()
	controllers := make([]app.Controller, 0, len(run))
	for _, name := range run {
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
