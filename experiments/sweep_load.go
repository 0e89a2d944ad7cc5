package experiments

import (
	"bytes"
	"fmt"
	"io/fs"
	gopath "path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Source is an experiment file as it was written.
type Source struct {
	// Name is what errors call it, Data what it holds, and Files what the files that it names are read from; nil when there are none.
	Name  string
	Data  []byte
	Files fs.FS
}

// Library finds experiments by name; ok is false for an unknown one. A nil one has none.
type Library func(name string) (source Source, ok bool)

// LoadSweep reads the sweep file at path, with the files that it names, relative to its folder. Its error is a *BadInput.
func LoadSweep(path string, library Library) (*Sweep, error) {
	data, err := readFile(folder("."), path)
	if err != nil {
		return nil, &BadInput{[]Problem{{Message: err.Error()}}}
	}
	return ParseSweep(Source{path, data, folder(filepath.Dir(path))}, library)
}

// ParseSweep parses a sweep file and makes its cases. The sweep is resolved: written as YAML it loads to the same sweep, from any folder. The error is
// a *BadInput.
func ParseSweep(source Source, library Library) (*Sweep, error) {
	if source.Files == nil {
		source.Files = noFiles{}
	}
	l := &sweepLoader{sweep: source, library: library}
	s, problems := l.load()
	if len(problems) > 0 {
		return nil, badInput(source.Name, problems)
	}
	return s, nil
}

// sweepLoader loads a sweep.
type sweepLoader struct {
	sweep   Source
	library Library
	// root is the sweep's, base that of the experiment that it varies, which is in the file of that source.
	root, base *yaml.Node
	baseSource Source
}

func (l *sweepLoader) load() (*Sweep, []Problem) {
	var problem *Problem
	if l.root, problem = parseYAML(l.sweep.Name, l.sweep.Data); problem == nil {
		problem = checkHead(l.sweep.Name, l.root, SweepKind)
	}
	if problem != nil {
		return nil, []Problem{*problem}
	}
	s := new(Sweep)
	d := newDecoder(l.sweep.Name, l.sweep.Files)
	d.decode(l.sweep.Name, l.root, reflect.ValueOf(s).Elem(), nil)
	if len(s.Spec.Show) == 0 {
		s.Spec.Show = DefaultShow()
	}
	d.addErrors(s.validate())
	if len(d.problems) > 0 {
		return nil, d.problems
	}
	if problems := l.findBase(s, d); len(problems) > 0 {
		return nil, problems
	}
	if problems := l.makeCases(s); len(problems) > 0 {
		return nil, problems
	}
	return s, nil
}

// findBase finds the experiment that is varied.
func (l *sweepLoader) findBase(s *Sweep, d *decoder) []Problem {
	if s.Spec.Base == "" {
		l.baseSource, l.base = l.sweep, get(get(l.root, "spec"), "experiment")
		return l.checkInline(d)
	}
	node := get(get(l.root, "spec"), "base")
	refuse := func(err error) []Problem {
		return []Problem{{File: l.sweep.Name, Line: node.Line, Field: "spec.base", Message: err.Error()}}
	}
	var err error
	if l.baseSource, err = l.readBase(s.Spec.Base); err != nil {
		return refuse(err)
	}
	root, problem := parseYAML(l.baseSource.Name, l.baseSource.Data)
	if problem == nil {
		problem = checkHead(l.baseSource.Name, root, Kind)
	}
	if problem != nil {
		return []Problem{*problem}
	}
	l.base = root
	return nil
}

// readBase reads a base: one of the library, or a file.
func (l *sweepLoader) readBase(name string) (Source, error) {
	if l.library != nil {
		if source, ok := l.library(name); ok {
			return source, nil
		}
	}
	if !strings.ContainsAny(name, "./\\") {
		return Source{}, fmt.Errorf("there is no experiment %q in the library; a file is named with its folder or ending, ./%s say", name, name)
	}
	data, err := readFile(l.sweep.Files, name)
	if err != nil {
		return Source{}, err
	}
	return Source{display(l.sweep.Name, name), data, subfolder{l.sweep.Files, gopath.Dir(filepath.ToSlash(name))}}, nil
}

// subfolder reads files relative to a folder of others. Unlike fs.Sub it takes what the others take.
type subfolder struct {
	files fs.FS
	path  string
}

// Open implements fs.FS.
func (s subfolder) Open(name string) (fs.File, error) { return s.files.Open(s.full(name)) }

// Stat implements fs.StatFS.
func (s subfolder) Stat(name string) (fs.FileInfo, error) { return fs.Stat(s.files, s.full(name)) }

func (s subfolder) full(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return gopath.Join(s.path, name)
}

// checkInline refuses what an inline experiment has besides its spec, and what would judge it.
func (l *sweepLoader) checkInline(d *decoder) []Problem {
	path := field.NewPath("spec", "experiment")
	if l.base.Kind != yaml.MappingNode {
		d.report(l.sweep.Name, l.base, path, "must be a map with the spec of an experiment, not %s", kindName(l.base))
		return d.problems
	}
	for i := 0; i+1 < len(l.base.Content); i += 2 {
		if key := l.base.Content[i]; key.Value != "spec" {
			d.report(l.sweep.Name, key, path.Child(key.Value), "unknown field: an experiment in a sweep is its spec, and is called as the sweep is")
		}
	}
	spec := get(l.base, "spec")
	if spec == nil {
		d.report(l.sweep.Name, l.base, path.Child("spec"), "is missing: write what stands under spec in an experiment file")
		return d.problems
	}
	for _, name := range judging {
		if n := get(spec, name); n != nil {
			d.report(l.sweep.Name, n, path.Child("spec", name), "a sweep is not judged: leave it out; mirrorgap gate --thresholds judges the folder of a case")
		}
	}
	return d.problems
}

// judging are the fields of an experiment's spec that it is judged by.
var judging = []string{"thresholds", "assumptions"}

// makeCases makes the cases, and resolves the sweep by what has been read for them.
func (l *sweepLoader) makeCases(s *Sweep) []Problem {
	var found caseProblems
	var first *yaml.Node
	for labels, values := range combinations(s.Spec.Parameters) {
		c := Case{Labels: labels, Name: caseName(s.Spec.Parameters, labels)}
		root, problems := l.makeCase(s, &c, values)
		if len(problems) == 0 {
			problems = s.keepValues(root, values)
		}
		s.Cases = append(s.Cases, c)
		if len(problems) == 0 {
			problems = l.compareArms(s.Cases[0].Experiment, c.Experiment)
		}
		found.add(c.Name, problems)
		if first == nil {
			first = root
		}
	}
	if problems := found.merged(len(s.Cases)); len(problems) > 0 {
		return problems
	}
	return s.keepExperiment(first)
}

// combinations goes through the combinations of the parameters' values: their labels and their indices.
func combinations(parameters []Parameter) func(yield func([]string, []int) bool) {
	return func(yield func([]string, []int) bool) {
		values := make([]int, len(parameters))
		for {
			labels := make([]string, len(parameters))
			for i, v := range values {
				labels[i] = parameters[i].Values[v].Label
			}
			if !yield(labels, slices.Clone(values)) {
				return
			}
			last := len(values) - 1
			for last >= 0 && values[last] == len(parameters[last].Values)-1 {
				values[last] = 0
				last--
			}
			if last < 0 {
				return
			}
			values[last]++
		}
	}
}

// makeCase makes the experiment of a case. The root node that it returns has everything inline that the experiment names.
func (l *sweepLoader) makeCase(s *Sweep, c *Case, values []int) (*yaml.Node, []Problem) {
	d := newDecoder(l.baseSource.Name, l.baseSource.Files)
	d.folders[l.sweep.Name] = l.sweep.Files
	p := &patcher{decoder: d, sweep: l.sweep.Name}
	spec := get(l.root, "spec")
	root := p.experiment(l.base, spec, s, c)
	if own := get(spec, "set"); own != nil {
		for i := 0; i+1 < len(own.Content); i += 2 {
			p.set(root, own.Content[i], own.Content[i+1], field.NewPath("spec", "set").Key(own.Content[i].Value))
		}
	}
	for i, v := range values {
		parameter := resolve(get(spec, "parameters").Content[i])
		value := get(resolve(get(parameter, "values").Content[v]), "value")
		for j, fieldNode := range get(parameter, "fields").Content {
			p.set(root, resolve(fieldNode), value, field.NewPath("spec", "parameters").Index(i).Child("fields").Index(j))
		}
	}
	if len(d.problems) > 0 {
		return nil, d.problems
	}
	c.Experiment = d.experiment(root)
	return root, d.problems
}

// compareArms refuses a case with other arms than the first: the two could not stand in one table.
func (l *sweepLoader) compareArms(first, e *Experiment) []Problem {
	if first == nil || slices.EqualFunc(first.Spec.Arms, e.Spec.Arms, func(a, b Arm) bool { return a.Name == b.Name }) {
		return nil
	}
	return []Problem{{File: l.sweep.Name, Line: get(get(l.root, "spec"), "parameters").Line, Field: "spec.parameters",
		Message: "changes the names of the arms: all cases must have the same"}}
}

// keepValues sets the parameters' values to what has been read for a case: what they named by file is inline.
func (s *Sweep) keepValues(root *yaml.Node, values []int) []Problem {
	for i := range s.Spec.Parameters {
		parameter := &s.Spec.Parameters[i]
		value, err := toJSON(lookup(root, parameter.Fields[0]))
		if err != nil {
			return []Problem{{Field: parameter.Fields[0], Message: err.Error()}}
		}
		parameter.Values[values[i]].Value = value
	}
	return nil
}

// keepExperiment sets the experiment to what has been read for the first case. That it has the values of this case makes no difference: every case
// sets its own.
func (s *Sweep) keepExperiment(root *yaml.Node) []Problem {
	spec := without(without(get(root, "spec"), "seeds"), "description")
	data, err := toJSON(spec)
	if err != nil {
		return []Problem{{Field: "spec", Message: err.Error()}}
	}
	s.Spec.Base, s.Spec.Set = "", nil
	s.Spec.Seeds = s.Cases[0].Experiment.Spec.Seeds
	s.Spec.Experiment = slices.Concat([]byte(`{"spec":`), data, []byte("}"))
	return nil
}

// YAML writes the sweep, such that loading it gives the same sweep.
func (s *Sweep) YAML() ([]byte, error) {
	data, err := toYAML(s)
	if err != nil {
		return nil, fmt.Errorf("write sweep %s: %w", s.Metadata.Name, err)
	}
	return data, nil
}

// labelValues makes of each bare value of a parameter one with a label.
func (d *decoder) labelValues(file string, n *yaml.Node, path *field.Path) {
	if n.Kind != yaml.SequenceNode {
		return
	}
	for i, item := range n.Content {
		item = resolve(item)
		if get(item, "label") != nil {
			continue
		}
		label := ownLabel(item)
		if label == "" {
			d.report(file, item, path.Index(i), "give it a label: {label: …, value: …}")
		}
		labelled := &yaml.Node{Kind: yaml.MappingNode, Line: item.Line}
		set(labelled, "label", label, item.Line)
		put(labelled, "value", item, item.Line)
		n.Content[i] = labelled
	}
}

// ownLabel is the label of a value that has not been given one: a scalar itself, or that of a map of one field. Empty if it is neither.
func ownLabel(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		n = resolve(n.Content[1])
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		return ""
	}
	return n.Value
}

