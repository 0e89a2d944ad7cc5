package differential

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

// Kubelets boots machines; *kubelet.Kubelets and *real.Kubelets are such.
type Kubelets interface {
	Start(ctx context.Context, m kubelet.Machine) error
	Stop(node string)
	PutStaticPod(node, file string, manifest []byte) error
	RemoveStaticPod(node, file string) error
}

// containers are what kubelets with a container runtime offer; without one, KWOK is in charge of pods that were admitted.
type containers interface {
	FinishPod(node string, pod types.UID)
	HoldPod(node string, pod types.UID)
	ReleasePod(node string, pod types.UID)
}

const (
	// patience is for one thing to happen. The longest is a mirror whose first attempt failed, on a busy machine for instance: the kubelet waits for up to 90 s.
	patience = 2 * time.Minute
	// apart is the resolution of creation times, which order the pods that are there when a kubelet starts.
	apart = time.Second

	// probe begins the names of pods that are rejected whatever the node has free. Events are sent in order: with its rejection all earlier ones have arrived,
	// and the kubelet has seen what was in the API before.
	probe = "probe"
	// orphan is a mirror pod without a static pod. A kubelet deletes it at its first housekeeping.
	orphan = "orphan"
)

// behaviour is that of the model: as quick as is possible, since times are not compared.
func behaviour() sim.Kubelet {
	return sim.Kubelet{
		ReadyDelay:     random.Constant(0),
		MirrorDelay:    random.Constant(0),
		MirrorRetry:    random.Constant(time.Minute),
		MirrorResync:   random.Constant(time.Minute),
		StatusDelay:    random.Constant(10 * time.Millisecond),
		StatusTick:     &metav1.Duration{Duration: 2 * time.Second},
		Housekeeping:   &metav1.Duration{Duration: 500 * time.Millisecond},
		PodSourceDelay: random.Constant(250 * time.Millisecond),
	}
}

// play is one sequence on one side.
type play struct {
	*Sequence
	client   kubernetes.Interface
	kubelets Kubelets
	node     string // and the namespace of all its pods
	view     *view
	// removed are the static pods whose manifests were removed.
	removed map[string]bool
	probes  int
}

