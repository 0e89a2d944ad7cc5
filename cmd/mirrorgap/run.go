package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/experiments/runner"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/report"
	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
)

const kubeconfigFile = "kubeconfig"

func runCommand() *cobra.Command {
	var out, arm string
	var kubelets *string
	var as *output
	cmd := &cobra.Command{
		Use:    "run [NAME|FILE]",
		Short:  "Make the runs of an experiment and show what happened (default: " + library.Default + ")",
		Args:   cobra.MaximumNArgs(1),
		PreRun: quiet,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			e, err := loadArm(arguments, arm)
			if err != nil {
				return err
			}
			if err := useKubelets(e, *kubelets); err != nil {
				return err
			}
			dir := folder(out, e)
			summary, failed := makeRuns(cmd, e, dir)
			if summary == nil {
				return failed
			}
			if err := as.write(cmd.OutOrStdout(), summary, func(w io.Writer) error { return showRun(w, summary, dir) }); err != nil {
				return errors.Join(failed, err)
			}
			r, err := buildReport(dir, nil)
			if err != nil {
				return errors.Join(failed, err)
			}
			if err := errors.Join(failed, r.Write(dir)); err != nil {
				return err
			}
			return settled(summary)
		},
	}
	as = addOutput(cmd)
	kubelets = addKubelet(cmd)
	cmd.Flags().StringVar(&out, "out", "", "results `folder`; it must be empty or not exist (default out/<experiment>-<time>)")
	cmd.Flags().StringVar(&arm, "arm", "", "run only the arm of that `name`")
	return cmd
}

// makeRuns makes the runs of an experiment and shows how far they are. When one fails, it returns the summary of those so far too, if there is any.
func makeRuns(cmd *cobra.Command, e *experiments.Experiment, dir string) (*results.Summary, error) {
	shown := newProgress(cmd.ErrOrStderr())
	defer shown.done()
	return runner.Run(cmd.Context(), e, runner.Options{Dir: dir, Progress: shown.show})
}

// showRun shows a person what the runs gave, and where the rest of it is.
func showRun(w io.Writer, summary *results.Summary, dir string) error {
	if err := results.Table(w, summary, results.TableWidth); err != nil {
		return err
	}
	return showFolder(w, dir)
}

// showFolder says where the rest is.
func showFolder(w io.Writer, dir string) error {
	_, err := fmt.Fprintf(w, "\nresults: %s\nreport:  %s\n", dir, filepath.Join(dir, report.HTMLFile))
	return err
}

// settled is an errNotSettled, with what the first such run says, unless every run settled.
func settled(summary *results.Summary) error {
	for _, arm := range summary.Arms {
		for _, r := range arm.Runs {
			if !r.Settled {
				return fmt.Errorf("arm %s, seed %d: %w: %s", arm.Name, r.Seed, errNotSettled, r.EndMessage)
			}
		}
	}
	return nil
}

func upCommand() *cobra.Command {
	var out, arm string
	var kubelets *string
	var seed uint64
	var pause bool
	cmd := &cobra.Command{
		Use:   "up [NAME|FILE]",
		Short: "Start the simulated cluster of an experiment and keep it until Ctrl-C, to look at with kubectl",
		Long: `Start the simulated cluster of one arm of an experiment, play its scale-up, and keep it until Ctrl-C.

The path of a kubeconfig is printed as soon as the API serves, before the first node joins. Without kubectl at hand, mirrorgap kubectl is one.`,
		Args:   cobra.MaximumNArgs(1),
		PreRun: quiet,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			e, err := loadArm(arguments, arm)
			if err != nil {
				return err
			}
			if err := useKubelets(e, *kubelets); err != nil {
				return err
			}
			e = e.Only(e.Spec.Arms[len(e.Spec.Arms)-1].Name)
			if cmd.Flags().Changed("seed") {
				e.Spec.Seeds = experiments.Seeds{seed}
			}
			e.Spec.Seeds = e.Spec.Seeds[:1]
			return up(cmd, e, folder(out, e), pause)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`folder` for kubeconfig, trace and logs; it must be empty or not exist (default out/<experiment>-<time>)")
	cmd.Flags().StringVar(&arm, "arm", "", "the arm of that `name` (default: the last one)")
	kubelets = addKubelet(cmd)
	cmd.Flags().Uint64Var(&seed, "seed", 0, "seed (default: the experiment's first)")
	cmd.Flags().BoolVar(&pause, "pause", false, "wait for Enter before the scale-up")
	return cmd
}

func up(cmd *cobra.Command, e *experiments.Experiment, dir string, pause bool) error {
	shown := newProgress(cmd.ErrOrStderr())
	options := runner.Options{
		Dir:      dir,
		Progress: shown.show,
		Hold: func(runDir string, engine *live.Engine) error {
			path, err := writeKubeconfig(runDir, engine)
			if err != nil {
				return err
			}
			shown.done()
			fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", path)
			fmt.Fprintln(cmd.ErrOrStderr(), "The cluster runs until Ctrl-C.")
			return nil
		},
	}
	if pause {
		options.BeforeScaleUp = func(ctx context.Context) error {
			shown.done()
			fmt.Fprintln(cmd.ErrOrStderr(), "The initial nodes are up and the workloads placed. Press Enter for the scale-up.")
			return readLine(ctx, cmd.InOrStdin())
		}
	}
	_, err := runner.Run(cmd.Context(), e, options)
	shown.done()
	if errors.Is(err, context.Canceled) && cmd.Context().Err() != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "The cluster is gone. Its trace: %s\n", dir)
		return nil //nolint:nilerr // Ctrl-C is how it is meant to end
	}
	return err
}

func writeKubeconfig(dir string, engine *live.Engine) (string, error) {
	data, err := engine.Kubeconfig("admin", sim.Masters)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(dir, kubeconfigFile))
	if err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}

// readLine waits for a line, or for the end of the input, or of ctx.
func readLine(ctx context.Context, in io.Reader) error {
	read := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(in).ReadString('\n') // the end of the input counts as Enter
		close(read)
	}()
	select {
	case <-read:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loadArm loads an experiment and, if a name is given, leaves it that arm only.
func loadArm(arguments []string, name string) (*experiments.Experiment, error) {
	e, err := load(arguments)
	if err != nil || name == "" {
		return e, err
	}
	if only := e.Only(name); only != nil {
		return only, nil
	}
	var names []string
	for _, arm := range e.Spec.Arms {
		names = append(names, arm.Name)
	}
	return nil, usageError{fmt.Errorf("experiment %s has no arm %q; it has %q", e.Metadata.Name, name, names)}
}

// started names results folders; it is fixed so that all of a command's output goes to one.
var started = time.Now()

// folder is the results folder: the named one, or one below out/ after the experiment and the time.
func folder(named string, e *experiments.Experiment) string { return folderFor(named, e.Metadata.Name) }

func folderFor(named, name string) string {
	if named != "" {
		return named
	}
	return filepath.Join("out", name+"-"+started.Format("20060102-150405"))
}
