package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mirrorgap/mirrorgap/sim"
)

const (
	// startTimeout bounds the start of one server. A warm start takes 3–5 s on 2 cores; a loaded CI machine may take many times that.
	startTimeout = 2 * time.Minute
	stopTimeout  = 30 * time.Second
	// probeInterval is how often Watch asks whether the servers still listen.
	probeInterval = 500 * time.Millisecond
	// tailBytes of a dead server's log go into the error.
	tailBytes = 2000
)

// Options configure an engine.
type Options struct {
	// LogDir takes etcd.log and kube-apiserver.log. It must exist.
	LogDir string
	// Binary is the multi-call binary that serves as etcd and kube-apiserver: one whose main calls DispatchTool first.
	// Default: the running executable.
	Binary string
	// APIServerFlags are further flags of kube-apiserver, without the dashes.
	APIServerFlags map[string]string
}

// Engine is a running control plane. It implements sim.Access.
type Engine struct {
	// plane is driven directly: an envtest.Environment tries five times to start what fails, and forgets the processes and folders of the first four.
	plane  *envtest.ControlPlane
	links  string
	logs   []*os.File
	probes []probe
}

// probe is a server, where it listens and what it logs to.
type probe struct{ name, addr, log string }

// Start starts etcd and kube-apiserver and returns when the API serves. It leaves nothing behind when it fails or when ctx ends meanwhile.
func Start(ctx context.Context, opts Options) (*Engine, error) {
	e := &Engine{}
	err := e.start(ctx, opts)
	if ctx.Err() != nil {
		err = context.Cause(ctx) // that a server did not start is the consequence
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), e.Stop())
	}
	return e, nil
}

func (e *Engine) start(ctx context.Context, opts Options) error {
	if err := e.link(opts.Binary); err != nil {
		return err
	}
	etcdLog, err := e.openLog(opts.LogDir, "etcd")
	if err != nil {
		return err
	}
	apiLog, err := e.openLog(opts.LogDir, "kube-apiserver")
	if err != nil {
		return err
	}
	e.plane = &envtest.ControlPlane{}
	e.plane.Etcd = &envtest.Etcd{
		Path: filepath.Join(e.links, "etcd"), Out: etcdLog, Err: etcdLog, StartTimeout: startTimeout, StopTimeout: stopTimeout,
	}
	api := e.plane.GetAPIServer()
	api.Path, api.Out, api.Err = filepath.Join(e.links, "kube-apiserver"), apiLog, apiLog
	api.StartTimeout, api.StopTimeout = startTimeout, stopTimeout
	e.plane.KubectlPath = filepath.Join(e.links, "kubectl")
	// Without these the server looks for a network interface to advertise, and fails on a machine that has only loopback.
	api.Configure().Set("advertise-address", "127.0.0.1").Set("endpoint-reconciler-type", "none")
	// Simulated nodes have no name that resolves; kubectl logs is to go to their address.
	api.Configure().Set("kubelet-preferred-address-types", "InternalIP")
	// As kubeadm sets it up: a kubelet may do what concerns its own node and the pods on it.
	api.Configure().Set("authorization-mode", "Node", "RBAC").Append("enable-admission-plugins", "NodeRestriction")
	for name, value := range opts.APIServerFlags {
		api.Configure().Set(name, value)
	}
	// envtest cannot be told to give up, but a server ends when its name is gone.
	defer context.AfterFunc(ctx, func() { _ = os.RemoveAll(e.links) })()
	if err := e.plane.Start(); err != nil {
		return fmt.Errorf("%w%s%s", err, tail(etcdLog.Name()), tail(apiLog.Name()))
	}
	e.probes = []probe{
		{"etcd", e.plane.Etcd.URL.Host, etcdLog.Name()},
		{"kube-apiserver", api.SecureServing.HostPort(), apiLog.Name()},
	}
	return e.waitForNamespaces(ctx)
}

// waitForNamespaces returns when the namespaces are there that every cluster has; a healthy kube-apiserver still has to create them.
func (e *Engine) waitForNamespaces(ctx context.Context) error {
	cfg, err := e.ConfigFor("mirrorgap", sim.Masters)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	for _, name := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
			_, err := clients.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return err == nil, client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("wait for namespace %s: %w", name, err)
		}
	}
	return nil
}

// link makes the folder that envtest takes the servers' binaries from.
func (e *Engine) link(binary string) (err error) {
	if binary == "" {
		if binary, err = os.Executable(); err != nil {
			return fmt.Errorf("find the running binary: %w", err)
		}
	}
	if e.links, err = os.MkdirTemp("", "mirrorgap-"); err != nil {
		return fmt.Errorf("make a folder for the servers' names: %w", err)
	}
	return linkTools(e.links, binary)
}

func (e *Engine) openLog(dir, name string) (*os.File, error) {
	f, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	e.logs = append(e.logs, f)
	return f, nil
}

// ConfigFor implements sim.Access.
func (e *Engine) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	u, err := e.addUser(user, groups)
	if err != nil {
		return nil, err
	}
	return u.Config(), nil
}

// Kubeconfig returns a kubeconfig for a user of that name and those groups.
func (e *Engine) Kubeconfig(user string, groups ...string) ([]byte, error) {
	u, err := e.addUser(user, groups)
	if err != nil {
		return nil, err
	}
	return u.KubeConfig()
}

func (e *Engine) addUser(user string, groups []string) (*envtest.AuthenticatedUser, error) {
	u, err := e.plane.AddUser(envtest.User{Name: user, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("make a certificate for user %q: %w", user, err)
	}
	return u, nil
}

// DiedError says that a server of the control plane went away in mid-run.
type DiedError struct {
	// Server is "etcd" or "kube-apiserver", Log the path of its log, Tail the log's last lines.
	Server, Log, Tail string
}

// Error names the server and shows the end of its log.
func (e *DiedError) Error() string {
	return fmt.Sprintf("%s died in mid-run; its log is %s%s", e.Server, e.Log, e.Tail)
}

// Watch returns nil when ctx ends, or a *DiedError as soon as a server no longer listens. envtest does not tell when a server exits, so Watch
// asks the ports: only a refused connection counts, twice in a row; a slow answer does not.
func (e *Engine) Watch(ctx context.Context) error {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	refused := map[string]int{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, p := range e.probes {
			if !refuses(ctx, p.addr) {
				refused[p.name] = 0
				continue
			}
			if refused[p.name]++; refused[p.name] == 2 {
				return &DiedError{Server: p.name, Log: p.log, Tail: tail(p.log)}
			}
		}
	}
}

func refuses(ctx context.Context, addr string) bool {
	d := net.Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Stop stops the servers and removes what the engine made, apart from the logs. It is safe to call more than once.
func (e *Engine) Stop() error {
	var errs []error
	if e.plane != nil {
		errs = append(errs, e.plane.Stop())
		e.plane = nil
	}
	for _, f := range e.logs {
		errs = append(errs, f.Close())
	}
	e.logs = nil
	if e.links != "" {
		errs = append(errs, os.RemoveAll(e.links))
		e.links = ""
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop control plane: %w", err)
	}
	return nil
}

// tail returns the last lines of a log file, introduced by its name, or nothing if it is empty.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return ""
	}
	if len(data) > tailBytes {
		data = data[len(data)-tailBytes:]
		if _, rest, ok := strings.Cut(string(data), "\n"); ok {
			data = []byte(rest)
		}
	}
	return fmt.Sprintf("\n--- end of %s ---\n%s", filepath.Base(path), strings.TrimSpace(string(data)))
}
