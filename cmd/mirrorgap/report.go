package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/runner"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/report"
)

func reportCommand() *cobra.Command {
	var out string
	var as *output
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Make the report of a results folder: " + report.HTMLFile + ", " + report.MarkdownFile + ", CSV, JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if out == "" {
				out = arguments[0]
			}
			r, err := buildReport(arguments[0])
			if err != nil {
				return err
			}
			if err := writeReport(r, out); err != nil {
				return err
			}
			return as.write(cmd.OutOrStdout(), r.Summary, func(w io.Writer) error { return showRun(w, r.Summary, out) })
		},
	}
	as = addOutput(cmd)
	cmd.Flags().StringVar(&out, "out", "", "`folder` to write to (default DIR)")
	return cmd
}

// buildReport reads a results folder, with the experiment that is in it, if there is one.
func buildReport(dir string) (*report.Report, error) {
	folder, err := results.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	source, err := sourceOf(folder.Path)
	if err != nil {
		return nil, err
	}
	return report.Build(folder, source)
}

// experimentOf is the experiment of a results folder; nil if it has none, as that of a recorded cluster.
func experimentOf(dir string) (*experiments.Experiment, error) {
	path := filepath.Join(dir, runner.ExperimentFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return experiments.Load(path)
}

// sourceOf is what the experiment of a results folder says.
func sourceOf(dir string) (report.Source, error) {
	e, err := experimentOf(dir)
	if err != nil || e == nil {
		return report.Source{}, err
	}
	text, err := e.YAML()
	if err != nil {
		return report.Source{}, err
	}
	controlPlane, err := yaml.Marshal(e.Spec.ControlPlane)
	if err != nil {
		return report.Source{}, fmt.Errorf("write control plane of %s: %w", dir, err)
	}
	source := report.Source{Experiment: string(text), Description: e.Spec.Description, ControlPlane: string(controlPlane)}
	if len(e.Spec.Thresholds) > 0 {
		source.Plan = new(e.Plan())
	}
	return source, nil
}

func writeReport(r *report.Report, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &results.InputError{Err: fmt.Errorf("make folder of the report: %w", err)}
	}
	return r.Write(dir)
}
