// Package gate puts the readiness gate into a simulated cluster: the taint that nodes register with, the rule, its controller, and the mirror-pod
// check as a DaemonSet. Controller and check are the shipped code of packages controllers and checker, each under the ServiceAccount and the RBAC
// rights that its manifests give it.
//
// Modelled: how long a check pod takes to start (sandbox, image pull), which is the random part too (stream "check/start", one for each node).
package gate
