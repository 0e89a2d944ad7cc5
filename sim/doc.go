// Package sim says what a simulated cluster is: its parts, in the words of an experiment file, and the contract of the components that play them.
//
// What is real: etcd, kube-apiserver, kube-scheduler, the kube controllers, KWOK's controller, the kubelet's admission handler, its decoding of
// static pod manifests, its mirror-pod client, the readiness controller and the mirror-pod check.
//
// What is modelled: the rest of the kubelet (see sim/kubelet), the machines and when they join (sim/fleet).
//
// What is random: when nodes join, when they become Ready, when mirror pods are created, when a status reaches the API, and when a check starts. Every such quantity is
// drawn from a stream of its own (sim/random), so that two arms of one seed see the same fleet.
//
// The package itself imports no component of Kubernetes: a file can be checked without linking the control plane.
package sim
