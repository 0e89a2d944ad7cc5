package readiness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

var (
	noon     = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	noFailed = func(*corev1.Node) *v1alpha1.NodeFailure { return nil }
)

func report(t *testing.T, rule *v1alpha1.NodeReadinessRule, now time.Time, nodes ...*corev1.Node) v1alpha1.NodeReadinessRuleStatus {
	t.Helper()
	return Report(rulesOf(rule)[0], nodeList(nodes...), noFailed, now)
}

func nodeList(nodes ...*corev1.Node) []corev1.Node {
	items := make([]corev1.Node, 0, len(nodes))
	for _, node := range nodes {
		items = append(items, *node)
	}
	return items
}

func TestReport(t *testing.T) {
	rule := ruleNamed("r")
	mark := annotated(rule.BootstrapCompletedAnnotation(), "{}")
	got := report(t, rule, noon.Add(300*time.Millisecond),
		nodeNamed("released", reporting(mirrored, "True"), mark),
		nodeNamed("due", tainted(held), reporting(mirrored, "True")),
		nodeNamed("held", tainted(held)),
		nodeNamed("unheld", reporting(mirrored, "False")))

	at := metav1.NewTime(noon)
	result := func(current, fallback corev1.ConditionStatus) []v1alpha1.ConditionEvaluationResult {
		return []v1alpha1.ConditionEvaluationResult{{Type: mirrored, CurrentStatus: current, RequiredStatus: "True", DefaultStatus: fallback}}
	}
	want := v1alpha1.NodeReadinessRuleStatus{
		ObservedGeneration: 1,
		AppliedNodes:       []string{"held", "released"}, // due and unheld are not yet as the rule wants them
		NodeEvaluations: []v1alpha1.NodeEvaluation{
			{NodeName: "due", ConditionResults: result("True", ""), TaintStatus: "Present", LastEvaluationTime: at},
			{NodeName: "held", ConditionResults: result("Unknown", "Unknown"), TaintStatus: "Present", LastEvaluationTime: at},
			{NodeName: "released", ConditionResults: result("True", ""), TaintStatus: "Absent", LastEvaluationTime: at},
			{NodeName: "unheld", ConditionResults: result("False", ""), TaintStatus: "Absent", LastEvaluationTime: at},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// A status is rewritten only if there is news: otherwise every heartbeat would write an object of up to 0.75 MiB.
func TestReportIsStable(t *testing.T) {
	rule := ruleNamed("r", continuous)
	nodes := []*corev1.Node{nodeNamed("a", tainted(held)), nodeNamed("b", reporting(mirrored, "True"))}
	rule.Status = report(t, rule, noon, nodes...)

	if later := report(t, rule, noon.Add(time.Hour), nodes...); !equality.Semantic.DeepEqual(rule.Status, later) {
		t.Errorf("no news, but the status changed (-before +after):\n%s", cmp.Diff(rule.Status, later))
	}
	reporting(mirrored, "False")(nodes[0])
	later := report(t, rule, noon.Add(time.Hour), nodes...)
	if got := later.NodeEvaluations[0].LastEvaluationTime.Time; !got.Equal(noon.Add(time.Hour)) {
		t.Errorf("news about a: lastEvaluationTime is %v", got)
	}
	if got := later.NodeEvaluations[1].LastEvaluationTime.Time; !got.Equal(noon) {
		t.Errorf("no news about b: lastEvaluationTime is %v", got)
	}
}

// A released node's conditions are no longer the business of a bootstrap-only rule.
func TestReportKeepsTheEvaluationOfARelease(t *testing.T) {
	rule := ruleNamed("r")
	mark := annotated(rule.BootstrapCompletedAnnotation(), "{}")
	rule.Status = report(t, rule, noon, nodeNamed("n", tainted(held)))
	rule.Status = report(t, rule, noon, nodeNamed("n", reporting(mirrored, "True"), mark))
	released := rule.Status.NodeEvaluations[0]
	if released.TaintStatus != "Absent" || released.ConditionResults[0].CurrentStatus != "True" {
		t.Fatalf("after the release: %+v", released)
	}
	after := report(t, rule, noon.Add(time.Hour), nodeNamed("n", reporting(mirrored, "False"), mark))
	if diff := cmp.Diff(released, after.NodeEvaluations[0]); diff != "" {
		t.Errorf("the condition changed after the release, and so did the evaluation (-before +after):\n%s", diff)
	}
}

func TestReportFailures(t *testing.T) {
	rule := ruleNamed("r")
	long := strings.Repeat("x", maxMessage-1) + "€" // the cut goes through the last character
	failures := map[string]*v1alpha1.NodeFailure{"b": {Reason: FailureAddTaint, Message: long}, "c": {Reason: FailureRemoveTaint, Message: "no"}}
	failureOf := func(node *corev1.Node) *v1alpha1.NodeFailure { return failures[node.Name] }
	nodes := nodeList(nodeNamed("c", tainted(held)), nodeNamed("b", tainted(held)), nodeNamed("a", tainted(held)))

	rule.Status = Report(rulesOf(rule)[0], nodes, failureOf, noon)
	want := []v1alpha1.NodeFailure{
		{NodeName: "b", Reason: FailureAddTaint, Message: long[:maxMessage-1], LastEvaluationTime: metav1.NewTime(noon)},
		{NodeName: "c", Reason: FailureRemoveTaint, Message: "no", LastEvaluationTime: metav1.NewTime(noon)},
	}
	if diff := cmp.Diff(want, rule.Status.FailedNodes); diff != "" {
		t.Errorf("failed nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a"}, rule.Status.AppliedNodes); diff != "" {
		t.Errorf("applied nodes (-want +got):\n%s", diff)
	}
	again := Report(rulesOf(rule)[0], nodes, failureOf, noon.Add(time.Minute))
	if !equality.Semantic.DeepEqual(rule.Status, again) {
		t.Errorf("the same failures changed the status:\n%s", cmp.Diff(rule.Status, again))
	}
}

func TestReportOfABlockedRule(t *testing.T) {
	blocked, _ := rulesOf(ruleNamed("a"), ruleNamed("b")).Named("b")
	status := Report(blocked, nodeList(nodeNamed("n", tainted(held))), noFailed, noon)
	if len(status.FailedNodes) != 1 || status.FailedNodes[0].Reason != FailureBlocked || !strings.Contains(status.FailedNodes[0].Message, "rule a is older") {
		t.Errorf("failed nodes: %+v, want one that names the rule a", status.FailedNodes)
	}
	if len(status.AppliedNodes) > 0 {
		t.Errorf("a blocked rule claims to manage %v", status.AppliedNodes)
	}
}

func TestReportDryRun(t *testing.T) {
	rule := ruleNamed("r", func(r *v1alpha1.NodeReadinessRule) { r.Spec.DryRun = true })
	got := report(t, rule, noon,
		nodeNamed("missing"), nodeNamed("unsatisfied", reporting(mirrored, "False")), nodeNamed("due", tainted(held), reporting(mirrored, "True")),
		nodeNamed("held and missing", tainted(held)), nodeNamed("fine", reporting(mirrored, "True")))
	want := &v1alpha1.DryRunResults{AffectedNodes: 5, TaintsToAdd: 2, TaintsToRemove: 1, RiskyOperations: 2}
	if diff := cmp.Diff(want, got.DryRunResults, cmpopts.IgnoreFields(v1alpha1.DryRunResults{}, "Summary")); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if summary := got.DryRunResults.Summary; !strings.Contains(summary, "of 5 selected nodes 2 would be tainted and 1 released") {
		t.Errorf("summary: %q", summary)
	}
	if len(got.AppliedNodes) > 0 {
		t.Errorf("a dry run claims to manage %v", got.AppliedNodes)
	}
	rule.Status, rule.Spec.DryRun = got, false
	if after := report(t, rule, noon, nodeNamed("missing")); after.DryRunResults != nil {
		t.Error("dryRunResults outlived the dry run")
	}
}

// However many and long the names, a status fits into an etcd request with room for the rest of the object, the lists stay within what the
// CustomResourceDefinition admits, and the nodes that are held are the last to be left out.
func TestStatusFitsIntoEtcd(t *testing.T) {
	const etcdRequestBytes = 3 << 19 // 1.5 MiB, etcd's default --max-request-bytes
	for _, test := range []struct {
		name       string
		nodes      int
		nodeName   string
		conditions int
		failing    bool
	}{
		{"1,000 usual nodes", 1000, "ip-10-0-128-17.eu-west-1.compute.internal", 1, false},
		{"10,000 long names", 10000, strings.Repeat("n", 253-6), 1, false},
		{"5,000 nodes with 32 conditions", 5000, "node", 32, false},
		{"10,000 failures", 10000, "node", 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			rule := ruleNamed("r", continuous)
			rule.Spec.Conditions = nil
			for i := range test.conditions {
				rule.Spec.Conditions = append(rule.Spec.Conditions,
					v1alpha1.ConditionRequirement{Type: fmt.Sprintf("%02d%s", i, strings.Repeat("<", 300)), RequiredStatus: "False"})
			}
			var nodes []corev1.Node
			for i := range test.nodes {
				node := nodeNamed(fmt.Sprintf("%s-%05d", test.nodeName, i))
				if i%10 == 9 {
					tainted(held)(node)
				}
				nodes = append(nodes, *node)
			}
			failureOf := noFailed
			if test.failing {
				failureOf = func(*corev1.Node) *v1alpha1.NodeFailure {
					return &v1alpha1.NodeFailure{Reason: FailureAddTaint, Message: strings.Repeat("<", 10000)}
				}
			}
			status := Report(rulesOf(rule)[0], nodes, failureOf, noon)
			encoded, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			if len(encoded) > etcdRequestBytes*2/3 {
				t.Errorf("the status has %d bytes, more than two thirds of an etcd request", len(encoded))
			}
			if n := max(len(status.NodeEvaluations), len(status.AppliedNodes), len(status.FailedNodes)); n > 5000 || n == 0 {
				t.Errorf("the longest list has %d entries", n)
			}
			absent := func(e v1alpha1.NodeEvaluation) bool { return e.TaintStatus == v1alpha1.TaintStatusAbsent }
			present := 0
			for _, e := range status.NodeEvaluations {
				if !absent(e) {
					present++
				}
			}
			if slices.ContainsFunc(status.NodeEvaluations, absent) && present < test.nodes/10 {
				t.Errorf("nodes without the taint are listed while only %d of %d with it are", present, test.nodes/10)
			}
		})
	}
}

// BenchmarkReport is the making of a status for 1,000 nodes, at most once in a status interval.
func BenchmarkReport(b *testing.B) {
	rule := ruleNamed("r")
	var nodes []corev1.Node
	for i := range 1000 {
		nodes = append(nodes, *nodeNamed(fmt.Sprintf("node-%04d", i), tainted(held)))
	}
	rule.Status = Report(rulesOf(rule)[0], nodes, noFailed, noon)
	b.ReportAllocs()
	for b.Loop() {
		Report(rulesOf(rule)[0], nodes, noFailed, noon)
	}
}
