// Package kwokconfigs holds the KWOK Stage files that play what a kubelet does once it has decided: become Ready, send heartbeats, run an admitted
// pod, complete a Job's pod, end a deleted pod. They are plain files, made for stock KWOK v0.8.0 (see README.md), and embedded for the simulator.
//
// What they leave to whoever plays the rest of the kubelet: registering the node with its capacity, admitting or rejecting each bound pod, and running
// init containers. A pod that nobody admits stays Pending.
//
// What is modelled coarsely: containers start and stop in no time, and never fail; a pod's readiness gates are met at once; a container that ends
// because its pod is deleted leaves no status behind, so that a pod held by a finalizer keeps the phase it had.
//
// What is random: where in its window a heartbeat falls, drawn by KWOK from Go's global source.
package kwokconfigs
