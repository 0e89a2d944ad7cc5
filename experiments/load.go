package experiments

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
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
	root, problem := parseYAML(name, data)
	if problem != nil {
		return nil, badInput(name, []Problem{*problem})
	}
	if problem := checkHead(name, root, Kind); problem != nil {
		return nil, badInput(name, []Problem{*problem})
	}
	d := newDecoder(name, files)
	e := d.experiment(root)
	if len(d.problems) > 0 {
		return nil, badInput(name, d.problems)
	}
	return e, nil
}

// KindOf is the kind that the file at path says it is of, Kind or SweepKind; empty if it says nothing, or cannot be read.
func KindOf(path string) string {
	data, err := readFile(folder("."), path)
	if err != nil {
		return ""
	}
	root, problem := parseYAML(path, data)
	if problem != nil || scalar(root, "apiVersion") != APIVersion {
		return ""
	}
	return scalar(root, "kind")
}

// kinds are the kinds of files, as errors speak of them, and what runs them.
var kinds = map[string]struct{ article, command string }{
	Kind:      {"an experiment", "mirrorgap run"},
	SweepKind: {"a sweep", "mirrorgap sweep"},
}

// checkHead says what is wrong with the head of a file that is to be of that kind; nil if nothing is.
func checkHead(name string, root *yaml.Node, kind string) *Problem {
	apiVersion, given := scalar(root, "apiVersion"), scalar(root, "kind")
	if apiVersion == APIVersion && given == kind {
		return nil
	}
	p := &Problem{File: name, Line: root.Line}
	if other, known := kinds[given]; known && given != kind && apiVersion == APIVersion {
		p.Message = fmt.Sprintf("is %s, not %s: %s takes it", other.article, kinds[kind].article, other.command)
	} else {
		p.Message = fmt.Sprintf("is not %s: it must begin with apiVersion: %s and kind: %s", kinds[kind].article, APIVersion, kind)
	}
	return p
}

// experiment makes an experiment of the root node of a file; what is wrong with it is added to the problems.
func (d *decoder) experiment(root *yaml.Node) *Experiment {
	var e Experiment
	d.decode(d.file, root, reflect.ValueOf(&e).Elem(), nil)
	e.setDefaults()
	d.addErrors(e.validate())
	d.resolveArms(root, &e)
	return &e
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
