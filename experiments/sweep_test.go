package experiments

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// small stands in for the library.
func small(name string) (Source, bool) {
	text := strings.Replace(minimal, "initial: 1", "initial: 1, scaleUp: {to: 2}", 1)
	return Source{"small.yaml", []byte(text), noFiles{}}, name == "small"
}

// fromFolder has the experiments of the library without importing it, which imports this package.
func fromFolder(name string) (Source, bool) {
	paths, err := filepath.Glob(filepath.Join("library", "*", name+".yaml"))
	if err != nil || len(paths) != 1 {
		paths = []string{filepath.Join("library", name+".yaml")}
	}
	data, err := os.ReadFile(paths[0])
	return Source{name + ".yaml", data, folder(filepath.Dir(paths[0]))}, err == nil
}

// TestBadSweeps holds every error to its text, as TestBadFiles does.
func TestBadSweeps(t *testing.T) {
	files, err := filepath.Glob("testdata/sweeps/bad/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d bad sweeps (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := LoadSweep(file, small)
			var bad *BadInput
			if !errors.As(err, &bad) || len(bad.Problems) == 0 {
				t.Fatalf("got %v, want a BadInput with problems", err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", []byte(err.Error()+"\n"))
		})
	}
}

// goodSweeps are all sweeps that load: those for tests and those of the library.
func goodSweeps(t *testing.T) []string {
	t.Helper()
	own, err := filepath.Glob("testdata/sweeps/good/*.yaml")
	if err != nil || len(own) == 0 {
		t.Fatalf("found %d sweeps (%v)", len(own), err)
	}
	library, err := filepath.Glob("library/sweeps/*.yaml")
	if err != nil || len(library) == 0 {
		t.Fatalf("found %d sweeps in the library (%v)", len(library), err)
	}
	return append(own, library...)
}

// TestSweepRoundTrip: a resolved sweep written and read again, without any of the files that it came from, is the same and makes the same cases.
func TestSweepRoundTrip(t *testing.T) {
	for _, file := range goodSweeps(t) {
		s, err := LoadSweep(file, fromFolder)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		checkSweepRoundTrip(t, s)
	}
}

func checkSweepRoundTrip(t *testing.T, s *Sweep) {
	t.Helper()
	first, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseSweep(Source{Name: "resolved.yaml", Data: first}, nil)
	if err != nil {
		t.Fatalf("the resolved sweep does not load:\n%v\n%s", err, first)
	}
	second, err := again.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("%s changed on the way (-first +second):\n%s", s.Metadata.Name, diff)
	}
	if diff := cmp.Diff(caseFiles(t, s), caseFiles(t, again)); diff != "" {
		t.Errorf("cases of %s changed on the way (-first +second):\n%s", s.Metadata.Name, diff)
	}
}

// caseFiles are the experiment files of the cases, by name.
func caseFiles(t *testing.T, s *Sweep) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, c := range s.Cases {
		data, err := c.Experiment.YAML()
		if err != nil {
			t.Fatal(err)
		}
		files[c.Name] = string(data)
	}
	if len(files) != len(s.Cases) {
		t.Errorf("%d cases of %s have only %d names", len(s.Cases), s.Metadata.Name, len(files))
	}
	return files
}

func TestResolvedSweepGolden(t *testing.T) {
	s, err := LoadSweep("testdata/sweeps/good/files.yaml", small)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/sweeps/files-resolved.yaml", got)
}

// TestCases: every combination is a case, in the order of the file, with its values where the fields are and nothing else changed.
func TestCases(t *testing.T) {
	s, err := LoadSweep("testdata/sweeps/good/files.yaml", small)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range s.Cases {
		spec := &c.Experiment.Spec
		group := &spec.NodeGroups[0]
		pod, err := group.StaticPods[0].Pod()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s: %q: %s from %s, mirror after %s, resync %s, cpu %s", c.Name, c.Labels, pod.Name, group.StaticPods[0].FileName,
			group.Kubelet.MirrorDelay.Upper(), group.Kubelet.MirrorResync.Upper(), group.Allocatable.Cpu()))
		if e := c.Experiment; e.Metadata.Name != "files" || e.Metadata.Labels["mirrorDelay"] != c.Labels[0] || len(e.Metadata.Labels) != 3 {
			t.Errorf("case %s has the metadata %+v", c.Name, e.Metadata)
		}
		if !slices.Equal(spec.Seeds, Seeds{7, 9}) || spec.Stop.Settle.Seconds() != 3 || len(spec.Thresholds) != 0 || spec.Assumptions.RaceIn == nil ||
			spec.ControlPlane.APIServerFlags["max-requests-inflight"] != "100" {
			t.Errorf("case %s has the spec %+v", c.Name, spec)
		}
	}
	want := []string{
		`mirrorDelay=kubelet-1.32,staticPod=agent,cpu=4: ["kubelet-1.32" "agent" "4"]: agent from agent.yaml, mirror after 90.628683ms, resync 90.628683ms, cpu 4`,
		`mirrorDelay=kubelet-1.32,staticPod=agent,cpu=8: ["kubelet-1.32" "agent" "8"]: agent from agent.yaml, mirror after 90.628683ms, resync 90.628683ms, cpu 8`,
		`mirrorDelay=kubelet-1.32,staticPod=other,cpu=4: ["kubelet-1.32" "other" "4"]: other from other.yaml, mirror after 90.628683ms, resync 90.628683ms, cpu 4`,
		`mirrorDelay=kubelet-1.32,staticPod=other,cpu=8: ["kubelet-1.32" "other" "8"]: other from other.yaml, mirror after 90.628683ms, resync 90.628683ms, cpu 8`,
		`mirrorDelay=measured--mine,staticPod=agent,cpu=4: ["measured, mine" "agent" "4"]: agent from agent.yaml, mirror after 20s, resync 20s, cpu 4`,
		`mirrorDelay=measured--mine,staticPod=agent,cpu=8: ["measured, mine" "agent" "8"]: agent from agent.yaml, mirror after 20s, resync 20s, cpu 8`,
		`mirrorDelay=measured--mine,staticPod=other,cpu=4: ["measured, mine" "other" "4"]: other from other.yaml, mirror after 20s, resync 20s, cpu 4`,
		`mirrorDelay=measured--mine,staticPod=other,cpu=8: ["measured, mine" "other" "8"]: other from other.yaml, mirror after 20s, resync 20s, cpu 8`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
}

