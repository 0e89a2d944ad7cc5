package library

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/mirrorgap/mirrorgap/experiments"
)

// Default is the name of the canonical experiment, which is run when none is named.
const Default = "scale-up-3-to-20"

//go:embed *.yaml */*.yaml manifests
var files embed.FS

// Folder is a folder of experiments that belong together.
type Folder struct {
	// Path is its path in the library; "." for the experiments outside of any.
	Path string
	// Title says in a few words what its experiments have in common; empty for those outside of any folder.
	Title string
}

// Folders returns the folders of experiments, in the order in which they are to be shown.
func Folders() []Folder {
	return []Folder{
		{Path: "."},
		{Path: "regression", Title: "Public reports of the race, and negative controls"},
		{Path: "gaps", Title: "What the published gate does not cover"},
		{Path: "model", Title: "The kubelet model beside the real kubelet"},
	}
}

// Names returns the names of the experiments in the folder, in alphabetical order.
func (f Folder) Names() []string { return list(f.Path) }

// List returns the names of all experiments, folder by folder. No two are the same.
func List() []string {
	var names []string
	for _, folder := range Folders() {
		names = append(names, folder.Names()...)
	}
	return names
}

// list returns the names of the files in a folder; a folder that is not there has none.
func list(folder string) []string {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil
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
	source, err := source(name)
	if err != nil {
		return nil, err
	}
	return experiments.Parse(source.Name, source.Data, source.Files)
}

// Base returns the experiment of that name as what a sweep varies.
func Base(name string) (experiments.Source, bool) {
	source, err := source(name)
	return source, err == nil
}

// source returns the file of the experiment of that name, as a person wrote it. Its error is as Get's.
func source(name string) (experiments.Source, error) {
	for _, folder := range Folders() {
		if data, err := files.ReadFile(path.Join(folder.Path, name+".yaml")); err == nil && path.Base(name) == name {
			return experiments.Source{Name: name + ".yaml", Data: data, Files: relativeTo(folder.Path)}, nil
		}
	}
	return experiments.Source{}, &experiments.BadInput{Problems: []experiments.Problem{{
		Message: fmt.Sprintf("there is no experiment %q in the library; it has %s", name, strings.Join(List(), ", ")),
	}}}
}

// relativeTo has the library's files by their paths from one of its folders. As on disk, a path may lead out of that folder.
type relativeTo string

// Open implements fs.FS.
func (folder relativeTo) Open(name string) (fs.File, error) {
	return files.Open(path.Join(string(folder), name))
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
