package sim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// maxAmount is more of anything than a node has: 1 Ti cores, 1 PiB of memory. Up to it, sums of amounts in their own units (millicores, bytes) do
// not overflow; a Quantity beyond would, silently.
var maxAmount = resource.MustParse("1Pi")

// Amounts converts a resource list for the trace: cpu in millicores, everything else in its own unit, rounded up as the scheduler does; an amount
// beyond 1 Pi counts as 1 Pi. An empty list gives nil.
func Amounts(list corev1.ResourceList) trace.Resources {
	if len(list) == 0 {
		return nil
	}
	amounts := make(trace.Resources, len(list))
	for name, quantity := range list {
		if quantity.Cmp(maxAmount) > 0 {
			quantity = maxAmount
		}
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
	return Amounts(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
}
