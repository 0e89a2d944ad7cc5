package real

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	cadvisorapi "github.com/google/cadvisor/lib/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
	"k8s.io/utils/ptr"
)

// configuration is kubemark's, brought back to the kubelet's defaults where it departs from them for its own purpose.
func (s *settings) configuration() (*options.KubeletFlags, *kubeletconfig.KubeletConfiguration) {
	pods := s.Capacity[corev1.ResourcePods]
	flags, config := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName: s.NodeName, MaxPods: int(pods.Value()), NodeLabels: s.Labels, RegisterWithTaints: s.Taints,
	})
	_ = os.RemoveAll(flags.RootDirectory) // kubemark made it in /tmp, and there nobody would remove it
	flags.RootDirectory = filepath.Join(s.Root, "kubelet")
	config.PodLogsDir = filepath.Join(s.Root, "logs")
	config.StaticPodPath = s.Manifests
	config.StaticPodURL = s.ManifestsURL
	config.ProviderID = ""
	config.SyncFrequency.Duration = syncFrequency
	config.EnableServer = false
	config.EnableControllerAttachDetach = true
	config.ImageServiceEndpoint = s.Runtime
	config.KubeletCgroups, config.ResolverConfig = "", ""
	_, isolated := s.Capacity[corev1.ResourceEphemeralStorage]
	config.LocalStorageCapacityIsolation = isolated
	return flags, config
}

// machine is the size of the computer.
type machine struct {
	cadvisortest.Fake
	capacity corev1.ResourceList
}

func (s *settings) cadvisor() cadvisor.Interface {
	return &machine{Fake: cadvisortest.Fake{NodeName: s.NodeName}, capacity: s.Capacity}
}

// MachineInfo implements cadvisor.Interface.
func (m *machine) MachineInfo(logger klog.Logger) (*cadvisorapi.MachineInfo, error) {
	info, err := m.Fake.MachineInfo(logger)
	if err != nil {
		return nil, err
	}
	cpu, memory := m.capacity[corev1.ResourceCPU], m.capacity[corev1.ResourceMemory]
	info.NumCores = int(cpu.Value()) // rounds up
	info.MemoryCapacity = uint64(memory.Value())
	return info, nil
}

// containerManager is the stub, with the machine's resources.
type containerManager struct {
	cm.ContainerManager
	settings *settings
}

func (s *settings) containerManager() cm.ContainerManager {
	return &containerManager{ContainerManager: cm.NewStubContainerManager(), settings: s}
}

// GetCapacity implements cm.ContainerManager: what is neither cpu, memory nor pods, nor a device's.
func (c *containerManager) GetCapacity(_ klog.Logger, localStorageCapacityIsolation bool) corev1.ResourceList {
	list := corev1.ResourceList{}
	if storage, ok := c.settings.Capacity[corev1.ResourceEphemeralStorage]; ok && localStorageCapacityIsolation {
		list[corev1.ResourceEphemeralStorage] = storage
	}
	return list
}

// NewPodContainerManager implements cm.ContainerManager.
func (c *containerManager) NewPodContainerManager() cm.PodContainerManager {
	return &podContainerManager{c.ContainerManager.NewPodContainerManager()}
}

// cpuPeriod is the kubelet's CPUCFSQuotaPeriod in microseconds (pkg/kubelet/apis/config/v1beta1/defaults.go).
const cpuPeriod = 100_000

// podContainerManager is the stub, with cgroups that say what the kubelet wrote into them; what it did not write is the kernel's default. The kernel keeps a
// weight in place of shares, which rounds them; that is left out.
type podContainerManager struct{ cm.PodContainerManager }

// GetPodCgroupConfig implements cm.PodContainerManager.
func (*podContainerManager) GetPodCgroupConfig(pod *corev1.Pod, _ corev1.ResourceName) (*cm.ResourceConfig, error) {
	config := cm.ResourceConfigForPod(pod, true, cpuPeriod, false, kubeletconfig.NoneMemoryReservationPolicy)
	config.CPUShares = cmp.Or(config.CPUShares, ptr.To[uint64](cm.MinShares))
	config.CPUQuota = cmp.Or(config.CPUQuota, ptr.To[int64](-1))
	config.CPUPeriod = cmp.Or(config.CPUPeriod, ptr.To[uint64](cpuPeriod))
	config.Memory = cmp.Or(config.Memory, ptr.To[int64](-1))
	return config, nil
}

// GetNodeAllocatableReservation implements cm.ContainerManager: what allocatable lacks of the capacity, which for cpu is in whole cores.
func (c *containerManager) GetNodeAllocatableReservation() corev1.ResourceList {
	reserved := corev1.ResourceList{}
	for name, capacity := range c.settings.Capacity {
		if c.isDevice(name) {
			continue
		}
		if name == corev1.ResourceCPU {
			capacity = *resource.NewQuantity(capacity.Value(), resource.DecimalSI)
		}
		rest := capacity.DeepCopy()
		rest.Sub(c.settings.Allocatable[name])
		if rest.Sign() > 0 {
			reserved[name] = rest
		}
	}
	return reserved
}

// GetDevicePluginResourceCapacity implements cm.ContainerManager.
func (c *containerManager) GetDevicePluginResourceCapacity(klog.Logger) (capacity, allocatable corev1.ResourceList, removed []string) {
	capacity, allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for name, quantity := range c.settings.Capacity {
		if c.isDevice(name) {
			capacity[name], allocatable[name] = quantity, c.settings.Allocatable[name]
		}
	}
	return capacity, allocatable, nil
}

// isDevice tells the resources that a device plugin would report.
func (c *containerManager) isDevice(name corev1.ResourceName) bool {
	return !slices.Contains([]corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage,
	}, name)
}
