package real

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// node is one machine: its folder, its container runtime, and its kubelet's process. Its fields belong to Kubelets.mu.
type node struct {
	kubelet.Machine
	kubelets *Kubelets
	dir      string
	// url is where the kubelet gets the static pods of list, which are not in the folder; empty: there are none.
	url  string
	list []byte
	// runtime is nil while the machine is off, process while no kubelet runs.
	runtime *containerRuntime
	boots   int
	process *process
}

// process is a running kubelet.
type process struct {
	cmd *exec.Cmd
	// alive is the other end of its standard input; it ends with it.
	alive io.Closer
	// wanted is closed before the process is killed on purpose, ended after it is gone.
	wanted, ended chan struct{}
}

// logTail is how many bytes of the log of a kubelet that ended by itself the error shows.
const logTail = 2000

// boot starts the kubelet, and the container runtime unless it has been running on.
func (n *node) boot() error {
	if err := n.startRuntime(); err != nil {
		return fmt.Errorf("start kubelet %s: %w", n.Name, err)
	}
	n.record(trace.Event{Kind: trace.KubeletStarted})
	for _, sandbox := range n.runtime.running() { // what a kubelet finds running counts from its start
		n.sandboxStarted(sandbox)
	}
	if err := n.startProcess(); err != nil {
		return fmt.Errorf("start kubelet %s: %w", n.Name, err)
	}
	return nil
}

func (n *node) startRuntime() error {
	if n.runtime != nil {
		return nil
	}
	n.boots++
	r := newContainerRuntime()
	r.sandboxStarted, r.sandboxStopped = n.sandboxStarted, n.sandboxStopped
	r.containerStarted = func(c *runningContainer) { n.containerStarted(r, c) }
	if err := r.serve(n.kubelets.ctx, n.socket()); err != nil {
		return err
	}
	n.runtime = r
	return nil
}

// socket has a name of its own for each boot, since the one before may still be closing.
func (n *node) socket() string { return filepath.Join(n.dir, fmt.Sprintf("cri-%d", n.boots)) }

// served is what the kubelet gets from its URL: a list of the static pods that are not in the folder; nil if there are none.
func (n *node) served() ([]byte, error) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, p := range n.StaticPods {
		if p.Source != sim.SourceURL {
			continue
		}
		pod, err := p.Pod()
		if err != nil {
			return nil, fmt.Errorf("read static pod %s: %w", p.FileName, err)
		}
		list.Items = append(list.Items, *pod)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return json.Marshal(list)
}

func (n *node) startProcess() error {
	path := filepath.Join(n.dir, "settings.json")
	s, err := n.settings()
	if err != nil {
		return err
	}
	if err := s.write(path); err != nil {
		return err
	}
	log, err := n.openLog()
	if err != nil {
		return err
	}
	//nolint:noctx // it is ended by Kill and Stop, in its own way
	p := &process{cmd: exec.Command(n.kubelets.config.Binary), wanted: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Args = []string{"kubelet", path}
	p.cmd.Stderr = log
	in, inErr := p.cmd.StdinPipe()
	out, outErr := p.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return fmt.Errorf("make its pipes: %w", err)
	}
	p.alive = in
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start its process: %w", err)
	}
	n.process = p
	n.kubelets.background.Go(func() { n.attend(p, out, log) })
	return nil
}

func (n *node) settings() (*settings, error) {
	user := "system:node:" + n.Name
	access, err := n.kubelets.config.Access.ConfigFor(user, "system:nodes")
	if err != nil {
		return nil, err
	}
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if n.Group != "" {
		labels[sim.LabelGroup] = n.Group
	}
	if n.Initial {
		labels[sim.LabelInitial] = "true"
	}
	allocatable := maps.Clone(n.Capacity)
	maps.Copy(allocatable, n.Allocatable)
	s := &settings{
		NodeName: n.Name, Root: filepath.Join(n.dir, "root"), Manifests: n.manifests(), ManifestsURL: n.url, Runtime: "unix://" + n.socket(),
		Capacity: n.Capacity, Allocatable: allocatable, Labels: labels, Taints: n.Taints, API: apiOf(access),
	}
	if d := n.Behaviour.APIUnreachable; d != nil {
		s.APIUnreachable = d.Duration
	}
	return s, os.MkdirAll(s.Root, 0o700)
}

func (n *node) openLog() (*os.File, error) {
	path := os.DevNull
	if dir := n.kubelets.config.LogDir; dir != "" {
		path = filepath.Join(dir, n.Name+".log")
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open its log: %w", err)
	}
	return log, nil
}

// attend records what a kubelet announces, and waits for its end.
func (n *node) attend(p *process, out io.Reader, log *os.File) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var a announcement
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue // something else printed
		}
		n.record(trace.Event{Kind: trace.PodRejected, Pod: a.Namespace + "/" + a.Name, UID: a.UID, Reason: a.Reason, Message: a.Message})
	}
	err := p.cmd.Wait()
	path := log.Name()
	_ = log.Close() // only handed on
	select {
	case <-p.wanted:
	default:
		n.kubelets.fail(fmt.Errorf("the kubelet of node %s ended by itself: %w%s", n.Name, err, tail(path)))
	}
}

