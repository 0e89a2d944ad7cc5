package control

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwok "sigs.k8s.io/kwok/pkg/kwok/controllers"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
)

const (
	// nodeAddress is the InternalIP of every node: their kubelets all listen on loopback.
	nodeAddress = "127.0.0.1"
	// podCIDR is where pod IPs come from (KWOK's own default).
	podCIDR = "10.0.0.1/24"
	// leaseSeconds is the kubelet's nodeLeaseDurationSeconds (pkg/kubelet/apis/config/v1beta1/defaults.go).
	leaseSeconds = 40
	// parallelism is how many nodes' kubelets write at a time in each of KWOK's queues. Real kubelets do not wait for each other; with KWOK's own
	// default of 4 they do as soon as the API server takes long: of 10,000 pods on 1,000 nodes, 5 a second became Running and leases expired.
	parallelism = 64
)

// KWOK is KWOK's controller, playing stages on every node and pod of the cluster, and the nodes' port for kubectl logs.
type KWOK struct {
	config *rest.Config
	stages []*internalversion.Stage
	logDir string
}

// NewKWOK makes KWOK's controller. logDir holds containers' logs as <namespace>_<pod>_<uid>/<container>.log; empty: nodes serve no logs.
func NewKWOK(access sim.Access, stages []*internalversion.Stage, logDir string) (*KWOK, error) {
	cfg, err := access.ConfigFor("kwok-controller", sim.Masters)
	if err != nil {
		return nil, err
	}
	return &KWOK{config: cfg, stages: stages, logDir: logDir}, nil
}

// Name implements sim.Component.
func (k *KWOK) Name() string { return "kwok-controller" }

// Run implements sim.Component.
func (k *KWOK) Run(ctx context.Context) error {
	config, err := k.controllerConfig()
	if err != nil {
		return err
	}
	stop, err := k.serveLogs(ctx, &config)
	if err != nil {
		return err
	}
	defer stop()
	controller, err := kwok.NewController(config)
	if err != nil {
		return fmt.Errorf("make KWOK's controller: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return onlyUnlessDone(ctx, fmt.Errorf("start KWOK's controller: %w", err))
	}
	<-ctx.Done()
	return nil
}

func (k *KWOK) controllerConfig() (kwok.Config, error) {
	protobuf := rest.CopyConfig(k.config)
	protobuf.ContentType, protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return kwok.Config{}, fmt.Errorf("make client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(k.config)
	if err != nil {
		return kwok.Config{}, fmt.Errorf("make dynamic client: %w", err)
	}
	raw := rest.CopyConfig(k.config)
	raw.GroupVersion, raw.NegotiatedSerializer = &schema.GroupVersion{}, unstructuredscheme.NewUnstructuredNegotiatedSerializer()
	openAPI, err := rest.RESTClientFor(raw)
	if err != nil {
		return kwok.Config{}, fmt.Errorf("make client for OpenAPI: %w", err)
	}
	return kwok.Config{
		Clock:         clock.RealClock{},
		TypedClient:   typed,
		DynamicClient: dynamicClient,
		RESTClient:    openAPI,
		RESTMapper:    restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typed.Discovery())),
		// Real kubelets look after their nodes themselves.
		ManageNodesWithAnnotationSelector: kubelet.AnnotationReadyAt,
		CIDR:                              podCIDR,
		NodeIP:                            nodeAddress,
		LocalStages:                       byResource(k.stages),
		PodPlayStageParallelism:           parallelism,
		NodePlayStageParallelism:          parallelism,
		NodeLeaseDurationSeconds:          leaseSeconds,
		NodeLeaseParallelism:              parallelism,
		PodsOnNodeSyncParallelism:         parallelism,
		ID:                                "mirrorgap",
	}, nil
}

func byResource(stages []*internalversion.Stage) map[internalversion.StageResourceRef][]*internalversion.Stage {
	groups := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, s := range stages {
		groups[s.Spec.ResourceRef] = append(groups[s.Spec.ResourceRef], s)
	}
	return groups
}

// serveLogs opens the port at which the API server asks every node for container logs, and writes it into config.
func (k *KWOK) serveLogs(ctx context.Context, config *kwok.Config) (stop func(), err error) {
	if k.logDir == "" {
		return func() {}, nil
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort(nodeAddress, "0"))
	if err != nil {
		return nil, fmt.Errorf("open the nodes' kubelet port: %w", err)
	}
	certificate, err := selfSigned(nodeAddress)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	server := &http.Server{Handler: logHandler(k.logDir), TLSConfig: certificate, ReadHeaderTimeout: readHeaderTimeout}
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with ErrServerClosed
	config.NodePort = listener.Addr().(*net.TCPAddr).Port
	return func() { _ = server.Close() }, nil
}
