package library

import (
	"embed"
	"fmt"
	"strings"

	"github.com/mirrorgap/mirrorgap/experiments"
)

// Default is the name of the canonical experiment, which is run when none is named.
const Default = "scale-up-3-to-20"

//go:embed *.yaml manifests scheduler sweeps
var files embed.FS

// List returns the names of all experiments, in alphabetical order.
func List() []string {
	return list(".")
}

// list returns the names of the files in a folder.
func list(folder string) []string {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil // an embedded folder can always be read
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Get returns the experiment of that name, resolved. For an unknown name the error is an *experiments.BadInput that lists the known ones.
func Get(name string) (*experiments.Experiment, error) {
	data, err := Source(name)
	if err != nil {
		return nil, err
	}
	return experiments.Parse(name+".yaml", data, files)
}

// Source returns the file of the experiment of that name, as a person wrote it. Its error is as Get's.
func Source(name string) ([]byte, error) {
	data, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, &experiments.BadInput{Problems: []experiments.Problem{{
			Message: fmt.Sprintf("there is no experiment %q in the library; it has %s", name, strings.Join(List(), ", ")),
		}}}
	}
	return data, nil
}

// Base returns the experiment of that name as what a sweep varies.
func Base(name string) (source experiments.Source, ok bool) {
	data, err := Source(name)
	return experiments.Source{Name: name + ".yaml", Data: data, Files: files}, err == nil
}

// Sweeps returns the names of all sweeps, in alphabetical order.
func Sweeps() []string { return list(sweepFolder) }

const sweepFolder = "sweeps"

// Sweep returns the sweep of that name, resolved. For an unknown name the error is an *experiments.BadInput that lists the known ones.
func Sweep(name string) (*experiments.Sweep, error) {
	data, err := files.ReadFile(sweepFolder + "/" + name + ".yaml")
	if err != nil {
		return nil, &experiments.BadInput{Problems: []experiments.Problem{{
			Message: fmt.Sprintf("there is no sweep %q in the library; it has %s", name, strings.Join(Sweeps(), ", ")),
		}}}
	}
	return experiments.ParseSweep(experiments.Source{Name: name + ".yaml", Data: data}, Base)
}
