package readiness

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// RuleSet is all rules of a cluster, oldest first.
type RuleSet []ScopedRule

// ScopedRule is a rule and what it may act on.
type ScopedRule struct {
	*v1alpha1.NodeReadinessRule
	// Selector is the parsed spec.nodeSelector. It selects nothing if that is invalid or empty.
	Selector labels.Selector
	// Err says why the selector is invalid; the API server accepts no such rule.
	Err error
	// Blocker is an older rule with the same taint key and effect whose selector overlaps: this rule acts on no node, or the two would add
	// and remove the same taint in turns. Nil without one. A blocked rule blocks younger ones too: otherwise deleting its blocker would
	// take nodes away from a rule that already holds them.
	Blocker *v1alpha1.NodeReadinessRule
}

// NewRuleSet sorts the rules by age, then name, and finds out which ones are blocked. A rule that is being deleted blocks no other.
// The rules are not copied and not changed.
func NewRuleSet(rules []v1alpha1.NodeReadinessRule) RuleSet {
	set := make(RuleSet, 0, len(rules))
	for i := range rules {
		set = append(set, scope(&rules[i]))
	}
	slices.SortFunc(set, func(a, b ScopedRule) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range set {
		set[i].Blocker = set[:i].blockerOf(set[i])
	}
	return set
}

func scope(rule *v1alpha1.NodeReadinessRule) ScopedRule {
	selector, err := metav1.LabelSelectorAsSelector(&rule.Spec.NodeSelector)
	switch {
	case err != nil:
		return ScopedRule{NodeReadinessRule: rule, Selector: labels.Nothing(), Err: fmt.Errorf("parse nodeSelector: %w", err)}
	case selector.Empty():
		return ScopedRule{NodeReadinessRule: rule, Selector: labels.Nothing(), Err: fmt.Errorf("nodeSelector is empty")}
	}
	return ScopedRule{NodeReadinessRule: rule, Selector: selector}
}

// blockerOf returns the first rule in the set that blocks the given one.
func (s RuleSet) blockerOf(rule ScopedRule) *v1alpha1.NodeReadinessRule {
	for _, other := range s {
		if other.DeletionTimestamp.IsZero() && sameTaint(&other.Spec.Taint, &rule.Spec.Taint) && overlap(other.Selector, rule.Selector) {
			return other.NodeReadinessRule
		}
	}
	return nil
}

// Selects says whether the rule is about the node.
func (r ScopedRule) Selects(node *corev1.Node) bool {
	return r.Selector.Matches(labels.Set(node.Labels))
}

// Acts says whether the rule may change nodes: not in a dry run, not when blocked, not when it is being deleted, and not before it has the
// finalizer, without which its taints could outlive it.
func (r ScopedRule) Acts() bool {
	return !r.Spec.DryRun && r.Blocker == nil && r.DeletionTimestamp.IsZero() && slices.Contains(r.Finalizers, v1alpha1.Finalizer)
}

// Named returns the rule of that name.
func (s RuleSet) Named(name string) (ScopedRule, bool) {
	for _, rule := range s {
		if rule.Name == name {
			return rule, true
		}
	}
	return ScopedRule{}, false
}

// Holds says whether a rule that may act wants the node to carry the taint.
func (s RuleSet) Holds(node *corev1.Node, taint *corev1.Taint) bool {
	for _, rule := range s {
		if rule.Acts() && sameTaint(&rule.Spec.Taint, taint) && rule.Selects(node) && Decide(rule.NodeReadinessRule, node, true).Held() {
			return true
		}
	}
	return false
}
