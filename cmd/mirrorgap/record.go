package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/runner"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/gate"
	"github.com/mirrorgap/mirrorgap/sim/recorder"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// recordedArm is the arm of what was recorded on a cluster.
const recordedArm = "recorded"

// recordOptions are the flags of record.
type recordOptions struct {
	kubeconfig, context, out, name string
	taintKey, taintEffect          string
	condition                      string
	duration                       time.Duration
}

func recordCommand() *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record the nodes and pods of a real cluster during a scale-up, without changing anything",
		Long: `Record the nodes and pods of a real cluster until Ctrl-C, as a trace: begin it, scale a node group up, and end it when the new nodes run their pods.
It only lists and watches nodes and pods. mirrorgap analyze then says whether the cluster has the race, and how long its mirror pods take.

The trace holds names of nodes, pods and owners, requests, taints, and the messages of pods that failed.`,
		Args:   cobra.NoArgs,
		PreRun: quiet,
		RunE:   func(cmd *cobra.Command, _ []string) error { return o.record(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster (default: $KUBECONFIG, ~/.kube/config, or the pod's own)")
	flags.StringVar(&o.context, "context", "", "`context` of the kubeconfig (default: its current one)")
	flags.StringVar(&o.out, "out", "", "results `folder`; it must be empty or not exist (default out/<name>-<time>)")
	flags.StringVar(&o.name, "name", "", "`name` of the recording, a DNS label (default: the cluster's in the kubeconfig)")
	flags.DurationVar(&o.duration, "for", 0, "how long to record (default: until Ctrl-C)")
	flags.StringVar(&o.taintKey, "taint-key", "", "`key` of the readiness gate's taint, if nodes are held by one")
	flags.StringVar(&o.taintEffect, "taint-effect", "NoSchedule", "`effect` of that taint")
	flags.StringVar(&o.condition, "condition", "", "`type` of the node condition that has it removed")
	return cmd
}

func (o *recordOptions) record(cmd *cobra.Command) error {
	cfg, err := o.connect()
	if err != nil {
		return err
	}
	server, err := serverVersion(cfg)
	if err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join("out", o.name+"-"+started.Format("20060102-150405"))
	}
	dir := filepath.Join(o.out, recordedArm, "seed-0")
	if err := runner.PrepareFolder(o.out); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usageError{fmt.Errorf("make results folder: %w", err)}
	}
	path := filepath.Join(dir, results.TraceFile)
	if err := o.recordTo(cmd, cfg, server, path); err != nil {
		return fmt.Errorf("record to %s: %w", path, err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "recorded: %s\nnext:     mirrorgap analyze %s\n", path, o.out)
	return nil
}

// connect finds out how to reach the cluster, and its name.
func (o *recordOptions) connect() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, usageError{fmt.Errorf("find the cluster: %w: name a kubeconfig with --kubeconfig", err)}
	}
	cfg.UserAgent = "mirrorgap-record"
	if o.name == "" {
		o.name = clusterName(loader)
	}
	if !dnsLabel.MatchString(o.name) {
		return nil, usageError{fmt.Errorf("name %q is no DNS label: name the recording with --name, such as prod-eu", o.name)}
	}
	return cfg, nil
}

var (
	dnsLabel  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	otherThan = regexp.MustCompile(`[^a-z0-9]+`)
)

// clusterName is the name of the cluster in the kubeconfig, made a DNS label.
func clusterName(loader clientcmd.ClientConfig) string {
	name := "cluster"
	if raw, err := loader.RawConfig(); err == nil {
		if current := raw.Contexts[raw.CurrentContext]; current != nil && current.Cluster != "" {
			name = current.Cluster
		}
	}
	name = strings.Trim(otherThan.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return strings.Trim(name[:min(len(name), 63)], "-")
}

// serverVersion also tells whether the cluster can be reached.
func serverVersion(cfg *rest.Config) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return "", usageError{fmt.Errorf("reach the cluster: %w", err)}
	}
	version, err := client.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("reach the cluster at %s: %w", cfg.Host, err)
	}
	return version.GitVersion, nil
}

// recordTo records until the time is up, somebody ends it, or the watches break for good.
func (o *recordOptions) recordTo(cmd *cobra.Command, cfg *rest.Config, server, path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	writer, err := trace.NewWriter(file, o.header(server))
	if err != nil {
		return err
	}
	seen := &seen{}
	writer.Tap(seen.apply)
	record, err := recorder.New(cfg, writer, gate.IsCheck)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- record.Run(ctx) }()
	err = o.follow(cmd, writer, seen, record.Synced(), failed)
	cancel()
	writer.Record(recordingEnd(err))
	return errors.Join(err, writer.Flush())
}

func recordingEnd(err error) trace.Event {
	if err != nil {
		return trace.Event{Kind: trace.RunEnded, Source: trace.SourceRun, Reason: trace.EndError, Message: err.Error()}
	}
	return trace.Event{Kind: trace.RunEnded, Source: trace.SourceRun, Reason: trace.EndStopped}
}

