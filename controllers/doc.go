// Package controllers runs the NodeReadinessRule controller, as a function of a context (Run) and as a command (NewCommand).
//
// It is compatible with kubernetes-sigs/node-readiness-controller: the same resource, field names, annotation, finalizer, events, metrics and
// flags, so that rules, dashboards and scripts work with either. docs/readiness-controller.md says where it differs and why.
//
//   - api/v1alpha1: the types of the resource
//   - manifests: the CustomResourceDefinition, permissions, Deployment and the published rule, embedded
//   - readiness: the decisions and the reconcilers
//
// The packages are meant for real clusters and know nothing of the simulator, which runs them as they are.
package controllers
