package differential

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/kubelet"
	"github.com/mirrorgap/mirrorgap/sim/kubelet/real"
	"github.com/mirrorgap/mirrorgap/sim/random"
)

// Config configures a differential run.
type Config struct {
	// Access is that of a control plane on which nothing else runs: no scheduler, no KWOK, no controllers.
	Access sim.Access
	// Binary and LogDir are those of real.Config.
	Binary, LogDir string
	// Seed and Sequences: Generate's sequences of the seed with the indices from 0 on are played, after those in Regressions.
	Seed        random.Seed
	Sequences   int
	Regressions []*Sequence
	// Parallel is how many sequences are played at once, at least 1.
	Parallel int
	// ShrinkTrials is how often, at most, a disagreeing sequence is played again to find a smaller one. 0: it is kept as it is.
	ShrinkTrials int
	// Progress is told after each sequence how many have been played. Nil: nobody is.
	Progress func(played int)
}

// Report is what a differential run found.
type Report struct {
	Seed random.Seed `json:"seed"`
	// Sequences were played on both sides, with Pods pods on each.
	Sequences int `json:"sequences"`
	Pods      int `json:"pods"`
	// Decisions counts the real kubelet's by verdict, Reasons its rejections by reason.
	Decisions map[Verdict]int `json:"decisions"`
	Reasons   map[string]int  `json:"reasons"`
	// Repeated sequences had to be played a second time: on one side something did not come in time. A kubelet on a busy machine may fail to create the mirror
	// pod of a static pod that it rejected, for instance, and never tries again.
	Repeated int `json:"repeated,omitempty"`
	// Coverage counts the sequences that exercised each feature; it has all of Features.
	Coverage map[Feature]int `json:"coverage"`
	// Disagreements are the sequences about which the sides did not agree, in no order.
	Disagreements []Disagreement `json:"disagreements,omitempty"`
}

// Disagreement is a sequence about which model and real kubelet do not agree.
type Disagreement struct {
	// Sequence is as small as it was found to disagree still, Differences are its.
	Sequence    *Sequence    `json:"sequence"`
	Differences []Difference `json:"differences"`
	// Flaky: played once more, the sides agreed. Sequence is the whole one then.
	Flaky bool `json:"flaky,omitempty"`
}

// Never lists the features that no sequence exercised, in the order of Features. What was not exercised is not known to agree.
func (r *Report) Never() []Feature {
	var never []Feature
	for _, f := range Features() {
		if r.Coverage[f] == 0 {
			never = append(never, f)
		}
	}
	return never
}

// Run plays sequences into model and real kubelets. Disagreements are in the report; the error is about the playing, and the report incomplete then.
func Run(ctx context.Context, config Config) (*Report, error) {
	b, err := newBench(ctx, config)
	if err != nil {
		return nil, err
	}
	report, err := b.run(ctx)
	return report, errors.Join(err, b.stop())
}

// bench is a control plane with both sides.
type bench struct {
	Config
	client      kubernetes.Interface
	model, real Kubelets
	stop        func() error

	mu     sync.Mutex
	nodes  int
	report Report
}

// newBench starts both sides. They run until stop.
func newBench(ctx context.Context, config Config) (*bench, error) {
	access, err := config.Access.ConfigFor("differential", sim.Masters)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if _, err := client.NodeV1().RuntimeClasses().Create(ctx, &overhead, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create RuntimeClass: %w", err)
	}
	model, err := kubelet.New(kubelet.Config{Seed: config.Seed, Access: access}) //nolint:contextcheck // it starts nothing that would need ctx
	if err != nil {
		return nil, err
	}
	actual, err := real.New(real.Config{Access: config.Access, Binary: config.Binary, LogDir: config.LogDir})
	if err != nil {
		return nil, err
	}
	b := &bench{Config: config, client: client, model: model, real: actual}
	b.report = Report{Seed: config.Seed, Decisions: map[Verdict]int{}, Reasons: map[string]int{}, Coverage: map[Feature]int{}}
	b.stop = start(ctx, model, actual)
	return b, nil
}

