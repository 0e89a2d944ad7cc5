package kubelet

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/features"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/status"
	utilnode "k8s.io/kubernetes/pkg/util/node"
	statusutil "k8s.io/kubernetes/pkg/util/pod"
)

// kubeletConditions are the conditions whose transition times the kubelet keeps (updateStatusInternal).
var kubeletConditions = []corev1.PodConditionType{
	corev1.ContainersReady, corev1.PodReady, corev1.PodInitialized, corev1.PodReadyToStartContainers, corev1.PodScheduled, corev1.DisruptionTarget,
}

// setStatus makes a status the kubelet's word about a pod, to be written after StatusDelay.
func (n *node) setStatus(p *pod, s corev1.PodStatus) {
	old := n.lastStatus(p)
	s.ObservedGeneration = max(podutil.CalculatePodStatusObservedGeneration(p.object), old.ObservedGeneration)
	for _, condition := range kubeletConditions {
		updateLastTransitionTime(&s, old, condition)
	}
	now := metav1.Now()
	s.StartTime = &now
	if old.StartTime != nil {
		s.StartTime = old.StartTime.DeepCopy()
	}
	p.status = normalizeStatus(p.object, &s)
	if p.writing {
		return
	}
	p.writing = true
	n.after(n.sample(n.Behaviour.StatusDelay, "kubelet/status", n.Name), func() {
		p.writing = false
		n.writeAgain()
		n.write(p)
		n.writeNewMirrors()
	})
}

// lastStatus is the last status of a pod: the kubelet's, or else the API's.
func (n *node) lastStatus(p *pod) *corev1.PodStatus {
	if p.status != nil {
		return p.status
	}
	if target := n.target(p); target != nil {
		return &target.Status
	}
	return &p.object.Status
}

// target is the pod in the API that shows the pod's status: its mirror for a static pod; nil when there is none yet.
func (n *node) target(p *pod) *corev1.Pod {
	if p.static != nil {
		return n.mirror(p)
	}
	return p.object
}

// write writes the kubelet's word about a pod to the API. Before the first housekeeping the kubelet cannot exclude that a rejected pod has
// containers left from an earlier life, and holds its phase back until the status tick.
func (n *node) write(p *pod) {
	target := n.target(p)
	if !n.knows(p) || target == nil || p.status == nil {
		return
	}
	if p.static != nil {
		p.static.posted = target.UID
	}
	if p.status.Phase == corev1.PodPending {
		if podutil.IsPodPhaseTerminal(target.Status.Phase) {
			return // pods do not leave a terminal phase
		}
		if target.Status.Phase == corev1.PodRunning && !p.written && p.initialized() {
			return // it runs since before this kubelet started, and has nothing to run again
		}
	}
	p.written = true
	heldBack := p.state == rejected && !p.terminated && !n.housekept
	if heldBack {
		n.writeAtTick(p)
	}
	merged := mergePodStatus(target, target.Status, *p.status, heldBack)
	n.statuses.push(func() {
		err := n.patchStatus(target, merged)
		if err != nil {
			klog.FromContext(n.ctx).V(2).Info("Failed to update status for pod", "pod", klog.KObj(target), "err", err)
			n.do(func() {
				n.unwritten = append(n.unwritten, p)
				n.writeAtTick(p)
			})
		}
	})
}

// patchStatus is the kubelet's syncPod: it reads the pod and patches its status, both as the node itself. It calls the API and belongs into n.statuses.
//
// The Node authorizer lets a node read the pods that it knows to be bound there, from a watch of its own. A kubelet whose watch is faster is refused.
func (n *node) patchStatus(target *corev1.Pod, merged corev1.PodStatus) error {
	ctx := asNode(n.ctx, n.Name)
	if _, err := n.kubelets.client.CoreV1().Pods(target.Namespace).Get(ctx, target.Name, metav1.GetOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("get the pod: %w", err)
	}
	_, _, _, err := statusutil.PatchPodStatus(ctx, n.kubelets.client, target.Namespace, target.Name, target.UID, target.Status, merged)
	return err
}

// writeAgain writes statuses whose write failed: they go out with any other status of the node.
func (n *node) writeAgain() {
	unwritten := n.unwritten
	n.unwritten = nil
	for _, p := range unwritten {
		n.write(p)
	}
}

// writeAtTick writes the status of a pod again at the next status tick.
func (n *node) writeAtTick(p *pod) {
	if slices.Contains(n.stale, p) {
		return
	}
	n.stale = append(n.stale, p)
	if len(n.stale) == 1 {
		n.atTick(n.Behaviour.StatusTick.Duration, n.statusTick)
	}
}

func (n *node) statusTick() {
	stale := n.stale
	n.stale = nil
	for _, p := range stale {
		n.write(p)
	}
}

// writeNewMirrors writes the statuses of static pods whose mirrors have come since: they go out with any other status of the node.
func (n *node) writeNewMirrors() {
	for _, p := range n.pods {
		if p.static == nil {
			continue
		}
		if mirror := n.mirror(p); mirror != nil && mirror.UID != p.static.posted {
			n.write(p)
		}
	}
}

