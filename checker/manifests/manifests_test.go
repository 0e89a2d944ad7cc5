package manifests

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRegistryAndOneRightDifferFromThePublishedFile(t *testing.T) {
	published, err := os.ReadFile("testdata/published.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Replace(published, []byte("<your-registry>"), []byte("registry.example.com"), 1)
	const rights = "  - {apiGroups: [\"\"], resources: [pods], verbs: [get]}\n"
	const more = "  - {apiGroups: [\"\"], resources: [nodes], verbs: [get]}   # mirrorgap mirror-check; the published script needs it not\n"
	want = bytes.Replace(want, []byte(rights), []byte(rights+more), 1)
	if diff := cmp.Diff(string(want), string(YAML)); diff != "" {
		t.Errorf("daemonset.yaml (-published +embedded):\n%s", diff)
	}
}

func TestObjects(t *testing.T) {
	account, err := ServiceAccount()
	check(t, "ServiceAccount", err)
	role, err := ClusterRole()
	check(t, "ClusterRole", err)
	binding, err := ClusterRoleBinding()
	check(t, "ClusterRoleBinding", err)
	daemonSet, err := DaemonSet()
	check(t, "DaemonSet", err)

	for _, object := range []metav1.Object{account, daemonSet} {
		if object.GetNamespace() != Namespace {
			t.Errorf("%T is in namespace %q, want %q", object, object.GetNamespace(), Namespace)
		}
	}
	if account.Name != ServiceAccountName || daemonSet.Spec.Template.Spec.ServiceAccountName != ServiceAccountName {
		t.Errorf("ServiceAccount %q, used by the DaemonSet: %q, want %q", account.Name, daemonSet.Spec.Template.Spec.ServiceAccountName, ServiceAccountName)
	}
	if want := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}); binding.RoleRef != want {
		t.Errorf("binding is of %+v, want %+v", binding.RoleRef, want)
	}
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: ServiceAccountName, Namespace: Namespace}}
	if diff := cmp.Diff(want, binding.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
}

func TestAMissingObjectIsAnError(t *testing.T) {
	if object, err := decode[rbacv1.Role]("Role"); err == nil {
		t.Errorf("decode Role: got %+v, want an error", object)
	}
}

func check(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
