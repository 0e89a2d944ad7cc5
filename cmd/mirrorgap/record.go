package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/mirrorgap/mirrorgap/experiments/runner"
	"github.com/mirrorgap/mirrorgap/results"
	realcluster "github.com/mirrorgap/mirrorgap/sim/engine/cluster"
	"github.com/mirrorgap/mirrorgap/sim/gate"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// recordedArm is the arm of what was recorded on a cluster.
const recordedArm = "recorded"

// recordOptions are the flags of record.
type recordOptions struct {
	kubeconfig, context, out, name string
	gate                           trace.Gate
	duration                       time.Duration
}

func recordCommand() *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record the nodes and pods of a real cluster during a scale-up, without changing anything",
		Long: `Record the nodes and pods of a real cluster until Ctrl-C, as a trace: begin it, scale a node group up, and end it when the new nodes run their pods.
It only lists and watches nodes and pods. mirrorgap analyze then says whether the cluster has the race, and how long its mirror pods take.

` + recordedWarning,
		Args:   cobra.NoArgs,
		PreRun: quiet,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return o.record(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster (default: $KUBECONFIG, ~/.kube/config, or the pod's own)")
	flags.StringVar(&o.context, "context", "", "`context` of the kubeconfig (default: its current one)")
	flags.StringVar(&o.out, "out", "", "results `folder`; it must be empty or not exist (default out/<name>-<time>)")
	flags.StringVar(&o.name, "name", "", "`name` of the recording, a DNS label (default: the cluster's in the kubeconfig)")
	flags.DurationVar(&o.duration, "for", 0, "how long to record (default: until Ctrl-C)")
	flags.StringVar(&o.gate.TaintKey, "taint-key", "", "`key` of the readiness gate's taint, if nodes are held by one")
	flags.StringVar(&o.gate.TaintEffect, "taint-effect", string(corev1.TaintEffectNoSchedule), "`effect` of that taint")
	flags.StringVar(&o.gate.Condition, "condition", "", "`type` of the node condition that has it removed")
	return cmd
}

const recordedWarning = `The trace holds names of nodes, pods and owners, requests, taints, and the messages of pods that failed: look at it before you publish it.`

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// check finds everything that is wrong with the flags.
func (o *recordOptions) check() error {
	var problems []error
	if o.name != "" && !dnsLabel.MatchString(o.name) {
		problems = append(problems, fmt.Errorf("--name %q is no DNS label, such as prod-eu", o.name))
	}
	if o.duration < 0 {
		problems = append(problems, fmt.Errorf("--for %s must not be negative", o.duration))
	}
	if o.gate.TaintKey == "" && o.gate.Condition != "" {
		problems = append(problems, errors.New("--condition is about a readiness gate, of which --taint-key is missing"))
	}
	effects := []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectNoExecute)}
	if !slices.Contains(effects, o.gate.TaintEffect) {
		problems = append(problems, fmt.Errorf("--taint-effect %q must be one of %s", o.gate.TaintEffect, strings.Join(effects, ", ")))
	}
	return errors.Join(problems...)
}

func (o *recordOptions) record(cmd *cobra.Command) error {
	target, err := realcluster.Find(o.kubeconfig, o.context)
	if err != nil {
		return usageError{err}
	}
	if o.name == "" {
		o.name = target.Name
	}
	if o.out == "" {
		o.out = filepath.Join("out", o.name+"-"+started.Format("20060102-150405"))
	}
	if err := target.Reach(cmd.Context()); err != nil {
		return err
	}
	if err := runner.PrepareFolder(o.out); err != nil {
		return err
	}
	path := filepath.Join(o.out, recordedArm, "seed-0", results.TraceFile)
	if err := o.recordTo(cmd, target, path); err != nil {
		return fmt.Errorf("record to %s: %w", path, err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", recordedWarning)
	fmt.Fprintf(cmd.OutOrStdout(), "recorded: %s\nnext:     mirrorgap analyze %s\n", path, o.out)
	return nil
}

func (o *recordOptions) recordTo(cmd *cobra.Command, target *realcluster.Cluster, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	shown := newProgress(cmd.ErrOrStderr())
	defer shown.done()
	seen := &seen{unmirrored: map[string]bool{}}
	begun := time.Now()
	return target.Record(cmd.Context(), file, realcluster.Options{
		Header:  o.header(),
		For:     o.duration,
		IsCheck: gate.IsCheck,
		Tap:     seen.apply,
		Began:   func() { fmt.Fprintln(cmd.ErrOrStderr(), "recording: scale up now; Ctrl-C ends it") },
		Tick:    func() { shown.line(fmt.Sprintf("%s %s", time.Since(begun).Round(time.Second), seen)) },
	})
}

func (o *recordOptions) header() trace.Header {
	h := trace.Header{
		Experiment: o.name, Arm: recordedArm, Versions: map[string]string{"mirrorgap": runner.Version}, Machine: runner.Machine(),
	}
	if o.gate.TaintKey != "" {
		h.Gate = &o.gate
	}
	return h
}

// seen counts what was recorded, to be shown as progress.
type seen struct {
	mu                            sync.Mutex
	nodes, joined, pods, rejected int
	unmirrored                    map[string]bool // new nodes on which no mirror pod was seen, by name
	broken                        int
}

// apply is a trace tap.
func (s *seen) apply(e trace.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case trace.NodeRegistered:
		s.nodes++
		if !e.NodeInfo.Initial {
			s.joined++
			s.unmirrored[e.Node] = true
		}
	case trace.NodeDeleted:
		s.nodes--
		delete(s.unmirrored, e.Node)
	case trace.PodCreated:
		s.pods++
		if e.PodInfo.Mirror {
			delete(s.unmirrored, e.Node)
		}
	case trace.PodDeleted:
		s.pods--
	case trace.PodFailed:
		if results.IsRejection(e.Reason, e.Message) {
			s.rejected++
		}
	case trace.WatchBroken:
		s.broken++
	case trace.WatchResumed:
		s.broken--
	}
}

// String is one line.
func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("%d nodes, %d joined, %d of them without a mirror pod; %d pods, %d rejected", s.nodes, s.joined, len(s.unmirrored), s.pods, s.rejected)
	if s.broken > 0 {
		line += "; the API server does not answer"
	}
	return line
}
