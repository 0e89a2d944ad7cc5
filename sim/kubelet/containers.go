package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	runtimeutil "k8s.io/kubernetes/pkg/kubelet/kuberuntime/util"
	"k8s.io/kubernetes/pkg/kubelet/util/format"

	"github.com/mirrorgap/mirrorgap/sim"
)

const (
	// relistPeriod is how soon a kubelet notices that a container ended, and restarts it the first time (pkg/kubelet/kubelet.go, genericPlegRelistPeriod).
	relistPeriod = time.Second
	// firstBackOff is the wait before the second restart, doubled for each further one up to maxBackOff (pkg/kubelet/kubelet.go,
	// initialContainerRestartBackOff and MaxContainerBackOff).
	firstBackOff = 10 * time.Second
	maxBackOff   = 5 * time.Minute
)

// Program stands in for the image of an init container, a sidecar among them. It runs until it returns; an error is a failed container, which is restarted as the pod's
// restartPolicy says. Ctx ends when the pod is deleted, or with the kubelet.
type Program func(ctx context.Context, c ContainerContext) error

// ContainerContext is what a program sees of its surroundings.
type ContainerContext struct {
	// Pod and Container are what runs. They must not be changed.
	Pod       *corev1.Pod
	Container *corev1.Container
	// Node is the name of the node.
	Node string
	// Manifests is the static pod folder of the node, as it is at each look.
	Manifests fs.FS
	// Log is the container's standard output.
	Log io.Writer
}

// LogFile is where the output of a container goes below Config.LogDir: lines in the format of the container runtime interface, as KWOK's kubelet
// server reads them.
func LogFile(dir string, pod *corev1.Pod, container string) string {
	return filepath.Join(dir, fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID), container+".log")
}

// container is the state of an init container.
type container struct {
	spec        *corev1.Container
	state, last corev1.ContainerState
	restarts    int32
}

// startContainers starts the init containers of an admitted pod. What follows them is KWOK's.
func (n *node) startContainers(p *pod) {
	p.inits = waitingInits(p.object)
	p.running, p.end = context.WithCancel(n.ctx)
	n.runInits(p, 0)
}

// waitingInits are the init containers before any of them starts.
func waitingInits(pod *corev1.Pod) []container {
	inits := make([]container, len(pod.Spec.InitContainers))
	for i := range inits {
		inits[i] = container{spec: &pod.Spec.InitContainers[i], state: initializing()}
	}
	return inits
}

// stopContainers ends the pod's programs.
func (p *pod) stopContainers() {
	if p.end != nil {
		p.end()
	}
}

// runInits goes on with the init container of an index: up to the next one with a program, or to the end.
func (n *node) runInits(p *pod, i int) {
	for ; i < len(p.inits); i++ {
		c := &p.inits[i]
		if podutil.IsRestartableInitContainer(c.spec) {
			c.state = running()
			if program := n.program(p.object, c.spec); program != nil {
				n.runBeside(p, i, program)
			}
			continue
		}
		if program := n.program(p.object, c.spec); program != nil {
			n.run(p, i, program)
			break
		}
		c.state = terminated(c.state, nil)
	}
	n.report(p)
}

func (n *node) program(pod *corev1.Pod, c *corev1.Container) Program {
	if n.kubelets.config.Programs == nil {
		return nil
	}
	return n.kubelets.config.Programs(pod, c)
}

// run runs the program of an init container.
func (n *node) run(p *pod, i int, program Program) {
	c := &p.inits[i]
	c.state = running()
	surroundings := ContainerContext{Pod: p.object, Container: c.spec, Node: n.Name, Manifests: n.folder}
	n.kubelets.crew.start(func() {
		err := RunLogged(p.running, program, surroundings, n.kubelets.config.LogDir)
		n.do(func() { n.exited(p, i, err) })
	})
}

// runBeside runs the program of a sidecar, again and again until the pod ends. The containers after it do not wait for it.
func (n *node) runBeside(p *pod, i int, program Program) {
	surroundings := ContainerContext{Pod: p.object, Container: p.inits[i].spec, Node: n.Name, Manifests: n.folder}
	n.kubelets.crew.start(func() {
		for p.running.Err() == nil {
			_ = RunLogged(p.running, program, surroundings, n.kubelets.config.LogDir) // its log says why it ended
			_ = sim.Sleep(p.running, relistPeriod)                                    // ends early only with the pod
		}
	})
}

// RunLogged runs a program to its end, with its output going to its file in dir (see LogFile); empty: it is dropped.
func RunLogged(ctx context.Context, program Program, c ContainerContext, dir string) (err error) {
	if dir == "" {
		c.Log = io.Discard
		return program(ctx, c)
	}
	path := LogFile(dir, c.Pod, c.Container.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make log folder of container %s: %w", c.Container.Name, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open log of container %s: %w", c.Container.Name, err)
	}
	defer func() {
		if closeErr := file.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close log of container %s: %w", c.Container.Name, closeErr)
		}
	}()
	c.Log = criLog{file}
	return program(ctx, c)
}

