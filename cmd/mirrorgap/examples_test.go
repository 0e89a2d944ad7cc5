package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mirrorgap/mirrorgap/results/verdict"
)

// commandLine is a call of mirrorgap in a script.
var commandLine = regexp.MustCompile(`(?m)^\s*(?:- |run: |\$ )?(?:\./|bin/)?mirrorgap ([a-z][^#\n]*)`)

// TestCIExamples: the examples are YAML, keep the files of the verdict, and call mirrorgap as it is.
func TestCIExamples(t *testing.T) {
	files, err := filepath.Glob("../../docs/examples/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %q (%v)", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var parsed map[string]any
		if err := yaml.Unmarshal(data, &parsed); err != nil || len(parsed) == 0 {
			t.Errorf("%s: %v", file, err)
		}
		for _, kept := range []string{verdict.File, verdict.JUnitFile} {
			if !strings.Contains(string(data), "results/"+kept) {
				t.Errorf("%s does not keep %s", file, kept)
			}
		}
		checkCommandLines(t, file, string(data))
	}
	data, err := os.ReadFile("../../docs/gate.md")
	if err != nil {
		t.Fatal(err)
	}
	checkCommandLines(t, "gate.md", string(data))
}

// checkCommandLines fails the test if a text calls a command, or gives one a flag, that does not exist.
func checkCommandLines(t *testing.T, file, text string) {
	t.Helper()
	lines := commandLine.FindAllStringSubmatch(text, -1)
	if len(lines) == 0 {
		t.Errorf("%s does not call mirrorgap", file)
	}
	for _, line := range lines {
		cmd, arguments, err := newCommand().Find(strings.Fields(line[1]))
		if err != nil {
			t.Errorf("%s: %s: %v", file, line[0], err)
			continue
		}
		if err := cmd.ParseFlags(arguments); err != nil {
			t.Errorf("%s: %s: %v", file, line[0], err)
		}
		if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %s: %v", file, line[0], err)
		}
	}
}
