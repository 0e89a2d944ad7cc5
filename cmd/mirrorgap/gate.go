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

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/experiments/runner"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/verdict"
)

// gateOptions are the flags of mirrorgap gate.
type gateOptions struct {
	out, thresholds, junit string
	kubelets               *string
	as                     *output
}

func gateCommand() *cobra.Command {
	var g gateOptions
	cmd := &cobra.Command{
		Use:   "gate [NAME|FILE|DIR]",
		Short: "Make the runs of an experiment, or take those of a results folder, and judge them by thresholds",
		Long: `Make the runs of an experiment (NAME or FILE; default: ` + library.Default + `), or take those of a results folder (DIR), and judge them by the
experiment's thresholds, once its assumptions hold. The verdict is printed, and written into the results folder as ` + verdict.File + ` and ` + verdict.JUnitFile + `, with the report.

Exit codes: 0 every threshold is met, 1 one is not, 2 bad input, 3 inconclusive, 4 a run failed, 130 interrupted.`,
		Args:   cobra.MaximumNArgs(1),
		PreRun: quiet,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if err := g.checkJUnit(); err != nil {
				return err
			}
			if len(arguments) > 0 && isFolder(arguments[0]) {
				return g.judgeFolder(cmd, arguments[0])
			}
			return g.runAndJudge(cmd, arguments)
		},
	}
	g.as = addOutput(cmd)
	g.kubelets = addKubelet(cmd)
	cmd.Flags().StringVar(&g.out, "out", "", "results `folder` of the runs that are made; it must be empty or not exist (default out/<experiment>-<time>)")
	cmd.Flags().StringVar(&g.thresholds, "thresholds", "", "`experiment`, by name or file, whose thresholds and assumptions are used instead")
	cmd.Flags().StringVar(&g.junit, "junit", "", "write the JUnit `file` there, too")
	return cmd
}

// checkJUnit finds out before minutes of runs that the file of --junit cannot be written.
func (g *gateOptions) checkJUnit() error {
	if g.junit == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(g.junit)); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("--junit %s: there is no folder %s", g.junit, filepath.Dir(g.junit))}
	}
	return nil
}

// isFolder tells whether the argument is a folder; an experiment of the library wins over a folder of its name.
func isFolder(argument string) bool {
	info, err := os.Stat(argument)
	return err == nil && info.IsDir() && !slices.Contains(library.List(), argument)
}

// judgeFolder judges the runs of a results folder.
func (g *gateOptions) judgeFolder(cmd *cobra.Command, dir string) error {
	if g.out != "" {
		return usageError{errors.New("--out is for runs that are made; the verdict is written into the results folder that is judged")}
	}
	e, err := recorded(dir, g.thresholds)
	if err != nil {
		return err
	}
	plan, err := planOf(e)
	if err != nil {
		return err
	}
	return g.judge(cmd, dir, plan)
}

// recorded is the experiment by whose thresholds a results folder is judged: the one that was run, or the one that is named.
func recorded(dir, named string) (*experiments.Experiment, error) {
	if named != "" {
		return find(named)
	}
	file := filepath.Join(dir, runner.ExperimentFile)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{fmt.Errorf("%s has no %s to judge by: name an experiment with --thresholds", dir, runner.ExperimentFile)}
	}
	return experiments.Load(file)
}

// runAndJudge makes the runs of an experiment and judges them, also when one failed or was interrupted: what there is of them is then inconclusive.
func (g *gateOptions) runAndJudge(cmd *cobra.Command, arguments []string) error {
	e, err := load(arguments)
	if err != nil {
		return err
	}
	if err := useKubelets(e, *g.kubelets); err != nil {
		return err
	}
	judged := e
	if g.thresholds != "" {
		if judged, err = find(g.thresholds); err != nil {
			return err
		}
	}
	plan, err := planOf(judged)
	if err != nil {
		return err
	}
	dir := folder(g.out, e)
	summary, failed := makeRuns(cmd, e, dir)
	if summary == nil {
		return failed
	}
	err = g.judge(cmd, dir, plan)
	if failed != nil {
		return failed
	}
	return err
}

// planOf is what runs are judged by. It is bad input if they cannot be.
func planOf(e *experiments.Experiment) (verdict.Plan, error) {
	plan := e.Plan()
	if err := plan.Check(); err != nil {
		return plan, fmt.Errorf("%s: %w", e.Metadata.Name, err)
	}
	return plan, nil
}

// judge judges the runs of a results folder, writes their report with the verdict, and shows the verdict. It returns a verdictError unless all is well.
func (g *gateOptions) judge(cmd *cobra.Command, dir string, plan verdict.Plan) error {
	r, err := buildReport(dir, &plan)
	if err != nil {
		return err
	}
	v := r.Verdict
	if err := g.as.write(cmd.OutOrStdout(), v, func(w io.Writer) error { return showVerdict(w, v, dir) }); err != nil {
		return err
	}
	if err := r.Write(dir); err != nil {
		return err
	}
	if g.junit != "" {
		if err := results.ReplaceFile(g.junit, func(w io.Writer) error { return verdict.WriteJUnit(w, v, r.Summary) }); err != nil {
			return err
		}
	}
	if v.Outcome != verdict.Passed {
		return verdictError{v}
	}
	return nil
}

// showVerdict shows a person the verdict, and where the figures are.
func showVerdict(w io.Writer, v *verdict.Verdict, dir string) error {
	if err := v.Table(w, results.TableWidth); err != nil {
		return err
	}
	return showFolder(w, dir)
}

// verdictError is a verdict that keeps a gate shut.
type verdictError struct{ *verdict.Verdict }

// Error implements error.
func (e verdictError) Error() string { return e.Sentence() }

// code is the exit code of the verdict.
func (e verdictError) code() int { return codeOf(e.Outcome) }

// codeOf is the exit code of an outcome.
func codeOf(o verdict.Outcome) int {
	switch o {
	case verdict.Passed:
		return exitOK
	case verdict.Failed:
		return exitFailed
	}
	return exitInconclusive
}
