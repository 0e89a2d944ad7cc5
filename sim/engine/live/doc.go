// Package live is the engine for evidence: etcd and kube-apiserver as processes of their own on loopback, and the wall clock.
//
// Both servers are the very binary that runs the engine, started again under their names (see DispatchTool), so that there is nothing to
// download and the versions are those of go.mod. envtest starts and stops them. RBAC is on.
//
// Left out: the ServiceAccount admission plugin (no token controller runs; components authenticate by certificate or impersonation), TLS
// between kube-apiserver and etcd, and fsync of etcd's log.
package live
