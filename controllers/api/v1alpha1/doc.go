// Package v1alpha1 is the NodeReadinessRule API, group readiness.node.x-k8s.io.
//
// A rule holds the nodes it selects with a taint until their conditions have the required status. Group, version, kind and field names are
// those of kubernetes-sigs/node-readiness-controller at v0.5.0, so that a rule works unchanged with either controller.
//
// The validations are in the markers below; controller-gen makes of them the CustomResourceDefinition in controllers/manifests, which the API
// server enforces. There is no webhook.
//
// +kubebuilder:object:generate=true
// +groupName=readiness.node.x-k8s.io
package v1alpha1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd paths=. output:crd:dir=../../manifests
