package experiments

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/results/verdict"
	"github.com/mirrorgap/mirrorgap/sim"
)

// APIVersion and Kind are what the head of an experiment file says.
const (
	APIVersion = "mirrorgap.dev/v1alpha1"
	Kind       = "Experiment"
)

// ResolvedFile is the name, in a results folder, of the experiment as it was run.
const ResolvedFile = "experiment.yaml"

// Experiment is one file: a simulated cluster, the arms that are compared in it, and the seeds that each arm is run with.
type Experiment struct {
	// APIVersion and Kind are always the constants of those names.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Metadata names the experiment.
	Metadata Metadata `json:"metadata"`
	// Spec is everything else.
	Spec Spec `json:"spec"`
}

// Metadata names an experiment.
type Metadata struct {
	// Name is a DNS label; results folders are called after it.
	Name string `json:"name"`
	// Labels are copied to the trace of every run, to tell runs apart: a sweep sets the values of its parameters. None is called as one of
	// verdict.ReservedLabels.
	Labels map[string]string `json:"labels,omitempty"`
}

// Spec is what to run. The fields of sim.Cluster stand beside those of Spec in the file.
type Spec struct {
	// Description says what the experiment shows, and how long it takes; its first line stands for it in lists.
	Description string `json:"description,omitempty"`
	// Seeds are the seeds that every arm is run with. Default: the seed 1.
	Seeds Seeds `json:"seeds,omitempty"`
	// Engine is what the cluster runs on. Default EngineLive.
	Engine Engine `json:"engine,omitempty"`
	// TimeLimit ends a run that has not settled, counted from when its control plane is ready. Default 15 min.
	TimeLimit metav1.Duration `json:"timeLimit"`
	// Stop says when a run has settled.
	Stop Stop `json:"stop"`

	sim.Cluster `json:",inline"`

	// Arms are the treatments that are compared. At least one.
	Arms []Arm `json:"arms"`

	// Thresholds are what the runs are judged by; without any they cannot be.
	Thresholds []verdict.Threshold `json:"thresholds,omitempty"`
	// Assumptions are under what conditions the thresholds mean anything.
	Assumptions verdict.Assumptions `json:"assumptions"`
}

// Engine is what a simulated cluster runs on.
type Engine string

const (
	// EngineLive is a real control plane on this machine, in real time.
	EngineLive Engine = "live"
	// EngineVirtual is the real API server in virtual time. Not built yet.
	EngineVirtual Engine = "virtual"
	// EngineCluster is an existing cluster. Not built yet.
	EngineCluster Engine = "cluster"
)

// Stop says when a run has settled: when all arrivals and actions are over, every node is Ready, every static pod that the kubelet did not refuse
// has its mirror pod, every node that was held is released (in a gated arm; a node whose kubelet refused a manifest is not waited for, since its
// check can never pass), every pod of the workloads is Running, Succeeded, Failed or Unschedulable, and nothing has changed for Settle. A run in
// which one of these never comes true, such as an arm that leaves out a part of the gate which nobody else plays, ends by its time limit or by Ctrl-C.
type Stop struct {
	// Settle is how long nothing may have changed; more than 0. Default 10 s, the longest time for which a kubelet that has something to say may be
	// silent (its status tick).
	Settle metav1.Duration `json:"settle"`
}

// Arm is one treatment.
type Arm struct {
	// Name is a DNS label, unique in the experiment.
	Name string `json:"name"`
	// Description says what is different here.
	Description string `json:"description,omitempty"`
	// Gate turns the readiness gate on: nodes register with its taint, and its check, rule and controller are there.
	Gate bool `json:"gate,omitempty"`
	// LeaveOut names parts of the gate that are not there, so that others can be run against the cluster by hand. Only with Gate.
	LeaveOut []sim.GatePart `json:"leaveOut,omitempty"`
	// Set changes fields of the experiment for this arm: values by the path of a field below spec.controlPlane, spec.kubelet, spec.nodeGroups, spec.gate,
	// spec.apiFaults or spec.autoscaler, such as spec.gate.check.settle.
	Set map[string]json.RawMessage `json:"set,omitempty"`

	// cluster is the experiment's with the changes of Set; nil without any.
	cluster *sim.Cluster
}

// maxSeeds bounds the runs of an arm: beyond it a number of seeds is taken for a seed.
const maxSeeds = 10000

// Seeds is a list of seeds. In a file it may also be a number n, which stands for the seeds 1 to n.
type Seeds []uint64

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seeds) UnmarshalJSON(data []byte) error {
	var list []uint64
	if json.Unmarshal(data, &list) == nil {
		*s = list
		return nil
	}
	var n int
	if err := json.Unmarshal(data, &n); err != nil || n < 1 || n > maxSeeds {
		return fmt.Errorf("must be a list of whole numbers that are not negative, or the number of seeds, 1 to %d", maxSeeds)
	}
	*s = make(Seeds, n)
	for i := range *s {
		(*s)[i] = uint64(i) + 1
	}
	return nil
}

// Run is one run of an experiment: an arm with a seed.
type Run struct {
	Arm  Arm
	Seed uint64
}

// Folder is the folder of the run in the results folder of its experiment.
func (r Run) Folder() string { return filepath.Join(r.Arm.Name, fmt.Sprintf("seed-%d", r.Seed)) }

// Runs lists the runs in the order in which they are to be made: all arms of the first seed, then all of the next, so that an experiment which is
// cut short still holds whole comparisons.
func (e *Experiment) Runs() []Run {
	var runs []Run
	for _, seed := range e.Spec.Seeds {
		for _, arm := range e.Spec.Arms {
			runs = append(runs, Run{arm, seed})
		}
	}
	return runs
}

// Gated tells whether any arm has the mirror-pod check, which then counts for the size of workloads in all arms (see sim.Cluster.FillReplicas).
func (e *Experiment) Gated() bool {
	for _, arm := range e.Spec.Arms {
		if arm.Gate {
			return true
		}
	}
	return false
}

// Plan is what the runs of the experiment are judged by.
func (e *Experiment) Plan() verdict.Plan {
	return verdict.Plan{
		Arms: e.Spec.planArms(), Seeds: e.Spec.Seeds, Engine: string(e.Spec.Engine), Labels: e.Metadata.Labels,
		Thresholds: e.Spec.Thresholds, Assumptions: e.Spec.Assumptions,
	}
}

func (s *Spec) planArms() []verdict.Arm {
	arms := make([]verdict.Arm, len(s.Arms))
	for i, arm := range s.Arms {
		arms[i] = verdict.Arm{Name: arm.Name, Gated: arm.Gate}
	}
	return arms
}

// Only is the experiment with one of its arms, or nil if it has no such arm. It has no thresholds: they are about all arms, and a part of them would
// pass where the whole does not.
func (e *Experiment) Only(name string) *Experiment {
	for _, arm := range e.Spec.Arms {
		if arm.Name == name {
			only := *e
			only.Spec.Arms = []Arm{arm}
			only.Spec.Thresholds, only.Spec.Assumptions = nil, verdict.Assumptions{}
			only.Spec.Assumptions.SetDefaults(only.Spec.planArms())
			return &only
		}
	}
	return nil
}
