package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnforcementMode says for how long a rule governs a node.
// +kubebuilder:validation:Enum=bootstrap-only;continuous
type EnforcementMode string

const (
	// EnforcementModeBootstrapOnly holds a node until its conditions are satisfied for the first time, and never again.
	EnforcementModeBootstrapOnly EnforcementMode = "bootstrap-only"
	// EnforcementModeContinuous holds a node whenever its conditions are not satisfied.
	EnforcementModeContinuous EnforcementMode = "continuous"
)

// ConditionPolicy says how the conditions of a rule combine.
// +kubebuilder:validation:Enum=allOf;anyOf
type ConditionPolicy string

const (
	// ConditionPolicyAllOf is satisfied by all conditions together. It is what an absent policy means.
	ConditionPolicyAllOf ConditionPolicy = "allOf"
	// ConditionPolicyAnyOf is satisfied by any one condition.
	ConditionPolicyAnyOf ConditionPolicy = "anyOf"
)

// TaintStatus says whether a node carries the taint of a rule.
// +kubebuilder:validation:Enum=Present;Absent
type TaintStatus string

const (
	// TaintStatusPresent: the node carries the taint.
	TaintStatusPresent TaintStatus = "Present"
	// TaintStatusAbsent: the node does not carry the taint.
	TaintStatusAbsent TaintStatus = "Absent"
)

