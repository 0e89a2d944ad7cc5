package readiness

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// Action is what a rule wants done to a node.
type Action string

const (
	// ActionNone: the node is as the rule wants it, or is no longer the rule's business.
	ActionNone Action = "None"
	// ActionAddTaint: hold the node.
	ActionAddTaint Action = "AddTaint"
	// ActionAdoptTaint: the node came with the taint and has to keep it. Nothing is written; it is only reported.
	ActionAdoptTaint Action = "AdoptTaint"
	// ActionRemoveTaint: release the node. A bootstrap-only rule marks it as completed in the same write.
	ActionRemoveTaint Action = "RemoveTaint"
	// ActionComplete: the node never had the taint and satisfies a bootstrap-only rule; mark it, so that the rule never holds it.
	ActionComplete Action = "Complete"
)

// Decision is what a rule says about a node.
type Decision struct {
	// Action brings the node to what the rule wants.
	Action Action
	// Completed says that a bootstrap-only rule released the node earlier. Such a node is not evaluated: Satisfied and Conditions are not set.
	Completed bool
	// Satisfied says whether the node's conditions, combined by the rule's policy, have the required status.
	Satisfied bool
	// Tainted says whether the node carries the taint before the action.
	Tainted bool
	// Conditions compares each condition with its requirement, in the rule's order.
	Conditions []v1alpha1.ConditionEvaluationResult
	// Since is when the newest of the rule's conditions changed its status on the node (resolution 1 s); zero if the node has none of them.
	Since time.Time
}

// Held says whether the node carries the taint after the action.
func (d Decision) Held() bool {
	switch d.Action {
	case ActionAddTaint, ActionAdoptTaint:
		return true
	case ActionRemoveTaint, ActionComplete:
		return false
	}
	return d.Tainted
}

// Decide says what the rule wants done to a node that it selects. seen says that the rule has evaluated this node before; it only tells
// adopting a taint from keeping it. Neither object is changed.
func Decide(rule *v1alpha1.NodeReadinessRule, node *corev1.Node, seen bool) Decision {
	tainted := hasTaint(node, &rule.Spec.Taint)
	if completed(rule, node) {
		return Decision{Action: ActionNone, Completed: true, Tainted: tainted}
	}
	d := evaluate(rule, node)
	d.Tainted = tainted
	d.Action = action(rule, d, seen)
	return d
}

func action(rule *v1alpha1.NodeReadinessRule, d Decision, seen bool) Action {
	switch {
	case d.Satisfied && d.Tainted:
		return ActionRemoveTaint
	case d.Satisfied && bootstrapOnly(rule):
		return ActionComplete
	case !d.Satisfied && !d.Tainted:
		return ActionAddTaint
	case !d.Satisfied && !seen:
		return ActionAdoptTaint
	}
	return ActionNone
}

// evaluate compares the node's conditions with the rule's and combines the results.
func evaluate(rule *v1alpha1.NodeReadinessRule, node *corev1.Node) Decision {
	d := Decision{Conditions: make([]v1alpha1.ConditionEvaluationResult, 0, len(rule.Spec.Conditions))}
	met := 0
	for _, requirement := range rule.Spec.Conditions {
		result := v1alpha1.ConditionEvaluationResult{Type: requirement.Type, RequiredStatus: requirement.RequiredStatus}
		if condition := conditionOf(node, requirement.Type); condition != nil {
			result.CurrentStatus = knownStatus(condition.Status)
			if changed := condition.LastTransitionTime.Time; changed.After(d.Since) {
				d.Since = changed
			}
		} else {
			result.DefaultStatus = knownStatus(requirement.DefaultStatus)
			result.CurrentStatus = result.DefaultStatus
		}
		if result.CurrentStatus == result.RequiredStatus {
			met++
		}
		d.Conditions = append(d.Conditions, result)
	}
	if rule.Spec.ConditionPolicy == v1alpha1.ConditionPolicyAnyOf {
		d.Satisfied = met > 0
	} else {
		d.Satisfied = met == len(rule.Spec.Conditions)
	}
	return d
}

// knownStatus is the status, or Unknown if it is none of the three: the API server does not validate the conditions of nodes.
func knownStatus(status corev1.ConditionStatus) corev1.ConditionStatus {
	if status == corev1.ConditionTrue || status == corev1.ConditionFalse {
		return status
	}
	return corev1.ConditionUnknown
}

// Apply does the decision's action to the node. It changes nothing but the rule's own taint and annotation.
func (d Decision) Apply(rule *v1alpha1.NodeReadinessRule, node *corev1.Node) {
	switch d.Action {
	case ActionAddTaint:
		taint := &rule.Spec.Taint
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
	case ActionRemoveTaint:
		removeTaint(node, &rule.Spec.Taint)
	}
	if bootstrapOnly(rule) && (d.Action == ActionRemoveTaint || d.Action == ActionComplete) {
		markCompleted(rule, node)
	}
}

// Withdraw takes the rule's taint and annotation off the node, for a rule that is being deleted. keepTaint leaves the taint to another rule that
// holds the node with it; so does a dry run, which changes nothing. It reports whether the node changed.
func Withdraw(rule *v1alpha1.NodeReadinessRule, node *corev1.Node, keepTaint bool) bool {
	removes, unmarks := !keepTaint && !rule.Spec.DryRun && hasTaint(node, &rule.Spec.Taint), completed(rule, node)
	if removes {
		removeTaint(node, &rule.Spec.Taint)
	}
	if unmarks {
		delete(node.Annotations, rule.BootstrapCompletedAnnotation())
	}
	return removes || unmarks
}

func bootstrapOnly(rule *v1alpha1.NodeReadinessRule) bool {
	return rule.Spec.EnforcementMode == v1alpha1.EnforcementModeBootstrapOnly
}

func completed(rule *v1alpha1.NodeReadinessRule, node *corev1.Node) bool {
	if !bootstrapOnly(rule) {
		return false
	}
	_, ok := node.Annotations[rule.BootstrapCompletedAnnotation()]
	return ok
}

func markCompleted(rule *v1alpha1.NodeReadinessRule, node *corev1.Node) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[rule.BootstrapCompletedAnnotation()] = fmt.Sprintf(`{"rule-name":%q}`, rule.Name)
}

// sameTaint compares by key and effect, as the API does; the value does not count.
func sameTaint(a, b *corev1.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect }

func hasTaint(node *corev1.Node, taint *corev1.Taint) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return sameTaint(&t, taint) })
}

func removeTaint(node *corev1.Node, taint *corev1.Taint) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return sameTaint(&t, taint) })
}

func conditionOf(node *corev1.Node, conditionType string) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if string(node.Status.Conditions[i].Type) == conditionType {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
