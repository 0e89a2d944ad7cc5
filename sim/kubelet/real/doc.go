// Package real runs the real kubelet: the code of k8s.io/kubernetes, a process for each node, against the same API server as everything else.
//
// # What is real
//
// Everything of the kubelet: kubelet.NewMainKubelet with its sources of pods, pod workers, admission, preemption, status manager, lease and event
// recorder, as pkg/kubemark wires it up for scale tests. Each process is this very binary, started again as "kubelet" (see Main), with the identity
// system:node:<name> and the throttle (50/100) that a kubelet has.
//
// # What is not
//
//   - The container runtime is k8s.io/cri-client/pkg/fake, served over a socket by the process that made Kubelets, so that containers outlive their
//     kubelet as they do in life. Containers need no image and no time: an init container has exited with 0 when it was started unless Config.Programs
//     has a program for it, a container of a Job's pod exits like KWOK's stage pod-completed says, all others run until they are stopped.
//   - Containers, cgroups, devices and the machine's size are stubs (pkg/kubelet/cm, pkg/kubelet/cadvisor/testing). Capacity, allocatable and
//     extended resources are the Machine's; cpu in capacity is rounded up to whole cores, since a kubelet counts cores.
//   - Probes always succeed, volumes are not mounted, out-of-memory events of this machine are not watched, and the kubelet serves no port: kubectl logs
//     does not work for these nodes.
//   - Admission handlers that need the machine (topology manager, node shutdown) have nothing to refuse.
//
// Kubelets records the same events as the kubelet model, from what the runtime and the kubelet's event recorder see: StaticPodStarted and PodAdmitted
// when the sandbox of a pod is started, a moment after the admission; PodRejected when the kubelet announces it, with the kubelet's message but without
// the list of what it counted; StaticPodRefused by decoding the manifests with the kubelet's own decoder. MirrorFailed is not recorded: the kubelet only
// logs it.
package real
