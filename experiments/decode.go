package experiments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decoder decodes YAML nodes into Go values by their json names. Unlike package json it is strict, goes on after an error, and knows for every
// field the file and line that it came from.
type decoder struct {
	files    fs.FS
	file     string // the experiment file
	problems []Problem
	// origins are the files of nodes that are not of the file around them, such as the root nodes of files that were put in the place of a field.
	origins map[*yaml.Node]string
	// folders are what files name files relative to, where that is not d.files.
	folders map[string]fs.FS
	// positions are where each field stands, by its path.
	positions map[string]position
}

type position struct {
	file string
	line int
}

func newDecoder(file string, files fs.FS) *decoder {
	if files == nil {
		files = noFiles{}
	}
	return &decoder{file: file, files: files, origins: map[*yaml.Node]string{}, folders: map[string]fs.FS{}, positions: map[string]position{}}
}

// fileOf is the file that a node is of; file is that of the node around it.
func (d *decoder) fileOf(file string, n *yaml.Node) string {
	if origin, ok := d.origins[n]; ok {
		return origin
	}
	return file
}

// filesOf are what a file names files relative to.
func (d *decoder) filesOf(file string) fs.FS {
	if files, ok := d.folders[file]; ok {
		return files
	}
	return d.files
}

// display is how errors name a file that another file names.
func display(file, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(file), name)
}

// report adds a problem of a node in a file.
func (d *decoder) report(file string, n *yaml.Node, path *field.Path, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.fileOf(file, n), Line: n.Line, Field: pathString(path), Message: fmt.Sprintf(format, args...)})
}

// pathString is empty for the root, where field.Path has no string of its own.
func pathString(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}

// decode decodes a node of a file into v, which must be settable.
func (d *decoder) decode(file string, n *yaml.Node, v reflect.Value, path *field.Path) {
	n = resolve(n)
	file = d.fileOf(file, n)
	d.positions[pathString(path)] = position{file, n.Line}
	if isNull(n) {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	d.include(file, n, v.Type(), path)
	switch {
	case isLeaf(v):
		d.leaf(file, n, v, path)
	case v.Kind() == reflect.Struct:
		d.object(file, n, v, path)
	case v.Kind() == reflect.Map:
		d.mapping(file, n, v, path)
	default:
		d.list(file, n, v, path)
	}
	d.manifests(file, n, v, path)
}

// isLeaf tells whether package json decodes the value as a whole.
func isLeaf(v reflect.Value) bool {
	if _, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		return true
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Map:
		return false
	case reflect.Slice:
		return v.Type().Elem().Kind() == reflect.Uint8
	}
	return true
}

func (d *decoder) leaf(file string, n *yaml.Node, v reflect.Value, path *field.Path) {
	data, err := toJSON(n)
	var wrong *nodeError
	if errors.As(err, &wrong) {
		d.report(file, wrong.node, path, "%s", wrong.message)
		return
	}
	if err := json.Unmarshal(data, v.Addr().Interface()); err != nil {
		d.report(file, n, path, "%s", leafMessage(n, v, err))
	}
}

// leafMessage says what a value must be.
func leafMessage(n *yaml.Node, v reflect.Value, err error) string {
	got := kindName(n)
	if n.Kind == yaml.ScalarNode {
		got = fmt.Sprintf("%q", n.Value)
	}
	switch v.Interface().(type) {
	case metav1.Duration:
		return got + " is not a duration: write a number and a unit, such as 90s, 500ms or 1m30s"
	case resource.Quantity:
		return got + " is not a quantity: write one such as 500m, 4 or 16Gi"
	}
	switch v.Kind() {
	case reflect.String:
		if n.Kind == yaml.ScalarNode {
			return fmt.Sprintf("must be a string, not %s: put it in quotes", kindName(n))
		}
		return fmt.Sprintf("must be a string, not %s", got)
	case reflect.Bool:
		return got + " is not a boolean: write true or false"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return got + " is not a whole number that fits here"
	case reflect.Float32, reflect.Float64:
		return got + " is not a number that fits here"
	}
	return err.Error()
}

func (d *decoder) object(file string, n *yaml.Node, v reflect.Value, path *field.Path) {
	if n.Kind != yaml.MappingNode {
		d.report(file, n, path, "must be a map of fields, not %s", kindName(n))
		return
	}
	fields := map[string][]int{}
	addFields(v.Type(), nil, fields)
	for _, e := range d.entries(file, n, path, func(key string) *field.Path { return path.Child(key) }) {
		index, ok := fields[e.key.Value]
		if !ok {
			d.report(file, e.key, e.path, "unknown field%s", hint(e.key.Value, fields))
			continue
		}
		d.decode(file, e.value, v.FieldByIndex(index), e.path)
	}
}

func (d *decoder) mapping(file string, n *yaml.Node, v reflect.Value, path *field.Path) {
	if n.Kind != yaml.MappingNode {
		d.report(file, n, path, "must be a map, not %s", kindName(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range d.entries(file, n, path, path.Key) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.decode(file, e.value, element, e.path)
		v.SetMapIndex(reflect.ValueOf(e.key.Value).Convert(v.Type().Key()), element)
	}
}

// entry is a key of a map, its value and its path.
type entry struct {
	key, value *yaml.Node
	path       *field.Path
}

// entries are those of a map node whose keys are right; the others are reported.
func (d *decoder) entries(file string, n *yaml.Node, path *field.Path, pathOf func(key string) *field.Path) []entry {
	var entries []entry
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if err := checkKey(key); err != nil {
			d.report(file, key, path, "%v", err)
			continue
		}
		if line, ok := lines[key.Value]; ok {
			d.report(file, key, pathOf(key.Value), "duplicate field: it is set in line %d already", line)
			continue
		}
		lines[key.Value] = key.Line
		entries = append(entries, entry{key, value, pathOf(key.Value)})
	}
	return entries
}

func (d *decoder) list(file string, n *yaml.Node, v reflect.Value, path *field.Path) {
	if n.Kind != yaml.SequenceNode {
		d.report(file, n, path, "must be a list, not %s", kindName(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.decode(file, item, v.Index(i), path.Index(i))
	}
}

// addFields collects the fields of a struct by their json names; those of embedded structs count as its own, as package json has it.
func addFields(t reflect.Type, index []int, fields map[string][]int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(slices.Clone(index), i)
		switch {
		case name == "" && f.Anonymous:
			addFields(f.Type, at, fields)
		case name != "" && name != "-":
			fields[name] = at
		}
	}
}

// maxHints bounds the list of fields in a hint.
const maxHints = 20

// hint tells which field may be meant, or which there are.
func hint(name string, fields map[string][]int) string {
	var names []string
	for known := range fields {
		if strings.EqualFold(known, name) || strings.EqualFold(known, name+"s") || strings.EqualFold(known+"s", name) {
			return fmt.Sprintf(": did you mean %s?", known)
		}
		names = append(names, known)
	}
	if len(names) > maxHints {
		return ""
	}
	slices.Sort(names)
	return ": the fields here are " + strings.Join(names, ", ")
}

// positionOf is where a field stands, or the nearest field around it that is in a file.
func (d *decoder) positionOf(path string) position {
	for {
		if p, ok := d.positions[path]; ok {
			return p
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return d.positions[""]
		}
		path = path[:cut]
	}
}
