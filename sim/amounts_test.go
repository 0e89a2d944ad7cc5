package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

func TestAmounts(t *testing.T) {
	for name, c := range map[string]struct {
		list corev1.ResourceList
		want trace.Resources
	}{
		"none": {nil, nil},
		"units": {
			corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi"), "example.com/gpu": resource.MustParse("2")},
			trace.Resources{"cpu": 1500, "memory": 1 << 30, "example.com/gpu": 2},
		},
		"fractions are rounded up": {
			corev1.ResourceList{"cpu": resource.MustParse("1u"), "memory": resource.MustParse("1m")},
			trace.Resources{"cpu": 1, "memory": 1},
		},
		"what would overflow counts as more than a node has": {
			corev1.ResourceList{"cpu": resource.MustParse("9E"), "memory": resource.MustParse("1e23")},
			trace.Resources{"cpu": 1000 << 50, "memory": 1 << 50},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Amounts(c.list)); diff != "" {
				t.Errorf("amounts (-want +got):\n%s", diff)
			}
		})
	}
}
