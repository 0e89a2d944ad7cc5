package controllers_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
	"github.com/mirrorgap/mirrorgap/controllers/manifests"
)

type ruleOption = func(*v1alpha1.NodeReadinessRule)

func requiring(requirements ...v1alpha1.ConditionRequirement) ruleOption {
	return func(rule *v1alpha1.NodeReadinessRule) { rule.Spec.Conditions = requirements }
}

// needs is n conditions.
func needs(n int) []v1alpha1.ConditionRequirement {
	var requirements []v1alpha1.ConditionRequirement
	for i := range n {
		requirements = append(requirements, v1alpha1.ConditionRequirement{Type: fmt.Sprintf("Condition%d", i), RequiredStatus: corev1.ConditionTrue})
	}
	return requirements
}

func taintKey(key string) ruleOption {
	return func(rule *v1alpha1.NodeReadinessRule) { rule.Spec.Taint.Key = key }
}

func selector(selector metav1.LabelSelector) ruleOption {
	return func(rule *v1alpha1.NodeReadinessRule) { rule.Spec.NodeSelector = selector }
}

func expression(operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pool", Operator: operator, Values: values}}}
}

func policy(policy v1alpha1.ConditionPolicy) ruleOption {
	return func(rule *v1alpha1.NodeReadinessRule) { rule.Spec.ConditionPolicy = policy }
}

func value(value string) ruleOption {
	return func(rule *v1alpha1.NodeReadinessRule) { rule.Spec.Taint.Value = value }
}

