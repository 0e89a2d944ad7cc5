package library

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/mirrorgap/mirrorgap/experiments"
)

func TestEveryExperimentLoads(t *testing.T) {
	names := List()
	if !slices.Contains(names, Default) {
		t.Errorf("the default experiment is not among %v", names)
	}
	for _, name := range names {
		e, err := Get(name)
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		if e.Metadata.Name != name {
			t.Errorf("%s.yaml is called %s inside", name, e.Metadata.Name)
		}
		if e.Spec.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
}

// TestNamesAreUnique: experiments are named without their folder.
func TestNamesAreUnique(t *testing.T) {
	names := slices.Sorted(slices.Values(List()))
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("some of %v stand in more than one folder", names)
	}
	for _, folder := range Folders()[1:] {
		if names := folder.Names(); len(names) > 0 {
			if _, err := Get(folder.Path + "/" + names[0]); err == nil {
				t.Errorf("%s was found by its path", names[0])
			}
		}
	}
}

// TestNoFileIsForgotten: what lies in a folder that is not listed would be embedded and never found.
func TestNoFileIsForgotten(t *testing.T) {
	all, err := fs.Glob(files, "*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"manifests", "scheduler", sweepFolder}
	for _, folder := range Folders() {
		known = append(known, folder.Path)
	}
	for _, file := range all {
		if !slices.Contains(known, path.Dir(file)) {
			t.Errorf("%s is in a folder that nothing lists", file)
		}
	}
}

func TestUnknownName(t *testing.T) {
	_, err := Get("../secrets")
	var bad *experiments.BadInput
	if !errors.As(err, &bad) {
		t.Fatalf("got %v, want a BadInput", err)
	}
}

// TestDefaultIsThePublishedRecipe holds the canonical experiment to the guide: a ReplicaSet that exactly fills the nodes' allocatable, 3 → 20 nodes.
func TestDefaultIsThePublishedRecipe(t *testing.T) {
	e, err := Get(Default)
	if err != nil {
		t.Fatal(err)
	}
	c := &e.Spec.Cluster
	if g := c.NodeGroups[0]; g.Initial != 3 || g.FinalSize() != 20 || len(g.StaticPods) != 1 {
		t.Errorf("group goes from %d to %d nodes with %d static pods", g.Initial, g.FinalSize(), len(g.StaticPods))
	}
	replicas, err := c.FillReplicas(&c.Workloads[0], e.Gated())
	if err != nil || replicas != 20*4 {
		t.Errorf("fill gives %d replicas (%v), want 80 pods of 1 cpu on 20 nodes of 4", replicas, err)
	}
	if arms := e.Spec.Arms; len(arms) != 2 || arms[0].Gate || !arms[1].Gate {
		t.Errorf("arms are %+v, want ungated and gated", arms)
	}
}

func TestEverySweepLoads(t *testing.T) {
	names := Sweeps()
	if len(names) < 6 {
		t.Errorf("the sweeps are %v", names)
	}
	for _, name := range names {
		s, err := Sweep(name)
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		if s.Metadata.Name != name || slices.Contains(List(), name) {
			t.Errorf("%s.yaml is called %s inside; experiments are %v", name, s.Metadata.Name, List())
		}
		if !strings.Contains(s.Spec.Description, "minutes") {
			t.Errorf("%s does not say how long it takes: %q", name, s.Spec.Description)
		}
	}
}

func TestUnknownSweep(t *testing.T) {
	_, err := Sweep("../quick")
	var bad *experiments.BadInput
	if !errors.As(err, &bad) {
		t.Fatalf("got %v, want a BadInput", err)
	}
}
