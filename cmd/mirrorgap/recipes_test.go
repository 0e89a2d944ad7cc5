package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// readinessTaint and the files below are the published guide's.
const (
	readinessTaint = "readiness.k8s.io/StaticPodsMirrored"
	publishedCheck = "../../checker/manifests/daemonset.yaml"
	publishedRule  = "../../controllers/manifests/staticpods-readiness-rule.yaml"
)

// cluster is a simulated cluster that mirrorgap up keeps, and a shell with kubectl for it.
type cluster struct {
	*process
	environment []string
}

// startCluster starts the cluster of an arm of recipes.yaml, with its results in the folder "results" of dir.
func startCluster(t *testing.T, dir, arm string, flags ...string) *cluster {
	t.Helper()
	c := &cluster{process: start(t, dir, append([]string{"up", "recipes.yaml", "--arm", arm, "--out", "results"}, flags...)...)}
	const export = "export KUBECONFIG="
	c.stdout.awaitText(t, export)
	kubeconfig, _, _ := strings.Cut(strings.TrimPrefix(c.stdout.String(), export), "\n")

	bin := t.TempDir()
	if err := os.Symlink(executable(t), filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	c.environment = append(environment(t.TempDir(), t.TempDir()), "KUBECONFIG="+kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"))
	return c
}

// down ends the cluster as a person does, and checks that nothing is left of it.
func (c *cluster) down(t *testing.T) {
	t.Helper()
	c.signal(t, os.Interrupt)
	if code := c.wait(t); code != exitOK {
		t.Errorf("exit code %d, want %d\n%s", code, exitOK, c.stderr)
	}
	c.checkNothingLeft(t)
	if lines := strings.Count(c.stdout.String(), "\n"); lines != 1 {
		t.Errorf("standard output is for a shell to evaluate, but has %d lines:\n%s", lines, c.stdout)
	}
}

// shell runs a command line, and fails the test if it fails.
func (c *cluster) shell(t *testing.T, line string) string {
	t.Helper()
	out, err := c.try(t, line)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

func (c *cluster) try(t *testing.T, line string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = c.environment
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// follow runs a command line until the test ends.
func (c *cluster) follow(t *testing.T, line string) *captured {
	t.Helper()
	ended := make(chan struct{})
	out := newCaptured(ended)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "exec "+line)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.environment, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // it is killed at the end of the test
		close(ended)
	}()
	t.Cleanup(func() { <-ended })
	return out
}

// awaitShell runs a command line again and again until its output matches.
func (c *cluster) awaitShell(t *testing.T, line, pattern string) (out string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	eventually(t, line+" shows "+pattern, func() (bool, any) {
		var err error
		out, err = c.try(t, line)
		return err == nil && want.MatchString(out), out
	})
	return out
}

// recipe is the command line in docs/kubectl.md that begins with the words given; it is tried exactly as it is printed.
func recipe(t *testing.T, beginning string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/kubectl.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, ok := strings.Cut(string(page), "\n"+beginning)
	if !ok {
		t.Fatalf("docs/kubectl.md has no line that begins with %q", beginning)
	}
	end := regexp.MustCompile(`[^\\]\n`).FindStringIndex(line) // a backslash continues the line
	return beginning + line[:end[0]+1]
}

// outOfCPU counts the failed pods that the kubelets refused for want of cpu, by the published recipe: its two halves one after the other, so that
// where there is a jq it counts the same list as this code.
func (c *cluster) outOfCPU(t *testing.T) (n int) {
	t.Helper()
	get, count, _ := strings.Cut(recipe(t, "kubectl get pods -A --field-selector status.phase=Failed -o json"), "\\\n  | ")
	list := c.shell(t, get)
	var failed corev1.PodList
	if err := json.Unmarshal([]byte(list), &failed); err != nil {
		t.Fatal(err)
	}
	for i := range failed.Items {
		if failed.Items[i].Status.Reason == "OutOfcpu" {
			n++
		}
	}
	if _, err := exec.LookPath("jq"); err != nil {
		t.Log("there is no jq here: counted without it")
		return n
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", count)
	cmd.Env, cmd.Stdin = c.environment, strings.NewReader(list)
	if counted, err := cmd.Output(); err != nil || strings.TrimSpace(string(counted)) != strconv.Itoa(n) {
		t.Errorf("%s: counts %q (%v), want %d", count, counted, err, n)
	}
	return n
}

// nodeStory is what kubectl get nodes -w showed of a node, in order.
type nodeStory []struct{ mirrored, taints string }

// stories reads the output of the published watch.
func stories(out string) map[string]nodeStory {
	nodes := map[string]nodeStory{}
	for line := range strings.Lines(out) {
		if cells := strings.Fields(line); len(cells) == 3 && cells[0] != "NAME" {
			nodes[cells[0]] = append(nodes[cells[0]], struct{ mirrored, taints string }{cells[1], cells[2]})
		}
	}
	return nodes
}

// held tells whether the node's last line has the readiness taint.
func (s nodeStory) held() bool {
	return len(s) > 0 && strings.Contains(s[len(s)-1].taints, readinessTaint)
}

// released tells whether the story is that of a node which the gate let go: the taint without the condition, then with it, then no taint.
func (s nodeStory) released() bool {
	const without, with, gone = 0, 1, 2
	stage := without
	for i, line := range s {
		tainted := strings.Contains(line.taints, readinessTaint)
		switch {
		case i == 0 && (line.mirrored != "<none>" || !tainted):
			return false
		case stage == without && line.mirrored == "True" && tainted:
			stage = with
		case stage == with && line.mirrored == "True" && !tainted:
			stage = gone
		}
	}
	return stage == gone
}

// TestRecipesUngated: what the published guide says of a cluster without the readiness gate, asked with kubectl.
func TestRecipesUngated(t *testing.T) {
	dir := experimentsFolder(t)
	c := startCluster(t, dir, "ungated")
	eventually(t, "pods fail with OutOfcpu", func() (bool, any) { return c.outOfCPU(t) > 0, c.stderr })
	failed := c.shell(t, "kubectl get pods -A --field-selector status.phase=Failed")
	if !regexp.MustCompile(`default +fill-\w+ +0/1 +OutOfcpu +0 `).MatchString(failed) {
		t.Errorf("kubectl shows the failed pods as:\n%s", failed)
	}
	if taints := c.shell(t, "kubectl get nodes -o jsonpath='{.items[*].spec.taints[*].key}'"); strings.Contains(taints, readinessTaint) {
		t.Errorf("nodes of an ungated arm have the readiness taint: %s", taints)
	}
	if out := c.shell(t, "kubectl get nrr"); !strings.Contains(out, "No resources found") {
		t.Errorf("an ungated arm has rules:\n%s", out)
	}
	c.down(t)
	checkEnding(t, filepath.Join(dir, "results/ungated/seed-1"), trace.EndInterrupted)
}

// TestRecipesGated: the published guide step by step, against a cluster whose nodes register with the taint, and in which the readiness controller
// runs, but neither check nor rule are there yet.
func TestRecipesGated(t *testing.T) {
	c := startCluster(t, experimentsFolder(t), "by-hand", "--pause")
	watch := c.follow(t, recipe(t, "kubectl get nodes -w"))
	awaitNode := func(name, what string, holds func(nodeStory) bool) {
		t.Helper()
		watch.await(t, name+" "+what, func(out string) bool { return holds(stories(out)[name]) })
	}
	awaitNode("pool-0", "held", nodeStory.held)

	c.shell(t, "kubectl apply -f "+publishedCheck)
	c.awaitShell(t, "kubectl get nodes pool-0 -o wide", `pool-0 +Ready`)
	watch.await(t, "pool-0 with the condition", func(out string) bool {
		s := stories(out)["pool-0"]
		return s[len(s)-1].mirrored == "True"
	})
	if s := stories(watch.String())["pool-0"]; !s.held() {
		t.Errorf("pool-0 was released before there was a rule: %v", s)
	}

	c.shell(t, "kubectl apply -f "+publishedRule)
	awaitNode("pool-0", "released", nodeStory.released)
	nrr := c.shell(t, "kubectl get nrr")
	columns := regexp.MustCompile(`^NAME +MODE +TAINT +EFFECT +DRYRUN +AGE\nstatic-pods-mirrored +bootstrap-only +` + readinessTaint + ` +NoSchedule `)
	if !columns.MatchString(nrr) {
		t.Errorf("kubectl get nrr shows\n%s", nrr)
	}
	if out := c.shell(t, "kubectl describe nrr static-pods-mirrored"); !strings.Contains(out, "pool-0") {
		t.Errorf("kubectl describe nrr does not name the node:\n%s", out)
	}

	c.stderr.awaitText(t, "Press Enter for the scale-up.")
	if _, err := c.stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"pool-1", "pool-2", "bare-0"} {
		awaitNode(node, "released", nodeStory.released)
	}
	t.Run("no pod fails", func(t *testing.T) {
		c.awaitShell(t, "kubectl get pods -l mirrorgap.dev/workload=fill -o wide", `(?s)(Running.*pool-.*){9}`)
		if n := c.outOfCPU(t); n != 0 {
			t.Errorf("%d pods failed with OutOfcpu", n)
		}
	})
	checkPods := recipe(t, "kubectl get pods -n kube-system -l app=static-pod-mirror-check")
	logs := recipe(t, "kubectl logs")
	allLogs, _, _ := strings.Cut(logs, " | tail")
	t.Run("a held node names the mirror pod", func(t *testing.T) {
		row := c.awaitShell(t, checkPods, `(?m)^static-pod-mirror-check-\w+ +0/1 +Init:0/1 +0 +\S+ +\S+ +late-0 `)
		if !regexp.MustCompile(`(?m)^static-pod-mirror-check-\w+ +1/1 +Running +0 +\S+ +\S+ +pool-1 `).MatchString(row) {
			t.Errorf("the check pod of a released node is not Running:\n%s", row)
		}
		const line = `^\[pod/static-pod-mirror-check-\w+/wait-for-mirrors\] \S+Z \[StaticPodMirrorCheck\] `
		c.awaitShell(t, allLogs, `(?m)`+line+`waiting for mirror pods: kube-system/kube-proxy-late-0$`)
		tail := strings.Split(strings.TrimSpace(c.shell(t, logs)), "\n")
		check := regexp.MustCompile(line + `(waiting for|set) `)
		if odd := slices.IndexFunc(tail, func(s string) bool { return !check.MatchString(s) }); odd >= 0 || len(tail) > 10 {
			t.Errorf("the end of the logs has a line that is not the check's, or more than 10 lines: %q", tail)
		}
	})
	t.Run("an invalid manifest holds its node", func(t *testing.T) {
		c.awaitShell(t, allLogs, `waiting for mirror pods: default/Not_A_Name-broken-0\n`)
		if s := stories(watch.String())["broken-0"]; !s.held() {
			t.Errorf("broken-0 is not held: %v", s)
		}
	})
	t.Run("pods that tolerate the taint are not held", func(t *testing.T) {
		c.awaitShell(t, "kubectl get pods -l mirrorgap.dev/workload=tolerant -o wide", `1/1 +Running .* late-0 `)
		c.awaitShell(t, "kubectl describe pods -l mirrorgap.dev/workload=intolerant", `(?s)Status: +Pending.*untolerated taint`)
		if s := stories(watch.String())["late-0"]; !s.held() {
			t.Errorf("late-0 is not held: %v", s)
		}
	})
	c.down(t)
}
