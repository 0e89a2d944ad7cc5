package checker

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxManifestBytes is the size above which the kubelet refuses a manifest (pkg/kubelet/config/common.go, maxConfigLength).
const maxManifestBytes = 10 << 20

// Lookup returns the pod of a name from the API server, nil if there is none. An error is any answer other than these two.
type Lookup func(namespace, name string) (*corev1.Pod, error)

// Look is one look at the static pods of a node.
type Look struct {
	// Folder holds the manifests, StaticPods names further static pods as namespace/name.
	Folder     fs.FS
	StaticPods []string
	// NodeName is the name of the Node object, NodeUID its UID; the latter counts with AcceptOwnMirror only.
	NodeName string
	NodeUID  types.UID
	// Accept says which pods are taken for mirrors.
	Accept Accept
	Lookup Lookup
}

// Evaluate looks once: at every manifest in the folder of static pods, and for the mirror pod that the kubelet of the node makes of it.
//
// Missing lists, in the order of file names and then of StaticPods, what is not there yet: a mirror pod as "namespace/name", followed by what is wrong with
// a pod of that name in parentheses, or a file in which no named object can be found as "file(unparsed)". Failures are the reasons for which the answer may
// be wrong: a folder that cannot be read, a lookup that failed. The node has passed when both are empty.
//
// Like the kubelet and the published script, Evaluate takes every regular file whatever its extension, YAML or JSON, follows symbolic links, and skips
// dotfiles and folders. Like the script it is content with a named object of any kind that Kubernetes knows: whether the kubelet accepts it is for the
// mirror pod to show.
func (l *Look) Evaluate() (missing []string, failures []error) {
	entries, err := fs.ReadDir(l.Folder, ".")
	if err != nil {
		return nil, []error{fmt.Errorf("read the folder of static pods: %w", err)}
	}
	find := func(pod staticPod) {
		absent, err := l.find(pod)
		if err != nil {
			failures = append(failures, err)
		}
		if absent != "" {
			missing = append(missing, absent)
		}
	}
	for _, entry := range entries {
		if !isManifest(l.Folder, entry.Name()) {
			continue
		}
		if pod, ok := readManifest(l.Folder, entry.Name()); ok {
			find(pod)
		} else {
			missing = append(missing, entry.Name()+"(unparsed)")
		}
	}
	for _, name := range l.StaticPods {
		namespace, name, _ := strings.Cut(name, "/")
		find(staticPod{namespace: namespace, name: name})
	}
	return missing, failures
}

// find looks for the mirror of a static pod, and returns its entry in the missing list; empty if it is there.
func (l *Look) find(static staticPod) (missing string, err error) {
	mirror := static.namespace + "/" + mirrorName(static.name, l.NodeName)
	pod, err := l.Lookup(static.namespace, mirrorName(static.name, l.NodeName))
	switch {
	case err != nil:
		return mirror, fmt.Errorf("lookup of %s failed: %w", mirror, err)
	case pod == nil:
		return mirror, nil
	case l.Accept == AcceptName:
		return "", nil
	}
	if wrong := static.wrong(pod, l.NodeUID); wrong != "" {
		return mirror + "(" + wrong + ")", nil
	}
	return "", nil
}

// staticPod is what is known of a static pod.
type staticPod struct {
	namespace, name string
	// pod is its manifest; nil if that cannot be read as a pod, or is not in the folder.
	pod *corev1.Pod
}

// mirrorName is what the kubelet calls the mirror of a static pod; it lower-cases the node's name (pkg/kubelet/config/common.go, generatePodName).
func mirrorName(pod, nodeName string) string {
	return pod + "-" + strings.ToLower(nodeName)
}

// isManifest reports whether the kubelet would read the file. A file that cannot be looked at is taken for one, so that it holds the node and shows in the log.
func isManifest(folder fs.FS, file string) bool {
	if strings.HasPrefix(file, ".") {
		return false
	}
	info, err := fs.Stat(folder, file)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return info.Mode().IsRegular()
}

// readManifest returns the static pod of a file, and false if it has none.
func readManifest(folder fs.FS, file string) (staticPod, bool) {
	f, err := folder.Open(file)
	if err != nil {
		return staticPod{}, false
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil || len(data) > maxManifestBytes {
		return staticPod{}, false
	}
	return parseManifest(data)
}

// parseManifest finds the object in YAML or JSON as the kubelet does, which reads the first document and ignores the rest, and asks of it what
// `kubectl patch --local` does: well-typed metadata, and a kind that Kubernetes knows. The default namespace is the kubelet's.
func parseManifest(data []byte) (staticPod, bool) {
	data, err := yaml.ToJSON(data)
	if err != nil {
		return staticPod{}, false
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &object); err != nil {
		return staticPod{}, false
	}
	if object.Name == "" || !scheme.Scheme.Recognizes(object.GroupVersionKind()) {
		return staticPod{}, false
	}
	static := staticPod{namespace: cmp.Or(object.Namespace, metav1.NamespaceDefault), name: object.Name}
	var pod corev1.Pod
	if object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Pod") && json.Unmarshal(data, &pod) == nil {
		static.pod = &pod
	}
	return static, true
}