// TestWithoutLibrary: a sweep that names what is not to be had is refused.
func TestWithoutLibrary(t *testing.T) {
	for base, want := range map[string]string{"small": "there is no experiment", "./small.yaml": "no such file|file does not exist"} {
		text := "apiVersion: mirrorgap.dev/v1alpha1\nkind: Sweep\nmetadata: {name: x}\nspec: {base: " + base + ", parameters: [{name: a, fields: [spec.timeLimit], values: [2m]}]}"
		_, err := ParseSweep(Source{Name: "x.yaml", Data: []byte(text)}, nil)
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("base %s: got %v, want %q", base, err, want)
		}
	}
}

// TestAliasedFields: a value that is set in one place does not change another that was an alias of the same.
func TestAliasedFields(t *testing.T) {
	s, err := LoadSweep("testdata/sweeps/good/inline.yaml", small)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"2", "2", "3", "3"} {
		g := s.Cases[i].Experiment.Spec.NodeGroups[0]
		if got := g.Allocatable.Cpu().String(); got != want || g.Capacity.Cpu().String() != "4" {
			t.Errorf("case %s has capacity %s and allocatable %s", s.Cases[i].Name, g.Capacity.Cpu(), got)
		}
	}
}

func TestSweepRuns(t *testing.T) {
	s, err := LoadSweep("testdata/sweeps/good/inline.yaml", small)
	if err != nil {
		t.Fatal(err)
	}
	s.Spec.Seeds = Seeds{3, 1}
	var got []string
	for _, run := range s.Runs() {
		got = append(got, fmt.Sprintf("%d %s %s", run.Seed, run.Case.Name, run.Arm.Name))
	}
	want := []string{
		"3 allocatable=2,delay=1s ungated", "3 allocatable=2,delay=2s ungated", "3 allocatable=3,delay=1s ungated", "3 allocatable=3,delay=2s ungated",
		"1 allocatable=2,delay=1s ungated", "1 allocatable=2,delay=2s ungated", "1 allocatable=3,delay=1s ungated", "1 allocatable=3,delay=2s ungated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// TestCheckMergesProblems: what several cases have in common is said once.
func TestCheckMergesProblems(t *testing.T) {
	s, err := LoadSweep("testdata/sweeps/good/inline.yaml", small)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Check(func(e *Experiment) error {
		problems := []Problem{{Field: "spec.a", Message: "is wrong everywhere"}}
		if e.Metadata.Labels["delay"] == "2s" {
			problems = append(problems, Problem{Field: "spec.b", Message: "is wrong in two"})
		}
		return &BadInput{problems}
	})
	const want = "spec.a: is wrong everywhere\nspec.b: is wrong in two (in 2 of 4 cases, the first is allocatable=2,delay=2s)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want\n%s", err, want)
	}
	other := errors.New("broken")
	if err := s.Check(func(*Experiment) error { return other }); !errors.Is(err, other) {
		t.Errorf("got %v, want the error of the check", err)
	}
	if err := s.Check(func(*Experiment) error { return nil }); err != nil {
		t.Errorf("got %v, want none", err)
	}
}

func TestDifference(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"a\nb\n", "a\nb\n", ""},
		{"a\n  b\n", "a\n  c\n", `x.yaml:2: has "b", and not "c"`},
		{"a\n", "a\nb\n", `x.yaml:2: has "", and not "b"`},
		{"", "a", `x.yaml:1: has "", and not "a"`},
	} {
		if got := Difference("x.yaml", []byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%q and %q: got %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

// FuzzParseSweep: whatever a file holds, ParseSweep returns a sweep that survives a round trip, or a BadInput with problems.
func FuzzParseSweep(f *testing.F) {
	for _, pattern := range []string{"testdata/sweeps/*/*.yaml", "library/sweeps/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	files := fstest.MapFS{}
	for _, name := range []string{"bases/files.yaml", "bases/agent.yaml", "bases/delays.csv", "other.yaml", "delays.csv"} {
		data, err := fs.ReadFile(os.DirFS("testdata/sweeps"), name)
		if err != nil {
			f.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSweep(Source{"fuzz.yaml", bytes.ReplaceAll(data, []byte("../"), nil), files}, small)
		var bad *BadInput
		if err != nil && (!errors.As(err, &bad) || len(bad.Problems) == 0) {
			t.Fatalf("got %v, want a BadInput with problems", err)
		}
		if err == nil {
			checkSweepRoundTrip(t, s)
		}
	})
}