// exited goes on after an init container ended.
func (n *node) exited(p *pod, i int, err error) {
	if p.running.Err() != nil {
		return
	}
	c := &p.inits[i]
	c.state = terminated(c.state, err)
	switch {
	case err == nil:
		n.runInits(p, i+1)
		return
	case !podutil.ContainerShouldRestart(*c.spec, p.object.Spec, 1):
		p.state = finished
	case c.restarts == 0:
		n.after(relistPeriod, func() { n.restart(p, i) })
	default:
		wait := backOff(c.restarts)
		c.last = c.state
		c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason:  kubecontainer.ErrCrashLoopBackOff.Error(),
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", wait, c.spec.Name, format.Pod(p.object)),
		}}
		n.after(wait, func() { n.restart(p, i) })
	}
	n.report(p)
}

// restart runs an init container again.
func (n *node) restart(p *pod, i int) {
	if p.running.Err() != nil {
		return
	}
	c := &p.inits[i]
	c.restarts++
	if c.state.Terminated != nil {
		c.last = c.state
	}
	n.runInits(p, i)
}

// backOff is the wait before a container is restarted that was restarted some times, at least once, before.
func backOff(restarts int32) time.Duration {
	wait := firstBackOff
	for ; restarts > 1 && wait < maxBackOff; restarts-- {
		wait *= 2
	}
	return min(wait, maxBackOff)
}

// initialized reports whether all init containers are done.
func (p *pod) initialized() bool {
	for _, s := range p.initStatuses() {
		if !s.Ready {
			return false
		}
	}
	return true
}

// phase is the pod's phase as long as the kubelet is in charge (getPhase).
func (p *pod) phase() corev1.PodPhase {
	for _, c := range p.inits {
		if t := c.state.Terminated; t != nil && t.ExitCode != 0 && !podutil.ContainerShouldRestart(*c.spec, p.object.Spec, t.ExitCode) {
			return corev1.PodFailed
		}
	}
	return corev1.PodPending
}

// initStatuses are the statuses of the init containers.
func (p *pod) initStatuses() []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, c := range p.inits {
		started := c.state.Running != nil
		statuses = append(statuses, corev1.ContainerStatus{
			Name:                 c.spec.Name,
			Image:                c.spec.Image,
			State:                c.state,
			LastTerminationState: c.last,
			RestartCount:         c.restarts,
			Started:              &started,
			Ready: started && podutil.IsRestartableInitContainer(c.spec) ||
				c.state.Terminated != nil && c.state.Terminated.ExitCode == 0,
		})
	}
	return statuses
}

// waitingStatuses are the statuses of the regular containers before they start.
func waitingStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	if len(pod.Spec.InitContainers) > 0 {
		state = initializing()
	}
	var statuses []corev1.ContainerStatus
	for _, c := range pod.Spec.Containers {
		started := false
		statuses = append(statuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state, Started: &started})
	}
	return statuses
}

// terminate marks running containers as killed.
func terminate(statuses []corev1.ContainerStatus) {
	for i := range statuses {
		s := &statuses[i]
		if s.State.Running == nil {
			continue
		}
		const killed = 137 // 128 + SIGKILL
		started := false
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: killed, Reason: "Error", StartedAt: s.State.Running.StartedAt, FinishedAt: metav1.Now(),
		}}
		s.Ready, s.Started = false, &started
	}
}

// lost is the state of a container that a kubelet cannot find when its pod ends (status manager's TerminatePod).
func lost() corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: kubecontainer.ContainerReasonStatusUnknown, Message: "The container could not be located when the pod was terminated", ExitCode: 137,
	}}
}

func initializing() corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
}

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
}

// terminated is the state of a container that ran in the state before, if at all.
func terminated(before corev1.ContainerState, err error) corev1.ContainerState {
	t := &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: metav1.Now(), FinishedAt: metav1.Now()}
	if before.Running != nil {
		t.StartedAt = before.Running.StartedAt
	}
	if err != nil {
		t.ExitCode, t.Reason, t.Message = 1, "Error", err.Error()
	}
	return corev1.ContainerState{Terminated: t}
}

// readySandbox is the sandbox of a pod whose containers have begun to start.
func readySandbox(pod *corev1.Pod) *kubecontainer.PodStatus {
	return &kubecontainer.PodStatus{SandboxStatuses: []*runtimeapi.PodSandboxStatus{{
		Metadata: &runtimeapi.PodSandboxMetadata{},
		State:    runtimeapi.PodSandboxState_SANDBOX_READY,
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: &runtimeapi.NamespaceOption{Network: runtimeutil.NetworkNamespaceForPod(pod)},
		}},
	}}}
}

// criLog writes lines in the log format of the container runtime interface.
type criLog struct {
	out io.Writer
}

// Write implements io.Writer.
func (l criLog) Write(data []byte) (int, error) {
	var lines bytes.Buffer
	for line := range bytes.Lines(data) {
		tag := "F"
		if !bytes.HasSuffix(line, []byte("\n")) {
			tag = "P" // the rest of the line follows
		}
		fmt.Fprintf(&lines, "%s stdout %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), tag, bytes.TrimSuffix(line, []byte("\n")))
	}
	if _, err := lines.WriteTo(l.out); err != nil {
		return 0, fmt.Errorf("write container log: %w", err)
	}
	return len(data), nil
}
