package readiness

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

func selecting(selector metav1.LabelSelector) func(*v1alpha1.NodeReadinessRule) {
	return func(rule *v1alpha1.NodeReadinessRule) { rule.Spec.NodeSelector = selector }
}

func pool(name string) func(*v1alpha1.NodeReadinessRule) {
	return selecting(metav1.LabelSelector{MatchLabels: map[string]string{"pool": name}})
}

func created(second int) func(*v1alpha1.NodeReadinessRule) {
	return func(rule *v1alpha1.NodeReadinessRule) { rule.CreationTimestamp = metav1.Unix(int64(second), 0) }
}

func deleted(rule *v1alpha1.NodeReadinessRule) {
	rule.DeletionTimestamp = &metav1.Time{Time: time.Unix(100, 0)}
}

func rulesOf(rules ...*v1alpha1.NodeReadinessRule) RuleSet {
	items := make([]v1alpha1.NodeReadinessRule, 0, len(rules))
	for _, rule := range rules {
		items = append(items, *rule)
	}
	return NewRuleSet(items)
}

func TestRuleSetBlocksTheYounger(t *testing.T) {
	withTaint := func(taint corev1.Taint) func(*v1alpha1.NodeReadinessRule) {
		return func(rule *v1alpha1.NodeReadinessRule) { rule.Spec.Taint = taint }
	}
	for _, test := range []struct {
		name  string
		rules RuleSet
		// want maps a rule to its blocker; absent: none.
		want map[string]string
	}{
		{"older first, however listed", rulesOf(ruleNamed("a", created(2)), ruleNamed("b", created(1))), map[string]string{"a": "b"}},
		{"same second: by name", rulesOf(ruleNamed("b", created(1)), ruleNamed("a", created(1))), map[string]string{"b": "a"}},
		{"disjoint selectors", rulesOf(ruleNamed("a", pool("x")), ruleNamed("b", pool("y"))), nil},
		{"another effect", rulesOf(ruleNamed("a"), ruleNamed("b", withTaint(noExecute))), nil},
		{"another value is the same taint", rulesOf(ruleNamed("a"), ruleNamed("b", withTaint(heldPending))), map[string]string{"b": "a"}},
		{"a deleted rule blocks nobody", rulesOf(ruleNamed("a", deleted), ruleNamed("b")), nil},
		{"a blocked rule blocks", rulesOf(ruleNamed("a", created(1), pool("x")), ruleNamed("b", created(2)), ruleNamed("c", created(3), pool("y"))),
			map[string]string{"b": "a", "c": "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, rule := range test.rules {
				got := ""
				if rule.Blocker != nil {
					got = rule.Blocker.Name
				}
				if got != test.want[rule.Name] {
					t.Errorf("blocker of %s: got %q, want %q", rule.Name, got, test.want[rule.Name])
				}
			}
		})
	}
}

func TestRuleActs(t *testing.T) {
	for _, test := range []struct {
		name string
		rule *v1alpha1.NodeReadinessRule
		want bool
	}{
		{"ordinary", ruleNamed("r"), true},
		{"dry run", ruleNamed("r", func(r *v1alpha1.NodeReadinessRule) { r.Spec.DryRun = true }), false},
		{"deleted", ruleNamed("r", deleted), false},
		{"without finalizer", ruleNamed("r", func(r *v1alpha1.NodeReadinessRule) { r.Finalizers = nil }), false},
	} {
		if got := rulesOf(test.rule)[0].Acts(); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
	if blocked, _ := rulesOf(ruleNamed("a"), ruleNamed("b")).Named("b"); blocked.Acts() {
		t.Error("a blocked rule acts")
	}
}

// A rule with a selector that the API server would not accept must not fall back to selecting everything.
func TestInvalidSelectorSelectsNothing(t *testing.T) {
	bad := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pool", Operator: "Near", Values: []string{"x"}}}}
	for _, selector := range []metav1.LabelSelector{bad, {}} {
		rule := rulesOf(ruleNamed("r", selecting(selector)))[0]
		if rule.Err == nil || rule.Selects(nodeNamed("n")) {
			t.Errorf("selector %v: error %v, selects a node: %t", selector, rule.Err, rule.Selects(nodeNamed("n")))
		}
	}
}

// TestOverlap compares with the definition: selectors overlap if some set of labels satisfies both. With two keys, and one value more than the
// selectors know, all sets that can make a difference are tried.
func TestOverlap(t *testing.T) {
	keys, values := []string{"pool", "zone"}, []string{"a", "b", "c"}
	operators := []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
	}
	arbitrary := func(rng *rand.Rand) labels.Selector {
		var selector metav1.LabelSelector
		for range 1 + rng.IntN(3) {
			r := metav1.LabelSelectorRequirement{Key: pick(rng, keys), Operator: pick(rng, operators)}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				for _, i := range rng.Perm(len(values))[:1+rng.IntN(len(values))] {
					r.Values = append(r.Values, values[i])
				}
			}
			selector.MatchExpressions = append(selector.MatchExpressions, r)
		}
		parsed, err := metav1.LabelSelectorAsSelector(&selector)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	defined := func(a, b labels.Selector) bool {
		choices := append(slices.Clone(values), "unknown", "")
		for _, p := range choices {
			for _, z := range choices {
				set := labels.Set{}
				if p != "" {
					set["pool"] = p
				}
				if z != "" {
					set["zone"] = z
				}
				if a.Matches(set) && b.Matches(set) {
					return true
				}
			}
		}
		return false
	}
	rng := rand.New(rand.NewPCG(1, 1))
	counts := map[bool]int{}
	for range 5000 {
		a, b := arbitrary(rng), arbitrary(rng)
		got, want := overlap(a, b), defined(a, b)
		if got != want {
			t.Fatalf("overlap of %q and %q: got %t, want %t", a, b, got, want)
		}
		counts[got]++
	}
	if counts[true] < 500 || counts[false] < 500 {
		t.Errorf("the sample tests too little of one outcome: %v", counts)
	}
}

func TestValidator(t *testing.T) {
	present := ruleNamed("present", pool("x"))
	validator := Validator{Reader: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(present).Build()}
	ctx := context.Background()

	if _, err := validator.ValidateCreate(ctx, ruleNamed("b", pool("x"))); err == nil || !strings.Contains(err.Error(), "rule present is older") {
		t.Errorf("overlapping rule: got error %v, want one that names the rule present", err)
	}
	if warnings, err := validator.ValidateCreate(ctx, ruleNamed("b", pool("y"))); err != nil || len(warnings) > 0 {
		t.Errorf("disjoint rule: got warnings %v, error %v", warnings, err)
	}
	evicting := ruleNamed("b", pool("x"), func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = corev1.TaintEffectNoExecute })
	if warnings, err := validator.ValidateCreate(ctx, evicting); err != nil || len(warnings) != 1 {
		t.Errorf("NoExecute: got warnings %v, error %v, want one warning", warnings, err)
	}
}
