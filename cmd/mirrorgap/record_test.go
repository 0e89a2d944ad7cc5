package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mirrorgap/mirrorgap/results"
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
	if seen.Findings().Rejected == 0 || seen.Findings().Hidden != seen.Findings().Rejected {
		t.Errorf("rejected %d, by hidden static pods %d: want some, and all", seen.Findings().Rejected, seen.Findings().Hidden)
	}

	out, errs, code := mirrorgap(t, dir, "analyze", "recording", "-o", "json")
	var analyses []struct{ Delays string }
	if err := json.Unmarshal([]byte(out), &analyses); err != nil || code != exitOK || len(analyses) != 1 {
		t.Fatalf("analyze: exit code %d, %v\n%s%s", code, err, out, errs)
	}
	useDelays(t, dir, analyses[0].Delays)
}

func readRun(t *testing.T, dir string) *results.Run {
	t.Helper()
	run, err := results.ReadTrace(filepath.Join(dir, results.TraceFile))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// compareNodes: both witnesses saw the same new nodes of the pool, and the same exposure but for the time that events take to reach them.
func compareNodes(t *testing.T, seen, truth *results.Run) {
	t.Helper()
	const late = 0.5 // seconds, on a loaded machine
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
		if n.Group != "pool" || n.Initial {
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

// useDelays: an experiment takes the file for an empirical distribution.
func useDelays(t *testing.T, dir, file string) {
	t.Helper()
	experiment, err := os.ReadFile(filepath.Join(dir, "recipes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	with := strings.Replace(string(experiment), "spec:\n", "spec:\n  kubelet: {mirrorDelay: {empirical: {file: "+file+", column: "+results.DelaysColumn+"}}}\n", 1)
	if err := os.WriteFile(filepath.Join(dir, "measured.yaml"), []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := mirrorgap(t, dir, "validate", "measured.yaml", "--print")
	if code != exitOK || !strings.Contains(out, "empirical:") {
		t.Errorf("validate: exit code %d\n%s%s", code, out, errs)
	}
}
