package checker

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Accept says which pod is taken for a static pod's mirror.
type Accept string

const (
	// AcceptOwnMirror takes a mirror pod that the kubelet of this very Node object made, that is not being deleted, and that requests at least what the
	// manifest does. It is the default.
	//
	// The kubelet itself compares a hash of the manifest (annotation kubernetes.io/config.hash). The hash is made of the kubelet's internal types, so that
	// only the code of its own version can tell it. What matters to the scheduler is what the mirror requests, and that can be compared.
	AcceptOwnMirror Accept = "own-mirror"
	// AcceptName takes any pod of the mirror's name, as the published script does.
	AcceptName Accept = "name"
)

// wrong says why a pod of its mirror's name is not the mirror of a static pod of a Node; empty if it is.
func (s staticPod) wrong(pod *corev1.Pod, node types.UID) string {
	if _, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; !ok {
		return "not a mirror pod"
	}
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil || owner.Kind != "Node" || owner.UID != node:
		return "of another Node object"
	case pod.DeletionTimestamp != nil:
		return "being deleted"
	case s.pod == nil:
		return ""
	}
	return lessThan(requests(pod), requests(s.pod))
}

// lessThan says of which resource, the first by name, a mirror requests less than its manifest; empty if of none. It may request more: admission adds to it.
func lessThan(mirror, manifest corev1.ResourceList) string {
	for _, name := range slices.Sorted(maps.Keys(manifest)) {
		has, wants := mirror[name], manifest[name]
		if has.Cmp(wants) < 0 {
			return fmt.Sprintf("requests %s of %s, its manifest %s", has.String(), name, wants.String())
		}
	}
	return ""
}

// requests are what scheduler and kubelet count of a pod: of its containers' requests, and where there are none, of their limits.
func requests(pod *corev1.Pod) corev1.ResourceList {
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Resources.Requests = withLimits(&containers[i].Resources)
		}
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

// withLimits are the requests with the limits of what has no request, which is what Kubernetes' defaults make of them (SetDefaults_Pod).
func withLimits(r *corev1.ResourceRequirements) corev1.ResourceList {
	all := maps.Clone(r.Limits)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, r.Requests)
	return all
}
