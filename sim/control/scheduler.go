package control

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"

	"github.com/mirrorgap/mirrorgap/sim"
)

// schedulerUser has the bootstrap ClusterRole system:kube-scheduler.
const schedulerUser = "system:kube-scheduler"

// schedulerComponent is the component's name of kube-scheduler, and begins that of any other scheduler.
const schedulerComponent = "kube-scheduler"

// Scheduler is a kube-scheduler: the cluster's own, or another one beside it, with a cache of its own.
type Scheduler struct {
	name   string
	config *schedulerconfig.KubeSchedulerConfiguration
	rest   *rest.Config
}

// NewScheduler makes kube-scheduler. A client QPS or burst set in spec wins over the configuration's clientConnection.
func NewScheduler(access sim.Access, spec sim.Scheduler) (*Scheduler, error) {
	config, err := LoadSchedulerConfiguration(spec.Config)
	if err != nil {
		return nil, err
	}
	s, err := newScheduler(access, schedulerComponent, config, spec.Client)
	if err != nil {
		return nil, err
	}
	lagPodWatches(s.rest, spec.PodWatchLag.Duration)
	return s, nil
}

// NewOtherScheduler makes a further kube-scheduler with the defaults, and the identity, of the first one: it places the pods whose spec.schedulerName is
// name, and sees what others have placed only when its own watch shows it.
func NewOtherScheduler(access sim.Access, name string) (*Scheduler, error) {
	config, err := LoadSchedulerConfiguration(nil)
	if err != nil {
		return nil, err
	}
	config.Profiles[0].SchedulerName = name
	return newScheduler(access, schedulerComponent+"-"+name, config, sim.Client{})
}

func newScheduler(access sim.Access, name string, config *schedulerconfig.KubeSchedulerConfiguration, client sim.Client) (*Scheduler, error) {
	cfg, err := access.ConfigFor(schedulerUser)
	if err != nil {
		return nil, err
	}
	cfg.ContentType, cfg.AcceptContentTypes = config.ClientConnection.ContentType, config.ClientConnection.AcceptContentTypes
	cfg.QPS, cfg.Burst = config.ClientConnection.QPS, int(config.ClientConnection.Burst)
	throttle(cfg, client)
	return &Scheduler{name: name, config: config, rest: cfg}, nil
}

// LoadSchedulerConfiguration decodes, defaults and validates a KubeSchedulerConfiguration, as kube-scheduler --config does, its plugins' names
// included. Empty data give kube-scheduler's defaults.
func LoadSchedulerConfiguration(data []byte) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	if len(data) == 0 {
		return latest.Default()
	}
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode KubeSchedulerConfiguration: %w", err)
	}
	config, ok := obj.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("decode KubeSchedulerConfiguration: it is a %s", gvk)
	}
	config.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		return nil, fmt.Errorf("validate KubeSchedulerConfiguration: %w", err)
	}
	if err := validatePlugins(config.Profiles); err != nil {
		return nil, fmt.Errorf("validate KubeSchedulerConfiguration: %w", err)
	}
	return config, nil
}

// validatePlugins refuses plugins that kube-scheduler does not have. Its own validation leaves them to its start, when a run has begun.
func validatePlugins(profiles []schedulerconfig.KubeSchedulerProfile) error {
	registry := plugins.NewInTreeRegistry()
	var errs []error
	for _, profile := range profiles {
		names := profile.Plugins.Names()
		for _, p := range profile.Plugins.MultiPoint.Enabled {
			names = append(names, p.Name)
		}
		for _, name := range names {
			if _, ok := registry[name]; !ok {
				errs = append(errs, fmt.Errorf("profile %s: kube-scheduler has no plugin %s", profile.SchedulerName, name))
			}
		}
	}
	return errors.Join(errs...)
}

// Name implements sim.Component.
func (s *Scheduler) Name() string { return s.name }

// Run implements sim.Component. It does what cmd/kube-scheduler/app Setup and Run do, without leader election and serving.
func (s *Scheduler) Run(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.rest)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	eventClient, err := kubernetes.NewForConfig(s.rest) // as in the real one, events have a throttle of their own
	if err != nil {
		return fmt.Errorf("make client for events: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(s.rest)
	if err != nil {
		return fmt.Errorf("make dynamic client: %w", err)
	}
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, eventClient)
	factory := scheduler.NewInformerFactory(client, 0, nil)
	dynamicFactory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, corev1.NamespaceAll, nil)
	sched, err := scheduler.New(ctx, client, factory, dynamicFactory,
		func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(name) },
		scheduler.WithComponentConfigVersion(s.config.APIVersion),
		scheduler.WithKubeConfig(s.rest),
		scheduler.WithProfiles(s.config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(s.config.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(s.config.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(s.config.PodInitialBackoffSeconds),
		scheduler.WithExtenders(s.config.Extenders...),
		scheduler.WithParallelism(s.config.Parallelism),
	)
	if err != nil {
		return fmt.Errorf("make scheduler: %w", err)
	}
	broadcaster.StartRecordingToSink(ctx.Done())
	defer broadcaster.Shutdown()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	dynamicFactory.Start(ctx.Done())
	defer dynamicFactory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	dynamicFactory.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return onlyUnlessDone(ctx, fmt.Errorf("wait for the first list of pods and nodes: %w", err))
	}
	sched.Run(ctx)
	return nil
}
