package experiments

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with a file that people read.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestBadFiles holds every error to its text: each is what a user sees. testdata/bad/X.yaml has its errors in X.txt.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("found %d bad files (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := Load(file)
			var bad *BadInput
			if !errors.As(err, &bad) || len(bad.Problems) == 0 {
				t.Fatalf("got %v, want a BadInput with problems", err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", []byte(err.Error()+"\n"))
		})
	}
}

func TestLoadNeedsAFile(t *testing.T) {
	folder := t.TempDir()
	huge := filepath.Join(folder, "huge.yaml")
	if err := os.WriteFile(huge, bytes.Repeat([]byte("#\n"), maxFileSize), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, "missing.yaml"): "missing.yaml: no such file or directory",
		folder:                                "it is a folder, not a file",
		huge:                                  "it is larger than 16 MiB",
		os.DevNull:                            "it is not a regular file",
	} {
		_, err := Load(path)
		var bad *BadInput
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a BadInput with %q", path, err, want)
		}
	}
}

// minimal is the shortest experiment; %s is more of its spec.
const minimal = `apiVersion: mirrorgap.dev/v1alpha1
kind: Experiment
metadata: {name: minimal}
spec:
  nodeGroups: [{name: pool, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]
  arms: [{name: ungated}]
`

func TestResolvedGolden(t *testing.T) {
	e, err := Parse("minimal.yaml", []byte(minimal), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.YAML()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/minimal-resolved.yaml", got)
}

// TestRoundTrip: a resolved experiment written and read again is the same, without any of the files that it came from.
func TestRoundTrip(t *testing.T) {
	for _, file := range append(libraryFiles(t), "testdata/good/everything.yaml") {
		e, err := Load(file)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		checkRoundTrip(t, e)
	}
}

// libraryFiles are the experiments of the library, which this package cannot import.
func libraryFiles(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"library/*.yaml", "library/regression/*.yaml", "library/gaps/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, files...)
	}
	if len(all) == 0 {
		t.Fatal("found no experiment of the library")
	}
	return all
}

func checkRoundTrip(t *testing.T, e *Experiment) {
	t.Helper()
	first, err := e.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("resolved.yaml", first, nil)
	if err != nil {
		t.Fatalf("the resolved experiment does not load:\n%v\n%s", err, first)
	}
	second, err := again.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("%s changed on the way (-first +second):\n%s", e.Metadata.Name, diff)
	}
}

// TestEverythingIsInline: what the files of an experiment say is in the resolved experiment, and the files' names are gone.
func TestEverythingIsInline(t *testing.T) {
	e, err := Load("testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g := e.Spec.NodeGroups[0]
	var names []string
	for i := range g.StaticPods {
		s := &g.StaticPods[i]
		names = append(names, s.FileName)
		if len(s.Manifest) == 0 || s.File != "" || s.Folder != "" {
			t.Errorf("static pod %d is not inline: %+v", i, s)
		}
	}
	if diff := cmp.Diff([]string{"agent.yaml", "one.yaml", "two.json", "renamed.yaml", "broken.yaml", "inline.yaml"}, names); diff != "" {
		t.Errorf("file names on the node (-want +got):\n%s", diff)
	}
	if got := string(g.StaticPods[4].Content()); got != "this is: not: a Pod\n" {
		t.Errorf("an invalid manifest is put on the node as %q", got)
	}
	if w := e.Spec.Workloads[0]; w.File != "" || w.Kind() != "Deployment" {
		t.Errorf("workload is not inline: %+v", w)
	}
	if s := e.Spec.ControlPlane.Scheduler; s.ConfigFile != "" || !strings.Contains(string(s.Config), "percentageOfNodesToScore") {
		t.Errorf("scheduler configuration is not inline: %+v", s)
	}
	if d := g.Kubelet.MirrorDelay.Empirical; d.File != "" || len(d.Values) != 3 || d.Values[2].Seconds() != 61.5 {
		t.Errorf("measured delays are not inline: %+v", d)
	}
	if g.Kubelet.ReadyDelay == nil || g.Kubelet.StatusTick.Seconds() != 5 {
		t.Errorf("kubelet settings of the group are not merged with the cluster's: %+v", g.Kubelet)
	}
}

func TestRuns(t *testing.T) {
	e, err := Parse("runs.yaml", []byte(strings.Replace(minimal, "arms: [", "seeds: 2\n  arms: [{name: gated, gate: true}, ", 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range e.Runs() {
		got = append(got, run.Arm.Name+string(rune('0'+run.Seed)))
	}
	if diff := cmp.Diff([]string{"gated1", "ungated1", "gated2", "ungated2"}, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if !e.Gated() {
		t.Error("an experiment with a gated arm is not Gated")
	}
}

// TestOnly: one arm by itself has no thresholds, so that it cannot pass where the experiment as a whole would not; and it loads again.
func TestOnly(t *testing.T) {
	e, err := Load("library/quick.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if plan := e.Plan(); len(plan.Thresholds) == 0 || len(plan.Arms) != 2 || !plan.Arms[1].Gated || !slices.Equal(*plan.Assumptions.RaceIn, []string{"ungated"}) {
		t.Errorf("the plan of quick is %+v", plan)
	}
	only := e.Only("gated")
	if plan := only.Plan(); len(plan.Thresholds) != 0 || len(plan.Arms) != 1 || len(*plan.Assumptions.RaceIn) != 0 {
		t.Errorf("the plan of one arm is %+v", plan)
	}
	checkRoundTrip(t, only)
	if len(e.Spec.Arms) != 2 || len(e.Spec.Thresholds) == 0 {
		t.Error("the experiment itself has changed")
	}
	if e.Only("gatd") != nil {
		t.Error("an arm that does not exist was found")
	}
}

// FuzzParse: whatever a file holds, Parse returns an experiment that survives a round trip, or a BadInput with problems.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(seeds, libraryFiles(f)...) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(minimal))
	files := fstest.MapFS{
		"manifests/kube-proxy.yaml": {Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n")},
		"delays.csv":                {Data: []byte("1\n2\n")},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Parse("fuzz.yaml", data, files)
		var bad *BadInput
		if err != nil && (!errors.As(err, &bad) || len(bad.Problems) == 0) {
			t.Fatalf("got %v, want a BadInput with problems", err)
		}
		if err == nil {
			checkRoundTrip(t, e)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load("library/scale-up-3-to-20.yaml"); err != nil {
			b.Fatal(err)
		}
	}
}
