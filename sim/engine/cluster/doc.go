// Package cluster is a cluster that is there already: the one that a kubeconfig names. It is only looked at: nodes and pods are listed and watched, and
// the version of the API server is asked for.
package cluster
