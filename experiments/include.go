package experiments

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	gopath "path"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	readinessv1alpha1 "github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

// maxFileSize bounds a file, so that a device or a wrong file is refused instead of read into memory whole.
const maxFileSize = 16 << 20

// include puts the contents of the files that a node names in their place, for the types that may name files. What is decoded and validated
// afterwards is one tree, and an error in it still knows its file.
func (d *decoder) include(file string, n *yaml.Node, t reflect.Type, path *field.Path) {
	switch t {
	case reflect.TypeFor[[]sim.StaticPod]():
		d.includeFolders(file, n, path)
	case reflect.TypeFor[sim.StaticPod]():
		d.includeStaticPod(file, n, path)
	case reflect.TypeFor[sim.Workload]():
		d.includeManifest(file, n, path, "file", "manifest")
	case reflect.TypeFor[sim.Scheduler]():
		d.includeManifest(file, n, path, "configFile", "config")
	case reflect.TypeFor[random.EmpiricalDelay]():
		d.includeCSV(file, n, path)
	case reflect.TypeFor[[]Value]():
		d.labelValues(file, n, path)
	}
}

// includeFolders replaces each entry that names a folder by one for each file in it.
func (d *decoder) includeFolders(file string, n *yaml.Node, path *field.Path) {
	if n.Kind != yaml.SequenceNode {
		return
	}
	var all []*yaml.Node
	for i, item := range n.Content {
		folder := get(item, "folder")
		if folder == nil {
			all = append(all, item)
			continue
		}
		all = append(all, d.folderEntries(file, resolve(item), folder, path.Index(i))...)
	}
	n.Content = all
}

// folderEntries is one entry for each file of a folder, with the other fields of the entry that named the folder.
func (d *decoder) folderEntries(file string, item, folder *yaml.Node, path *field.Path) []*yaml.Node {
	for _, other := range []string{"manifest", "file", "fileName"} {
		if n := get(item, other); n != nil {
			d.report(file, n, path.Child(other), "contradicts folder: set only one of them")
			return nil
		}
	}
	origin := d.fileOf(file, folder)
	names, err := manifestFiles(d.filesOf(origin), folder.Value)
	if err != nil {
		d.report(file, folder, path.Child("folder"), "%v", err)
	}
	entries := make([]*yaml.Node, len(names))
	for i, name := range names {
		entry := without(item, "folder")
		set(entry, "file", name, folder.Line)
		d.origins[get(entry, "file")] = origin
		entries[i] = entry
	}
	return entries
}

// manifestFiles lists the files of a folder that a kubelet would read (pkg/kubelet/config/file.go): neither dotfiles nor folders.
func manifestFiles(files fs.FS, folder string) ([]string, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", folder, cause(err))
	}
	var names []string
	for _, entry := range entries {
		name := gopath.Join(folder, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if info, err := fs.Stat(files, name); err == nil && info.IsDir() {
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("folder %s has no manifests: put Pod manifests in it, or leave it out", folder)
	}
	return names, nil
}

func (d *decoder) includeStaticPod(file string, n *yaml.Node, path *field.Path) {
	name := get(n, "file")
	if name == nil {
		return
	}
	if get(n, "fileName") == nil {
		set(n, "fileName", gopath.Base(name.Value), name.Line)
	}
	if invalid := get(n, "invalid"); invalid != nil && invalid.Value == "true" {
		d.includeText(file, n, path)
		return
	}
	d.includeManifest(file, n, path, "file", "manifest")
}

// includeManifest replaces the field that names a file by another with its contents.
func (d *decoder) includeManifest(file string, n *yaml.Node, path *field.Path, from, to string) {
	name, data := d.read(file, n, path, from, to)
	if data == nil {
		return
	}
	content, problem := parseYAML(name, data)
	if problem != nil {
		problem.Field = path.Child(to).String()
		d.problems = append(d.problems, *problem)
		return
	}
	d.origins[content] = name
	replace(n, from, to, content)
}

// includeText replaces a file by its text, whatever it is.
func (d *decoder) includeText(file string, n *yaml.Node, path *field.Path) {
	name, data := d.read(file, n, path, "file", "manifest")
	if data == nil {
		return
	}
	content := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: strings.ToValidUTF8(string(data), "\uFFFD"), Line: 1}
	d.origins[content] = name
	replace(n, "file", "manifest", content)
}

