package verdict

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
)

// Problem is what is wrong with a field of a plan.
type Problem struct {
	// Field is its path in the plan: thresholds[0].metric, assumptions.raceIn[1].
	Field string
	// Value is what it holds; nil if it is missing.
	Value any
	// Message says what is wrong and what to do.
	Message string
}

// Validate finds everything that is wrong with a plan that has its defaults, before there are any runs. That it has no threshold is not wrong yet.
func (p *Plan) Validate() []Problem {
	v := &validator{plan: p}
	titles := map[string]int{}
	for i := range p.Thresholds {
		t := &p.Thresholds[i]
		v.at = fmt.Sprintf("thresholds[%d]", i)
		v.threshold(t)
		title := t.Arm + ": " + t.title()
		if first, taken := titles[title]; taken {
			v.report("", title, "is thresholds[%d] again: give each a name of its own, or remove one", first)
		} else {
			titles[title] = i
		}
	}
	v.at = "assumptions"
	v.assumptions(&p.Assumptions)
	return v.problems
}

// validator gathers the problems of a plan. At is the path of what it looks at.
type validator struct {
	plan     *Plan
	at       string
	problems []Problem
}

// report adds a problem of a field of what is looked at; of the whole of it if the field is empty.
func (v *validator) report(field string, value any, format string, args ...any) {
	if field != "" {
		field = "." + field
	}
	v.problems = append(v.problems, Problem{Field: v.at + field, Value: value, Message: fmt.Sprintf(format, args...)})
}

func (v *validator) threshold(t *Threshold) {
	required(v, "arm", t.Arm, v.armNames())
	v.metric(t)
	required(v, "statistic", t.Statistic, Statistics())
	required(v, "operator", t.Operator, Operators())
	switch {
	case t.Value == nil:
		v.report("value", nil, "write the number to compare with; a 0 must be written too")
	case math.IsNaN(*t.Value) || math.IsInf(*t.Value, 0):
		v.report("value", *t.Value, "must be a finite number")
	}
	for _, key := range slices.Sorted(maps.Keys(t.When)) {
		v.when(key, t.When[key])
	}
}

// required reports a value that is missing, or none of the known ones, and tells whether it is one of them.
func required[T ~string](v *validator, field string, value T, known []T) bool {
	switch {
	case value == "":
		v.report(field, nil, "write one of %s", list(known))
	case !slices.Contains(known, value):
		v.report(field, string(value), "is none of %s", list(known))
	default:
		return true
	}
	return false
}

// list joins names for a message.
func list[T ~string](names []T) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}

func (v *validator) metric(t *Threshold) {
	if t.Metric == "" {
		v.report("metric", nil, "write the name of a metric, such as %s; docs/metrics.md has them all", results.MetricNewNodesWithRejection)
		return
	}
	m := metricOf(t.Metric)
	if m == nil {
		v.report("metric", t.Metric, "there is no such metric: did you mean %s? docs/metrics.md has them all", closest(t.Metric, metricNames()))
		return
	}
	v.key(t)
	switch {
	case !required(v, "over", t.Over, []Over{OverRuns, OverNodes, OverPods}):
	case t.Over == OverNodes && !m.OfNodes():
		v.report("over", string(t.Over), "nodes have no %s of their own: only runs have", t.Metric)
	case t.Over == OverPods && !m.OfPods():
		v.report("over", string(t.Over), "pods have no %s of their own", t.Metric)
	}
}

func (v *validator) key(t *Threshold) {
	switch t.Metric {
	case results.MetricRejectedPodsByCause:
		required(v, "key", results.Cause(t.Key), results.Causes())
	case results.MetricRejectedPodsByReason:
		if t.Key == "" {
			v.report("key", nil, "write a reason as the kubelet gives it, such as OutOfcpu")
		}
	default:
		if t.Key != "" {
			v.report("key", t.Key, "%s has no keys: only %s and %s have", t.Metric, results.MetricRejectedPodsByReason, results.MetricRejectedPodsByCause)
		}
	}
}

// when reports a selection that cannot match any of the expected runs. What their version of Kubernetes is shows only when they are made.
func (v *validator) when(key, pattern string) {
	field := "when[" + key + "]"
	var values []string
	switch label, labelled := v.plan.Labels[key]; {
	case key == whenKubernetes:
	case key == whenEngine:
		values = []string{v.plan.Engine}
	case key == whenSeed:
		for _, seed := range v.plan.Seeds {
			values = append(values, strconv.FormatUint(seed, 10))
		}
	case labelled:
		values = []string{label}
	default:
		known := append([]string{whenSeed, whenEngine, whenKubernetes}, slices.Sorted(maps.Keys(v.plan.Labels))...)
		v.report(field, pattern, "runs are not told apart by that: the keys are %s; others are labels of the experiment (metadata.labels)", list(known))
		return
	}
	if _, err := path.Match(pattern, ""); err != nil {
		v.report(field, pattern, "is not a pattern: write a value, or one with * and ? in it")
		return
	}
	if key != whenKubernetes && !slices.ContainsFunc(values, func(value string) bool { return matches(pattern, value) }) {
		v.report(field, pattern, "matches no run: the experiment has %s %s", key, list(values))
	}
}

func (v *validator) assumptions(a *Assumptions) {
	for i, arm := range *a.RaceIn {
		required(v, fmt.Sprintf("raceIn[%d]", i), arm, v.armNames())
	}
	if *a.MinNewNodes < 0 {
		v.report("minNewNodes", *a.MinNewNodes, "must not be negative")
	}
	if *a.MinPods < 0 {
		v.report("minPods", *a.MinPods, "must not be negative")
	}
}

func (v *validator) armNames() []string {
	names := make([]string, len(v.plan.Arms))
	for i, arm := range v.plan.Arms {
		names[i] = arm.Name
	}
	return names
}

// metricOf finds a metric by its name; nil if there is none.
func metricOf(name string) *results.Metric {
	for _, m := range results.Metrics() {
		if m.Name == name {
			return &m
		}
	}
	return nil
}

func metricNames() []string {
	var names []string
	for _, m := range results.Metrics() {
		names = append(names, m.Name)
	}
	return names
}

// closest is the name that differs from a mistyped one in the fewest letters.
func closest(mistyped string, names []string) string {
	distance := func(name string) int { return editDistance(strings.ToLower(mistyped), strings.ToLower(name)) }
	return slices.MinFunc(names, func(a, b string) int { return distance(a) - distance(b) })
}

// editDistance is Levenshtein's: how many letters must be put in, taken out or changed to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
