// Package control makes components of the real control-plane programs: kube-scheduler, the controllers of kube-controller-manager, and KWOK.
//
// They are wired as their own main programs wire them, from the same defaults, without leader election and serving ports. Each works with the
// identity, the RBAC rights and the client-side throttle that it has in a real cluster; every controller has a client of its own.
//
// KWOK plays the stages of package kwokconfigs and serves container logs, as a kubelet does.
package control