// includeCSV replaces a file of measured delays by the values.
func (d *decoder) includeCSV(file string, n *yaml.Node, path *field.Path) {
	column := get(n, "column")
	name, data := d.read(file, n, path, "file", "values")
	if data == nil {
		return
	}
	var header string
	if column != nil {
		header = column.Value
	}
	values, errs := random.ParseCSV(data, header)
	for _, err := range errs {
		d.problems = append(d.problems, Problem{File: name, Line: err.Line, Field: path.String(), Message: err.Err.Error()})
	}
	content := &yaml.Node{Kind: yaml.SequenceNode, Line: 1}
	for _, v := range values {
		content.Content = append(content.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v.Duration.String(), Line: 1})
	}
	d.origins[content] = name
	replace(n, "file", "values", content)
	remove(n, "column")
}

// read reads the file that a field names, if it does, and returns what errors call it. Without data there is nothing to put in its place.
func (d *decoder) read(file string, n *yaml.Node, path *field.Path, from, to string) (name string, data []byte) {
	node := get(n, from)
	if node == nil || node.Kind != yaml.ScalarNode || isNull(node) {
		return "", nil
	}
	if other := get(n, to); other != nil {
		d.report(file, other, path.Child(to), "contradicts %s: set only one of them", from)
		return "", nil
	}
	origin := d.fileOf(file, node)
	data, err := readFile(d.filesOf(origin), node.Value)
	if err != nil {
		d.report(file, node, path.Child(from), "%v", err)
		return "", nil
	}
	return display(origin, node.Value), data
}

// readFile reads a regular file of at most maxFileSize.
func readFile(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name) // before opening: to open a pipe may block
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	}
	if info.IsDir() {
		return nil, fmt.Errorf("read %s: it is a folder, not a file", name)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: it is not a regular file", name)
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("read %s: it is larger than %d MiB", name, maxFileSize>>20)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("read %s: it is empty", name)
	}
	return data, nil
}

// cause leaves out the operation and path that package fs puts before the error: the caller says both.
func cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// manifests decodes the manifests that a value holds into their own types, so that what is wrong in them is found with its line.
func (d *decoder) manifests(file string, n *yaml.Node, v reflect.Value, path *field.Path) {
	switch x := v.Addr().Interface().(type) {
	case *sim.StaticPod:
		if !x.Invalid {
			d.manifest(file, n, "manifest", new(corev1.Pod), path)
		}
	case *sim.Workload:
		if manifest := get(n, "manifest"); manifest != nil {
			if object := sim.NewWorkloadObject(scalar(manifest, "apiVersion"), scalar(manifest, "kind")); object != nil {
				d.manifest(file, n, "manifest", object, path)
			}
		}
	case *sim.Gate:
		d.manifest(file, n, "rule", new(readinessv1alpha1.NodeReadinessRule), path)
	case *sim.Check:
		d.manifest(file, n, "daemonSet", new(appsv1.DaemonSet), path)
	case *sim.Scheduler:
		d.manifest(file, n, "config", new(schedulerv1.KubeSchedulerConfiguration), path)
	}
}

func (d *decoder) manifest(file string, n *yaml.Node, name string, object any, path *field.Path) {
	if manifest := get(n, name); manifest != nil {
		d.decode(file, manifest, reflect.ValueOf(object).Elem(), path.Child(name))
	}
}

// scalar is the text of a field, or empty.
func scalar(n *yaml.Node, key string) string {
	if value := get(n, key); value != nil {
		return value.Value
	}
	return ""
}

// set adds a field with a string.
func set(n *yaml.Node, key, value string, line int) {
	n.Content = append(n.Content,
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: line},
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: line})
}

// replace puts another field in the place of one.
func replace(n *yaml.Node, from, to string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == from {
			n.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: to, Line: n.Content[i].Line}
			n.Content[i+1] = value
			return
		}
	}
}

// without is a copy of a map node without a field.
func without(n *yaml.Node, key string) *yaml.Node {
	c := *n
	c.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			c.Content = append(c.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &c
}

func remove(n *yaml.Node, key string) { n.Content = without(n, key).Content }
