package verdict

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/stats"
)

// The keys of Threshold.When that every run has. All others are labels.
const (
	whenSeed       = "seed"
	whenEngine     = "engine"
	whenKubernetes = "kubernetes"
)

// ReservedLabels are the keys by which a threshold selects runs whatever their labels are: an experiment cannot have labels of these names.
func ReservedLabels() []string { return []string{whenSeed, whenEngine, whenKubernetes} }

// title is what a threshold is called: its name, or what it says.
func (t *Threshold) title() string {
	if t.Name != "" {
		return t.Name
	}
	value := "?"
	if t.Value != nil {
		value = readable(*t.Value, *t.Value)
	}
	return fmt.Sprintf("%s, %s over %s %s %s", t.measure(), t.Statistic, t.Over, t.Operator, value)
}

// measure is the metric with its key, and which runs it is taken of.
func (t *Threshold) measure() string {
	text := t.Metric
	if t.Key != "" {
		text += "[" + t.Key + "]"
	}
	if len(t.When) > 0 {
		text += " when " + t.selection()
	}
	return text
}

func (t *Threshold) selection() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(t.When)) {
		parts = append(parts, key+"="+t.When[key])
	}
	return strings.Join(parts, ",")
}

// selects tells whether the run is one that the threshold is about.
func (t *Threshold) selects(run *results.RunInfo) bool {
	for key, pattern := range t.When {
		if value, ok := attribute(run, key); !ok || !matches(pattern, value) {
			return false
		}
	}
	return true
}

func attribute(run *results.RunInfo, key string) (value string, ok bool) {
	switch key {
	case whenSeed:
		return strconv.FormatUint(run.Seed, 10), true
	case whenEngine:
		return run.Engine, true
	case whenKubernetes:
		value, ok = run.Versions[whenKubernetes]
		return value, ok
	}
	value, ok = run.Labels[key]
	return value, ok
}

func matches(pattern, value string) bool {
	ok, err := path.Match(pattern, value)
	return ok && err == nil
}

// threshold judges the threshold of that index. It passes only on sound assumptions. The error is that it selects no run.
func (j *judge) threshold(i int, sound bool) (*Check, error) {
	t := &j.plan.Thresholds[i]
	c := &Check{
		Name: oneLine(t.title()), Arm: t.Arm, Threshold: t, Field: fmt.Sprintf("spec.thresholds[%d]", i), Unit: metricOf(t.Metric).Unit,
		Want: fmt.Sprintf("%s %s", t.Operator, readable(*t.Value, *t.Value)),
	}
	sample, err := j.sample(t)
	if err != nil {
		return nil, fmt.Errorf("%s.when: %w", c.Field, err)
	}
	c.Runs, c.N = len(sample.runs), len(sample.observations)
	if problem := sample.problem(); problem != "" {
		c.Got = "no value (" + problem + ")"
	} else {
		c.measured(sample)
	}
	switch {
	case c.Outcome == Passed && sound:
		c.Rates = sample.rates()
		c.Notes = append(c.Notes, ratesText(c.Rates)...)
	case c.Outcome == Passed:
		c.Outcome = Inconclusive
		c.Notes = append(c.Notes, "met, but an assumption does not hold")
	}
	c.Message = oneLine(fmt.Sprintf("%s: %s: got %s, want %s", t.Arm, sample.subject(), c.Got, c.Want))
	return c, nil
}

// measured judges what was measured.
func (c *Check) measured(sample *sample) {
	t := c.Threshold
	s := t.Statistic.of(sample.observations)
	c.Outcome = t.Operator.outcome(s, *t.Value)
	c.Value, c.LowerBound = &s.low, !s.exact()
	c.Got = readable(s.low, *t.Value) + " " + plural(c.Unit, s.low)
	if c.LowerBound {
		c.Got = "at least " + c.Got
	}
	c.Notes = sample.notes()
}

// sample is what a threshold's statistic is taken of.
type sample struct {
	threshold *Threshold
	arm       *results.Arm
	// runs are the indices of the selected runs in the arm; unmeasured are those of them without an observation.
	runs, unmeasured []int
	observations     []*results.Observation
	// absent counts the nodes or pods of the selected runs that have no value.
	absent int
}

// sample gathers the observations of the runs that a threshold selects. It is an error if there is none though every expected run is there.
func (j *judge) sample(t *Threshold) (*sample, error) {
	s := &sample{threshold: t, arm: j.arm(t.Arm)}
	if s.arm == nil {
		return s, nil
	}
	for i := range s.arm.Runs {
		if t.selects(&s.arm.Runs[i]) {
			s.add(i)
		}
	}
	if len(s.runs) == 0 && len(j.missing(t.Arm)) == 0 {
		return nil, fmt.Errorf("%s matches no run of arm %s, which has %s", t.selection(), t.Arm, count(len(s.arm.Runs), "run"))
	}
	return s, nil
}

func (s *sample) add(run int) {
	s.runs = append(s.runs, run)
	before := len(s.observations)
	for _, o := range s.of(run) {
		if o == nil {
			s.absent++
			continue
		}
		s.observations = append(s.observations, o)
	}
	if len(s.observations) == before {
		s.unmeasured = append(s.unmeasured, run)
	}
}