func (o *recordOptions) header(server string) trace.Header {
	h := trace.Header{
		Experiment: o.name, Arm: recordedArm, Engine: string(experiments.EngineCluster), Start: time.Now().UTC(),
		Versions: map[string]string{"mirrorgap": runner.Version, "kubernetes": server}, Machine: runner.Machine(),
	}
	if o.taintKey != "" {
		h.Gate = &trace.Gate{TaintKey: o.taintKey, TaintEffect: o.taintEffect, Condition: o.condition}
	}
	return h
}

// follow shows progress until the recording ends; nil if it ended as it was meant to.
func (o *recordOptions) follow(cmd *cobra.Command, writer *trace.Writer, seen *seen, synced <-chan struct{}, failed <-chan error) error {
	shown := newProgress(cmd.ErrOrStderr())
	defer shown.done()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var timeUp <-chan time.Time
	begun := time.Now()
	for {
		select {
		case <-synced:
			synced = nil
			writer.Record(trace.Event{Kind: trace.Phase, Source: trace.SourceRun, Message: trace.PhaseScaleUp})
			if o.duration > 0 {
				timeUp = time.After(o.duration)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "recording: scale up now; Ctrl-C ends it")
		case <-ticker.C:
			if err := writer.Flush(); err != nil {
				return err
			}
			shown.line(fmt.Sprintf("%s recorded: %s", time.Since(begun).Round(time.Second), seen))
		case <-timeUp:
			return nil
		case <-cmd.Context().Done():
			return nil
		case err := <-failed:
			if cmd.Context().Err() != nil {
				return nil
			}
			return err
		}
	}
}

// seen counts what was recorded, to be shown as progress.
type seen struct {
	mu                                   sync.Mutex
	nodes, joined, mirrors, pods, failed int
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
		}
	case trace.NodeDeleted:
		s.nodes--
	case trace.PodCreated:
		s.pods++
		if e.PodInfo.Mirror && !e.PodInfo.Existing {
			s.mirrors++
		}
	case trace.PodDeleted:
		s.pods--
	case trace.PodFailed:
		s.failed++
	}
}

// String is one line.
func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d nodes, %d of them joined; %d mirror pods came; %d pods, %d failed", s.nodes, s.joined, s.mirrors, s.pods, s.failed)
}

func analyzeCommand() *cobra.Command {
	var as *output
	cmd := &cobra.Command{
		Use:   "analyze DIR|TRACE",
		Short: "Say whether a recorded cluster has the race, and write its mirror delays for an experiment",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			folder, err := results.OpenFolder(arguments[0])
			if err != nil {
				return err
			}
			return analyze(cmd.OutOrStdout(), as, folder)
		},
	}
	as = addOutput(cmd)
	return cmd
}

// analysis is the result of analyze for one trace.
type analysis struct {
	Trace string `json:"trace"`
	// Delays is the file of mirror delays, empty if there are none.
	Delays string `json:"delays,omitempty"`
	*results.Findings
	run *results.Run
}

// delaysFile is written beside a trace.
const delaysFile = "mirror-delays.csv"

func analyze(w io.Writer, as *output, folder *results.Folder) error {
	var all []analysis
	for _, path := range folder.Traces {
		run, err := results.ReadTrace(path)
		if err != nil {
			return err
		}
		a := analysis{Trace: path, Findings: run.Findings(), run: run}
		if len(a.Mirrors) > 0 {
			a.Delays = filepath.Join(filepath.Dir(path), delaysFile)
			if err := results.ReplaceFile(a.Delays, func(w io.Writer) error { return a.WriteDelays(w, describeRun(run.Header)) }); err != nil {
				return err
			}
		}
		all = append(all, a)
	}
	if err := as.write(w, all, func(w io.Writer) error { return showAnalyses(w, all) }); err != nil {
		return err
	}
	return conclusive(all)
}

// errInconclusive is returned for a trace that was cut short.
var errInconclusive = errors.New("nothing may be concluded from what it does not contain")

// conclusive is an errInconclusive unless every trace may be judged.
func conclusive(all []analysis) error {
	for _, a := range all {
		if !a.run.Conclusive() {
			return fmt.Errorf("%s ended as %s: %w", a.Trace, a.run.End, errInconclusive)
		}
	}
	return nil
}

func describeRun(h trace.Header) string {
	return fmt.Sprintf("%s, arm %s, seed %d, Kubernetes %s, begun %s", h.Experiment, h.Arm, h.Seed, h.Versions["kubernetes"], h.Start.Format(time.RFC3339))
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
		if a.Delays != "" {
			fmt.Fprintf(w, "\nAs a distribution for an experiment:\n\n  kubelet:\n    mirrorDelay: {empirical: {file: %s, column: %s}}\n", a.Delays, results.DelaysColumn)
		}
	}
	return nil
}
