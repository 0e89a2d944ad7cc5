package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/runner"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/report"
	"github.com/mirrorgap/mirrorgap/results/verdict"
	"github.com/mirrorgap/mirrorgap/sim"
)

func reportCommand() *cobra.Command {
	var out string
	var as *output
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Make the report of a results folder: " + report.HTMLFile + ", " + report.MarkdownFile + ", CSV, JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			r, err := buildReport(arguments[0], nil)
			if err != nil {
				return err
			}
			if out == "" {
				out = arguments[0]
			}
			if err := os.MkdirAll(out, 0o755); err != nil {
				return usageError{fmt.Errorf("make folder of the report: %w", err)}
			}
			if err := r.Write(out); err != nil {
				return err
			}
			if err := as.write(cmd.OutOrStdout(), r.Summary, func(w io.Writer) error { return showRun(w, r.Summary, out) }); err != nil {
				return err
			}
			return judgeable(r.Summary)
		},
	}
	as = addOutput(cmd)
	cmd.Flags().StringVar(&out, "out", "", "`folder` to write to (default DIR)")
	return cmd
}

// judgeable is an errInconclusive unless every run may be judged.
func judgeable(s *results.Summary) error {
	for i := range s.Arms {
		for _, run := range s.Arms[i].Runs {
			if !run.Conclusive {
				return fmt.Errorf("arm %s, seed %d ended as %s: %w", s.Arms[i].Name, run.Seed, run.End, errInconclusive)
			}
		}
	}
	return nil
}

// buildReport reads a results folder, with the experiment that is in it, if there is one. A plan that is given is used instead of that experiment's.
func buildReport(dir string, plan *verdict.Plan) (*report.Report, error) {
	folder, err := results.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	e, err := experimentOf(folder.Path)
	if err != nil {
		return nil, err
	}
	source, err := sourceOf(e)
	if err != nil {
		return nil, err
	}
	if plan != nil {
		source.Plan = plan
	}
	r, err := report.Build(folder, source)
	if err != nil {
		return nil, err
	}
	if e != nil && r.Summary.Experiment != e.Metadata.Name {
		return nil, usageError{fmt.Errorf("%s holds runs of experiment %s, but its %s is of %s", dir, r.Summary.Experiment, runner.ExperimentFile, e.Metadata.Name)}
	}
	return r, nil
}

// experimentOf is the experiment of a results folder; nil if it has none, as that of a recorded cluster.
func experimentOf(dir string) (*experiments.Experiment, error) {
	path := filepath.Join(dir, runner.ExperimentFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return experiments.Load(path)
}

// sourceOf is what an experiment says about its runs; nothing if there is none.
func sourceOf(e *experiments.Experiment) (report.Source, error) {
	if e == nil {
		return report.Source{}, nil
	}
	text, err := e.YAML()
	if err != nil {
		return report.Source{}, err
	}
	settings, err := yaml.Marshal(map[string]any{"controlPlane": e.Spec.ControlPlane, "kubelet": e.Spec.Kubelet})
	if err != nil {
		return report.Source{}, fmt.Errorf("write settings of %s: %w", e.Metadata.Name, err)
	}
	plan := e.Plan()
	source := report.Source{Experiment: string(text), Description: e.Spec.Description, Settings: string(settings), Seeds: plan.Seeds}
	for _, arm := range plan.Arms {
		source.Arms = append(source.Arms, arm.Name)
	}
	source.ModelGroups, source.RealGroups = kubeletsOf(e)
	if len(e.Spec.Thresholds) > 0 {
		source.Plan = &plan
	}
	return source, nil
}

// kubeletsOf are the node groups with modelled and with real kubelets, in any arm.
func kubeletsOf(e *experiments.Experiment) (modelled, ofReal []string) {
	for _, arm := range e.Spec.Arms {
		for i := range e.ClusterOf(arm).NodeGroups {
			group := &e.ClusterOf(arm).NodeGroups[i]
			side := &modelled
			if group.Kubelet.Implementation == sim.KubeletReal {
				side = &ofReal
			}
			if !slices.Contains(*side, group.Name) {
				*side = append(*side, group.Name)
			}
		}
	}
	return modelled, ofReal
}
