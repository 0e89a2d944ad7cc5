package kubelet

import (
	_ "unsafe" // for go:linkname

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/kubelet/config" // for go:linkname
	_ "k8s.io/kubernetes/pkg/kubelet/status" // for go:linkname
)

// The functions below are the real kubelet's own, reached by name because k8s.io/kubernetes does not export them. The alternative for the first
// two, config.NewSourceFile on a temporary folder, brings goroutines and a file watch that never end, one for each node; for the others it would
// be a copy. When Kubernetes removes one of the names, the package no longer links; when it changes a signature, TestUpstreamSignatures fails.

// tryDecodeSinglePod decodes and validates the manifest of a static pod.
//
//go:linkname tryDecodeSinglePod k8s.io/kubernetes/pkg/kubelet/config.tryDecodeSinglePod
func tryDecodeSinglePod(logger klog.Logger, data []byte, defaultFn func(klog.Logger, *api.Pod) error) (parsed bool, pod *corev1.Pod, err error)

// applyDefaults gives a static pod its UID (a hash), name, namespace, node and toleration.
//
//go:linkname applyDefaults k8s.io/kubernetes/pkg/kubelet/config.applyDefaults
func applyDefaults(logger klog.Logger, pod *api.Pod, source string, isFile bool, nodeName types.NodeName) error

// mergePodStatus combines the status in the API with the kubelet's: it drops the kubelet's conditions that are gone, keeps those of others, and
// holds a terminal phase back while containers could still run.
//
//go:linkname mergePodStatus k8s.io/kubernetes/pkg/kubelet/status.mergePodStatus
func mergePodStatus(pod *corev1.Pod, oldPodStatus, newPodStatus corev1.PodStatus, couldHaveRunningContainers bool) corev1.PodStatus

// updateLastTransitionTime sets a condition's transition time, unless its status is the old one's.
//
//go:linkname updateLastTransitionTime k8s.io/kubernetes/pkg/kubelet/status.updateLastTransitionTime
func updateLastTransitionTime(status, oldStatus *corev1.PodStatus, conditionType corev1.PodConditionType)

// normalizeStatus rounds times to the second, as the API keeps them.
//
//go:linkname normalizeStatus k8s.io/kubernetes/pkg/kubelet/status.normalizeStatus
func normalizeStatus(pod *corev1.Pod, status *corev1.PodStatus) *corev1.PodStatus
