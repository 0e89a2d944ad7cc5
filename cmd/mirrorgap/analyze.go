package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// delaysFile is written beside a trace unless --delays names another.
const delaysFile = "delays.csv"

// analyzeOptions are the flags of analyze.
type analyzeOptions struct {
	delays string
	as     *output
}

func analyzeCommand() *cobra.Command {
	var o analyzeOptions
	cmd := &cobra.Command{
		Use:   "analyze DIR|TRACE",
		Short: "Say whether a recorded cluster has the race, and write its delays for an experiment",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			folder, err := results.OpenFolder(arguments[0])
			if err != nil {
				return err
			}
			if n := len(folder.Traces); o.delays != "" && n > 1 {
				return usageError{fmt.Errorf("--delays names one file, and there are %d traces in %s: name one of them", n, arguments[0])}
			}
			return o.analyze(cmd.OutOrStdout(), folder)
		},
	}
	o.as = addOutput(cmd)
	cmd.Flags().StringVar(&o.delays, "delays", "", "`file` for the delays (default "+delaysFile+" beside the trace)")
	return cmd
}

// analysis is the result of analyze for one trace.
type analysis struct {
	Trace string `json:"trace"`
	// DelaysFile has the delays of the nodes that joined; empty if there are no mirror pods on them.
	DelaysFile string `json:"delaysFile,omitempty"`
	*results.Findings
}

func (o *analyzeOptions) analyze(w io.Writer, folder *results.Folder) error {
	var all []analysis
	for _, path := range folder.Traces {
		run, err := results.ReadTrace(path)
		if err != nil {
			return err
		}
		a := analysis{Trace: path, Findings: run.Findings()}
		if len(a.Delays.Mirrors) > 0 {
			if a.DelaysFile = o.delays; o.delays == "" {
				a.DelaysFile = filepath.Join(filepath.Dir(path), delaysFile)
			}
			if err := results.ReplaceFile(a.DelaysFile, func(w io.Writer) error { return a.Delays.WriteCSV(w, describeRun(run.Header)) }); err != nil {
				return err
			}
		}
		all = append(all, a)
	}
	if err := o.as.write(w, all, func(w io.Writer) error { return showAnalyses(w, all) }); err != nil {
		return err
	}
	return conclusive(all)
}

// errInconclusive is returned for a trace that was cut short.
var errInconclusive = errors.New("nothing may be concluded from what it does not contain")

// conclusive is an errInconclusive unless every trace may be judged.
func conclusive(all []analysis) error {
	for _, a := range all {
		if !a.Conclusive {
			return fmt.Errorf("%s ended as %s: %w", a.Trace, a.End, errInconclusive)
		}
	}
	return nil
}

func describeRun(h trace.Header) string {
	return fmt.Sprintf("%s, arm %s, seed %d, Kubernetes %s, from %s", h.Experiment, h.Arm, h.Seed, h.Versions["kubernetes"], h.Start.Format(time.RFC3339))
}

func showAnalyses(w io.Writer, all []analysis) error {
	for i, a := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if len(all) > 1 {
			fmt.Fprintf(w, "%s\n\n", a.Trace)
		}
		if err := a.Table(w); err != nil {
			return err
		}
		if len(a.Delays.Mirrors) > 0 {
			a.showUse(w)
		}
	}
	return nil
}

// showUse shows how an experiment takes the delays.
func (a *analysis) showUse(w io.Writer) {
	fmt.Fprintf(w, "\nThe delays are in %s.\nFor an experiment, with the path relative to its file:\n\n", a.DelaysFile)
	use := func(indent, field, column string) {
		for _, line := range []string{field + ":", "  empirical:", "    file: " + a.DelaysFile, "    column: " + column} {
			fmt.Fprintln(w, indent+line)
		}
	}
	fmt.Fprintln(w, "kubelet:")
	if a.Delays.Ready.N > 0 {
		use("  ", "readyDelay", results.ColumnReady)
	}
	mirrors := a.Delays.Mirrors
	if len(mirrors) == 1 {
		use("  ", "mirrorDelay", mirrors[0].StaticPod)
		return
	}
	for _, m := range mirrors {
		fmt.Fprintf(w, "# static pod %s of a node group\n", m.StaticPod)
		use("", "mirrorDelay", m.StaticPod)
	}
}