// of are the observations of one run. Of a reason or a cause that no run of the experiment has there are no figures: each run has 0 of it.
func (s *sample) of(run int) []*results.Observation {
	t := s.threshold
	f := s.arm.Figure(t.Metric, t.Key)
	switch {
	case f == nil && t.Key != "":
		return []*results.Observation{{}}
	case f == nil:
		return nil
	case t.Over == OverNodes:
		return valuesOf(f.Nodes, run)
	case t.Over == OverPods:
		return valuesOf(f.Pods, run)
	}
	return f.Runs[run : run+1]
}

// valuesOf are the values of a run; none in a summary that was read from its JSON form, which does not have them.
func valuesOf(runs [][]*results.Observation, run int) []*results.Observation {
	if run >= len(runs) {
		return nil
	}
	return runs[run]
}

// problem says why nothing can be said; empty if something can.
func (s *sample) problem() string {
	switch {
	case s.arm == nil:
		return "no run of this arm"
	case len(s.runs) == 0:
		return "no such run, but expected ones are missing"
	case len(s.unmeasured) > 0:
		return fmt.Sprintf("not measured in %d of %s", len(s.unmeasured), count(len(s.runs), "run"))
	}
	return ""
}

// subject is what the threshold is about: "newNodesWithRejection, max over 3 runs".
func (s *sample) subject() string {
	t := s.threshold
	over := count(len(s.runs), "run")
	if t.Over != OverRuns {
		over = count(len(s.observations), thing(t.Over)) + " of " + over
	}
	text := fmt.Sprintf("%s, %s over %s", t.measure(), t.Statistic, over)
	if t.Name != "" {
		text = t.title() + " (" + text + ")"
	}
	return text
}

// thing is one of those that a statistic is taken over.
func thing(o Over) string { return strings.TrimSuffix(string(o), "s") }

// notes say what the figure rests on.
func (s *sample) notes() []string {
	var notes []string
	censored := 0
	for _, o := range s.observations {
		if o.Censored {
			censored++
		}
	}
	if censored > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d values had not ended, and are lower bounds", censored, len(s.observations)))
	}
	if s.threshold.Over != OverRuns && s.absent > 0 {
		notes = append(notes, "not measured on "+count(s.absent, "other "+thing(s.threshold.Over)))
	}
	if metricOf(s.threshold.Metric).MachineDependent {
		notes = append(notes, "depends on the speed of the machine")
	}
	return notes
}

// population is of what a metric counts some: the nodes that one metric counts, without those of another.
type population struct{ name, metric, without string }

var populations = map[string]population{
	// A node that no pod could be bound to is no trial.
	results.MetricNewNodesWithRejection:     {"schedulable new nodes", results.MetricNewNodes, results.MetricNeverSchedulable},
	results.MetricNeverSchedulable:          {"new nodes", results.MetricNewNodes, ""},
	results.MetricHoldOutOfOrder:            {"new nodes", results.MetricNewNodes, ""},
	results.MetricInitialNodesWithRejection: {"initial nodes", results.MetricInitialNodes, ""},
}

// rates bound, where nothing was counted on any node, how often it may happen nevertheless.
func (s *sample) rates() []Rate {
	for _, o := range s.observations {
		if o.Value != 0 || o.Censored {
			return nil
		}
	}
	of, observed := "new nodes", len(s.observations)
	if s.threshold.Over != OverNodes {
		population, ok := populations[s.threshold.Metric]
		if !ok {
			return nil
		}
		of, observed = population.name, s.total(population.metric)-s.total(population.without)
	} else if metricOf(s.threshold.Metric).Unit != "pods" {
		return nil
	}
	if observed <= 0 {
		return nil
	}
	return []Rate{{of, stats.Proportion(0, observed)}, {"runs", stats.Proportion(0, len(s.runs))}}
}

// total sums a count over the selected runs.
func (s *sample) total(metric string) int {
	f := s.arm.Figure(metric, "")
	if f == nil {
		return 0
	}
	sum := 0
	for _, run := range s.runs {
		if o := f.Runs[run]; o != nil {
			sum += int(o.Value)
		}
	}
	return sum
}

// ratesText writes rates for people: nodes of one run share a scheduler, so that what their number says holds for other nodes only if they were
// independent, and what the number of runs says holds for other runs.
func ratesText(rates []Rate) []string {
	if len(rates) == 0 {
		return nil
	}
	var parts []string
	for _, r := range rates {
		parts = append(parts, fmt.Sprintf("0 of %d %s: at most %s %%", r.N, singular(r.Of, r.N), strconv.FormatFloat(100*r.Interval.High, 'g', 2, 64)))
	}
	return []string{fmt.Sprintf("%s, at %g %% confidence if they are independent", strings.Join(parts, ", "), 100*stats.Level)}
}

// readable writes a number in as few digits as stand on its side of the limit: at least four, and whole numbers in full.
func readable(x, limit float64) string {
	for digits := 4; digits < 17 && x != math.Trunc(x); digits++ {
		short, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
		if err == nil && (short < limit) == (x < limit) && (short > limit) == (x > limit) {
			x = short
			break
		}
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// oneLine is text from a file or a trace as it can stand in a line, without what a terminal would obey.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// plural is a unit as it follows a number.
func plural(unit string, x float64) string {
	if x == 1 {
		return strings.TrimSuffix(unit, "s")
	}
	return unit
}

func singular(name string, n int) string {
	if n == 1 {
		return strings.TrimSuffix(name, "s")
	}
	return name
}

// count is a number of things: "1 run", "3 runs".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