// caseProblems gathers what is wrong with cases.
type caseProblems struct {
	problems []Problem
	// cases are the names of those that have a problem.
	cases map[Problem][]string
}

func (f *caseProblems) add(name string, problems []Problem) {
	if f.cases == nil {
		f.cases = map[Problem][]string{}
	}
	for _, p := range problems {
		names, known := f.cases[p]
		if !known {
			f.problems = append(f.problems, p)
		}
		if !slices.Contains(names, name) {
			f.cases[p] = append(names, name)
		}
	}
}

// merged lists each problem once, and says with which of all cases it is.
func (f *caseProblems) merged(all int) []Problem {
	merged := slices.Clone(f.problems)
	for i, p := range f.problems {
		switch names := f.cases[p]; {
		case len(names) == all:
		case len(names) == 1:
			merged[i].Message += fmt.Sprintf(" (case %s)", names[0])
		default:
			merged[i].Message += fmt.Sprintf(" (in %d of %d cases, the first is %s)", len(names), all, names[0])
		}
	}
	return merged
}

// Difference says where the text of a file is not the other one; empty if they are equal.
func Difference(file string, text, other []byte) string {
	if bytes.Equal(text, other) {
		return ""
	}
	a, b := strings.Split(string(text), "\n"), strings.Split(string(other), "\n")
	line := 0
	for line < min(len(a), len(b))-1 && a[line] == b[line] {
		line++
	}
	return fmt.Sprintf("%s:%d: has %q, and not %q", file, line+1, strings.TrimSpace(a[line]), strings.TrimSpace(b[line]))
}
