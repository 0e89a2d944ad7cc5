package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	api "k8s.io/kubernetes/pkg/apis/core"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"sigs.k8s.io/yaml"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// manifestFolder is the static pod folder of a node: kubeadm's, as in the published check. A static pod's UID depends on it.
const manifestFolder = "/etc/kubernetes/manifests"

// staticPod is what a pod from a manifest has beyond other pods.
type staticPod struct {
	file string
	// atBoot: the manifest was there when the kubelet started.
	atBoot bool
	// replacing: an API call for its mirror pod is going on; again: the mirror has to be looked at after it. mirrored: the last one succeeded.
	replacing, again, mirrored bool
	// posted is the mirror pod that has the kubelet's status.
	posted types.UID
}

// ValidateManifest reports why a kubelet would refuse a manifest in its static pod folder; nil if it would not. It is the real kubelet's decoding,
// defaulting and validation. What the API server would say about the mirror pod is another matter.
func ValidateManifest(data []byte) error {
	_, err := decodeManifest(data, "pod.yaml", "node")
	return err
}

// decodeManifest makes the static pod that a kubelet makes of a manifest.
func decodeManifest(data []byte, file, nodeName string) (*corev1.Pod, error) {
	return DecodeManifest(data, path.Join(manifestFolder, file), nodeName)
}

// DecodeManifest makes the static pod that the kubelet of a node makes of a manifest at a path, which its UID depends on. It fails when the kubelet would
// refuse the manifest.
func DecodeManifest(data []byte, at, nodeName string) (*corev1.Pod, error) {
	applyFileDefaults := func(logger klog.Logger, pod *api.Pod) error {
		return applyDefaults(logger, pod, at, true, types.NodeName(nodeName))
	}
	parsed, pod, err := tryDecodeSinglePod(klog.Background(), data, applyFileDefaults)
	file := path.Base(at)
	switch {
	case !parsed && err != nil:
		return nil, fmt.Errorf("manifest %s: couldn't parse as pod, please check config file: %w", file, err)
	case err != nil:
		return nil, fmt.Errorf("manifest %s: %w", file, err)
	case pod == nil:
		return nil, errors.New("manifest " + file + ": holds no pod")
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kubetypes.ConfigSourceAnnotationKey, kubetypes.FileSource)
	return pod, nil
}

// readFolder makes the static pods what the folder says: what is gone or changed ends first, then the new ones start, in the order of file names.
// Of several files with a pod of the same name the last one counts, as in the real kubelet's store.
func (n *node) readFolder() {
	desired := n.decodeFolder()
	for _, p := range slices.Clone(n.pods) {
		if p.static != nil && desired[kubecontainer.GetPodFullName(p.object)].uid() != p.object.UID {
			n.endStatic(p)
		}
	}
	for _, fullName := range slices.SortedFunc(maps.Keys(desired), func(a, b string) int {
		return strings.Compare(desired[a].static.file, desired[b].static.file)
	}) {
		if p := desired[fullName]; n.byUID[p.object.UID] == nil {
			n.startStatic(p)
		}
	}
}

// decodeFolder decodes every file that is no dotfile, and records what cannot be used. The pods are keyed by their full names.
func (n *node) decodeFolder() map[string]*pod {
	desired := map[string]*pod{}
	refused := map[string]string{}
	for _, file := range n.folder.names() {
		data, err := n.folder.read(file)
		if err != nil {
			continue // removed in between
		}
		object, err := decodeManifest(data, file, n.Name)
		if err != nil {
			refused[file] = err.Error()
			n.recordRefusal(file, data, err)
			continue
		}
		desired[kubecontainer.GetPodFullName(object)] = &pod{object: object, static: &staticPod{file: file}}
	}
	n.refused = refused
	return desired
}

// recordRefusal records a manifest that the kubelet cannot use, once for each thing that is wrong with it.
func (n *node) recordRefusal(file string, data []byte, err error) {
	if n.refused[file] == err.Error() {
		return
	}
	e := trace.Event{Kind: trace.StaticPodRefused, Message: err.Error()}
	var manifest metav1.PartialObjectMetadata
	if yaml.Unmarshal(data, &manifest) == nil && manifest.Name != "" {
		namespace := manifest.Namespace
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		e.Pod = namespace + "/" + manifest.Name + "-" + strings.ToLower(n.Name)
	}
	n.record(e)
}

// startStatic takes up a static pod.
func (n *node) startStatic(p *pod) {
	metav1.SetMetaDataAnnotation(&p.object.ObjectMeta, kubetypes.ConfigFirstSeenAnnotationKey, kubetypes.NewTimestamp().GetString())
	p.static.atBoot = !n.booted
	n.add(p)
	if n.registered && p.state == admitted {
		n.reconcileMirror(p)
	}
}

// endStatic ends a static pod whose manifest is gone. Its mirror pod goes at the next housekeeping, unless a new static pod replaces it at once.
func (n *node) endStatic(p *pod) {
	n.recordStaticStop(p)
	n.forget(p)
	if n.sourceOpen {
		n.atTick(n.Behaviour.Housekeeping.Duration, n.deleteOrphanMirrors)
	}
}

// recordStaticStop records that a static pod no longer counts.
func (n *node) recordStaticStop(p *pod) {
	if p.static != nil && p.state == admitted {
		n.record(trace.Event{Kind: trace.StaticPodStopped, Pod: p.name(), UID: string(p.object.UID), Requests: sim.PodAmounts(p.object)})
	}
}

// uid is the pod's UID, empty for no pod.
func (p *pod) uid() types.UID {
	if p == nil {
		return ""
	}
	return p.object.UID
}

// folder is the static pod folder of a machine. It outlives the kubelet, as a disk does, and is safe for concurrent use: programs read it.
type folder struct {
	mu    sync.RWMutex
	files fstest.MapFS
	// delays are the mirror delays that manifests bring along, by file name.
	delays map[string]*random.Delay
	// elsewhere are the file names of manifests that the kubelet has from a URL: nobody else sees them.
	elsewhere map[string]bool
}

var _ fs.FS = (*folder)(nil)

func newFolder(manifests []sim.StaticPod) *folder {
	f := &folder{files: fstest.MapFS{}, delays: map[string]*random.Delay{}, elsewhere: map[string]bool{}}
	for _, m := range manifests {
		f.put(m.FileName, m.Content())
		f.delays[m.FileName] = m.MirrorDelay
		f.elsewhere[m.FileName] = m.Source == sim.SourceURL
	}
	return f
}

// Open implements fs.FS, for those who look into the folder of the node.
func (f *folder) Open(name string) (fs.File, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	seen := maps.Clone(f.files)
	maps.DeleteFunc(seen, func(name string, _ *fstest.MapFile) bool { return f.elsewhere[name] })
	return seen.Open(name)
}

// read is a manifest of the kubelet's, whatever its source.
func (f *folder) read(name string) ([]byte, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.files.ReadFile(name)
}

func (f *folder) put(name string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[name] = &fstest.MapFile{Data: slices.Clone(data), Mode: 0o644}
}

// remove reports whether there was such a file.
func (f *folder) remove(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.files[name]
	delete(f.files, name)
	return ok
}

// names are the files that a kubelet looks at, in order.
func (f *folder) names() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	names := slices.Sorted(maps.Keys(f.files))
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") })
}
