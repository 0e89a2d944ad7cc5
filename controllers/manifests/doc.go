// Package manifests holds what a cluster needs for readiness rules, embedded and ready for kubectl apply: the CustomResourceDefinition
// (generated from controllers/api/v1alpha1), the identity and permissions of the controller, its Deployment, and the published rule that holds
// a node until its static pods have mirror pods.
package manifests
