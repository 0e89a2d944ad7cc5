package verdict

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
)

// JUnitFile is the name of the file in JUnit's format, File that of the verdict, in a results folder.
const (
	File      = "verdict.json"
	JUnitFile = "junit.xml"
)

// The elements of JUnit's XML as CI systems read it (Jenkins' xunit schema, with properties of test cases as pytest writes them). Ginkgo's types for
// them would link a test framework and go/types into the program.
type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		junitCounts
		Suites []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name string `xml:"name,attr"`
		junitCounts
		// Time is how long the runs took, in seconds.
		Time       float64         `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitCounts struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name       string          `xml:"name,attr"`
		Classname  string          `xml:"classname,attr"`
		Time       float64         `xml:"time,attr"` // some readers want it; judging takes no time
		Properties []junitProperty `xml:"properties>property,omitempty"`
		Failure    *junitResult    `xml:"failure"`
		Error      *junitResult    `xml:"error"`
		Skipped    *junitResult    `xml:"skipped"`
	}
	junitResult struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a verdict in the format of JUnit: one test suite, one test case an assumption and a threshold. A threshold that is not met is a
// failure; what is inconclusive, an assumption that does not hold included, is an error; an assumption that is not made is skipped. The properties of
// the suite say what was run, those of a case what was found. Summary is the one that was judged.
func WriteJUnit(w io.Writer, v *Verdict, summary *results.Summary) error {
	suite := junitSuite{Name: v.Experiment, Time: wall(summary), Properties: runProperties(v, summary)}
	for i := range v.Assumptions {
		suite.add(v.Assumptions[i].junit(v.Experiment + ".assumptions"))
	}
	for i := range v.Thresholds {
		suite.add(v.Thresholds[i].junit(v.Experiment + "." + v.Thresholds[i].Arm))
	}
	out := xml.NewEncoder(w)
	out.Indent("", "  ")
	_, err := io.WriteString(w, xml.Header)
	if err == nil {
		err = out.Encode(junitSuites{Name: "mirrorgap", junitCounts: suite.junitCounts, Suites: []junitSuite{suite}})
	}
	if err == nil {
		_, err = io.WriteString(w, "\n")
	}
	if err != nil {
		return fmt.Errorf("write JUnit file: %w", err)
	}
	return nil
}

func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func (c *Check) junit(class string) junitCase {
	test := junitCase{Name: c.Name, Classname: class, Properties: c.properties()}
	switch {
	case c.Waived != "":
		test.Skipped = &junitResult{Message: c.Waived}
	case c.Outcome == Failed:
		test.Failure = &junitResult{c.Message, "threshold", c.details()}
	case c.Outcome != Passed:
		test.Error = &junitResult{c.Message, Inconclusive.String(), c.details()}
	}
	return test
}

// details are what the message does not say.
func (c *Check) details() string {
	lines := c.Notes
	if c.Outcome == Failed && c.Threshold.Why != "" {
		lines = append(slices.Clone(lines), c.Threshold.Why)
	}
	return strings.Join(lines, "\n")
}

// properties are the figures of a check.
func (c *Check) properties() []junitProperty {
	p := []junitProperty{{"got", c.Got}, {"want", c.Want}}
	if t := c.Threshold; t != nil {
		p = append(p, junitProperty{"metric", t.Metric}, junitProperty{"key", t.Key}, junitProperty{"statistic", string(t.Statistic)},
			junitProperty{"over", string(t.Over)}, junitProperty{"when", t.selection()}, junitProperty{"runs", strconv.Itoa(c.Runs)},
			junitProperty{"n", strconv.Itoa(c.N)}, junitProperty{"unit", c.Unit})
	}
	if c.Value != nil {
		p = append(p, junitProperty{"value", strconv.FormatFloat(*c.Value, 'g', -1, 64)}, junitProperty{"lowerBound", strconv.FormatBool(c.LowerBound)})
	}
	for _, r := range c.Rates {
		p = append(p, junitProperty{"upper bound, 0 of " + strconv.Itoa(r.N) + " " + r.Of, strconv.FormatFloat(r.Interval.High, 'g', 3, 64)})
	}
	if p = slices.DeleteFunc(p, func(p junitProperty) bool { return p.Value == "" }); len(p) == 0 {
		return nil // of an empty list an empty element would be left
	}
	return p
}

// wall is how long the runs took together, in seconds.
func wall(s *results.Summary) float64 {
	sum := 0.0
	for i := range s.Arms {
		if f := s.Arms[i].Figure(results.MetricWall, ""); f != nil {
			for _, o := range f.Runs {
				if o != nil {
					sum += o.Value
				}
			}
		}
	}
	return sum
}

// runProperties say what was run: versions, engine, machine and labels as the traces' headers have them, and the seeds of each arm.
func runProperties(v *Verdict, s *results.Summary) []junitProperty {
	found := map[string][]string{}
	note := func(name, value string) {
		if value != "" && !slices.Contains(found[name], value) {
			found[name] = append(found[name], value)
		}
	}
	for i := range s.Arms {
		arm := &s.Arms[i]
		for _, r := range arm.Runs {
			note("seeds."+arm.Name, strconv.FormatUint(r.Seed, 10))
			note("engine", r.Engine)
			note("machine", r.Machine.String())
			for name, version := range r.Versions {
				note("version."+name, version)
			}
			for name, value := range r.Labels {
				note("label."+name, value)
			}
		}
	}
	p := []junitProperty{{"verdict", v.Outcome.String()}}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p = append(p, junitProperty{name, strings.Join(found[name], ", ")})
	}
	return p
}
