package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of NodeReadinessRule.
	GroupName = "readiness.node.x-k8s.io"
	// Finalizer keeps a deleted rule until the controller has removed its taints.
	Finalizer = "readiness.node.x-k8s.io/cleanup-taints"
	// TaintKeyPrefix starts the key of every taint that a rule may manage.
	TaintKeyPrefix = "readiness.k8s.io/"
	// BootstrapCompletedPrefix, followed by a rule's UID, is the annotation of a node that a bootstrap-only rule has released. By UID and not by
	// name, so that a rule created again under the same name holds nodes again.
	BootstrapCompletedPrefix = "readiness.k8s.io/bootstrap-completed-"
)

// GroupVersion is the group and version of this package's types.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme registers the types of this package. It never fails for a scheme that does not have other types under the same kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &NodeReadinessRule{}, &NodeReadinessRuleList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
