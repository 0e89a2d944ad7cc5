package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/compare"
)

func compareCommand() *cobra.Command {
	var as *output
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two results folders of one experiment, in pairs of equal seeds",
		Long: `Compare two results folders of one experiment: two versions of Kubernetes, two gates, before and after a change.

Runs are compared in pairs of equal seeds if both folders have two of them, else as two samples. A difference is shown if its p-value is below 0.05,
which takes at least six pairs. Runs that were cut short take no part; the exit code is 3 if there is one. The benchmark.txt of each folder is for
benchstat.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			a, err := results.OpenFolder(arguments[0])
			if err != nil {
				return err
			}
			b, err := results.OpenFolder(arguments[1])
			if err != nil {
				return err
			}
			r, err := compareFolders(a, b)
			if err != nil {
				return err
			}
			if err := as.write(cmd.OutOrStdout(), r, r.Table); err != nil {
				return err
			}
			return judgedAll(r)
		},
	}
	as = addOutput(cmd)
	return cmd
}

// judgedAll is an errInconclusive unless every run may be judged.
func judgedAll(r *compare.Result) error {
	for _, w := range r.Warnings {
		if w.Code == results.WarnInconclusive {
			return fmt.Errorf("%s: %w", w.Message, errInconclusive)
		}
	}
	return nil
}

func compareFolders(a, b *results.Folder) (*compare.Result, error) {
	summaryA, err := a.Summary()
	if err != nil {
		return nil, err
	}
	summaryB, err := b.Summary()
	if err != nil {
		return nil, err
	}
	r, err := compare.Summaries(a.Path, b.Path, summaryA, summaryB)
	if err != nil {
		return nil, err
	}
	experimentA, err := experimentOf(a.Path)
	if err != nil || experimentA == nil {
		return r, err
	}
	experimentB, err := experimentOf(b.Path)
	if err != nil || experimentB == nil {
		return r, err
	}
	fields, err := experiments.Differences(experimentA, experimentB)
	r.Differ = append(r.Differ, fields...)
	return r, err
}
