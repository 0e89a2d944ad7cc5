package experiments

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/verdict"
)

const (
	// maxCases bounds the cases of a sweep: beyond it, at half a minute a run, it would take days.
	maxCases = 1000
	// maxLabel is the length of a label, in characters, that still fits into a column of a table.
	maxLabel = 40
	// maxCaseName is the length of a case's name that every file system takes for a folder, in bytes.
	maxCaseName = 200
)

// validate reports everything that is wrong with a sweep, apart from its cases.
func (s *Sweep) validate() field.ErrorList {
	errs := nameErrors(s.Metadata.Name, field.NewPath("metadata", "name"))
	path := field.NewPath("spec")
	spec := &s.Spec
	switch {
	case spec.Base == "" && len(spec.Experiment) == 0:
		errs = append(errs, field.Required(path, "name an experiment in base, or write one inline in experiment"))
	case spec.Base != "" && len(spec.Experiment) > 0:
		errs = append(errs, field.Forbidden(path.Child("experiment"), "contradicts base: set only one of them"))
	}
	errs = append(errs, spec.Seeds.validate(path.Child("seeds"))...)
	for _, f := range slices.Sorted(maps.Keys(spec.Set)) {
		errs = append(errs, validateField(f, path.Child("set").Key(f))...)
	}
	errs = append(errs, spec.validateParameters(path.Child("parameters"))...)
	return append(errs, validateShow(spec.Show, path.Child("show"))...)
}

func (s *SweepSpec) validateParameters(path *field.Path) field.ErrorList {
	if len(s.Parameters) == 0 {
		return field.ErrorList{field.Required(path, "give at least one parameter to vary")}
	}
	var errs field.ErrorList
	cases, longest := 1, 0
	for i := range s.Parameters {
		p, path := &s.Parameters[i], path.Index(i)
		if slices.ContainsFunc(s.Parameters[:i], func(other Parameter) bool { return other.Name == p.Name }) {
			errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
		}
		errs = append(errs, p.validate(path)...)
		errs = append(errs, s.overlaps(i, path.Child("fields"))...)
		cases = min(cases*max(len(p.Values), 1), maxCases+1)
		longest += len(p.Name) + 1
		if len(p.Values) > 0 {
			longest += len(slices.MaxFunc(p.Values, func(a, b Value) int { return len(a.Label) - len(b.Label) }).Label) + 1
		}
	}
	if cases > maxCases {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("makes more than %d cases: take fewer values", maxCases)))
	}
	if longest > maxCaseName {
		errs = append(errs, field.Forbidden(path, "makes names of cases that are too long for a folder: shorten names and labels"))
	}
	return errs
}

// overlaps refuses fields of a parameter that another one before it, or an earlier one of its own, sets too.
func (s *SweepSpec) overlaps(parameter int, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, f := range s.Parameters[parameter].Fields {
		for j := range parameter + 1 {
			fields := s.Parameters[j].Fields
			if j == parameter {
				fields = fields[:i]
			}
			for _, other := range fields {
				if overlap(f, other) {
					errs = append(errs, field.Forbidden(path.Index(i), fmt.Sprintf("overlaps %s of parameter %s", other, s.Parameters[j].Name)))
				}
			}
		}
	}
	return errs
}

// overlap tells whether two fields are the same, or one is in the other.
func overlap(a, b string) bool {
	x, errX := stepsOf(a)
	y, errY := stepsOf(b)
	n := min(len(x), len(y))
	return errX == nil && errY == nil && slices.Equal(x[:n], y[:n])
}

// parameterName is what can be the key of a label, and part of the name of a folder.
var parameterName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,29}$`)

func (p *Parameter) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name := path.Child("name"); !parameterName.MatchString(p.Name) {
		errs = append(errs, field.Invalid(name, p.Name, "must be up to 30 letters, digits and hyphens, and begin with a letter"))
	} else if slices.Contains(verdict.ReservedLabels(), p.Name) {
		errs = append(errs, field.Invalid(name, p.Name, "runs are told apart by their "+p.Name+" already: call the parameter otherwise"))
	}
	if len(p.Fields) == 0 {
		errs = append(errs, field.Required(path.Child("fields"), "name the fields that take the value, such as [spec.kubelet.mirrorDelay]"))
	}
	for i, f := range p.Fields {
		errs = append(errs, validateField(f, path.Child("fields").Index(i))...)
	}
	if len(p.Values) == 0 {
		errs = append(errs, field.Required(path.Child("values"), "give the values to try"))
	}
	return append(errs, validateValues(p.Values, path.Child("values"))...)
}

// ownFields are fields of an experiment that a sweep cannot set, and why.
var ownFields = map[string]string{
	"seeds":       "every case is run with the same seeds, those of the sweep, so that cases can be compared",
	"description": "it changes nothing in a run",
	"thresholds":  "a sweep is not judged",
	"assumptions": "a sweep is not judged",
}

// fileFields are fields that name files. In a resolved experiment they are no more.
var fileFields = []string{"file", "folder", "configFile", "column"}

func validateField(f string, path *field.Path) field.ErrorList {
	steps, err := stepsOf(f)
	if err != nil {
		return field.ErrorList{field.Invalid(path, f, err.Error())}
	}
	if why, own := ownFields[steps[1]]; own {
		return field.ErrorList{field.Invalid(path, f, "cannot be set by a sweep: "+why)}
	}
	if last := steps[len(steps)-1]; slices.Contains(fileFields, last) {
		return field.ErrorList{field.Invalid(path, f, fmt.Sprintf("set what it is in instead, to a value such as {%s: …}", last))}
	}
	return nil
}

func validateValues(values []Value, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, v := range values {
		path := path.Index(i)
		if len(v.Value) == 0 {
			errs = append(errs, field.Required(path.Child("value"), "write the value; there is no way to say \"not set\""))
		}
		label := path.Child("label")
		name := strings.ToLower(strings.Map(plainOrHyphen, v.Label))
		switch {
		case v.Label == "":
			errs = append(errs, field.Required(label, "give the value a label"))
		case utf8.RuneCountInString(v.Label) > maxLabel || strings.ContainsFunc(v.Label, func(r rune) bool { return !unicode.IsPrint(r) }):
			errs = append(errs, field.Invalid(label, v.Label, fmt.Sprintf("must be at most %d characters, on one line", maxLabel)))
		case names[name]:
			errs = append(errs, field.Invalid(label, v.Label, "is taken: labels must differ in their letters, digits, dots or underscores"))
		}
		names[name] = true
	}
	return errs
}

func validateShow(show []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	known := Showable()
	for i, name := range show {
		if !slices.Contains(known, name) {
			errs = append(errs, field.Invalid(path.Index(i), name, "is no metric that can be shown: docs/metrics.md lists them; those by reason and by cause cannot"))
		}
		if slices.Contains(show[:i], name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}

// Showable lists the metrics that a sweep can show: all but those of which a run has one for each reason or cause.
func Showable() []string {
	var names []string
	for _, m := range results.Metrics() {
		if m.Name != results.MetricRejectedPodsByReason && m.Name != results.MetricRejectedPodsByCause {
			names = append(names, m.Name)
		}
	}
	return names
}
