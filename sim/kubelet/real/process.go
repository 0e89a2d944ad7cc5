package real

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"
	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	remote "k8s.io/cri-client/pkg"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeletapi "k8s.io/kubernetes/pkg/kubelet"
	"k8s.io/kubernetes/pkg/kubemark"
)

const (
	// The kubelet's client throttle (pkg/kubelet/apis/config/v1beta1/defaults.go, KubeAPIQPS and KubeAPIBurst).
	kubeletQPS, kubeletBurst = 50, 100
	// syncFrequency is the kubelet's own (same file); kubemark's 10 s would make refused mirror pods come back too soon.
	syncFrequency = time.Minute
	// runtimeTimeout bounds one call of the container runtime, on a machine that may be loaded.
	runtimeTimeout = 2 * time.Minute
)

// Main makes the process a kubelet; args[1] is the path of its settings. It does not return: the kubelet runs until it is killed or its standard
// input ends, which it does with the process that started it. Rejections are written to standard output (see announcement).
func Main(args []string) {
	if err := run(context.Background(), args); err != nil {
		fmt.Fprintf(os.Stderr, "kubelet: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	started := time.Now()
	if len(args) != 2 {
		return errors.New("run as kubelet: give the path of the settings: this is started by mirrorgap itself")
	}
	s, err := readSettings(args[1])
	if err != nil {
		return err
	}
	go exitWithParent()
	hollow, err := newKubelet(ctx, s, started)
	if err != nil {
		return fmt.Errorf("start kubelet %s: %w", s.NodeName, err)
	}
	hollow.Run(ctx) // does not return
	return nil
}

// exitWithParent ends the process when nobody holds the other end of its standard input any more.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func newKubelet(ctx context.Context, s *settings, started time.Time) (*kubemark.HollowKubelet, error) {
	cfg := s.API.config()
	cfg.Dial = dialer(started.Add(s.APIUnreachable))
	cfg = rest.AddUserAgent(cfg, "kubelet")
	flags, config := s.configuration()
	client, err := clientFor(cfg, kubeletQPS, kubeletBurst)
	if err != nil {
		return nil, err
	}
	heartbeat := rest.CopyConfig(cfg) // as in cmd/kubelet/app: its own client, without a throttle, that gives up in time for the next heartbeat
	heartbeat.Timeout = min(config.NodeStatusUpdateFrequency.Duration, time.Duration(config.NodeLeaseDurationSeconds)*time.Second)
	heartbeatClient, err := clientFor(heartbeat, -1, 0)
	if err != nil {
		return nil, err
	}
	eventClient, err := clientFor(cfg, float32(config.EventRecordQPS), int(config.EventBurst))
	if err != nil {
		return nil, err
	}
	runtimes, err := remote.NewRemoteRuntimeServiceBuilder().WithEndpoint(s.Runtime).WithConnectionTimeout(runtimeTimeout).Build(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the container runtime: %w", err)
	}
	images, err := remote.NewRemoteImageServiceBuilder().WithEndpoint(s.Runtime).WithConnectionTimeout(runtimeTimeout).Build(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the container runtime's images: %w", err)
	}
	hollow := kubemark.NewHollowKubelet(flags, config, client, heartbeatClient, s.cadvisor(), images, runtimes, s.containerManager())
	recordEvents(ctx, hollow.KubeletDeps, s.NodeName, eventClient)
	return hollow, nil
}

func clientFor(cfg *rest.Config, qps float32, burst int) (*kubernetes.Clientset, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = qps, burst
	cfg.ContentType, cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// dialer refuses connections until a time, as a machine does on whose port nobody listens yet.
func dialer(reachable time.Time) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second} // client-go's own
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if time.Now().Before(reachable) {
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		return d.DialContext(ctx, network, address)
	}
}

// recordEvents gives the kubelet the event recorder that cmd/kubelet/app would make, in place of kubemark's fake one, and has rejections announced.
//
// A kubelet with any other than the fake one also watches /dev/kmsg for this machine's out-of-memory events, which needs root and a device that
// containers do not have. NewMainKubelet decides about that, then asks for a tracer, then hands the recorder to its parts: the tracer is the moment to
// exchange it. TestEvents fails if that order changes.
func recordEvents(ctx context.Context, deps *kubeletapi.Dependencies, node string, client kubernetes.Interface) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(legacyscheme.Scheme, corev1.EventSource{Component: "kubelet", Host: node})
	deps.TracerProvider = &tracerProvider{TracerProvider: noopoteltrace.NewTracerProvider(), asked: func() {
		deps.Recorder = announcer{recorder, &announcements{out: os.Stdout}}
	}}
}

// tracerProvider says when a tracer is asked for.
type tracerProvider struct {
	trace.TracerProvider
	asked func()
}

// Tracer implements trace.TracerProvider.
func (p *tracerProvider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	p.asked()
	return p.TracerProvider.Tracer(name, options...)
}
