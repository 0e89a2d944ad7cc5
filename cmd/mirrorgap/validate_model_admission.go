package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/agreement"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
	"github.com/mirrorgap/mirrorgap/sim/kubelet/differential"
)

const (
	// admissionFolder has the logs of the admission test, and disagreementsFile if there are any.
	admissionFolder   = "admission"
	disagreementsFile = "disagreements.json"
	// admissionSeed is what the sequences are drawn from.
	admissionSeed = 1
	// admissionParallel is how many sequences are played at once, most of which wait; admissionTrials how often one that disagrees is played again to find a
	// smaller one.
	admissionParallel = 8
	admissionTrials   = 60
)

// compareAdmission plays random sequences to modelled and real kubelets, on a control plane of its own, and writes into dir what it counted. What was counted
// before it failed is written, too.
func (v *validation) compareAdmission(cmd *cobra.Command, dir string) error {
	shown := newProgress(cmd.ErrOrStderr())
	defer shown.done()
	logs := filepath.Join(dir, admissionFolder, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("make the folder of the admission test: %w", err)
	}
	engine, err := live.Start(cmd.Context(), live.Options{LogDir: logs})
	if err != nil {
		return err
	}
	found, failed := differential.Run(cmd.Context(), differential.Config{
		Access: engine, LogDir: logs, Seed: admissionSeed, Sequences: v.sequences, Parallel: admissionParallel, ShrinkTrials: admissionTrials,
		Progress: func(played int) { shown.line(fmt.Sprintf("admission: %d/%d sequences", played, v.sequences)) },
	})
	failed = errors.Join(failed, engine.Stop())
	if found == nil {
		return failed
	}
	return errors.Join(failed, writeAdmission(dir, found, v.sequences))
}

// writeAdmission writes what the admission test found, of as many planned sequences.
func writeAdmission(dir string, found *differential.Report, planned int) error {
	if err := results.WriteJSONFile(filepath.Join(dir, admissionFile), admissionOf(found, planned)); err != nil {
		return err
	}
	if len(found.Disagreements) == 0 {
		return nil
	}
	return results.WriteJSONFile(filepath.Join(dir, admissionFolder, disagreementsFile), found.Disagreements)
}

func admissionOf(found *differential.Report, planned int) *agreement.Admission {
	a := &agreement.Admission{
		Seed: uint64(found.Seed), Planned: planned, Sequences: found.Sequences, Pods: found.Pods, Decisions: map[string]int{}, Reasons: found.Reasons,
		Disagreements: len(found.Disagreements), Repeated: found.Repeated,
	}
	for verdict, n := range found.Decisions {
		a.Decisions[string(verdict)] = n
	}
	for _, feature := range found.Never() {
		a.NotExercised = append(a.NotExercised, string(feature))
	}
	for _, d := range found.Disagreements {
		if d.Flaky {
			a.Flaky++
		}
		for _, difference := range d.Differences {
			a.Examples = append(a.Examples, fmt.Sprintf("%s, pod %s: %s", d.Sequence.Name, difference.Pod, difference.Detail))
		}
	}
	return a
}
