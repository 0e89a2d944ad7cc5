package readiness

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// Validator is an admission.Validator for what the CustomResourceDefinition cannot say: it refuses a rule that would be blocked by another one
// with the same taint key and effect on an overlapping selector, and warns of NoExecute. Nothing serves it by default; without it the
// controller lets the younger rule stand back and says so in its status.
type Validator struct {
	// Reader lists the present rules.
	Reader client.Reader
}

var _ admission.Validator[*v1alpha1.NodeReadinessRule] = Validator{}

// ValidateCreate implements admission.Validator.
func (v Validator) ValidateCreate(ctx context.Context, rule *v1alpha1.NodeReadinessRule) (admission.Warnings, error) {
	rules, err := listRules(ctx, v.Reader)
	if err != nil {
		return nil, err
	}
	scoped := scope(rule)
	if scoped.Err != nil {
		return nil, scoped.Err
	}
	if scoped.Blocker = rules.blockerOf(scoped); scoped.Blocker != nil {
		return nil, fmt.Errorf("rule %s: %s", rule.Name, blockedMessage(scoped))
	}
	if rule.Spec.Taint.Effect == corev1.TaintEffectNoExecute {
		return admission.Warnings{"the effect NoExecute evicts the pods of a node as soon as the taint is added"}, nil
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator. Taint and selector are immutable, so an update cannot make rules overlap.
func (Validator) ValidateUpdate(context.Context, *v1alpha1.NodeReadinessRule, *v1alpha1.NodeReadinessRule) (admission.Warnings, error) {
	return nil, nil
}

// ValidateDelete implements admission.Validator. Every rule may be deleted.
func (Validator) ValidateDelete(context.Context, *v1alpha1.NodeReadinessRule) (admission.Warnings, error) {
	return nil, nil
}
