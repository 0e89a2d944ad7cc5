package checker

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxManifestBytes is the size above which the kubelet refuses a manifest (pkg/kubelet/config/common.go, maxConfigLength).
const maxManifestBytes = 10 << 20

// Lookup says whether a pod exists in the API server. An error is any answer other than yes and no; found is then false.
type Lookup func(namespace, name string) (found bool, err error)

// Evaluate looks once: at every manifest in the folder of static pods, and for the mirror pod that the kubelet of nodeName makes of it.
//
// Missing lists, in the order of file names, what is not there yet: a mirror pod as "namespace/name", or a file in which no named object can be found
// as "file(unparsed)". Failures are the reasons for which the answer may be wrong: a folder that cannot be read, a lookup that failed.
// The node has passed when both are empty.
//
// Like the kubelet and the published script, Evaluate takes every regular file whatever its extension, YAML or JSON, follows symbolic links, and skips
// dotfiles and folders. Like the script it is content with a named object of any kind that Kubernetes knows: whether the kubelet accepts it is for the
// mirror pod to show.
func Evaluate(folder fs.FS, nodeName string, lookup Lookup) (missing []string, failures []error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, []error{fmt.Errorf("read the folder of static pods: %w", err)}
	}
	for _, entry := range entries {
		if !isManifest(folder, entry.Name()) {
			continue
		}
		namespace, name, ok := readManifest(folder, entry.Name())
		if !ok {
			missing = append(missing, entry.Name()+"(unparsed)")
			continue
		}
		mirror := mirrorName(name, nodeName)
		found, err := lookup(namespace, mirror)
		if err != nil {
			failures = append(failures, fmt.Errorf("lookup of %s/%s failed: %w", namespace, mirror, err))
		}
		if !found {
			missing = append(missing, namespace+"/"+mirror)
		}
	}
	return missing, failures
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

// readManifest returns the namespace and name of the object in a file, and false if it has none.
func readManifest(folder fs.FS, file string) (namespace, name string, ok bool) {
	f, err := folder.Open(file)
	if err != nil {
		return "", "", false
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil || len(data) > maxManifestBytes {
		return "", "", false
	}
	return parseManifest(data)
}

// parseManifest finds the object in YAML or JSON as the kubelet does, which reads the first document and ignores the rest, and asks of it what
// `kubectl patch --local` does: well-typed metadata, and a kind that Kubernetes knows. The default namespace is the kubelet's.
func parseManifest(data []byte) (namespace, name string, ok bool) {
	data, err := yaml.ToJSON(data)
	if err != nil {
		return "", "", false
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &object); err != nil {
		return "", "", false
	}
	if object.Name == "" || !scheme.Scheme.Recognizes(object.GroupVersionKind()) {
		return "", "", false
	}
	return cmp.Or(object.Namespace, metav1.NamespaceDefault), object.Name, true
}
