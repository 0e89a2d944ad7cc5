package sim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Amounts converts a resource list for the trace: cpu in millicores, everything else in its own unit, rounded up as the scheduler does. An empty
// list gives nil.
func Amounts(list corev1.ResourceList) trace.Resources {
	if len(list) == 0 {
		return nil
	}
	amounts := make(trace.Resources, len(list))
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			amounts[string(name)] = quantity.MilliValue()
		} else {
			amounts[string(name)] = quantity.Value()
		}
	}
	return amounts
}

// PodAmounts are the effective requests of a pod, as scheduler and kubelet count them: init containers, sidecars, overhead and pod-level
// resources included.
func PodAmounts(pod *corev1.Pod) trace.Resources {
	return Amounts(resource.PodRequests(pod, resource.PodResourcesOptions{}))
}