// tail is the end of a log, introduced by its name; empty if there is none.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return ""
	}
	data = data[max(0, len(data)-logTail):]
	return fmt.Sprintf("\n--- end of %s ---\n%s", filepath.Base(path), strings.TrimSpace(string(data)))
}

// kill ends the kubelet's process and waits for it.
func (n *node) kill() {
	p := n.process
	if p == nil {
		return
	}
	n.process = nil
	close(p.wanted)
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
	_ = p.alive.Close()
	n.record(trace.Event{Kind: trace.KubeletStopped})
}

// halt switches the machine off.
func (n *node) halt() {
	n.kill()
	if n.runtime != nil {
		n.runtime.stop()
		n.runtime = nil
	}
}

func (n *node) record(e trace.Event) {
	e.Source = trace.SourceKubelet
	e.Node = n.Name
	n.kubelets.config.Recorder.Record(e)
}

// sandboxStarted records that the kubelet has admitted a pod.
func (n *node) sandboxStarted(sandbox *runtimeapi.PodSandboxConfig) {
	m := sandbox.GetMetadata()
	e := trace.Event{Kind: trace.PodAdmitted, Pod: m.GetNamespace() + "/" + m.GetName(), UID: m.GetUid()}
	if isStatic(sandbox) {
		e.Kind = trace.StaticPodStarted
		if pod := n.staticPod(m.GetNamespace(), m.GetName()); pod != nil {
			e.Requests = sim.PodAmounts(pod)
		}
	}
	n.record(e)
}

// sandboxStopped records the end of a static pod.
func (n *node) sandboxStopped(sandbox *runtimeapi.PodSandboxConfig) {
	if !isStatic(sandbox) {
		return
	}
	m := sandbox.GetMetadata()
	n.record(trace.Event{Kind: trace.StaticPodStopped, Pod: m.GetNamespace() + "/" + m.GetName(), UID: m.GetUid()})
}

func isStatic(sandbox *runtimeapi.PodSandboxConfig) bool {
	source := sandbox.GetAnnotations()[kubetypes.ConfigSourceAnnotationKey]
	return source == kubetypes.FileSource || source == kubetypes.HTTPSource
}

// containerStarted has a container do what its image would.
func (n *node) containerStarted(r *containerRuntime, c *runningContainer) {
	if isStatic(c.pod) {
		n.staticContainerStarted(r, c)
		return
	}
	n.kubelets.background.Go(func() {
		m := c.pod.GetMetadata()
		pod, err := n.kubelets.client.CoreV1().Pods(m.GetNamespace()).Get(c.ctx, m.GetName(), metav1.GetOptions{})
		if err != nil || string(pod.UID) != m.GetUid() {
			return // the pod is gone, and its containers with it
		}
		n.play(r, c, pod)
	})
}

// staticContainerStarted ends the init containers of static pods. No program runs in them.
func (n *node) staticContainerStarted(r *containerRuntime, c *runningContainer) {
	n.kubelets.background.Go(func() {
		m := c.pod.GetMetadata()
		pod := n.staticPod(m.GetNamespace(), m.GetName())
		if pod == nil {
			return
		}
		if i := initContainer(pod, c.name); i >= 0 && !podutil.IsRestartableInitContainer(&pod.Spec.InitContainers[i]) {
			r.exit(c, 0)
		}
	})
}

func initContainer(pod *corev1.Pod, name string) int {
	return slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
}

// play runs the program of a container to its end, if it has one.
func (n *node) play(r *containerRuntime, c *runningContainer, pod *corev1.Pod) {
	i := initContainer(pod, c.name)
	switch {
	case i < 0 && isJob(pod):
		if sim.Sleep(c.ctx, runFor(pod)) == nil {
			r.exit(c, 0)
		}
	case i < 0:
	default:
		spec := &pod.Spec.InitContainers[i]
		if program := n.kubelets.config.Programs(pod, spec); program != nil {
			r.exit(c, n.runProgram(c.ctx, program, pod, spec))
		} else if !podutil.IsRestartableInitContainer(spec) {
			r.exit(c, 0)
		}
	}
}

// runProgram returns the exit code of a program.
func (n *node) runProgram(ctx context.Context, program kubelet.Program, pod *corev1.Pod, container *corev1.Container) int32 {
	surroundings := kubelet.ContainerContext{Pod: pod, Container: container, Node: n.Name, Manifests: os.DirFS(n.manifests())}
	dir := n.kubelets.config.ContainerLogDir
	if err := kubelet.RunLogged(ctx, program, surroundings, dir); err != nil {
		return 1
	}
	return 0
}

// What KWOK's stage pod-completed goes by (kwokconfigs/pod-completed.yaml).
const (
	annotationRunFor = "mirrorgap.dev/run-for"
	defaultRunFor    = time.Second
)

func isJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}

func runFor(pod *corev1.Pod) time.Duration {
	if d, err := time.ParseDuration(pod.Annotations[annotationRunFor]); err == nil {
		return d
	}
	return defaultRunFor
}
