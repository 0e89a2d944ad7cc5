package checker

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandRefusesBadInput(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		env  map[string]string
		args []string
		want []string
	}{
		{name: "no node name", args: []string{"--manifest-dir", folder}, want: []string{"no node name: set NODE_NAME from spec.nodeName"}},
		{name: "folder that is not there", env: map[string]string{"NODE_NAME": "n0", "MANIFEST_DIR": folder + "/gone"}, want: []string{folder + "/gone", "MANIFEST_DIR"}},
		{name: "file for a folder", args: []string{"--node-name", "n0", "--manifest-dir", file}, want: []string{file + " is not a folder"}},
		{name: "poll interval", args: []string{"--node-name", "n0", "--manifest-dir", folder, "--poll-interval", "0s"}, want: []string{"poll interval 0s: give a positive one"}},
		{name: "all at once", args: []string{"--manifest-dir", file, "--poll-interval", "-1s"}, want: []string{"no node name", "poll interval", "is not a folder"}},
		{name: "kubeconfig", args: []string{"--node-name", "n0", "--manifest-dir", folder, "--kubeconfig", folder + "/gone"}, want: []string{"find the API server", folder + "/gone"}},
		{name: "neither kubeconfig nor pod", args: []string{"--node-name", "n0", "--manifest-dir", folder}, want: []string{"find the API server; outside a pod give --kubeconfig"}},
		{name: "unknown flag", args: []string{"--nodename", "n0"}, want: []string{"unknown flag: --nodename"}},
		{name: "argument", args: []string{"n0"}, want: []string{`unknown command "n0"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clearEnvironment(t)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			cmd := NewCommand()
			cmd.SetArgs(tt.args)
			cmd.SetOut(&bytes.Buffer{})
			cmd.SetErr(&bytes.Buffer{})
			err := cmd.ExecuteContext(t.Context())
			if !errors.Is(err, ErrBadInput) {
				t.Fatalf("got error %v, want one of bad input", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestCommandTakesTheScriptsEnvironment(t *testing.T) {
	clearEnvironment(t)
	t.Setenv("MANIFEST_DIR", "/manifests")
	t.Setenv("CONDITION", "example.com/Mirrored")
	t.Setenv("NODE_NAME", "n0")
	got := map[string]string{}
	for _, name := range []string{"manifest-dir", "condition", "node-name", "poll-interval"} {
		got[name] = NewCommand().Flag(name).Value.String()
	}
	want := map[string]string{"manifest-dir": "/manifests", "condition": "example.com/Mirrored", "node-name": "n0", "poll-interval": "2s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}

// clearEnvironment keeps the tests from what they are run in, a pod perhaps.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"MANIFEST_DIR", "CONDITION", "NODE_NAME", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBECONFIG"} {
		t.Setenv(name, "")
	}
}
