package library

import (
	"embed"
	"fmt"
	"strings"

	"github.com/mirrorgap/mirrorgap/experiments"
)

// Default is the name of the canonical experiment, which is run when none is named.
const Default = "scale-up-3-to-20"

//go:embed *.yaml manifests scheduler
var files embed.FS

// List returns the names of all experiments, in alphabetical order.
func List() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil // an embedded root can always be read
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
