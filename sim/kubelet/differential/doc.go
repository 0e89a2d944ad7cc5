// Package differential plays the same random sequences into the kubelet model (sim/kubelet) and into the real kubelet (sim/kubelet/real), on one API
// server, and compares what the API then says.
//
// # What is compared
//
//   - Of every pod, whether it was admitted or rejected.
//   - Of every rejected pod, the complete status: phase, reason, message, qosClass, observedGeneration, the types, statuses and reasons of its
//     conditions, whether there is a startTime, and that there is nothing else. A static pod that is rejected at the start has a mirror pod, with
//     addresses and the statuses of containers; these are not compared.
//   - Of every pod that was preempted by the kubelet, phase, reason, message, and the condition DisruptionTarget; of finished ones, the phase.
//   - Of every pod, type, reason, message and source of the kubelet's events about admission and preemption, in order.
//   - Of every static pod, whether it has a mirror pod. Its status is the mirror's.
//
// Names of nodes and namespaces, which differ between the sides, are replaced in messages.
//
// # What is not
//
//   - Times, and what depends on them: which of two pods created within one second is admitted first when a kubelet starts (the real kubelet sorts by
//     whole seconds), and that the API server shows a node or a pod to one side a moment sooner.
//   - Statuses of pods that run, and events about their containers: after the admission KWOK is in charge of the model's pods (see package kubelet).
//     Here the test plays KWOK's part: it has pods run, finish and go.
//   - Preemption of a pod that terminates already and does not end: the real kubelet waits for 1.5 times its grace period, then admits the critical pod
//     beside it; in the model containers that are killed end at once.
//   - Which of several pods with equal requests is preempted, and which of several static pods that do not all fit is admitted at the start: the real
//     kubelet takes them in the order of a map. No sequence has static pods that compete at the start.
//   - When a pod with overhead begins to count twice (see docs/model-agreement.md): as soon as the API shows its status, and no pod follows it at once.
//   - Admission handlers that the model does not have (sysctls, AppArmor, topology, node shutdown), in-place resize, dynamic resources.
//   - Labels and taints that a node gets after its registration: both sides learn of them by a watch, a moment later.
//   - Crashes, reboots, and mirrors that are refused or deleted: the specs of sim/kubelet/real and experiments/runner are about these.
package differential
