package results

import (
	"os"
	"strings"
	"testing"
)

// TestEveryMetricIsDefined: a figure that docs/metrics.md does not define means nothing.
func TestEveryMetricIsDefined(t *testing.T) {
	data, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Metrics() {
		if !strings.Contains(string(data), "`"+m.Name+"`") {
			t.Errorf("docs/metrics.md does not define %s", m.Name)
		}
	}
	for _, cause := range Causes() {
		if !strings.Contains(string(data), "`"+string(cause)+"`") {
			t.Errorf("docs/metrics.md does not define the cause %s", cause)
		}
	}
}

// TestColumnsOfTheRecipe: a recipe in docs/metrics.md picks columns of PodsFile by number.
func TestColumnsOfTheRecipe(t *testing.T) {
	for number, want := range map[int]string{6: "node", 18: "reason", 19: "cause"} {
		check(t, "column", podColumns[number-1].name, want)
	}
}
