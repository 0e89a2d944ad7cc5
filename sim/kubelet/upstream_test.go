package kubelet

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os/exec"
	"strings"
	"testing"
)

// TestUpstreamSignatures holds the signatures that upstream.go relies on against the sources of k8s.io/kubernetes: the linker only checks the names.
func TestUpstreamSignatures(t *testing.T) {
	for _, tc := range []struct{ pkg, name, signature string }{
		{"config", "tryDecodeSinglePod", "func(logger klog.Logger, data []byte, defaultFn defaultFunc) (parsed bool, pod *v1.Pod, err error)"},
		{"config", "defaultFunc", "func(logger klog.Logger, pod *api.Pod) error"},
		{"config", "applyDefaults", "func(logger klog.Logger, pod *api.Pod, source string, isFile bool, nodeName types.NodeName) error"},
		{"status", "mergePodStatus", "func(pod *v1.Pod, oldPodStatus, newPodStatus v1.PodStatus, couldHaveRunningContainers bool) v1.PodStatus"},
		{"status", "updateLastTransitionTime", "func(status, oldStatus *v1.PodStatus, conditionType v1.PodConditionType)"},
		{"status", "normalizeStatus", "func(pod *v1.Pod, status *v1.PodStatus) *v1.PodStatus"},
	} {
		if got := upstreamSignature(t, "k8s.io/kubernetes/pkg/kubelet/"+tc.pkg, tc.name); got != tc.signature {
			t.Errorf("%s.%s: got %q, want %q: adapt upstream.go", tc.pkg, tc.name, got, tc.signature)
		}
	}
}

// upstreamSignature finds the function, or function type, of a name in the sources of a package; empty if there is none.
func upstreamSignature(t *testing.T, pkg, name string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, pkg).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	for _, path := range strings.Fields(string(out)) {
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var found *ast.FuncType
		ast.Inspect(file, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == name {
					found = d.Type
				}
			case *ast.TypeSpec:
				if f, ok := d.Type.(*ast.FuncType); ok && d.Name.Name == name {
					found = f
				}
			}
			return found == nil
		})
		if found == nil {
			continue
		}
		var text bytes.Buffer
		if err := printer.Fprint(&text, files, found); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	return ""
}
