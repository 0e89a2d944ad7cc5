package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
)

var update = flag.Bool("update", false, "write the golden files anew")

// beMirrorgap, set in its environment, makes the test binary mirrorgap.
const beMirrorgap = "MIRRORGAP_TEST_MAIN"

// TestMain makes the test binary a multi-call binary as mirrorgap is one: the tests start it again as mirrorgap, which starts it as its servers.
func TestMain(m *testing.M) {
	live.DispatchTool(os.Args)
	if os.Getenv(beMirrorgap) != "" {
		main()
	}
	flag.Parse()
	os.Exit(m.Run())
}

// executable is the test binary.
func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environment is that of every program that a test starts: nothing of the user's, and temporary files in a folder of the test.
func environment(home, temp string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + temp, beMirrorgap + "=1"}
}

// mirrorgap runs a command to its end, in a folder with the experiments of testdata.
func mirrorgap(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), executable(t), args...)
	cmd.Dir, cmd.Env = dir, environment(t.TempDir(), t.TempDir())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// experimentsFolder is a new folder with the experiments of testdata.
func experimentsFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/experiments")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCommands: what a person reads, and the exit code, of every command that ends at once.
func TestCommands(t *testing.T) {
	commands := map[string]struct {
		args string
		code int
	}{
		"help":                             {"", 0},
		"list":                             {"list", 0},
		"list-arguments":                   {"list everything", 2},
		"version":                          {"version", 0},
		"kubectl":                          {"kubectl version --client", 0},
		"kubectl-fails":                    {"kubectl get nonsense --kubeconfig nowhere", 1},
		"validate-embedded":                {"validate quick", 0},
		"validate-file":                    {"validate ./storm.yaml", 0},
		"validate-nothing":                 {"validate", 2},
		"validate-bad":                     {"validate bad.yaml", 2},
		"validate-refused":                 {"validate refused.yaml", 2},
		"validate-other":                   {"validate kube-proxy.yaml", 2},
		"validate-unknown":                 {"validate quik", 2},
		"validate-missing":                 {"validate ./quik.yaml", 2},
		"validate-folder":                  {"validate .", 2},
		"run-bad":                          {"run bad.yaml", 2},
		"run-refused":                      {"run refused.yaml", 2},
		"run-unknown":                      {"run quik", 2},
		"run-two":                          {"run quick pinned", 2},
		"run-unknown-arm":                  {"run quick --arm gate", 2},
		"run-unknown-flag":                 {"run --fast", 2},
		"run-folder-in-use":                {"run quick --out .", 2},
		"run-folder-is-file":               {"run quick --out storm.yaml", 2},
		"up-refused":                       {"up refused.yaml", 2},
		"up-unknown-arm":                   {"up quick --arm gate", 2},
		"up-bad-seed":                      {"up quick --seed one", 2},
		"run-sweep":                        {"run kubelet-version", 2},
		"sweep-dry-run":                    {"sweep static-pod-size --dry-run", 0},
		"sweep-unknown":                    {"sweep kubelet-versions", 2},
		"sweep-experiment":                 {"sweep quick", 2},
		"sweep-refused":                    {"sweep refused-sweep.yaml", 2},
		"sweep-nothing":                    {"sweep", 2},
		"sweep-parallel":                   {"sweep kubelet-version --parallel 0", 2},
		"sweep-folder-in-use":              {"sweep kubelet-version --out .", 2},
		"sweep-one-unknown":                {"run-one . gated 1", 2},
		"validate-sweep":                   {"validate kubelet-version", 0},
		"validate-sweep-file":              {"validate refused-sweep.yaml", 2},
		"unknown-command":                  {"rnu quick", 2},
		"unknown-flag":                     {"--version", 2},
		"mirror-check-bad":                 {"mirror-check --manifest-dir nowhere", 2},
		"mirror-check-arguments":           {"mirror-check node", 2},
		"readiness-controller-arguments":   {"readiness-controller rule", 2},
		"readiness-controller-unknownflag": {"readiness-controller --enable-webhook", 2},
	}
	dir := experimentsFolder(t)
	before := list(t, dir)
	for name, c := range commands {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := mirrorgap(t, dir, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			golden(t, filepath.Join("testdata/commands", name+".golden"),
				fmt.Sprintf("$ mirrorgap %s\n%s--- stderr\n%s--- exit code %d\n", c.args, stdout, stderr, code))
		})
	}
	if diff := cmp.Diff(before, list(t, dir)); diff != "" {
		t.Errorf("commands that end at once have changed the folder (-before +after):\n%s", diff)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// versions are what differs between two builds: of Go, of its modules, and of mirrorgap and Kubernetes with and without the linker's flags.
var versions = regexp.MustCompile(`(go|v)\d+\.\d+\.\d+\S*|devel\b`)

// golden compares what a person reads with a file, all versions left out.
func golden(t *testing.T, file, got string) {
	t.Helper()
	got = versions.ReplaceAllString(got, "VERSION")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run the test with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s, run the test with -update if that is meant (-want +got):\n%s", file, diff)
	}
}

// TestPrintLoadsAgain: what validate --print shows is an experiment file that needs no other, and means the same.
func TestPrintLoadsAgain(t *testing.T) {
	for _, name := range slices.Concat(library.List(), library.Sweeps(), []string{"storm.yaml", "recipes.yaml"}) {
		t.Run(name, func(t *testing.T) {
			first, stderr, code := mirrorgap(t, experimentsFolder(t), "validate", "--print", name)
			if code != exitOK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "resolved.yaml"), []byte(first), 0o644); err != nil {
				t.Fatal(err)
			}
			second, stderr, code := mirrorgap(t, dir, "validate", "--print", "resolved.yaml")
			if code != exitOK {
				t.Fatalf("exit code %d: %s\n%s", code, stderr, first)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("it changed on the way (-first +second):\n%s", diff)
			}
		})
	}
}
