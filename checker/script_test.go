package checker

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// script is the published wait-for-mirrors.sh, run for one look: with the real kubectl to parse manifests and a folder for an API server
// (testdata/stub/kubectl).
type script struct {
	t   *testing.T
	api string
}

func newScript(t *testing.T) *script { return &script{t: t, api: t.TempDir()} }

func (s *script) addPod(namespace, name string) { s.write(filepath.Join("pods", namespace, name)) }

func (s *script) forbidLookups() { s.write("forbidden") }

func (s *script) write(file string) {
	s.t.Helper()
	path := filepath.Join(s.api, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// look runs the script until it passes or would sleep, and returns its log.
func (s *script) look(folder string) (log string, passed bool) {
	s.t.Helper()
	stub, err := filepath.Abs("testdata/stub")
	if err != nil {
		s.t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), "bash", "testdata/wait-for-mirrors.sh")
	cmd.Env = []string{
		"PATH=" + stub + string(os.PathListSeparator) + os.Getenv("PATH"),
		"KUBECTL=" + filepath.Join(assets(s.t), "kubectl"), "API=" + s.api, "HOME=" + s.api, "KUBECONFIG=/dev/null",
		"MANIFEST_DIR=" + folder, "NODE_NAME=n0", "LC_ALL=C",
	}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.Exited()) || stderr.Len() > 0 {
		s.t.Fatalf("script: %v\n%s%s", err, stdout.String(), stderr.String())
	}
	return stdout.String(), err == nil
}

// TestScriptReadsManifestsAlike compares the missing lists of script and check for everything that may lie in a folder.
func TestScriptReadsManifestsAlike(t *testing.T) {
	folder := newFolder(t)
	log, passed := newScript(t).look(folder)
	if passed {
		t.Fatal("the script passed")
	}
	var want []string
	for _, m := range files {
		switch {
		case m.script != "":
			t.Logf("%s differs: %s", m.file, m.why)
			want = append(want, m.script)
		case m.wait != "":
			want = append(want, m.wait)
		}
	}
	if diff := cmp.Diff("TIME [StaticPodMirrorCheck] waiting for mirror pods: "+strings.Join(want, " ")+"\n", withoutTimes(log)); diff != "" {
		t.Errorf("script's log (-want +got):\n%s", diff)
	}
}

// TestScriptLogsAlike runs script and check through the same three situations, and compares what they log and what they apply.
func TestScriptLogsAlike(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(podNamed(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("waiting", func(t *testing.T) {
		script, api := newScript(t), newAPI()
		script.addPod("kube-system", "a-n0")
		api.addPod("kube-system", "a-n0")
		log, passed := script.look(folder)
		if passed {
			t.Error("the script passed")
		}
		if diff := cmp.Diff(withoutTimes(log), withoutTimes(firstLook(t, api, folder))); diff != "" {
			t.Errorf("log (-script +check):\n%s", diff)
		}
	})
	t.Run("lookup failed", func(t *testing.T) {
		script, api := newScript(t), newAPI()
		script.forbidLookups()
		api.forbidLookups()
		log, passed := script.look(folder)
		if passed {
			t.Error("the script passed")
		}
		// kubectl puts the kind of error in front, a client does not.
		want := strings.ReplaceAll(withoutTimes(log), "Error from server (Forbidden): ", "")
		if diff := cmp.Diff(want, withoutTimes(firstLook(t, api, folder))); diff != "" {
			t.Errorf("log (-script +check):\n%s", diff)
		}
	})
	t.Run("passed", func(t *testing.T) {
		script, api := newScript(t), newAPI()
		for _, name := range []string{"a-n0", "b-n0"} {
			script.addPod("kube-system", name)
			api.addPod("kube-system", name)
		}
		log, passed := script.look(folder)
		if !passed {
			t.Errorf("the script did not pass: %s", log)
		}
		if diff := cmp.Diff(withoutTimes(log), withoutTimes(firstLook(t, api, folder))); diff != "" {
			t.Errorf("log (-script +check):\n%s", diff)
		}
		applied, err := os.ReadFile(filepath.Join(script.api, "applied"))
		if err != nil {
			t.Fatal(err)
		}
		if len(api.applied) != 1 {
			t.Fatalf("the check applied %d times, want once", len(api.applied))
		}
		if diff := cmp.Diff(decodeWithoutTimes(t, applied), decodeWithoutTimes(t, api.applied[0].body)); diff != "" {
			t.Errorf("applied (-script +check):\n%s", diff)
		}
		arguments, err := os.ReadFile(filepath.Join(script.api, "apply-arguments"))
		if err != nil {
			t.Fatal(err)
		}
		if want := "--field-manager=" + api.applied[0].fieldManager; !strings.Contains(string(arguments), want) {
			t.Errorf("script applied with %s, want %s in it, as the check does", arguments, want)
		}
	})
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

func withoutTimes(s string) string { return timestamp.ReplaceAllString(s, "TIME") }

func decodeWithoutTimes(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(withoutTimes(string(data))), &v); err != nil {
		t.Fatalf("decode %s: %v", data, err)
	}
	return v
}

// assets returns the folder of control-plane binaries: $KUBEBUILDER_ASSETS, or the nearest bin/assets above the working directory.
func assets(t testing.TB) string {
	t.Helper()
	if folder := os.Getenv("KUBEBUILDER_ASSETS"); folder != "" {
		return folder
	}
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; folder = filepath.Dir(folder) {
		candidate := filepath.Join(folder, "bin", "assets")
		if _, err := os.Stat(candidate); err == nil {
			return candidate
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("no bin/assets folder: run make assets")
		}
	}
}