// start runs components until stop is called, or ctx ends.
func start(ctx context.Context, components ...sim.Component) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	errs := make([]error, len(components))
	for i, c := range components {
		running.Go(func() { errs[i] = c.Run(ctx) })
	}
	return func() error {
		cancel()
		running.Wait()
		return errors.Join(errs...)
	}
}

func (b *bench) run(ctx context.Context) (*Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan *Sequence)
	var workers sync.WaitGroup
	for range max(b.Parallel, 1) {
		workers.Go(func() {
			for s := range jobs {
				if err := b.judge(ctx, s); err != nil {
					cancel(err) // the first one counts
				}
			}
		})
	}
	for i := range len(b.Regressions) + b.Sequences {
		s := b.sequence(i)
		select {
		case jobs <- s:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(jobs)
	workers.Wait()
	if ctx.Err() != nil {
		return &b.report, context.Cause(ctx)
	}
	return &b.report, nil
}

func (b *bench) sequence(i int) *Sequence {
	if i < len(b.Regressions) {
		return b.Regressions[i]
	}
	return Generate(b.Seed, i-len(b.Regressions))
}

// judge plays a sequence on both sides and takes it into the report.
func (b *bench) judge(ctx context.Context, s *Sequence) error {
	differences, outcome, err := b.play(ctx, s)
	if err == nil && len(differences) == 1 && differences[0].Pod == "" {
		b.repeat()
		differences, outcome, err = b.play(ctx, s)
	}
	if err != nil {
		return err
	}
	b.count(s, outcome)
	if differences == nil {
		return nil
	}
	d, err := b.shrink(ctx, s, differences)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report.Disagreements = append(b.report.Disagreements, d)
	return nil
}

func (b *bench) repeat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report.Repeated++
}

func (b *bench) count(s *Sequence, outcome Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report.Sequences++
	b.report.Pods += s.Pods()
	for _, f := range s.Exercises() {
		b.report.Coverage[f]++
	}
	for _, fate := range outcome {
		b.report.Decisions[fate.Verdict]++
		if fate.Verdict == Rejected && len(fate.Events) > 0 {
			b.report.Reasons[fate.Events[0].Reason]++
		}
	}
	if b.Progress != nil {
		b.Progress(b.report.Sequences)
	}
}

// play plays a sequence on both sides at once. The outcome is the real one. What only one side could play to its end is a difference, of no pod.
func (b *bench) play(ctx context.Context, s *Sequence) ([]Difference, Outcome, error) {
	b.mu.Lock()
	b.nodes++
	n := b.nodes
	b.mu.Unlock()
	var sides sync.WaitGroup
	var model, actual Outcome
	var modelErr, realErr error
	sides.Go(func() { model, modelErr = Play(ctx, b.client, b.model, fmt.Sprintf("model-%d", n), s) })
	sides.Go(func() { actual, realErr = Play(ctx, b.client, b.real, fmt.Sprintf("real-%d", n), s) })
	sides.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case (modelErr == nil) != (realErr == nil):
		return []Difference{{Detail: errors.Join(modelErr, realErr).Error()}}, actual, nil
	case modelErr != nil:
		return nil, nil, errors.Join(modelErr, realErr)
	}
	return Compare(model, actual), actual, nil
}

// shrink makes a disagreeing sequence smaller, if it disagrees again.
func (b *bench) shrink(ctx context.Context, s *Sequence, differences []Difference) (Disagreement, error) {
	d := Disagreement{Sequence: s, Differences: differences}
	var failed error
	again := func(candidate *Sequence) bool {
		found, _, err := b.play(ctx, candidate)
		if err != nil && ctx.Err() != nil {
			failed = err
		}
		if err != nil || found == nil { // a candidate that cannot be played, the API server refuses it for instance, shows nothing
			return false
		}
		d.Differences = found
		return true
	}
	if d.Flaky = !again(s); !d.Flaky {
		d.Sequence = Shrink(s, b.ShrinkTrials, again)
	}
	return d, failed
}
