// Package manifests holds what a cluster needs to run the mirror-pod check: the published ServiceAccount, ClusterRole, ClusterRoleBinding and DaemonSet
// of static-pod-mirror-check, as one file for kubectl and as decoded objects. The file differs from the published one in the registry of the check's
// image, which is a placeholder there and no valid name, and in the right to get nodes, which mirrorgap's check needs to tell its node's mirror pods from others.
package manifests

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// YAML is the file with all four objects.
//
//go:embed daemonset.yaml
var YAML []byte

// WitnessYAML is what a check that asks schedulers (--confirm-scheduler) needs besides: WitnessNamespace, and the right to create and delete pods there.
//
//go:embed witness.yaml
var WitnessYAML []byte

// WitnessNamespace is where the check's witness pods live.
const WitnessNamespace = "static-pod-mirror-witness"

// Namespace and ServiceAccountName are the identity of the check's pods.
const (
	Namespace          = "kube-system"
	ServiceAccountName = "static-pod-mirror-check"
)

// ServiceAccount returns the account that the check's pods run as.
func ServiceAccount() (*corev1.ServiceAccount, error) {
	return decode[corev1.ServiceAccount]("ServiceAccount")
}

// ClusterRole returns the rights that the check needs: get pods and nodes, patch nodes/status.
func ClusterRole() (*rbacv1.ClusterRole, error) { return decode[rbacv1.ClusterRole]("ClusterRole") }

// ClusterRoleBinding returns what gives the ClusterRole to the ServiceAccount.
func ClusterRoleBinding() (*rbacv1.ClusterRoleBinding, error) {
	return decode[rbacv1.ClusterRoleBinding]("ClusterRoleBinding")
}

// DaemonSet returns the DaemonSet whose init container is the check.
func DaemonSet() (*appsv1.DaemonSet, error) { return decode[appsv1.DaemonSet]("DaemonSet") }

// decode returns a fresh copy of the file's object of that kind; an unknown or duplicate field is an error.
func decode[T any](kind string) (*T, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(YAML)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("decode the mirror-pod check's manifests: no %s", kind)
		}
		if err != nil {
			return nil, fmt.Errorf("decode the mirror-pod check's manifests: %w", err)
		}
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			return nil, fmt.Errorf("decode the mirror-pod check's manifests: %w", err)
		}
		if meta.Kind != kind {
			continue
		}
		object := new(T)
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return nil, fmt.Errorf("decode the mirror-pod check's %s: %w", kind, err)
		}
		return object, nil
	}
}