// report tells the state of an admitted pod's containers, as far as the kubelet and not KWOK is in charge: up to the end of its init containers.
func (n *node) report(p *pod) {
	n.setStatus(p, n.generateStatus(p, p.phase()))
}

// mirrorOfRejected is what a kubelet makes of the mirror of a static pod that it rejected at its start: it syncs the pod nevertheless (HandlePodAdditions),
// finds it Failed, and terminates it (status manager's TerminatePod), which takes its containers for lost.
func (n *node) mirrorOfRejected(p *pod) {
	old := n.lastStatus(p)
	p.inits = waitingInits(p.object)
	s := n.generateStatus(p, corev1.PodFailed)
	s.Reason, s.Message = old.Reason, old.Message
	if len(p.object.Spec.InitContainers) == 0 {
		for i := range s.ContainerStatuses {
			s.ContainerStatuses[i].State = lost()
		}
	}
	p.terminated = true
	n.setStatus(p, s)
}

// generateStatus is the kubelet's status of a pod in a phase, none of whose regular containers has started (generateAPIPodStatus).
func (n *node) generateStatus(p *pod, phase corev1.PodPhase) corev1.PodStatus {
	old := n.lastStatus(p)
	s := corev1.PodStatus{
		QOSClass:              v1qos.GetPodQOS(p.object),
		Phase:                 phase,
		InitContainerStatuses: p.initStatuses(),
		ContainerStatuses:     waitingStatuses(p.object),
	}
	setResources(&s, p.object)
	all := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	s.Conditions = []corev1.PodCondition{
		status.GeneratePodReadyToStartContainersCondition(p.object, old, p.sandbox()),
		status.GeneratePodInitializedCondition(p.object, notInitialized(old), all, s.Phase),
		status.GeneratePodReadyCondition(p.object, old, nil, all, s.Phase),
		status.GenerateContainersReadyCondition(p.object, old, all, s.Phase),
		{
			Type:               corev1.PodScheduled,
			ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(old, p.object.Generation, corev1.PodScheduled),
			Status:             corev1.ConditionTrue,
		},
	}
	if ips, err := utilnode.GetNodeHostIPs(n.current()); err == nil { // a node without addresses has none yet
		for _, ip := range ips {
			s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: ip.String()})
		}
		s.HostIP = s.HostIPs[0].IP
	}
	return s
}

// setResources sets what the pod was allocated (convertStatusToAPIStatus, and getEffectiveAllocatedResources of a pod that does not run yet). Kubelet and
// scheduler add a pod's overhead to it once more when they count the pod: it counts twice from here on (kubernetes/kubernetes#139627, open in v1.37).
func setResources(s *corev1.PodStatus, pod *corev1.Pod) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.InPlacePodLevelResourcesVerticalScaling) {
		return
	}
	options := resourcehelper.PodResourcesOptions{
		SkipPodLevelResources:                    !utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResources),
		UseDRANodeAllocatableResourceClaimStatus: utilfeature.DefaultFeatureGate.Enabled(features.DRANodeAllocatableResources),
	}
	s.AllocatedResources = resourcehelper.PodRequests(pod, options)
	s.Resources = &corev1.ResourceRequirements{Requests: s.AllocatedResources.DeepCopy(), Limits: resourcehelper.PodLimits(pod, options)}
}

// notInitialized hides that a pod was initialized once, from a function that otherwise keeps the condition True while init containers run again
// after a reboot: KWOK could not tell such a pod from one that may start.
func notInitialized(old *corev1.PodStatus) *corev1.PodStatus {
	hidden := *old
	hidden.Conditions = slices.DeleteFunc(slices.Clone(old.Conditions), func(c corev1.PodCondition) bool { return c.Type == corev1.PodInitialized })
	return &hidden
}

// killedStatus is the status of a pod that the kubelet killed: the API's, with all containers terminated and the reason.
func (n *node) killedStatus(p *pod, explain func(*corev1.PodStatus)) corev1.PodStatus {
	old := n.lastStatus(p)
	if target := n.target(p); target != nil {
		old = &target.Status // what KWOK did to it since
	}
	s := *old.DeepCopy()
	explain(&s)
	terminate(s.InitContainerStatuses)
	terminate(s.ContainerStatuses)
	all := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	for _, condition := range []corev1.PodCondition{
		status.GeneratePodReadyCondition(p.object, old, s.Conditions, all, s.Phase),
		status.GenerateContainersReadyCondition(p.object, old, all, s.Phase),
	} {
		s.Conditions = statusutil.ReplaceOrAppendPodCondition(s.Conditions, &condition)
	}
	return s
}

// sandbox describes the pod's sandbox to the real status functions: there is one as soon as an init container was started.
func (p *pod) sandbox() *kubecontainer.PodStatus {
	if !slices.ContainsFunc(p.inits, func(c container) bool { return c.state.Waiting == nil }) {
		return &kubecontainer.PodStatus{}
	}
	return readySandbox(p.object)
}
