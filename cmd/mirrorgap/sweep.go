package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/experiments/runner"
	"github.com/mirrorgap/mirrorgap/experiments/sweeper"
	results "github.com/mirrorgap/mirrorgap/results/sweep"
)

func sweepCommand() *cobra.Command {
	var out string
	var parallel int
	var dryRun bool
	var as *output
	cmd := &cobra.Command{
		Use:   "sweep NAME|FILE",
		Short: "Make the runs of an experiment over the values of its parameters; continue what was interrupted",
		Long: `Make the runs of every case of a sweep: each combination of the values of its parameters, with all arms and seeds. The table is printed, and
written into the results folder with JSON, CSV, plots and a page. Runs that are finished are not made again when the command is repeated with the same --out.

Exit codes: 0 done, 2 bad input, 3 a run did not settle, 4 a run failed, 130 interrupted.`,
		Args:   cobra.ExactArgs(1),
		PreRun: quiet,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if parallel < 1 {
				return usageError{fmt.Errorf("--parallel %d: must be at least 1", parallel)}
			}
			s, err := loadSweep(arguments[0])
			if err != nil {
				return err
			}
			dir := folderFor(out, s.Metadata.Name)
			if dryRun {
				return showPlan(cmd.OutOrStdout(), s, dir)
			}
			return makeSweep(cmd, s, dir, parallel, as)
		},
	}
	as = addOutput(cmd)
	cmd.Flags().StringVar(&out, "out", "", "results `folder`: a new one, or that of the same sweep, which is continued (default out/<sweep>-<time>)")
	cmd.Flags().IntVar(&parallel, "parallel", max(1, runtime.NumCPU()/2),
		"make `n` runs at a time (default: half of the CPUs); runs on one machine disturb each other's figures that depend on its speed")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the cases, and how many of their runs are finished, and make none")
	return cmd
}

// isSweep tells whether the argument of a command is a sweep, of the library or in a file.
func isSweep(argument string) bool {
	return slices.Contains(library.Sweeps(), argument) || experiments.KindOf(argument) == experiments.SweepKind
}

// loadSweep finds and checks a sweep by the name of an embedded one, or by the path of a file.
func loadSweep(name string) (*experiments.Sweep, error) {
	s, err := findSweep(name)
	if err != nil {
		return nil, err
	}
	if err := s.Check(runner.Check); err != nil {
		return nil, inFile(name, err)
	}
	return s, nil
}

func findSweep(name string) (*experiments.Sweep, error) {
	if slices.Contains(library.Sweeps(), name) {
		return library.Sweep(name)
	}
	if slices.Contains(library.List(), name) {
		return nil, usageError{fmt.Errorf("%s is an experiment: mirrorgap run makes its runs", name)}
	}
	if _, err := os.Stat(name); err != nil && !strings.ContainsAny(name, "./\\") {
		return nil, usageError{fmt.Errorf("there is no sweep and no file %q: mirrorgap list shows the sweeps", name)}
	}
	return experiments.LoadSweep(name, library.Base)
}

// showPlan shows the cases of a sweep, and how many of their runs are finished.
func showPlan(w io.Writer, s *experiments.Sweep, dir string) error {
	_, done := sweeper.Finished(dir, s)
	finished := map[string]int{}
	total := 0
	for i, run := range s.Runs() {
		if done[i] {
			finished[run.Case.Name]++
			total++
		}
	}
	each := len(s.Arms()) * len(s.Spec.Seeds)
	fmt.Fprintf(w, "%s: %d cases × arms %s × %d seeds: %d runs, %d finished\n\n",
		s.Metadata.Name, len(s.Cases), strings.Join(s.Arms(), ", "), len(s.Spec.Seeds), len(done), total)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range s.Cases {
		fmt.Fprintf(table, "%s\t%d/%d finished\n", s.Cases[i].Name, finished[s.Cases[i].Name], each)
	}
	return table.Flush()
}

// makeSweep makes the runs that are not finished, and shows what all of them gave.
func makeSweep(cmd *cobra.Command, s *experiments.Sweep, dir string, parallel int, as *output) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the running binary: %w", err)
	}
	shown := newProgress(cmd.ErrOrStderr())
	result, failed := sweeper.Run(cmd.Context(), s, sweeper.Options{
		Dir: dir, Parallel: parallel, Child: []string{self, runOneName}, Progress: shown.sweep,
	})
	shown.done()
	if result != nil {
		if err := as.write(cmd.OutOrStdout(), result, func(w io.Writer) error { return showSweep(w, result, dir) }); err != nil {
			return errors.Join(failed, err)
		}
	}
	switch {
	case errors.As(failed, new(*experiments.BadInput)):
		return failed
	case failed != nil:
		return fmt.Errorf("%w\nto make the runs that are left: mirrorgap sweep --out %s %s", failed, dir, filepath.Join(dir, sweeper.SweepFile))
	}
	if _, _, notSettled := result.Finished(); notSettled > 0 {
		return fmt.Errorf("%d of the runs: %w", notSettled, errNotSettled)
	}
	return nil
}

func showSweep(w io.Writer, result *results.Sweep, dir string) error {
	if err := result.Table(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nresults: %s\n", dir)
	return err
}

// barWidth is the length of the bar of a sweep's progress, in characters.
const barWidth = 20

// sweep shows how far a sweep is: on a terminal as a bar in a line that is redrawn, elsewhere as a line for each run that has ended.
func (p *progress) sweep(now sweeper.Progress) {
	left := ""
	if now.Left != nil && now.Finished < now.Planned {
		left = ", about " + now.Left.Round(time.Second).String() + " left"
	}
	done := fmt.Sprintf("%d/%d runs, %s%s", now.Finished, now.Planned, now.Elapsed.Round(time.Second), left)
	if p.terminal {
		full := barWidth * now.Finished / now.Planned
		line := fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), done)
		if len(now.Running) > 0 {
			line += ": " + runName(&now.Running[0])
		}
		p.redraw(line)
		return
	}
	if now.Ended != nil {
		fmt.Fprintf(p.out, "%s: %s took %s\n", done, runName(now.Ended), now.Took.Round(time.Second))
	}
}

func runName(run *experiments.SweepRun) string {
	return fmt.Sprintf("%s %s seed %d", run.Case.Name, run.Arm.Name, run.Seed)
}

// runOneName is the command by which a sweep makes each of its runs in a process of its own.
const runOneName = "run-one"

func runOneCommand() *cobra.Command {
	return &cobra.Command{
		Use:    runOneName + " DIR ARM SEED",
		Short:  "Make one run of the experiment in a results folder, until standard input ends",
		Hidden: true,
		Args:   cobra.ExactArgs(3),
		PreRun: quiet,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			e, err := experiments.Load(filepath.Join(arguments[0], experiments.ResolvedFile))
			if err != nil {
				return err
			}
			for _, run := range e.Runs() {
				if run.Arm.Name == arguments[1] && strconv.FormatUint(run.Seed, 10) == arguments[2] {
					return runner.RunOne(untilEnd(cmd.Context(), cmd.InOrStdin()), e, run, runner.Options{Dir: arguments[0]})
				}
			}
			return usageError{fmt.Errorf("experiment %s has no arm %s with seed %s", e.Metadata.Name, arguments[1], arguments[2])}
		},
	}
}

// untilEnd is ctx until the input ends: whoever holds its other end wants the work to be stopped, or is gone.
func untilEnd(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end, too
		cancel()
	}()
	return ctx
}
