package checker

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// none is the API server without any pod.
func none(string, string) (*corev1.Pod, error) { return nil, nil }

func TestEvaluateManifests(t *testing.T) {
	look := Look{Folder: os.DirFS(newFolder(t)), NodeName: "n0", Lookup: none}
	missing, failures := look.Evaluate()
	if len(failures) > 0 {
		t.Errorf("failures: %v", failures)
	}
	var want []string
	for _, m := range files {
		if m.wait != "" {
			want = append(want, m.wait)
		}
	}
	if diff := cmp.Diff(want, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestEvaluate(t *testing.T) {
	folder := fstest.MapFS{
		"a.yaml": {Data: []byte(podNamed("a"))},
		"b.yaml": {Data: []byte(podNamed("b"))},
	}
	refused := errors.New("forbidden")
	tests := []struct {
		name     string
		folder   fs.FS
		nodeName string
		// pods are the lookups' answers by namespace/name: nil for found, an error for a failed lookup; absent for not found.
		pods     map[string]error
		missing  []string
		failures []string
	}{
		{name: "no static pods", folder: fstest.MapFS{}, nodeName: "n0"},
		{name: "no mirror pods", folder: folder, nodeName: "n0", missing: []string{"kube-system/a-n0", "kube-system/b-n0"}},
		{name: "one mirror pod", folder: folder, nodeName: "n0", pods: map[string]error{"kube-system/a-n0": nil}, missing: []string{"kube-system/b-n0"}},
		{name: "all mirror pods", folder: folder, nodeName: "n0", pods: map[string]error{"kube-system/a-n0": nil, "kube-system/b-n0": nil}},
		{
			name: "another node's mirror pods", folder: folder, nodeName: "n0",
			pods:    map[string]error{"kube-system/a-n1": nil, "default/b-n0": nil},
			missing: []string{"kube-system/a-n0", "kube-system/b-n0"},
		},
		{
			name: "upper-case node name", folder: folder, nodeName: "Node-A.Example",
			pods:    map[string]error{"kube-system/a-node-a.example": nil},
			missing: []string{"kube-system/b-node-a.example"},
		},
		{
			name: "failed lookup", folder: folder, nodeName: "n0",
			pods:     map[string]error{"kube-system/a-n0": refused, "kube-system/b-n0": nil},
			missing:  []string{"kube-system/a-n0"},
			failures: []string{"lookup of kube-system/a-n0 failed: forbidden"},
		},
		{
			name: "no folder", folder: os.DirFS(filepath.Join(t.TempDir(), "gone")), nodeName: "n0",
			failures: []string{"read the folder of static pods: open .: no such file or directory"},
		},
		{
			name: "unreadable file", folder: unreadable{folder, "b.yaml"}, nodeName: "n0", pods: map[string]error{"kube-system/a-n0": nil},
			missing: []string{"b.yaml(unparsed)"},
		},
		{
			name: "file larger than the kubelet takes", nodeName: "n0",
			folder:  fstest.MapFS{"big.yaml": {Data: []byte(podNamed("big") + "# " + strings.Repeat("x", maxManifestBytes))}},
			missing: []string{"big.yaml(unparsed)"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			look := Look{Folder: tt.folder, NodeName: tt.nodeName, NodeUID: nodeUID, Lookup: func(namespace, name string) (*corev1.Pod, error) {
				err, found := tt.pods[namespace+"/"+name]
				if !found || err != nil {
					return nil, err
				}
				return mirrorPod(namespace, name), nil
			}}
			missing, failures := look.Evaluate()
			if diff := cmp.Diff(tt.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			var got []string
			for _, failure := range failures {
				got = append(got, failure.Error())
			}
			if diff := cmp.Diff(tt.failures, got); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// unreadable is a folder with a file that cannot even be looked at.
type unreadable struct {
	fs.FS
	file string
}

func (u unreadable) Stat(name string) (fs.FileInfo, error) {
	if name == u.file {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrPermission}
	}
	return fs.Stat(u.FS, name)
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.file {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.FS.Open(name)
}

// FuzzParseManifest holds the parser to never panic, and to find the same pod again in a plain manifest of what it found.
func FuzzParseManifest(f *testing.F) {
	for _, m := range files {
		f.Add([]byte(m.content))
	}
	f.Add([]byte("a: &a [*a, *a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		static, ok := parseManifest(data)
		namespace, name := static.namespace, static.name
		if !ok {
			if namespace != "" || name != "" {
				t.Errorf("not ok, but found %q/%q", namespace, name)
			}
			return
		}
		plain, err := json.Marshal(corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		})
		if err != nil {
			t.Fatal(err)
		}
		if again, ok := parseManifest(plain); !ok || again.namespace != namespace || again.name != name {
			t.Errorf("found %q/%q, but in %s %q/%q (%v)", namespace, name, plain, again.namespace, again.name, ok)
		}
	})
}