// Play plays a sequence on a node of its own, which must not exist, and leaves nothing behind but an empty namespace of the same name. Its error is about
// the playing: that something did not happen in time, for instance.
func Play(ctx context.Context, client kubernetes.Interface, kubelets Kubelets, node string, s *Sequence) (outcome Outcome, err error) {
	p := &play{Sequence: s, client: client, kubelets: kubelets, node: node, removed: map[string]bool{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", node, err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if p.view, err = newView(watching, client, node); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.clear(context.WithoutCancel(ctx))) }()
	if err := p.run(ctx); err != nil {
		return nil, fmt.Errorf("play %s on node %s: %w", s.Name, node, err)
	}
	return p.outcome(), nil
}

func (p *play) run(ctx context.Context) error {
	if err := p.start(ctx); err != nil {
		return err
	}
	for i, s := range p.Steps {
		if err := p.step(ctx, s); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return p.settle(ctx)
}

// start starts the kubelet, with the early pods there, and waits for its first housekeeping and all decisions.
func (p *play) start(ctx context.Context) error {
	for i := range p.Early {
		if err := p.createEarly(ctx, &p.Early[i]); err != nil {
			return err
		}
	}
	if err := p.createOrphan(ctx); err != nil {
		return err
	}
	m := kubelet.Machine{
		Name: p.node, Capacity: p.Node.Capacity, Allocatable: p.Node.Allocatable, Labels: p.Node.Labels, Taints: p.Node.Taints, Behaviour: behaviour(),
	}
	for i := range p.Static {
		manifest, err := p.Static[i].manifest(p.node)
		if err != nil {
			return err
		}
		m.StaticPods = append(m.StaticPods, sim.StaticPod{FileName: p.Static[i].file(), Manifest: manifest})
	}
	if err := p.kubelets.Start(ctx, m); err != nil {
		return err
	}
	if err := p.view.wait(ctx, "the first housekeeping", func() bool { return p.view.isGone(orphan) }); err != nil {
		return err
	}
	for i := range p.Static {
		name := p.mirror(p.Static[i].Name)
		if err := p.view.wait(ctx, "mirror pod "+name, func() bool { return p.view.pod(name) != nil }); err != nil {
			return err
		}
	}
	return p.waitForDecisions(ctx, p.Early)
}

// createEarly creates a pod at a second of its own.
func (p *play) createEarly(ctx context.Context, pod *Pod) error {
	created, err := p.create(ctx, pod.object(p.node, p.node))
	if err != nil {
		return err
	}
	if pod.Phase != "" {
		if err := p.setPhase(ctx, created, pod.Phase); err != nil {
			return err
		}
	}
	return sim.Sleep(ctx, apart)
}

func (p *play) createOrphan(ctx context.Context) error {
	pod := Pod{Name: orphan, Containers: []Container{{}}}
	object := pod.object(p.node, p.node)
	object.Annotations = map[string]string{kubetypes.ConfigMirrorAnnotationKey: orphan}
	_, err := p.create(ctx, object)
	return err
}

func (p *play) create(ctx context.Context, object *corev1.Pod) (*corev1.Pod, error) {
	created, err := p.client.CoreV1().Pods(p.node).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create pod %s: %w", object.Name, err)
	}
	return created, nil
}

func (p *play) step(ctx context.Context, s Step) error {
	switch {
	case s.Create != nil:
		return p.createAll(ctx, s.Create)
	case s.Delete != "":
		return p.delete(ctx, s.Delete)
	case s.Gone != "":
		return p.gone(ctx, s.Gone)
	case s.Finish != "":
		return p.finish(ctx, s.Finish)
	case s.PutStatic != nil:
		return p.putStatic(ctx, s.PutStatic)
	case s.RemoveStatic != "":
		return p.removeStatic(ctx, s.RemoveStatic)
	default:
		return errors.New("it says nothing to do")
	}
}

func (p *play) createAll(ctx context.Context, pods []Pod) error {
	for i := range pods {
		if _, err := p.create(ctx, pods[i].object(p.node, p.node)); err != nil {
			return err
		}
	}
	if err := p.waitForDecisions(ctx, pods); err != nil || !slices.ContainsFunc(pods, func(pod Pod) bool { return pod.Critical }) {
		return err
	}
	return p.catchUp(ctx)
}

// catchUp waits until the kubelet has seen what is in the API, all of its events have arrived, and the pods that it preempted have ended.
func (p *play) catchUp(ctx context.Context) error {
	p.probes++
	pod := Pod{Name: fmt.Sprintf("%s-%d", probe, p.probes), Containers: []Container{{}}, NodeSelector: map[string]string{labelKey: probe}}
	if _, err := p.create(ctx, pod.object(p.node, p.node)); err != nil {
		return err
	}
	if err := p.view.wait(ctx, "the event about "+pod.Name, func() bool { return len(p.view.admissionEvents(pod.Name)) > 0 }); err != nil {
		return err
	}
	for _, name := range p.view.names() {
		if !slices.ContainsFunc(p.view.admissionEvents(name), func(e Event) bool { return e.Reason == preempting }) {
			continue
		}
		if err := p.view.wait(ctx, "the end of the preempted pod "+name, func() bool {
			return p.view.isGone(name) || podutil.IsPodPhaseTerminal(p.view.pod(name).Status.Phase)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) waitForDecisions(ctx context.Context, pods []Pod) error {
	for i := range pods {
		name := pods[i].Name
		if err := p.view.wait(ctx, "the decision about pod "+name, func() bool { return decided(p.view.pod(name)) }); err != nil {
			return err
		}
	}
	return nil
}

// decided tells whether the kubelet has said what becomes of a pod: a rejected one has no conditions, an admitted one has all.
func decided(pod *corev1.Pod) bool {
	return pod != nil && (podutil.IsPodPhaseTerminal(pod.Status.Phase) || hasConditions(pod))
}

func hasConditions(pod *corev1.Pod) bool {
	_, condition := podutil.GetPodCondition(&pod.Status, corev1.ContainersReady)
	return condition != nil
}

// isRejected tells whether the kubelet has said that it rejected a pod.
func (p *play) isRejected(name string) bool {
	return slices.ContainsFunc(p.view.admissionEvents(name), func(e Event) bool { return e.Reason != preempting })
}

// delete begins to delete a pod that runs.
func (p *play) delete(ctx context.Context, name string) error {
	pod, err := p.running(ctx, name)
	if pod == nil {
		return err
	}
	if runtime, ok := p.kubelets.(containers); ok {
		runtime.HoldPod(p.node, pod.UID)
	}
	if err := p.client.CoreV1().Pods(p.node).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

// gone has a pod that is being deleted end.
func (p *play) gone(ctx context.Context, name string) error {
	pod := p.view.pod(name)
	if pod == nil {
		return nil
	}
	if err := p.view.wait(ctx, "pod "+name+" to be deleted or to have ended", func() bool {
		pod = p.view.pod(name)
		return pod.DeletionTimestamp != nil || podutil.IsPodPhaseTerminal(pod.Status.Phase)
	}); err != nil || pod.DeletionTimestamp == nil {
		return err
	}
	if runtime, ok := p.kubelets.(containers); ok {
		runtime.ReleasePod(p.node, pod.UID)
	} else if err := p.client.CoreV1().Pods(p.node).Delete(ctx, name, *metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("end pod %s: %w", name, err)
	}
	return p.view.wait(ctx, "the end of pod "+name, func() bool { return p.view.isGone(name) })
}

// finish has the containers of a pod that runs exit with 0.
func (p *play) finish(ctx context.Context, name string) error {
	pod, err := p.running(ctx, name)
	if pod == nil {
		return err
	}
	if runtime, ok := p.kubelets.(containers); ok {
		runtime.FinishPod(p.node, pod.UID)
	} else if err := p.setPhase(ctx, pod, corev1.PodSucceeded); err != nil {
		return err
	}
	return p.view.wait(ctx, "pod "+name+" to finish", func() bool { return podutil.IsPodPhaseTerminal(p.view.pod(name).Status.Phase) })
}

// running waits until a pod runs, and has it run where KWOK would. It returns nil when the pod has ended, or does not exist.
func (p *play) running(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := p.view.pod(name)
	if pod == nil || podutil.IsPodPhaseTerminal(pod.Status.Phase) {
		return nil, nil
	}
	if _, ok := p.kubelets.(containers); !ok && pod.Status.Phase == corev1.PodPending {
		if err := p.setPhase(ctx, pod, corev1.PodRunning); err != nil {
			return nil, err
		}
	}
	err := p.view.wait(ctx, "pod "+name+" to run", func() bool {
		pod = p.view.pod(name)
		return pod.Status.Phase != corev1.PodPending
	})
	if err != nil || podutil.IsPodPhaseTerminal(pod.Status.Phase) {
		return nil, err
	}
	return pod, nil
}

func (p *play) setPhase(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) error {
	patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
	if _, err := p.client.CoreV1().Pods(p.node).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("set phase of pod %s to %s: %w", pod.Name, phase, err)
	}
	return nil
}

// putStatic waits for the decision: an admitted static pod gets a mirror, of a rejected one that was not there at the start there is only an event.
func (p *play) putStatic(ctx context.Context, pod *Pod) error {
	manifest, err := pod.manifest(p.node)
	if err != nil {
		return err
	}
	if err := p.catchUp(ctx); err != nil { // files do not come through the API, and would overtake what does
		return err
	}
	if err := p.kubelets.PutStaticPod(p.node, pod.file(), manifest); err != nil {
		return err
	}
	name := p.mirror(pod.Name)
	if err := p.view.wait(ctx, "the decision about static pod "+pod.Name, func() bool {
		return p.view.pod(name) != nil || len(p.view.admissionEvents(name)) > 0
	}); err != nil {
		return err
	}
	return p.catchUp(ctx)
}

// removeStatic waits until the mirror has followed the static pod.
func (p *play) removeStatic(ctx context.Context, name string) error {
	known := slices.ContainsFunc(p.Static, func(s Pod) bool { return s.Name == name })
	if !known || p.removed[name] {
		return nil
	}
	if err := p.waitForStatus(ctx, p.mirror(name)); err != nil { // or it would never be seen
		return err
	}
	p.removed[name] = true
	if err := p.kubelets.RemoveStaticPod(p.node, name+".yaml"); err != nil {
		return err
	}
	return p.view.wait(ctx, "the mirror of "+name+" to go", func() bool { return p.view.isGone(p.mirror(name)) })
}

func (p *play) waitForStatus(ctx context.Context, name string) error {
	return p.view.wait(ctx, "the status of "+name, func() bool {
		pod := p.view.pod(name)
		// The status of a rejected static pod comes in two parts, in no order: its phase, and its conditions.
		return decided(pod) && (!kubetypes.IsMirrorPod(pod) || !p.isRejected(name) || podutil.IsPodPhaseTerminal(pod.Status.Phase) && hasConditions(pod))
	})
}

// settle waits until everything has been said: the statuses of all pods, and all events.
func (p *play) settle(ctx context.Context) error {
	if err := p.catchUp(ctx); err != nil {
		return err
	}
	for _, name := range p.view.names() {
		if p.view.isGone(name) {
			continue
		}
		if err := p.waitForStatus(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// clear ends the kubelet and deletes what was created.
func (p *play) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p.kubelets.Stop(p.node)
	at := metav1.ListOptions{}
	now := *metav1.NewDeleteOptions(0)
	err := p.client.CoreV1().Nodes().Delete(ctx, p.node, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		err = nil // it never registered
	}
	err = errors.Join(err, p.client.CoreV1().Pods(p.node).DeleteCollection(ctx, now, at), p.client.CoreV1().Events(p.node).DeleteCollection(ctx, now, at))
	if err != nil {
		return fmt.Errorf("clear node %s: %w", p.node, err)
	}
	return nil
}

// mirror is the name of a static pod's mirror.
func (p *play) mirror(static string) string { return static + "-" + strings.ToLower(p.node) }
