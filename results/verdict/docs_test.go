package verdict

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestDocumented holds docs/experiment-file.md to the statistics, operators and defaults, and docs/gate.md to what Judge says.
func TestDocumented(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	reference, gate := read("../../docs/experiment-file.md"), read("../../docs/gate.md")
	for _, s := range Statistics() {
		if !strings.Contains(reference, "`"+string(s)+"`") {
			t.Errorf("statistic %s is not in docs/experiment-file.md", s)
		}
	}
	for _, o := range Operators() {
		if !strings.Contains(reference, "`"+string(o)+"`") || !strings.Contains(gate, "`"+string(o)+"`") {
			t.Errorf("operator %s is not documented", o)
		}
	}
	s := race()
	s.Arms[gated].Figure("newNodesWithRejection", "").Runs = at(0, 2, 1)
	if message := mustJudge(t, s, plan(noRejection())).Thresholds[0].Message; !strings.Contains(gate, "\n"+message+"\n") {
		t.Errorf("docs/gate.md does not show a message as it is: %s", message)
	}
}

// TestDocumentedThresholds: the thresholds that docs/gate.md shows are right.
func TestDocumentedThresholds(t *testing.T) {
	data, err := os.ReadFile("../../docs/gate.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(data)
	if example == nil {
		t.Fatal("there is no example")
	}
	var file struct {
		Spec struct {
			Thresholds []struct {
				Name, Why, Arm, Metric, Key, Statistic, Over, Operator string
				Value                                                  *float64
				When                                                   map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(example[1], &file); err != nil {
		t.Fatal(err)
	}
	var thresholds []Threshold
	for _, e := range file.Spec.Thresholds {
		thresholds = append(thresholds, Threshold{
			Name: e.Name, Why: e.Why, Arm: e.Arm, Metric: e.Metric, Key: e.Key, Statistic: Statistic(e.Statistic), Over: Over(e.Over),
			Operator: Operator(e.Operator), Value: e.Value, When: e.When,
		})
	}
	if err := plan(thresholds...).Check(); err != nil || len(thresholds) < 3 {
		t.Errorf("%d thresholds: %v", len(thresholds), err)
	}
}
