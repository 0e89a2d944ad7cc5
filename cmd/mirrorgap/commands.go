package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/mitchellh/go-wordwrap"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mirrorgap/mirrorgap/checker"
	"github.com/mirrorgap/mirrorgap/controllers"
	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/experiments/runner"
	"github.com/mirrorgap/mirrorgap/sim"
)

func newCommand() *cobra.Command {
	// Kubernetes code registers the flags of its own programs here, and cobra would offer them as mirrorgap's.
	pflag.CommandLine = pflag.NewFlagSet("mirrorgap", pflag.ContinueOnError)
	root := &cobra.Command{
		Use:   "mirrorgap",
		Short: "Reproduce, measure and close the race between static pods and the scheduler",
		Long: `mirrorgap scales up simulated nodes under a real control plane, and measures the pods that fail with OutOfcpu because the scheduler has not
seen the nodes' static pods yet, with and without a readiness gate.

Exit codes: 0 done, 1 a threshold is not met, 2 bad input, 3 inconclusive, 4 a run failed, 130 interrupted.`,
		Args:          cobra.NoArgs, // what is no command
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(runCommand(), runOneCommand(), sweepCommand(), gateCommand(), upCommand(), reportCommand(), compareCommand(), recordCommand(),
		analyzeCommand(), listCommand(), validateCommand(), validateModelCommand(), versionCommand(), kubectlCommand(), controllers.NewCommand(), checker.NewCommand())
	for _, cmd := range append(root.Commands(), root) {
		cmd.Args = orUsageError(cmd.Args)
	}
	return root
}

// quiet keeps what Kubernetes code logs off the terminal, in commands that run or decode for the user. The controller and the check log as ever.
func quiet(*cobra.Command, []string) { runner.SilenceLogs() }

// orUsageError makes a wrong number of arguments a usage error.
func orUsageError(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, arguments []string) error {
		if err := check(cmd, arguments); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// load finds and checks the experiment that a command is given; without an argument it is the default one.
func load(arguments []string) (*experiments.Experiment, error) {
	name := library.Default
	if len(arguments) > 0 {
		name = arguments[0]
	}
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	if err := runner.Check(e); err != nil {
		return nil, inFile(name, err)
	}
	return e, nil
}

// addKubelet adds the flag --kubelet.
func addKubelet(cmd *cobra.Command) *string {
	return cmd.Flags().String("kubelet", "", "run all nodes with this `implementation` of the kubelet, model or real (default: what the experiment says)")
}

// useKubelets does what --kubelet says.
func useKubelets(e *experiments.Experiment, implementation string) error {
	if implementation == "" {
		return nil
	}
	if err := e.UseKubelets(sim.Implementation(implementation)); err != nil {
		return usageError{fmt.Errorf("--kubelet %s: experiment %s: %w", implementation, e.Metadata.Name, err)}
	}
	return nil
}

// find finds an experiment by the name of an embedded one, or by the path of a file.
func find(name string) (*experiments.Experiment, error) {
	if slices.Contains(library.List(), name) {
		return library.Get(name)
	}
	if slices.Contains(library.Sweeps(), name) {
		return nil, usageError{fmt.Errorf("%s is a sweep: mirrorgap sweep makes its runs", name)}
	}
	if _, err := os.Stat(name); err != nil && !strings.ContainsAny(name, "./\\") {
		return nil, usageError{fmt.Errorf("there is no experiment and no file %q: mirrorgap list shows the experiments", name)}
	}
	return experiments.Load(name)
}

// inFile says of what the runner refuses which file it is in; the runner knows the experiment only.
func inFile(name string, err error) error {
	var bad *experiments.BadInput
	if errors.As(err, &bad) {
		for i := range bad.Problems {
			bad.Problems[i].File = name
		}
	}
	return err
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the experiments and sweeps that come with mirrorgap",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all listing
			for _, folder := range library.Folders() {
				names := folder.Names()
				if len(names) > 0 && folder.Title != "" {
					all = append(all, listed{description: "\n" + folder.Title + ":"})
				}
				for _, name := range names {
					e, err := library.Get(name)
					if err != nil {
						return err
					}
					all = append(all, listed{name, e.Spec.Description})
				}
			}
			all = append(all, listed{description: "\nSweeps, for mirrorgap sweep:"})
			for _, name := range library.Sweeps() {
				s, err := library.Sweep(name)
				if err != nil {
					return err
				}
				all = append(all, listed{name, s.Spec.Description})
			}
			_, err := io.WriteString(cmd.OutOrStdout(), all.String())
			return err
		},
	}
}

// listing is a list of names with their descriptions, in one column each.
type listing []listed

// listed is an entry; without a name it is a heading.
type listed struct{ name, description string }

// terminalWidth is what a line of a listing fits into.
const terminalWidth = 80

// String shows of each description the first line.
func (l listing) String() string {
	var column int
	for _, entry := range l {
		column = max(column, len(entry.name)+2)
	}
	var out strings.Builder
	for _, entry := range l {
		if entry.name == "" {
			fmt.Fprintln(&out, entry.description)
			continue
		}
		name := entry.name
		summary, _, _ := strings.Cut(entry.description, "\n")
		for line := range strings.SplitSeq(wordwrap.WrapString(summary, uint(terminalWidth-column)), "\n") {
			fmt.Fprintf(&out, "%-*s%s\n", column, name, line)
			name = ""
		}
	}
	return out.String()
}

func validateCommand() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:    "validate NAME|FILE",
		Short:  "Check an experiment or a sweep without running it",
		Args:   cobra.ExactArgs(1),
		PreRun: quiet,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			file, verdict, err := loadAny(arguments)
			if err != nil {
				return err
			}
			if !full {
				fmt.Fprintln(cmd.OutOrStdout(), verdict)
				return nil
			}
			resolved, err := file.YAML()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(resolved)
			return err
		},
	}
	cmd.Flags().BoolVar(&full, "print", false, "print it with all defaults set and all files inline")
	return cmd
}

// loadAny loads an experiment or a sweep, and says what there is in it.
func loadAny(arguments []string) (file interface{ YAML() ([]byte, error) }, verdict string, err error) {
	if isSweep(arguments[0]) {
		s, err := loadSweep(arguments[0])
		if err != nil {
			return nil, "", err
		}
		return s, fmt.Sprintf("%s is valid (cases: %d, arms: %d, seeds: %d)", s.Metadata.Name, len(s.Cases), len(s.Arms()), len(s.Spec.Seeds)), nil
	}
	e, err := load(arguments)
	if err != nil {
		return nil, "", err
	}
	return e, fmt.Sprintf("%s is valid (arms: %d, seeds: %d)", e.Metadata.Name, len(e.Spec.Arms), len(e.Spec.Seeds)), nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of mirrorgap and of everything that it runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			versions := runner.Versions()
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, name := range sortedNames(versions) {
				fmt.Fprintf(table, "%s\t%s\n", name, versions[name])
			}
			return table.Flush()
		},
	}
}

// sortedNames lists mirrorgap first, then the others by name.
func sortedNames(versions map[string]string) []string {
	var names []string
	for name := range versions {
		if name != "mirrorgap" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return append([]string{"mirrorgap"}, names...)
}

// kubectlCommand runs this binary again under the name kubectl, in place of this process.
func kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl ...",
		Short:              "Be the kubectl of this version of Kubernetes",
		Args:               cobra.ArbitraryArgs,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, arguments []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find the running binary: %w", err)
			}
			return syscall.Exec(self, append([]string{"kubectl"}, arguments...), os.Environ())
		},
	}
}
