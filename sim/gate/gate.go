package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	checkermanifests "github.com/mirrorgap/mirrorgap/checker/manifests"
	"github.com/mirrorgap/mirrorgap/controllers"
	"github.com/mirrorgap/mirrorgap/controllers/manifests"
	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Gate is the readiness gate of an arm.
type Gate struct {
	spec     *sim.Gate
	leaveOut []sim.GatePart
	taint    corev1.Taint
	// condition is what the rule waits for.
	condition string
}

// New makes the gate of an arm; spec is valid and has its defaults. It fails when the rule does not decode.
func New(spec *sim.Gate, leaveOut []sim.GatePart) (*Gate, error) {
	rule, err := spec.DecodeRule()
	if err != nil {
		return nil, fmt.Errorf("readiness gate: rule: %w", err)
	}
	taint := corev1.Taint{Key: rule.Spec.Taint.Key, Value: spec.TaintValue, Effect: rule.Spec.Taint.Effect}
	return &Gate{spec: spec, leaveOut: leaveOut, taint: taint, condition: rule.Spec.Conditions[0].Type}, nil
}

// Taint is what nodes register with; nil when the arm leaves it out.
func (g *Gate) Taint() *corev1.Taint {
	if !g.has(sim.GateTaint) {
		return nil
	}
	return g.taint.DeepCopy()
}

// Trace describes the gate in a trace's header.
func (g *Gate) Trace() *trace.Gate {
	return &trace.Gate{TaintKey: g.taint.Key, TaintEffect: string(g.taint.Effect), Condition: g.condition}
}

func (g *Gate) has(part sim.GatePart) bool { return !slices.Contains(g.leaveOut, part) }

// InstallAPI installs what any implementation of the gate needs: the CRD, and the ServiceAccounts and rights of controller and check. It is
// done in arms without the gate too, so that a gate can be put in by hand.
func InstallAPI(ctx context.Context, cfg *rest.Config) error {
	if err := manifests.InstallCRD(ctx, cfg); err != nil {
		return fmt.Errorf("install the readiness API: %w", err)
	}
	if err := manifests.Apply(ctx, cfg, manifests.RBAC()); err != nil {
		return fmt.Errorf("install the readiness controller's rights: %w", err)
	}
	return nil
}

// Install applies the check and the rule, in the published order: before the first node with the taint exists.
func (g *Gate) Install(ctx context.Context, cfg *rest.Config) error {
	if g.has(sim.GateCheck) {
		if err := g.installCheck(ctx, cfg); err != nil {
			return fmt.Errorf("install the mirror-pod check: %w", err)
		}
	}
	if g.has(sim.GateRule) {
		if err := manifests.Apply(ctx, cfg, g.spec.Rule); err != nil {
			return fmt.Errorf("apply the readiness rule: %w", err)
		}
	}
	return nil
}

// installCheck applies the published ServiceAccount and rights, then the experiment's DaemonSet over the published one. A check that goes on is a sidecar.
func (g *Gate) installCheck(ctx context.Context, cfg *rest.Config) error {
	if err := manifests.Apply(ctx, cfg, checkermanifests.YAML); err != nil {
		return err
	}
	if len(g.spec.Check.ConfirmSchedulers) > 0 {
		if err := manifests.Apply(ctx, cfg, checkermanifests.WitnessYAML); err != nil {
			return err
		}
	}
	if !g.spec.Check.Continuous {
		return manifests.Apply(ctx, cfg, g.spec.Check.DaemonSet)
	}
	set, err := g.spec.Check.DecodeDaemonSet()
	if err != nil {
		return fmt.Errorf("read its DaemonSet: %w", err)
	}
	makeSidecar(&set.Spec.Template.Spec)
	data, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("write its DaemonSet: %w", err)
	}
	return manifests.Apply(ctx, cfg, data)
}

// makeSidecar has the check go on beside the containers that follow it.
func makeSidecar(pod *corev1.PodSpec) {
	always := corev1.ContainerRestartPolicyAlways
	for i := range pod.InitContainers {
		if isCheck(&pod.InitContainers[i]) {
			pod.InitContainers[i].RestartPolicy = &always
		}
	}
}

// Controller is the readiness controller as a component; nil when the arm leaves it out. begin is closed when the scale-up begins, from which its
// restarts count; out takes them.
func (g *Gate) Controller(access sim.Access, spec *sim.ReadinessController, begin <-chan struct{}, out trace.Recorder) (*Controller, error) {
	if !g.has(sim.GateController) {
		return nil, nil //nolint:nilnil // an arm without the controller is no error
	}
	cfg, err := access.ConfigFor(manifests.ServiceAccountUser, serviceAccountGroups...)
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = spec.QPS, spec.Burst
	c := &Controller{config: cfg, restarts: spec.Restarts, begin: begin, trace: out}
	c.run = c.live
	return c, nil
}

// serviceAccountGroups are those of every ServiceAccount; kube-system is where both accounts live.
var serviceAccountGroups = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}

// Controller runs the shipped readiness controller under its own ServiceAccount.
type Controller struct {
	config   *rest.Config
	restarts []sim.Restart
	begin    <-chan struct{}
	// began is when the first life saw the scale-up begin.
	began time.Time
	trace trace.Recorder
	run   func(context.Context) error // one life
}

// Name implements sim.Component.
func (c *Controller) Name() string { return "readiness-controller" }

// Run implements sim.Component. Each life of the controller begins with cold caches, as a process does.
func (c *Controller) Run(ctx context.Context) error {
	for _, r := range c.restarts {
		if err := c.liveUntil(ctx, r.At.Duration); err != nil || ctx.Err() != nil {
			return err
		}
		c.record(trace.ComponentStopped)
		if err := sim.Sleep(ctx, r.Down.Duration); err != nil {
			return nil //nolint:nilerr // the end of ctx is its end
		}
		c.record(trace.ComponentStarted)
	}
	return c.run(ctx)
}

// liveUntil lives until some time after the start of the scale-up. It returns earlier with the controller's own error, or with ctx.
func (c *Controller) liveUntil(ctx context.Context, at time.Duration) error {
	life, end := context.WithCancel(ctx)
	defer end()
	go func() {
		defer end()
		select {
		case <-c.begin:
		case <-life.Done():
			return
		}
		if c.began.IsZero() {
			c.began = time.Now()
		}
		_ = sim.Sleep(life, time.Until(c.began.Add(at))) // ends early only with life
	}()
	return c.run(life)
}

func (c *Controller) live(ctx context.Context) error {
	return controllers.Run(ctx, c.config, controllers.Options{Logger: klog.FromContext(ctx)})
}

func (c *Controller) record(kind trace.Kind) {
	c.trace.Record(trace.Event{Kind: kind, Source: trace.SourceRun, Reason: c.Name()})
}