var _ = Describe("The CustomResourceDefinition", func() {
	const prefix = "readiness.k8s.io/"
	defaulted := v1alpha1.ConditionRequirement{Type: "A", RequiredStatus: "True", DefaultStatus: "False"}

	DescribeTable("accepts", func(ctx SpecContext, options ...ruleOption) {
		create(ctx, newGroup().rule("valid", options...))
	},
		Entry("a plain rule"),
		Entry("32 conditions", requiring(needs(32)...)),
		Entry("a condition type of 316 characters", requiring(v1alpha1.ConditionRequirement{Type: strings.Repeat("t", 316), RequiredStatus: "Unknown"})),
		Entry("a taint name of 63 characters", taintKey(prefix+strings.Repeat("n", 63))),
		Entry("a taint name of one character", taintKey(prefix+"n")),
		Entry("a taint value of 63 characters", value(strings.Repeat("v", 63))),
		Entry("NoExecute", func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = corev1.TaintEffectNoExecute }),
		Entry("PreferNoSchedule", func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = corev1.TaintEffectPreferNoSchedule }),
		Entry("defaultStatus with continuous", continuous, requiring(defaulted)),
		Entry("anyOf with continuous", continuous, policy("anyOf")),
		Entry("allOf with bootstrap-only", policy("allOf")),
		Entry("In", selector(expression("In", "a"))),
		Entry("NotIn", selector(expression("NotIn", "a", "b"))),
		Entry("Exists", selector(expression("Exists"))),
		Entry("DoesNotExist", selector(expression("DoesNotExist"))),
	)

	DescribeTable("refuses", func(ctx SpecContext, message string, options ...ruleOption) {
		err := api.Create(ctx, newGroup().rule("invalid", options...))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring(message))
	},
		Entry("no condition", "spec.conditions", requiring([]v1alpha1.ConditionRequirement{}...)),
		Entry("33 conditions", "spec.conditions: Too many: 33: must have at most 32 items", requiring(needs(33)...)),
		Entry("a condition type twice", "spec.conditions[1]: Duplicate value", requiring(needs(1)[0], needs(1)[0])),
		Entry("an empty condition type", "spec.conditions[0].type", requiring(v1alpha1.ConditionRequirement{RequiredStatus: "True"})),
		Entry("a condition type of 317 characters", "spec.conditions[0].type: Too long",
			requiring(v1alpha1.ConditionRequirement{Type: strings.Repeat("t", 317), RequiredStatus: "True"})),
		Entry("an unknown status", `spec.conditions[0].requiredStatus: Unsupported value: "Maybe"`,
			requiring(v1alpha1.ConditionRequirement{Type: "A", RequiredStatus: "Maybe"})),
		Entry("an unknown default", "spec.conditions[0].defaultStatus: Unsupported value", continuous,
			requiring(v1alpha1.ConditionRequirement{Type: "A", RequiredStatus: "True", DefaultStatus: "Maybe"})),
		Entry("defaultStatus with bootstrap-only", "defaultStatus is not allowed with enforcementMode bootstrap-only", requiring(defaulted)),
		Entry("an unknown mode", "spec.enforcementMode: Unsupported value", func(r *v1alpha1.NodeReadinessRule) { r.Spec.EnforcementMode = "once" }),
		Entry("no mode", "spec.enforcementMode", func(r *v1alpha1.NodeReadinessRule) { r.Spec.EnforcementMode = "" }),
		Entry("an unknown policy", "spec.conditionPolicy: Unsupported value", policy("noneOf")),
		Entry("anyOf with bootstrap-only", "anyOf is not allowed with enforcementMode bootstrap-only", policy("anyOf")),
		Entry("another taint prefix", "key must be readiness.k8s.io/", taintKey("example.com/n")),
		Entry("a prefix that only looks like it", "key must be readiness.k8s.io/", taintKey("readinessxk8s.io/n")),
		Entry("two slashes", "key must be readiness.k8s.io/", taintKey(prefix+"a/b")),
		Entry("no taint name", "key must be readiness.k8s.io/", taintKey(prefix)),
		Entry("a taint name of 64 characters", "key must be readiness.k8s.io/", taintKey(prefix+strings.Repeat("n", 64))),
		Entry("a taint name that ends with a dash", "key must be readiness.k8s.io/", taintKey(prefix+"n-")),
		Entry("a taint name with a newline", "key must be readiness.k8s.io/", taintKey(prefix+"n\n")),
		Entry("an unknown effect", "effect must be NoSchedule, PreferNoSchedule or NoExecute",
			func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = "Never" }),
		Entry("a taint value of 64 characters", "value must be a label value of at most 63 characters", value(strings.Repeat("v", 64))),
		Entry("a taint value that no node could have", "value must be a label value", value("a b")),
		Entry("an empty selector", "nodeSelector must not be empty", selector(metav1.LabelSelector{})),
		Entry("a selector with nothing in it", "nodeSelector must not be empty",
			selector(metav1.LabelSelector{MatchLabels: map[string]string{}, MatchExpressions: []metav1.LabelSelectorRequirement{}})),
		Entry("an unknown operator", "an expression needs the operator", selector(expression("Near", "a"))),
		Entry("In without values", "an expression needs the operator", selector(expression("In"))),
		Entry("Exists with values", "an expression needs the operator", selector(expression("Exists", "a"))),
	)

	DescribeTable("keeps", func(ctx SpecContext, message string, change ruleOption) {
		rule := create(ctx, newGroup().rule("kept", continuous, value("pending")))
		change(rule)
		err := api.Update(ctx, rule)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring(message))
	},
		Entry("conditions", "conditions is immutable", requiring(needs(2)...)),
		Entry("the required status", "conditions is immutable", func(r *v1alpha1.NodeReadinessRule) { r.Spec.Conditions[0].RequiredStatus = "False" }),
		Entry("enforcementMode", "enforcementMode is immutable", func(r *v1alpha1.NodeReadinessRule) { r.Spec.EnforcementMode = "bootstrap-only" }),
		Entry("the taint's key", "taint key is immutable", taintKey(prefix+"other")),
		Entry("the taint's effect", "taint effect is immutable", func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = "NoExecute" }),
		Entry("the taint's value", "taint value is immutable", value("other")),
		Entry("the absence of the taint's value", "taint value is immutable", value("")),
		Entry("nodeSelector", "nodeSelector is immutable", selector(expression("Exists"))),
		Entry("the absence of conditionPolicy", "conditionPolicy is immutable", policy("anyOf")),
	)

	It("lets change what means the same, and dryRun", func(ctx SpecContext) {
		rule := create(ctx, newGroup().rule("changed", requiring(needs(2)...)))
		rule.Spec.ConditionPolicy = v1alpha1.ConditionPolicyAllOf
		rule.Spec.DryRun = true
		rule.Spec.Conditions[0], rule.Spec.Conditions[1] = rule.Spec.Conditions[1], rule.Spec.Conditions[0]
		Expect(api.Update(ctx, rule)).To(Succeed())
	})

	It("has a status of its own", func(ctx SpecContext) {
		rule := create(ctx, newGroup().rule("status"))
		rule.Status.ObservedGeneration = 7
		Expect(api.Update(ctx, rule)).To(Succeed())
		Expect(getRule(ctx, rule.Name).Status.ObservedGeneration).To(BeZero())

		rule.Status.ObservedGeneration = 7
		Expect(api.Status().Update(ctx, rule)).To(Succeed())
		Expect(getRule(ctx, rule.Name).Status.ObservedGeneration).To(Equal(int64(7)))
		Expect(getRule(ctx, rule.Name).Generation).To(Equal(int64(1)))
	})

	It("selects rules by field", func(ctx SpecContext) {
		g := newGroup()
		rule := create(ctx, g.rule("a", dryRun))
		create(ctx, g.rule("b", continuous, tainting("other")))
		for _, fields := range []client.MatchingFields{
			{"spec.taint.key": g.taint().Key},
			{"spec.taint.key": g.taint().Key, "spec.enforcementMode": "bootstrap-only", "spec.dryRun": "true"},
		} {
			Expect(namesOf(ctx, fields)).To(ConsistOf(rule.Name))
		}
	})

	It("is installed again over itself", func(ctx SpecContext) {
		Expect(manifests.InstallCRD(ctx, admin)).To(Succeed())
	})

	It("names the object that cannot be applied", func(ctx SpecContext) {
		err := manifests.Apply(ctx, admin, []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: Not_A_Name, namespace: default}\n"))
		Expect(err).To(MatchError(ContainSubstring("apply ServiceAccount Not_A_Name")))
		Expect(manifests.Apply(ctx, admin, []byte("a: [1"))).To(MatchError(ContainSubstring("decode manifest")))
	})
})

func namesOf(ctx context.Context, options ...client.ListOption) []string {
	GinkgoHelper()
	var list v1alpha1.NodeReadinessRuleList
	Expect(api.List(ctx, &list, options...)).To(Succeed())
	var names []string
	for _, rule := range list.Items {
		names = append(names, rule.Name)
	}
	return names
}
