package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/klog/v2"
	kubeletapis "k8s.io/kubelet/pkg/apis"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/nodestatus"
	volutil "k8s.io/kubernetes/pkg/volume/util"

	"github.com/mirrorgap/mirrorgap/sim"
)

const (
	// AnnotationReadyAt is on every node that a kubelet registers: the time (RFC 3339 with nanoseconds) at which KWOK makes the node Ready.
	AnnotationReadyAt = "mirrorgap.dev/ready-at"

	// KubeletVersion is in the nodes' status.nodeInfo. It is the version of Kubernetes in go.mod, marked as not the real thing.
	KubeletVersion = "v1.37.2+mirrorgap"

	// registrationStep is the wait before the first attempt to register, doubled for each further one up to maxRegistrationStep
	// (pkg/kubelet/kubelet_node_status.go, registerWithAPIServer).
	registrationStep    = 100 * time.Millisecond
	maxRegistrationStep = 7 * time.Second
)

// register attempts to register the node after a while, again and again until it succeeds. It is Ready readyDelay later.
func (n *node) register(wait, readyDelay time.Duration) {
	n.after(wait, func() {
		n.calls.push(func() {
			created := time.Now()
			object, err := n.createNode(n.newObject(created.Add(readyDelay)))
			if err != nil {
				klog.FromContext(n.ctx).Error(err, "Unable to register node with API server", "node", n.Name)
			}
			n.do(func() {
				if err != nil {
					n.register(min(2*wait, maxRegistrationStep), readyDelay)
					return
				}
				n.created, n.uid = created, object.UID
				if seen, err := n.kubelets.nodeLister().Get(n.Name); err == nil {
					n.nodeSeen(seen)
				}
			})
		})
	})
}

// nodeSeen notices that the registered node is in the lister, on which mirror pods and the source of API pods depend.
func (n *node) nodeSeen(object *corev1.Node) {
	if n.registered || n.uid == "" || object.UID != n.uid {
		return
	}
	n.registered = true
	for _, p := range n.pods {
		n.mirrorAfterRegistration(p)
	}
}

// createNode creates the Node object, or reconciles one that is already there. It calls the API and belongs into n.calls.
func (n *node) createNode(desired *corev1.Node) (*corev1.Node, error) {
	if left := n.unreachable(); left > 0 {
		return nil, fmt.Errorf("the API server cannot be reached for another %v", left)
	}
	nodes := n.kubelets.client.CoreV1().Nodes()
	object, err := nodes.Create(n.ctx, desired, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return object, err
	}
	existing, err := nodes.Get(n.ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get the node that is there already: %w", err)
	}
	reconciled := existing.DeepCopy()
	reconcileNode(reconciled, desired)
	if _, _, err := nodeutil.PatchNodeStatus(n.kubelets.client.CoreV1(), types.NodeName(n.Name), existing, reconciled); err != nil {
		return nil, fmt.Errorf("reconcile the node that is there already: %w", err)
	}
	return reconciled, nil
}

// unreachable is how long the API server cannot be reached yet. Only the registration asks: nothing else calls the API before it has succeeded.
func (n *node) unreachable() time.Duration {
	if d := n.Behaviour.APIUnreachable; d != nil {
		return max(d.Duration-time.Since(n.started), 0)
	}
	return 0
}

// reconcileNode does to an existing Node what a kubelet that starts does (tryRegisterWithAPIServer and the first syncNodeStatus): the labels that
// every kubelet sets, capacity and what the machine is are renewed; labels and taints of the registration are not. A node that is Ready stays so.
func reconcileNode(existing, desired *corev1.Node) {
	for _, key := range defaultLabels {
		metav1.SetMetaDataLabel(&existing.ObjectMeta, key, desired.Labels[key])
	}
	attach := volutil.ControllerManagedAttachAnnotation
	metav1.SetMetaDataAnnotation(&existing.ObjectMeta, attach, desired.Annotations[attach])
	existing.Status.Capacity = desired.Status.Capacity
	existing.Status.Allocatable = desired.Status.Allocatable
	existing.Status.NodeInfo = desired.Status.NodeInfo
	if _, ready := nodeutil.GetNodeCondition(&existing.Status, corev1.NodeReady); ready == nil || ready.Status != corev1.ConditionTrue {
		metav1.SetMetaDataAnnotation(&existing.ObjectMeta, AnnotationReadyAt, desired.Annotations[AnnotationReadyAt])
	}
}

// defaultLabels are the labels that every kubelet sets (updateDefaultLabels; those of clouds and of Windows have no value here).
var defaultLabels = []string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, kubeletapis.LabelOS, kubeletapis.LabelArch}

// newObject is the Node that the kubelet registers. Operating system and architecture are those of this process, as with a real kubelet, whose
// admission insists on it.
func (n *node) newObject(readyAt time.Time) *corev1.Node {
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name,
			Labels: map[string]string{
				corev1.LabelHostname:   n.Name,
				corev1.LabelOSStable:   runtime.GOOS,
				corev1.LabelArchStable: runtime.GOARCH,
				kubeletapis.LabelOS:    runtime.GOOS,
				kubeletapis.LabelArch:  runtime.GOARCH,
			},
			Annotations: map[string]string{
				volutil.ControllerManagedAttachAnnotation: "true",
				AnnotationReadyAt:                         readyAt.UTC().Format(time.RFC3339Nano),
			},
		},
		Spec: corev1.NodeSpec{Taints: n.Taints},
		Status: corev1.NodeStatus{
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.Name}},
			Capacity:    n.Capacity,
			Allocatable: n.allocatable(),
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem:         runtime.GOOS,
				Architecture:            runtime.GOARCH,
				OSImage:                 "simulated by mirrorgap",
				ContainerRuntimeVersion: "none://mirrorgap",
				KubeletVersion:          KubeletVersion,
			},
		},
	}
	maps.Copy(object.Labels, n.Labels)
	if n.Group != "" {
		object.Labels[sim.LabelGroup] = n.Group
	}
	if n.Initial {
		object.Labels[sim.LabelInitial] = "true"
	}
	n.setConditions(object)
	return object
}

// allocatable is the machine's, completed by its capacity.
func (n *node) allocatable() corev1.ResourceList {
	allocatable := maps.Clone(n.Capacity)
	maps.Copy(allocatable, n.Allocatable)
	return allocatable
}

// setConditions sets the conditions of a kubelet that has just started, in the order and with the texts of the real one.
func (n *node) setConditions(object *corev1.Node) {
	no := func() bool { return false }
	noEvent := func(klog.Logger, string, string) {}
	noError := func() error { return nil }
	starting := func() error { return errors.New("container runtime status check may not have completed yet") }
	noStatus := func() cm.Status { return cm.Status{} }
	for _, set := range []func(context.Context, *corev1.Node) error{
		nodestatus.MemoryPressureCondition(time.Now, no, noEvent),
		nodestatus.DiskPressureCondition(time.Now, no, noEvent),
		nodestatus.PIDPressureCondition(time.Now, no, noEvent),
		nodestatus.ReadyCondition(time.Now, starting, noError, noError, noStatus, noError, noEvent, false),
	} {
		if err := set(n.ctx, object); err != nil {
			klog.FromContext(n.ctx).Error(err, "Failed to set a node condition", "node", n.Name)
		}
	}
}

// current is the node as the API shows it, or as it will be registered (getNodeAnyWay).
func (n *node) current() *corev1.Node {
	object, err := n.kubelets.nodeLister().Get(n.Name)
	if err != nil {
		return n.newObject(time.Now())
	}
	return object
}
