package readiness

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// ledger remembers what the node reconciler saw, for reports only: which rules have evaluated a node (an adopted taint is news once), and which
// writes failed. It is empty after a restart; the status of the rules then says which nodes were evaluated before.
type ledger struct {
	mu    sync.Mutex
	nodes map[string]nodeRecord
}

type nodeRecord struct {
	uid types.UID
	// rules has every rule that evaluated the node in its last reconcile, with what went wrong; nil for nothing.
	rules map[types.UID]*v1alpha1.NodeFailure
}

func newLedger() *ledger { return &ledger{nodes: map[string]nodeRecord{}} }

// record replaces what is remembered of the node, and returns what was.
func (l *ledger) record(node *corev1.Node, rules map[types.UID]*v1alpha1.NodeFailure) (before map[types.UID]*v1alpha1.NodeFailure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.nodes[node.Name].rules
	l.nodes[node.Name] = nodeRecord{uid: node.UID, rules: rules}
	return before
}

// forget drops a node that is gone.
func (l *ledger) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.nodes, name)
}

// seen says whether the rule has evaluated this node, and not another one of the same name.
func (l *ledger) seen(rule types.UID, node *corev1.Node) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	record := l.nodes[node.Name]
	_, ok := record.rules[rule]
	return ok && record.uid == node.UID
}

// failure returns why the rule's last write to this node failed; nil if it did not.
func (l *ledger) failure(rule types.UID, node *corev1.Node) *v1alpha1.NodeFailure {
	l.mu.Lock()
	defer l.mu.Unlock()
	if record := l.nodes[node.Name]; record.uid == node.UID {
		return record.rules[rule]
	}
	return nil
}
