package experiments

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Load reads the experiment file at path, with the files that it names, relative to its folder. Its error is a *BadInput.
func Load(path string) (*Experiment, error) {
	data, err := readFile(folder("."), path)
	if err != nil {
		return nil, &BadInput{[]Problem{{Message: err.Error()}}}
	}
	return Parse(path, data, folder(filepath.Dir(path)))
}

// folder reads files relative to it. Unlike os.DirFS it takes absolute paths and paths out of the folder, as a shell does.
type folder string

// Open implements fs.FS.
func (f folder) Open(name string) (fs.File, error) { return os.Open(f.path(name)) }

// Stat implements fs.StatFS.
func (f folder) Stat(name string) (fs.FileInfo, error) { return os.Stat(f.path(name)) }

func (f folder) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(string(f), name)
}

// Parse parses an experiment file. Name is what errors call it, and files is what the files that it names are read from; nil when there are none.
// The experiment is resolved. The error is a *BadInput.
func Parse(name string, data []byte, files fs.FS) (*Experiment, error) {
	if files == nil {
		files = noFiles{}
	}
	root, problem := parseYAML(name, data)
	if problem != nil {
		return nil, badInput(name, []Problem{*problem})
	}
	if apiVersion, kind := scalar(root, "apiVersion"), scalar(root, "kind"); apiVersion != APIVersion || kind != Kind {
		return nil, badInput(name, []Problem{{File: name, Line: root.Line,
			Message: "is not an experiment: it must begin with apiVersion: " + APIVersion + " and kind: " + Kind}})
	}
	d := newDecoder(name, files)
	var e Experiment
	d.decode(name, root, reflect.ValueOf(&e).Elem(), nil)
	e.setDefaults()
	d.addErrors(e.validate())
	if len(d.problems) > 0 {
		return nil, badInput(name, d.problems)
	}
	return &e, nil
}

// noFiles has no files.
type noFiles struct{}

// Open implements fs.FS.
func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// addErrors adds what validation found, except where decoding has failed at the same field, within it or around it: that is the consequence.
func (d *decoder) addErrors(errs field.ErrorList) {
	decoding := d.problems
	for _, err := range errs {
		if !touches(decoding, err.Field) {
			at := d.positionOf(err.Field)
			d.problems = append(d.problems, Problem{at.file, at.line, err.Field, err.ErrorBody()})
		}
	}
}

func touches(problems []Problem, path string) bool {
	for _, p := range problems {
		if within(p.Field, path) || within(path, p.Field) {
			return true
		}
	}
	return false
}

// within tells whether a field is another, or in it.
func within(field, other string) bool {
	rest, ok := strings.CutPrefix(field, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
