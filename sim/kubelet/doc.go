// Package kubelet is the kubelet model: the kubelets of all simulated nodes, in one process, without containers.
//
// # What is real
//
// The code of k8s.io/kubernetes does everything that the race of static pods and mirror pods depends on:
//
//   - Admission: lifecycle.NewPredicateAdmitHandler with preemption.NewCriticalPodAdmissionHandler, over the node as the API shows it and the pods
//     that the real allocation manager would count.
//   - Static pods: manifests are decoded, defaulted, validated and hashed by the decoder of pkg/kubelet/config (see upstream.go), under the path
//     that a kubelet of kubeadm uses, so that UIDs, names, tolerations and refusals are those of a real kubelet.
//   - Mirror pods: pod.NewBasicMirrorClient creates and deletes them, pod.IsMirrorPodOf decides whether one is right.
//   - Statuses: conditions come from pkg/kubelet/status, which also merges them with what the API has, and util/pod.PatchPodStatus writes them.
//   - The conditions of the Node object come from pkg/kubelet/nodestatus.
//
// # What is modelled
//
// The rest is written after the sources of v1.37.2, in the same parts: a kubelet is a main loop (syncLoop: it alone decides, and never waits for the
// API), a writer of statuses (the status manager) and a writer of registration and mirror pods (the pod workers). Each is a queue; none has a
// goroutine while it has nothing to do. All kubelets share one watch of bound pods and one of nodes.
//
//   - Static pods count from the kubelet's start, before it is registered. A static pod that is there at the start gets its mirror MirrorDelay after
//     the Node was created, rejected ones too (fastStaticPodsRegistration); one that comes later gets it at once, if it was admitted (SyncPod).
//   - A refused mirror is tried again after MirrorRetry, one that was deleted, or is terminating, is replaced after MirrorResync: a terminating mirror
//     is deleted and created in one go, so the scheduler never stops counting it; only a mirror deleted with grace period 0 opens the gap again.
//   - A mirror without a static pod is deleted at the next housekeeping.
//   - A machine that returns under its old name adopts mirror pods that are still there, whatever Node their owner reference names: IsMirrorPodOf
//     compares name, namespace and hash only.
//   - Pods from the API are seen PodSourceDelay after the start: those bound by then as one batch by creation time, all later ones in the order in
//     which the watch shows their binding. A rejected pod is never looked at again.
//   - A status is written StatusDelay after the decision, as the node: the pod is read, then patched. The Node authorizer, which knows of bindings by a watch
//     of its own, may refuse a node that is faster than that; what could not be written goes out with any other status of the node, or at the tick.
//     Before the first housekeeping a rejection is written without its phase, and the phase follows at the status tick. A mirror pod's status is written
//     together with any other status of the node, or at the tick.
//   - Preemption by the kubelet ends its victims at once. They are written as Failed/Preempting with the condition DisruptionTarget.
//   - Init containers run in order. Config.Programs may stand in for an image; without a program an init container ends at once. A program that
//     fails is restarted as a kubelet does: at the next relist (1 s), then after 10 s, doubling to 5 min.
//
// The model never writes phase Running: KWOK's stages do, once a pod has a startTime, Initialized=True and phase Pending; likewise KWOK makes the
// node Ready at the time in the annotation AnnotationReadyAt, keeps its lease, completes pods of jobs, and removes terminating pods.
//
// # What is left out
//
//   - Containers, images, volumes, probes, cgroups, eviction under pressure, in-place resize, dynamic resources, and every admission handler other than
//     the two above (sysctls, AppArmor, topology, node shutdown). Containers that are killed end at once, whatever their grace period.
//   - A terminating pod counts until it is gone from the API; the real kubelet stops counting it a moment earlier, when its last container ended.
//   - While a kubelet is down, KWOK keeps the node's lease: a reboot of more than the node-monitor grace period (50 s) does not make the node
//     NotReady, as it would in life. Pods that were Running stay so over a reboot, unless they have init containers to run again; the brief
//     Ready=False of the others is not written. While they run again the condition Initialized is False, as it was up to v1.35; since v1.36 it
//     stays True (RestartAllContainersOnContainerExits), which KWOK's gate could not tell from a pod that may start.
//   - A manifest with a fixed metadata.uid that changes under the same UID is not taken up. A manifest that becomes invalid ends its pod at once, not
//     at the kubelet's next look into the folder (20 s).
//   - Only statuses of pods are read and written as the node itself, by impersonation. Everything else is done as one identity, so that what the Node
//     authorizer and NodeRestriction would refuse of it is not refused. All kubelets share one queue of 1,000 events, beyond which events (not statuses) are
//     dropped, as client-go's recorder does. What a patch of a status changes is told from the watch, where the real kubelet takes the pod that it read.
//
// # What is random
//
// ReadyDelay, MirrorDelay, MirrorRetry, MirrorResync, StatusDelay and PodSourceDelay, each drawn from a stream of its own for each machine or static
// pod ("kubelet/ready", "kubelet/mirror", …). Pods created within the same second are admitted at the start in the order of their names, which the
// real kubelet leaves to chance.
package kubelet
