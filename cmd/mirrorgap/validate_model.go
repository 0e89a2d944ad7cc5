package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/experiments/runner"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/agreement"
	"github.com/mirrorgap/mirrorgap/results/verdict"
)

// The parts of a folder of mirrorgap validate-model, besides those of package agreement.
const (
	// timingFolder is the results folder of the timing experiment.
	timingFolder = "timing"
	// admissionFile has what the admission test counted.
	admissionFile = "admission.json"
)

// timingExperiment is the name of the experiment that the timing is measured by.
const timingExperiment = "model-timing"

// The defaults of mirrorgap validate-model. With 6 runs of 20 nodes the distance of two equal distributions stays below 0.2, and a ratio has an interval.
const (
	defaultTimingSeeds = 6
	defaultSequences   = 1000
)

// validation are the flags of mirrorgap validate-model.
type validation struct {
	out              string
	seeds, sequences int
	as               *output
}

func validateModelCommand() *cobra.Command {
	var v validation
	cmd := &cobra.Command{
		Use:   "validate-model [DIR]",
		Short: "Hold the kubelet model against the real kubelet: decisions of admission, and timing",
		Long: `Hold the kubelet model against the real kubelet. The same random sequences of pods are played to both, and every decision is compared; and both join one
cluster (experiment ` + timingExperiment + `), where it is measured how long they take, and how fast pods that they reject are replaced. The report is printed, and written into
the folder as ` + agreement.HTMLFile + `, ` + agreement.MarkdownFile + `, ` + agreement.JSONFile + ` and ` + agreement.CSVFile + `. With DIR, such a folder, only the report is made anew.

Exit codes: 0 they agree, 1 they differ, 2 bad input, 3 inconclusive, 4 a run failed, 130 interrupted.`,
		Args:   cobra.MaximumNArgs(1),
		PreRun: quiet,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return v.judgeFolder(cmd, arguments[0])
			}
			return v.runAndJudge(cmd)
		},
	}
	v.as = addOutput(cmd)
	cmd.Flags().StringVar(&v.out, "out", "", "results `folder`; it must be empty or not exist (default out/validate-model-<time>)")
	cmd.Flags().IntVar(&v.seeds, "seeds", defaultTimingSeeds, "`number` of runs of the timing experiment, about 3 minutes each; fewer than the default are inconclusive")
	cmd.Flags().IntVar(&v.sequences, "sequences", defaultSequences, "`number` of random sequences of the admission test")
	return cmd
}

// judgeFolder makes the report of a folder anew.
func (v *validation) judgeFolder(cmd *cobra.Command, dir string) error {
	for _, flag := range []string{"out", "seeds", "sequences"} {
		if cmd.Flags().Changed(flag) {
			return usageError{fmt.Errorf("--%s is for what is run; %s has been", flag, dir)}
		}
	}
	return v.judge(cmd, dir)
}

// runAndJudge runs both parts and judges them, also when one failed or was interrupted: what there is of them is then inconclusive.
func (v *validation) runAndJudge(cmd *cobra.Command) error {
	if v.seeds < 1 || v.sequences < 1 {
		return usageError{errors.New("--seeds and --sequences are at least 1")}
	}
	e, err := library.Get(timingExperiment)
	if err != nil {
		return err
	}
	e.Spec.Seeds = nil
	for seed := range uint64(v.seeds) {
		e.Spec.Seeds = append(e.Spec.Seeds, seed+1)
	}
	dir := folderFor(v.out, "validate-model")
	if err := runner.PrepareFolder(dir); err != nil {
		return err
	}
	failed := v.compareAdmission(cmd, dir)
	if failed == nil {
		_, failed = makeRuns(cmd, e, filepath.Join(dir, timingFolder))
	}
	err = v.judge(cmd, dir)
	if failed != nil {
		return failed
	}
	return err
}

// judge judges what there is in a folder, writes the report and shows it. It returns an agreementError unless model and real kubelet agree.
func (v *validation) judge(cmd *cobra.Command, dir string) error {
	r, err := readAgreement(dir)
	if err != nil {
		return err
	}
	if err := r.Write(dir); err != nil {
		return err
	}
	if err := v.as.write(cmd.OutOrStdout(), r, func(w io.Writer) error { return showAgreement(w, r, dir) }); err != nil {
		return err
	}
	if r.Outcome != verdict.Passed {
		return agreementError{r}
	}
	return nil
}

func showAgreement(w io.Writer, r *agreement.Report, dir string) error {
	if err := r.Table(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nresults: %s\nreport:  %s\n", dir, filepath.Join(dir, agreement.HTMLFile))
	return err
}

// readAgreement makes the report of a folder. It is bad input if there is nothing in it.
func readAgreement(dir string) (*agreement.Report, error) {
	r := &agreement.Report{Start: time.Now().UTC(), Versions: runner.Versions(), Machine: runner.Machine()}
	var err error
	if r.Timing, err = readTiming(filepath.Join(dir, timingFolder)); err != nil {
		return nil, err
	}
	if r.Admission, err = readAdmission(filepath.Join(dir, admissionFile)); err != nil {
		return nil, err
	}
	if r.Timing == nil && r.Admission == nil {
		return nil, usageError{fmt.Errorf("%s is no folder of mirrorgap validate-model: it has neither %s nor %s", dir, timingFolder, admissionFile)}
	}
	r.Command = "mirrorgap validate-model"
	if t := r.Timing; t != nil {
		r.Start, r.Versions, r.Machine = t.Start, t.Runs[0].Versions, t.Runs[0].Machine
		r.Command += fmt.Sprintf(" --seeds %d", len(t.Seeds))
	}
	if a := r.Admission; a != nil {
		r.Command += fmt.Sprintf(" --sequences %d", a.Planned)
	}
	r.Judge()
	return r, nil
}

// readTiming measures the runs of the timing experiment; nil if there are none.
func readTiming(dir string) (*agreement.Timing, error) {
	if runs, err := filepath.Glob(filepath.Join(dir, "*", "*", results.TraceFile)); err != nil || len(runs) == 0 {
		return nil, err
	}
	folder, err := results.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	e, err := experiments.Load(filepath.Join(dir, runner.ExperimentFile))
	if err != nil {
		return nil, err
	}
	return agreement.Measure(folder.Runs(), agreement.Plan{
		Start: agreement.Pair{Model: "start-model", Real: "start-real"},
		Storm: agreement.Pair{Model: "storm-model", Real: "storm-real"},
		Seeds: e.Spec.Seeds,
	})
}

// readAdmission reads what the admission test counted; nil if it was not made.
func readAdmission(path string) (*agreement.Admission, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("read the counts of the admission test: %w", err)}
	}
	a := &agreement.Admission{}
	if err := json.Unmarshal(data, a); err != nil {
		return nil, usageError{fmt.Errorf("read the counts of the admission test: %s: %w", path, err)}
	}
	return a, nil
}

// agreementError is a report by which model and real kubelet do not agree.
type agreementError struct{ *agreement.Report }

// Error implements error.
func (e agreementError) Error() string { return e.Sentence() }

// code is the exit code of the report.
func (e agreementError) code() int { return codeOf(e.Outcome) }
