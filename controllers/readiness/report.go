package readiness

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// Reasons in status.failedNodes and in node_readiness_failures_total. FailureBlocked is only in the status.
const (
	FailureEvaluation  = "EvaluationError"
	FailureAddTaint    = "AddTaintError"
	FailureRemoveTaint = "RemoveTaintError"
	FailureBlocked     = "OverlappingRule"
)

// The size of a status. etcd takes requests of up to 1.5 MiB (--max-request-bytes), and every write of a status costs its whole size.
const (
	// statusBytes bounds the per-node lists of a status, as JSON: 0.75 MiB, half of what etcd takes. About 3,000 nodes with names of 30
	// characters and one condition fit.
	statusBytes = 768 << 10
	// maxEntries is the longest list that the CustomResourceDefinition admits.
	maxEntries = 5000
	// maxMessage cuts the message of a failure, in bytes; thousands of nodes fail with the same one.
	maxMessage = 512
)

// FailureOf returns why a rule's last write to a node failed; nil if it did not.
type FailureOf func(node *corev1.Node) *v1alpha1.NodeFailure

// Report makes the status of a rule from the nodes that it selects, sorted by name in every list. What has not changed since the rule's present
// status keeps its time, so that a status differs from the present one only if there is news. When the nodes are too many for one object,
// failures come first, then held nodes, then the rest.
func Report(rule ScopedRule, nodes []corev1.Node, failureOf FailureOf, now time.Time) v1alpha1.NodeReadinessRuleStatus {
	r := reporter{rule: rule, before: rule.Status, now: metav1.NewTime(now.Truncate(time.Second)), room: statusBytes}
	for i := range nodes {
		r.evaluate(&nodes[i])
	}
	r.failures(failureOf)
	r.evaluations()
	if rule.Acts() {
		r.applied()
	}
	if rule.Spec.DryRun {
		r.dryRun()
	}
	r.status.ObservedGeneration = rule.Generation
	return r.status
}

// reporter collects a status. room is what is left of statusBytes.
type reporter struct {
	rule      ScopedRule
	before    v1alpha1.NodeReadinessRuleStatus
	now       metav1.Time
	evaluated []evaluated
	failed    map[string]bool
	room      int
	status    v1alpha1.NodeReadinessRuleStatus
}

type evaluated struct {
	node *corev1.Node
	Decision
}

func (r *reporter) evaluate(node *corev1.Node) {
	r.evaluated = append(r.evaluated, evaluated{node, Decide(r.rule.NodeReadinessRule, node, true)})
}

// take takes the room for another entry of a list that has so many, if it is there.
func (r *reporter) take(entry any, entries int) bool {
	n := jsonBytes(entry)
	if n > r.room || entries >= maxEntries {
		return false
	}
	r.room -= n
	return true
}

func (r *reporter) failures(failureOf FailureOf) {
	r.failed = map[string]bool{}
	before := indexBy(r.before.FailedNodes, func(f *v1alpha1.NodeFailure) string { return f.NodeName })
	for _, e := range r.evaluated {
		failure := r.failure(e.node, failureOf)
		if failure == nil {
			continue
		}
		r.failed[e.node.Name] = true
		failure.LastEvaluationTime = r.now
		if old := before[failure.NodeName]; old != nil && old.Reason == failure.Reason && old.Message == failure.Message {
			failure.LastEvaluationTime = old.LastEvaluationTime
		}
		if r.take(failure, len(r.status.FailedNodes)) {
			r.status.FailedNodes = append(r.status.FailedNodes, *failure)
		}
	}
	slices.SortFunc(r.status.FailedNodes, func(a, b v1alpha1.NodeFailure) int { return cmp.Compare(a.NodeName, b.NodeName) })
}

func (r *reporter) failure(node *corev1.Node, failureOf FailureOf) *v1alpha1.NodeFailure {
	if blocker := r.rule.Blocker; blocker != nil {
		return &v1alpha1.NodeFailure{NodeName: node.Name, Reason: FailureBlocked, Message: blockedMessage(r.rule)}
	}
	failure := failureOf(node)
	if failure == nil {
		return nil
	}
	return &v1alpha1.NodeFailure{NodeName: node.Name, Reason: failure.Reason, Message: shorten(failure.Message)}
}