// NodeReadinessRuleSpec is what a rule demands of which nodes. Everything but dryRun is immutable: to change a rule, create another one.
// +kubebuilder:validation:XValidation:rule="(has(self.conditionPolicy) ? self.conditionPolicy : 'allOf') == (has(oldSelf.conditionPolicy) ? oldSelf.conditionPolicy : 'allOf')",message="conditionPolicy is immutable",fieldPath=.conditionPolicy
// +kubebuilder:validation:XValidation:rule="self.enforcementMode != 'bootstrap-only' || !self.conditions.exists(c, has(c.defaultStatus))",message="defaultStatus is not allowed with enforcementMode bootstrap-only",fieldPath=.conditions
// +kubebuilder:validation:XValidation:rule="self.enforcementMode != 'bootstrap-only' || !has(self.conditionPolicy) || self.conditionPolicy == 'allOf'",message="anyOf is not allowed with enforcementMode bootstrap-only",fieldPath=.conditionPolicy
type NodeReadinessRuleSpec struct {
	// conditions are the node conditions that release a node. Between 1 and 32, each type once; immutable.
	//
	// +required
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="conditions is immutable"
	Conditions []ConditionRequirement `json:"conditions"`

	// conditionPolicy says how the conditions combine: allOf (also when absent) or anyOf. anyOf is not allowed with bootstrap-only; immutable.
	//
	// +optional
	ConditionPolicy ConditionPolicy `json:"conditionPolicy,omitempty"`

	// enforcementMode is bootstrap-only or continuous; immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="enforcementMode is immutable"
	EnforcementMode EnforcementMode `json:"enforcementMode"`

	// taint holds a node; on a node it is recognised by key and effect. The key is readiness.k8s.io/ and a qualified name of 1 to 63
	// characters, the effect NoSchedule, PreferNoSchedule or NoExecute, the value at most 63 characters. Key, effect and value are immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.key.matches('^readiness[.]k8s[.]io/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="key must be readiness.k8s.io/ followed by a name of 1 to 63 letters, digits, '-', '_' and '.' that starts and ends with a letter or digit",fieldPath=.key
	// +kubebuilder:validation:XValidation:rule="self.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute']",message="effect must be NoSchedule, PreferNoSchedule or NoExecute",fieldPath=.effect
	// +kubebuilder:validation:XValidation:rule="!has(self.value) || self.value.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$')",message="value must be a label value of at most 63 characters",fieldPath=.value
	// +kubebuilder:validation:XValidation:rule="self.key == oldSelf.key",message="taint key is immutable",fieldPath=.key
	// +kubebuilder:validation:XValidation:rule="self.effect == oldSelf.effect",message="taint effect is immutable",fieldPath=.effect
	// +kubebuilder:validation:XValidation:rule="(has(self.value) ? self.value : '') == (has(oldSelf.value) ? oldSelf.value : '')",message="taint value is immutable",fieldPath=.value
	Taint corev1.Taint `json:"taint"`

	// nodeSelector selects the nodes by their labels. It must not be empty; immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="nodeSelector must not be empty"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0))",message="an expression needs the operator In or NotIn with values, or Exists or DoesNotExist without",fieldPath=.matchExpressions
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nodeSelector is immutable"
	NodeSelector metav1.LabelSelector `json:"nodeSelector"`

	// dryRun evaluates nodes without changing them; what would be done is in status.dryRunResults.
	//
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// ConditionRequirement is a node condition and the status it must have.
type ConditionRequirement struct {
	// type of the node condition, 1 to 316 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// requiredStatus is True, False or Unknown.
	//
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	RequiredStatus corev1.ConditionStatus `json:"requiredStatus"`

	// defaultStatus is taken when the node does not have the condition. Absent means Unknown. Not allowed with bootstrap-only.
	//
	// +optional
	// +kubebuilder:validation:Enum=True;False;Unknown
	DefaultStatus corev1.ConditionStatus `json:"defaultStatus,omitempty"`
}

// NodeReadinessRuleStatus is what the controller observed. Its per-node lists are written as a whole by one writer and are therefore atomic:
// tracking the ownership of every entry would more than double the object.
type NodeReadinessRuleStatus struct {
	// observedGeneration is the generation of the rule that the rest of the status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// appliedNodes are the nodes that are as the rule wants them: held or released.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=253
	AppliedNodes []string `json:"appliedNodes,omitempty"`

	// failedNodes are the nodes that could not be brought to what the rule wants.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	FailedNodes []NodeFailure `json:"failedNodes,omitempty"`

	// nodeEvaluations are the results for each node, held nodes first. Beyond what fits into one object the rest is left out.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	NodeEvaluations []NodeEvaluation `json:"nodeEvaluations,omitempty"`

	// dryRunResults is what a dry run would do; absent without dryRun.
	//
	// +optional
	DryRunResults *DryRunResults `json:"dryRunResults,omitempty"`
}

// NodeFailure is why a node could not be brought to what the rule wants.
type NodeFailure struct {
	// nodeName is the name of the node.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName"`

	// reason in one word.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// message for a person.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	Message string `json:"message,omitempty"`

	// lastEvaluationTime is when this failure was first seen with this message.
	//
	// +required
	LastEvaluationTime metav1.Time `json:"lastEvaluationTime"`
}

// NodeEvaluation is the result of a rule for one node.
type NodeEvaluation struct {
	// nodeName is the name of the node.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName"`

	// conditionResults compares each condition with its requirement.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ConditionResults []ConditionEvaluationResult `json:"conditionResults"`

	// taintStatus is Present or Absent.
	//
	// +required
	TaintStatus TaintStatus `json:"taintStatus"`

	// lastEvaluationTime is when this result was first seen. Later evaluations with the same result do not change it: a heartbeat is no news.
	//
	// +required
	LastEvaluationTime metav1.Time `json:"lastEvaluationTime"`
}

// ConditionEvaluationResult compares a condition of a node with its requirement.
type ConditionEvaluationResult struct {
	// type of the node condition.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// currentStatus is the status on the node, or the default that stands for a missing condition.
	//
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	CurrentStatus corev1.ConditionStatus `json:"currentStatus"`

	// requiredStatus is the status that the rule demands.
	//
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	RequiredStatus corev1.ConditionStatus `json:"requiredStatus"`

	// defaultStatus is set if the node does not have the condition, and is the status that was taken instead.
	//
	// +optional
	// +kubebuilder:validation:Enum=True;False;Unknown
	DefaultStatus corev1.ConditionStatus `json:"defaultStatus,omitempty"`
}

// DryRunResults is what a rule would do.
type DryRunResults struct {
	// affectedNodes is the number of nodes that the rule selects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	AffectedNodes int32 `json:"affectedNodes"`

	// taintsToAdd is the number of nodes that would get the taint.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TaintsToAdd int32 `json:"taintsToAdd"`

	// taintsToRemove is the number of nodes that would lose the taint.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TaintsToRemove int32 `json:"taintsToRemove"`

	// riskyOperations is the number of nodes that would be held although they do not have all of the conditions: nothing may ever report them.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RiskyOperations int32 `json:"riskyOperations"`

	// summary for a person.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Summary string `json:"summary"`
}

// NodeReadinessRule holds nodes with a taint until their conditions have the required status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nrr
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.enforcementMode`
// +kubebuilder:printcolumn:name="Taint",type=string,JSONPath=`.spec.taint.key`
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.spec.taint.effect`
// +kubebuilder:printcolumn:name="DryRun",type=boolean,JSONPath=`.spec.dryRun`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.spec.enforcementMode`
// +kubebuilder:selectablefield:JSONPath=`.spec.taint.key`
// +kubebuilder:selectablefield:JSONPath=`.spec.dryRun`
type NodeReadinessRule struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the rule demands of which nodes.
	//
	// +required
	Spec NodeReadinessRuleSpec `json:"spec"`

	// status is what the controller observed.
	//
	// +optional
	Status NodeReadinessRuleStatus `json:"status,omitempty,omitzero"`
}

// BootstrapCompletedAnnotation is the key of the annotation that a node released by this bootstrap-only rule carries.
func (r *NodeReadinessRule) BootstrapCompletedAnnotation() string {
	return BootstrapCompletedPrefix + string(r.UID)
}

// NodeReadinessRuleList is a list of rules.
//
// +kubebuilder:object:root=true
type NodeReadinessRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeReadinessRule `json:"items"`
}
