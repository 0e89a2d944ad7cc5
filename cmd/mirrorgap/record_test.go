package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// roleRecipe is the ClusterRole in docs/real-clusters.md.
func roleRecipe(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/real-clusters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "```yaml\napiVersion: rbac")
	role, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("docs/real-clusters.md has no ClusterRole")
	}
	return "apiVersion: rbac" + role
}

// TestRecord records a simulated cluster as if it were a real one, with no rights but those that the documentation names, and holds what was recorded
// against what the simulation knows.
func TestRecord(t *testing.T) {
	dir := experimentsFolder(t)
	c := startCluster(t, dir, "ungated", "--pause")
	role := filepath.Join(dir, "role.yaml")
	if err := os.WriteFile(role, []byte(roleRecipe(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "recorder")
	c.stderr.awaitText(t, "Press Enter")
	c.shell(t, "kubectl apply -f "+role)
	c.shell(t, "kubectl create serviceaccount recorder && kubectl create clusterrolebinding recorder --clusterrole mirrorgap-record --serviceaccount default:recorder")
	c.shell(t, `token=$(kubectl create token recorder) && cp "$KUBECONFIG" `+kubeconfig+` && export KUBECONFIG=`+kubeconfig+
		` && kubectl config set-credentials recorder --token "$token" && kubectl config set-context --current --user recorder`)

	recording := start(t, dir, "record", "--kubeconfig", kubeconfig, "--name", "try", "--out", "recording")
	recording.stderr.awaitText(t, "scale up now")
	if _, err := c.stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	c.awaitShell(t, "kubectl get pods -n kube-system", `(?s)kube-proxy-pool-1.*kube-proxy-pool-2`)
	c.awaitShell(t, "kubectl get pods -l mirrorgap.dev/workload=fill --field-selector status.phase=Failed", `OutOfcpu|Failed|UnexpectedAdmission`)
	recording.signal(t, os.Interrupt)
	if code := recording.wait(t); code != exitOK {
		t.Fatalf("record: exit code %d\n%s", code, recording.stderr)
	}
	c.down(t)

	seen := readRun(t, filepath.Join(dir, "recording", recordedArm, "seed-0"))
	truth := readRun(t, filepath.Join(dir, "results", "ungated", "seed-1"))
	if seen.End != trace.EndStopped || !seen.Conclusive() {
		t.Errorf("the recording ended as %s, conclusive: %v", seen.End, seen.Conclusive())
	}
	compareNodes(t, seen, truth)
	compareRejections(t, seen, truth)

	out, errs, code := mirrorgap(t, dir, "analyze", "recording", "-o", "json")
	var analyses []struct{ DelaysFile string }
	if err := json.Unmarshal([]byte(out), &analyses); err != nil || code != exitOK || len(analyses) != 1 {
		t.Fatalf("analyze: exit code %d, %v\n%s%s", code, err, out, errs)
	}
	compareDelays(t, filepath.Join(dir, analyses[0].DelaysFile), truth)
	useDelays(t, dir, analyses[0].DelaysFile)
}

func readRun(t *testing.T, dir string) *results.Run {
	t.Helper()
	run, err := results.ReadTrace(filepath.Join(dir, results.TraceFile))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// late is by how much an event may reach one witness later than another on a loaded machine, in seconds.
const late = 0.5

// compareNodes: both witnesses saw the same new nodes of the pool, and the same exposure but for the time that events take to reach them.
func compareNodes(t *testing.T, seen, truth *results.Run) {
	t.Helper()
	known := map[string]*results.Node{}
	for _, n := range truth.Nodes {
		known[n.UID] = n
	}
	fresh := 0
	for _, n := range seen.Nodes {
		want := known[n.UID]
		if want == nil || n.Initial != want.Initial {
			t.Errorf("node %s: recorded as initial: %v, the simulation has %+v", n.Name, n.Initial, want)
			continue
		}
		if n.Initial || n.Group != "pool" {
			continue
		}
		fresh++
		if n.Exposure == nil || math.Abs(n.Exposure.Duration.Seconds()-want.Exposure.Duration.Seconds()) > late {
			t.Errorf("node %s: exposure %+v, the simulation has %+v", n.Name, n.Exposure, want.Exposure)
		}
	}
	if fresh != 2 {
		t.Errorf("recorded %d new nodes of the pool, want 2", fresh)
	}
}

// compareRejections: what the recording concludes from the API is what the kubelets know.
func compareRejections(t *testing.T, seen, truth *results.Run) {
	t.Helper()
	known := map[string]*results.Rejection{}
	for _, p := range truth.Pods {
		known[p.UID] = p.Rejection
	}
	rejected := 0
	for _, p := range seen.Pods {
		if p.Rejection == nil {
			continue
		}
		rejected++
		if want := known[p.UID]; want == nil || p.Rejection.Reason != want.Reason || p.Rejection.Cause != want.Cause {
			t.Errorf("pod %s: recorded as rejected for %+v, the simulation has %+v", p.Name, p.Rejection, want)
		}
	}
	if rejected == 0 {
		t.Error("no rejected pod was recorded")
	}
}

// compareDelays: the file has the delays that the simulation has seen.
func compareDelays(t *testing.T, file string, truth *results.Run) {
	t.Helper()
	var again bytes.Buffer
	if err := truth.Findings().Delays.WriteCSV(&again, "the simulation"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const mirror = "kube-system/kube-proxy"
	for _, column := range []string{results.ColumnReady, mirror} {
		got, bad := random.ParseCSV(data, column)
		want, worse := random.ParseCSV(again.Bytes(), column)
		if len(bad)+len(worse) > 0 || len(got) != len(want) || len(got) < 2 {
			t.Fatalf("%s: %d recorded, %d in the simulation: %v %v", column, len(got), len(want), bad, worse)
		}
		for i := range got {
			if math.Abs(got[i].Seconds()-want[i].Seconds()) > late {
				t.Errorf("%s: recorded %v, the simulation has %v", column, got[i], want[i])
			}
		}
	}
}

// useDelays: an experiment takes the file for an empirical distribution.
func useDelays(t *testing.T, dir, file string) {
	t.Helper()
	experiment, err := os.ReadFile(filepath.Join(dir, "recipes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	with := strings.Replace(string(experiment), "spec:\n", "spec:\n  kubelet: {mirrorDelay: {empirical: {file: "+file+", column: kube-system/kube-proxy}}}\n", 1)
	if err := os.WriteFile(filepath.Join(dir, "measured.yaml"), []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := mirrorgap(t, dir, "validate", "measured.yaml", "--print")
	if code != exitOK || !strings.Contains(out, "empirical:") {
		t.Errorf("validate: exit code %d\n%s%s", code, out, errs)
	}
}

// TestRecordFlags: everything that is wrong is told at once, and no folder is made.
func TestRecordFlags(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		flags []string
		want  []string
		code  int
	}{
		{[]string{"--name", "A_", "--for", "-1s", "--condition", "x", "--taint-effect", "y"}, []string{"--name", "--for", "--condition", "--taint-effect"}, exitBadInput},
		{[]string{"--kubeconfig", "none"}, []string{"none", "--kubeconfig"}, exitBadInput},
	} {
		_, errs, code := mirrorgap(t, dir, append([]string{"record"}, tt.flags...)...)
		for _, want := range tt.want {
			if code != tt.code || !strings.Contains(errs, want) {
				t.Errorf("record %v: exit code %d, want %d and %q in\n%s", tt.flags, code, tt.code, want, errs)
			}
		}
	}
	if left := list(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestAnalyze: the delays are written where they are asked for, and a trace that was cut short is inconclusive.
func TestAnalyze(t *testing.T) {
	dir := gateFolder(t)
	one := filepath.Join("results", "ungated", "seed-1", results.TraceFile)
	if out, errs, code := mirrorgap(t, dir, "analyze", one, "--delays", "mine.csv"); code != exitOK || !strings.Contains(out, "file: mine.csv") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	checkFiles(t, dir, "mine.csv")
	if _, errs, code := mirrorgap(t, dir, "analyze", "results", "--delays", "mine.csv"); code != exitBadInput || !strings.Contains(errs, "2 traces") {
		t.Errorf("one file for two traces: exit code %d\n%s", code, errs)
	}
	if out, errs, code := mirrorgap(t, dir, "analyze", "truncated"); code != exitInconclusive || !strings.Contains(out, "ended as truncated") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code := mirrorgap(t, dir, "analyze", "broken"); code != exitBadInput {
		t.Errorf("no trace: exit code %d\n%s", code, errs)
	}
}
