// Package checker is the mirror-pod check: it runs on every node that a readiness gate holds, waits until each static pod of the node has its mirror
// pod in the API server, and then sets a node condition, which the readiness controller waits for.
//
// It does what the published wait-for-mirrors.sh does as the init container of the static-pod-mirror-check DaemonSet, by the same rules, with the same
// log lines, the same condition and the same rights (see checker/manifests). Where the script and the kubelet disagree about a file, the check follows
// the kubelet; docs/checker.md lists every such case and the gaps that remain.
//
// Evaluate decides, Run looks again and again and sets the condition, NewCommand runs it on a real node. The simulator runs the very same Run over an
// in-memory folder. Nothing here is random.
package checker
