package experiments

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mirrorgap/mirrorgap/results/verdict"
	"github.com/mirrorgap/mirrorgap/sim"
)

// Defaults of an experiment.
const (
	// DefaultTimeLimit is several times what the slowest preset of the mirror delay (90 s), its retry (90 s) and the settling take.
	DefaultTimeLimit = 15 * time.Minute
	// DefaultSettle is the kubelet's status tick (pkg/kubelet/status/status_manager.go, syncPeriod).
	DefaultSettle = 10 * time.Second
)

// setDefaults sets every field that is not set and has a default.
func (e *Experiment) setDefaults() {
	s := &e.Spec
	if len(s.Seeds) == 0 {
		s.Seeds = Seeds{1}
	}
	if s.Engine == "" {
		s.Engine = EngineLive
	}
	if s.TimeLimit.Duration == 0 {
		s.TimeLimit = metav1.Duration{Duration: DefaultTimeLimit}
	}
	if s.Stop.Settle.Duration == 0 {
		s.Stop.Settle = metav1.Duration{Duration: DefaultSettle}
	}
	sim.SetDefaults(&s.Cluster)
	for i := range s.Thresholds {
		s.Thresholds[i].SetDefaults()
	}
	s.Assumptions.SetDefaults(s.planArms())
}

// validate reports everything that is wrong with an experiment that has its defaults.
func (e *Experiment) validate() field.ErrorList {
	errs := nameErrors(e.Metadata.Name, field.NewPath("metadata", "name"))
	path := field.NewPath("spec")
	s := &e.Spec
	errs = append(errs, s.Seeds.validate(path.Child("seeds"))...)
	errs = append(errs, s.Engine.validate(path.Child("engine"))...)
	errs = append(errs, s.validateTimes(path)...)
	errs = append(errs, s.Cluster.Validate(path)...)
	errs = append(errs, validateArms(s.Arms, path.Child("arms"))...)
	return append(errs, e.validatePlan(path)...)
}

// validatePlan reports what is wrong with thresholds and assumptions, and labels of which a threshold could not tell what is meant.
func (e *Experiment) validatePlan(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range verdict.ReservedLabels() {
		if value, ok := e.Metadata.Labels[name]; ok {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "labels").Key(name), value,
				"runs are told apart by their "+name+" already: call the label otherwise"))
		}
	}
	plan := e.Plan()
	for _, p := range plan.Validate() {
		err := &field.Error{Type: field.ErrorTypeInvalid, Field: path.String() + "." + p.Field, BadValue: p.Value, Detail: p.Message}
		if p.Value == nil {
			err.Type, err.BadValue = field.ErrorTypeRequired, ""
		}
		errs = append(errs, err)
	}
	return errs
}

func nameErrors(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "give it a name")}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}

func (s Seeds) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s) > maxSeeds {
		errs = append(errs, field.TooMany(path, len(s), maxSeeds))
	}
	seen := map[uint64]bool{}
	for _, seed := range s {
		if seen[seed] {
			errs = append(errs, field.Duplicate(path, seed))
		}
		seen[seed] = true
	}
	return errs
}

func (e Engine) validate(path *field.Path) field.ErrorList {
	switch e {
	case EngineLive:
		return nil
	case EngineVirtual, EngineCluster:
		return field.ErrorList{field.Invalid(path, e, "this engine is not built yet: use live")}
	}
	return field.ErrorList{field.NotSupported(path, e, []Engine{EngineLive})}
}

func (s *Spec) validateTimes(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	limit, settle := s.TimeLimit.Duration, s.Stop.Settle.Duration
	if limit < 0 {
		errs = append(errs, field.Invalid(path.Child("timeLimit"), limit.String(), "must be more than 0s"))
	}
	if settle < 0 || limit > 0 && settle >= limit {
		errs = append(errs, field.Invalid(path.Child("stop", "settle"), settle.String(),
			fmt.Sprintf("must be more than 0s, and less than the time limit, %v", limit)))
	}
	if a := s.Autoscaler; a != nil && settle < a.ScanInterval.Duration {
		errs = append(errs, field.Invalid(path.Child("stop", "settle"), settle.String(),
			fmt.Sprintf("must be at least the autoscaler's scanInterval, %v: before its next scan nobody knows whether it is done", a.ScanInterval.Duration)))
	}
	if last := s.lastPlanned(); limit > 0 && last >= limit {
		errs = append(errs, field.Invalid(path.Child("timeLimit"), limit.String(),
			fmt.Sprintf("ends the run before everything in it has happened: the last thing planned is %v after the scale-up begins", last)))
	}
	return errs
}

// lastPlanned is the last time in the experiment that does not depend on chance, counted from the start of its phase.
func (s *Spec) lastPlanned() time.Duration {
	var last time.Duration
	for _, w := range s.Workloads {
		last = max(last, w.After.Duration)
	}
	for _, r := range s.ControlPlane.ReadinessController.Restarts {
		last = max(last, r.At.Duration+r.Down.Duration)
	}
	for _, f := range s.APIFaults {
		last = max(last, f.From.Duration)
		if f.Until != nil {
			last = max(last, f.Until.Duration)
		}
	}
	for _, g := range s.NodeGroups {
		for _, a := range g.Actions {
			last = max(last, a.At.Duration)
		}
		if g.ScaleUp != nil {
			last = max(last, lastArrival(g.ScaleUp))
		}
	}
	return last
}

// lastArrival is when the last node joins, or of Poisson arrivals when the first one may.
func lastArrival(s *sim.ScaleUp) time.Duration {
	switch a := s.Arrival; {
	case a.Evenly != nil:
		return s.After.Duration + a.Evenly.Duration
	case len(a.Times) > 0:
		return s.After.Duration + a.Times[len(a.Times)-1].Duration
	}
	return s.After.Duration
}

func validateArms(arms []Arm, path *field.Path) field.ErrorList {
	if len(arms) == 0 {
		return field.ErrorList{field.Required(path, "give at least one arm, such as {name: ungated}")}
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i, arm := range arms {
		path := path.Index(i)
		errs = append(errs, nameErrors(arm.Name, path.Child("name"))...)
		if names[arm.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), arm.Name))
		}
		names[arm.Name] = true
		errs = append(errs, arm.validateLeaveOut(path.Child("leaveOut"))...)
	}
	return errs
}

func (a Arm) validateLeaveOut(path *field.Path) field.ErrorList {
	if len(a.LeaveOut) > 0 && !a.Gate {
		return field.ErrorList{field.Forbidden(path, "there is no readiness gate to leave parts out of: set gate: true")}
	}
	var errs field.ErrorList
	parts := []sim.GatePart{sim.GateTaint, sim.GateCheck, sim.GateRule, sim.GateController}
	for i, part := range a.LeaveOut {
		if !slices.Contains(parts, part) {
			errs = append(errs, field.NotSupported(path.Index(i), part, parts))
		}
		if slices.Contains(a.LeaveOut[:i], part) {
			errs = append(errs, field.Duplicate(path.Index(i), part))
		}
	}
	return errs
}
