package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mirrorgap/mirrorgap/results/compare"
)

// TestCompare: what a person reads, and the exit code.
func TestCompare(t *testing.T) {
	dir := gateFolder(t)
	other := filepath.Join(dir, "other", "ungated", "seed-1", "trace.jsonl")
	copyFile(t, "../../results/testdata/ungated.jsonl", other)
	data, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte(strings.Replace(string(data), "by-hand", "by-foot", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args string
		code int
	}{
		"fields":        {"compare results strict", 0},
		"interrupted":   {"compare results interrupted", 3},
		"time-limit":    {"compare results time-limit", 0},
		"arm-missing":   {"compare results cut-short", 0},
		"no-experiment": {"compare results recorded", 0},
		"other":         {"compare results other", 2},
		"empty":         {"compare results empty", 2},
		"broken":        {"compare broken results", 2},
		"missing":       {"compare results nowhere", 2},
		"one":           {"compare results", 2},
		"format":        {"compare results strict -o csv", 2},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := mirrorgap(t, dir, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			golden(t, filepath.Join("testdata/compare", name+".golden"),
				fmt.Sprintf("$ mirrorgap %s\n%s--- stderr\n%s--- exit code %d\n", c.args, stdout, stderr, code))
		})
	}
}

// TestCompareAsData: JSON and YAML say the same.
func TestCompareAsData(t *testing.T) {
	dir := gateFolder(t)
	var fromJSON, fromYAML compare.Result
	stdout, stderr, _ := mirrorgap(t, dir, "compare", "results", "time-limit", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &fromJSON); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	stdout, _, _ = mirrorgap(t, dir, "compare", "results", "time-limit", "-o", "yaml")
	if err := yaml.Unmarshal([]byte(stdout), &fromYAML); err != nil {
		t.Fatal(err)
	}
	a, errA := json.Marshal(fromJSON)
	b, errB := json.Marshal(fromYAML)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("JSON and YAML differ:\n%s\n%s", a, b)
	}
	if fromJSON.Version != compare.Version || len(fromJSON.Arms) != 2 || fromJSON.Arms[1].RunsA != 1 {
		t.Errorf("got %+v", fromJSON)
	}
}