// shorten cuts a message to maxMessage bytes without leaving half a character, which the API server would store as something else.
func shorten(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
}

func blockedMessage(rule ScopedRule) string {
	return fmt.Sprintf("rule %s is older, manages the same taint %s:%s and its nodeSelector overlaps; delete one of the two",
		rule.Blocker.Name, rule.Spec.Taint.Key, rule.Spec.Taint.Effect)
}

func (r *reporter) evaluations() {
	before := indexBy(r.before.NodeEvaluations, func(e *v1alpha1.NodeEvaluation) string { return e.NodeName })
	slices.SortFunc(r.evaluated, func(a, b evaluated) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.node.Name, b.node.Name))
	})
	for _, e := range r.evaluated {
		evaluation := r.evaluation(e, before[e.node.Name])
		if r.take(evaluation, len(r.status.NodeEvaluations)) {
			r.status.NodeEvaluations = append(r.status.NodeEvaluations, evaluation)
		}
	}
	slices.SortFunc(r.status.NodeEvaluations, func(a, b v1alpha1.NodeEvaluation) int { return cmp.Compare(a.NodeName, b.NodeName) })
}

// rank puts tainted nodes first.
func rank(e evaluated) int {
	if e.Tainted {
		return 0
	}
	return 1
}

// evaluation is what the status says about a node. A node that a bootstrap-only rule has released keeps the evaluation that it was released
// with: its conditions are no longer the rule's business.
func (r *reporter) evaluation(e evaluated, before *v1alpha1.NodeEvaluation) v1alpha1.NodeEvaluation {
	now := v1alpha1.NodeEvaluation{
		NodeName: e.node.Name, ConditionResults: e.Conditions, TaintStatus: v1alpha1.TaintStatusAbsent, LastEvaluationTime: r.now,
	}
	if e.Tainted {
		now.TaintStatus = v1alpha1.TaintStatusPresent
	}
	if e.Completed {
		now.ConditionResults = evaluate(r.rule.NodeReadinessRule, e.node).Conditions
		if before != nil && allMet(before.ConditionResults) {
			now.ConditionResults = before.ConditionResults
		}
	}
	if before != nil && before.TaintStatus == now.TaintStatus && equality.Semantic.DeepEqual(before.ConditionResults, now.ConditionResults) {
		now.LastEvaluationTime = before.LastEvaluationTime
	}
	return now
}

func allMet(results []v1alpha1.ConditionEvaluationResult) bool {
	return !slices.ContainsFunc(results, func(r v1alpha1.ConditionEvaluationResult) bool { return r.CurrentStatus != r.RequiredStatus })
}

// applied lists the nodes that are as the rule wants them.
func (r *reporter) applied() {
	for _, e := range r.evaluated {
		settled := e.Held() == e.Tainted && !r.failed[e.node.Name]
		if settled && r.take(e.node.Name, len(r.status.AppliedNodes)) {
			r.status.AppliedNodes = append(r.status.AppliedNodes, e.node.Name)
		}
	}
	slices.Sort(r.status.AppliedNodes)
}

func (r *reporter) dryRun() {
	var results v1alpha1.DryRunResults
	for _, e := range r.evaluated {
		results.AffectedNodes++
		switch e.Action {
		case ActionAddTaint:
			results.TaintsToAdd++
		case ActionRemoveTaint:
			results.TaintsToRemove++
		}
		missing := slices.ContainsFunc(e.Conditions, func(c v1alpha1.ConditionEvaluationResult) bool { return c.DefaultStatus != "" })
		if missing && e.Held() {
			results.RiskyOperations++
		}
	}
	results.Summary = fmt.Sprintf("of %d selected nodes %d would be tainted and %d released; %d would be held without having all of the conditions",
		results.AffectedNodes, results.TaintsToAdd, results.TaintsToRemove, results.RiskyOperations)
	r.status.DryRunResults = &results
}

// jsonBytes is what an entry of a list takes in the encoded status, with its comma.
func jsonBytes(entry any) int {
	encoded, err := json.Marshal(entry)
	if err != nil {
		return statusBytes // never fits
	}
	return len(encoded) + 1
}

func indexBy[T any](items []T, key func(*T) string) map[string]*T {
	index := make(map[string]*T, len(items))
	for i := range items {
		index[key(&items[i])] = &items[i]
	}
	return index
}
