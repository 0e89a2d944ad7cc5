package trace

import (
	"fmt"
	"time"
)

// Schema names the format of a trace and its version. A reader refuses any other.
const Schema = "mirrorgap.trace/v1"

// Header is the first line of a trace: what was run, with what, and when.
type Header struct {
	// Schema is always the constant Schema.
	Schema string `json:"schema"`
	// Experiment, Arm and Seed identify the run; on a real cluster Experiment is free text and Seed 0.
	Experiment string `json:"experiment"`
	Arm        string `json:"arm"`
	Seed       uint64 `json:"seed"`
	// Engine is "live", "virtual" or "cluster".
	Engine string `json:"engine"`
	// Start is the instant that Event.T counts from (RFC 3339, UTC).
	Start time.Time `json:"start"`
	// Labels are those of the experiment: in a sweep the values of its parameters.
	Labels map[string]string `json:"labels,omitempty"`
	// Gate describes the readiness gate of this arm; nil when nodes are not held.
	Gate *Gate `json:"gate,omitempty"`
	// Versions maps a component (kubernetes, kwok, go, mirrorgap, …) to its version.
	Versions map[string]string `json:"versions,omitempty"`
	// Machine is where the run took place: rates in a live run depend on it.
	Machine Machine `json:"machine"`
}

// Gate names the taint that holds a node and the node condition that releases it.
type Gate struct {
	TaintKey    string `json:"taintKey"`
	TaintEffect string `json:"taintEffect"`
	Condition   string `json:"condition"`
}

// Machine describes the host of a run.
type Machine struct {
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	CPUs        int    `json:"cpus"`
	CPUModel    string `json:"cpuModel,omitempty"`
	MemoryBytes uint64 `json:"memoryBytes,omitempty"`
}

// String says in a few words what machine it is; it is empty if nothing is known of it.
func (m Machine) String() string {
	if m == (Machine{}) {
		return ""
	}
	text := fmt.Sprintf("%s/%s, %d CPUs", m.OS, m.Arch, m.CPUs)
	if m.CPUModel != "" {
		text += " (" + m.CPUModel + ")"
	}
	if m.MemoryBytes > 0 {
		text += fmt.Sprintf(", %.3g GiB", float64(m.MemoryBytes)/(1<<30))
	}
	return text
}

// Kind says what an event is about.
type Kind string

// The kinds of events. The fields that each one fills are named behind it; T, Kind and Source are always there.
const (
	// NodeRegistered: the Node object appeared. Node, NodeUID, NodeInfo, Taints, RV.
	NodeRegistered Kind = "NodeRegistered"
	// NodeReady and NodeNotReady: the Ready condition became True, or ceased to be. Node, NodeUID, RV.
	NodeReady    Kind = "NodeReady"
	NodeNotReady Kind = "NodeNotReady"
	// NodeTaints: the list of taints changed; Taints is the whole new list. Node, NodeUID, Taints, RV.
	NodeTaints Kind = "NodeTaints"
	// NodeCondition: a condition other than the kubelet's own four changed its status. Node, NodeUID, Condition, Status, RV.
	NodeCondition Kind = "NodeCondition"
	// NodeDeleted: the Node object went. Node, NodeUID.
	NodeDeleted Kind = "NodeDeleted"

	// PodCreated: the Pod object appeared. Pod, UID, PodInfo, RV; Node too when it was created with spec.nodeName (PodInfo.Pinned or PodInfo.Mirror).
	PodCreated Kind = "PodCreated"
	// PodBound: spec.nodeName was set by a binding. Pod, UID, Node, RV.
	PodBound Kind = "PodBound"
	// PodUnschedulable: PodScheduled became False with reason Unschedulable. Pod, UID, Message, RV.
	PodUnschedulable Kind = "PodUnschedulable"
	// PodRunning, PodSucceeded and PodFailed: the phase, as the API shows it. Pod, UID, Node, Reason, Message, RV.
	PodRunning   Kind = "PodRunning"
	PodSucceeded Kind = "PodSucceeded"
	PodFailed    Kind = "PodFailed"
	// PodTerminating: deletionTimestamp was set. PodDeleted: the object went. Pod, UID, Node, RV.
	PodTerminating Kind = "PodTerminating"
	PodDeleted     Kind = "PodDeleted"

	// KubeletStarted and KubeletStopped: the kubelet of a node began or ceased to run. Node.
	KubeletStarted Kind = "KubeletStarted"
	KubeletStopped Kind = "KubeletStopped"
	// StaticPodStarted and StaticPodStopped: the kubelet counts a static pod from now on, or no longer. Pod is the mirror's
	// namespace/name, UID the kubelet's own UID of the static pod (the config hash). Node, Pod, UID, Requests.
	StaticPodStarted Kind = "StaticPodStarted"
	StaticPodStopped Kind = "StaticPodStopped"
	// StaticPodRefused: a manifest that the kubelet could not use; it neither runs nor gets a mirror. Node, Pod (as far as known), Message.
	StaticPodRefused Kind = "StaticPodRefused"
	// MirrorFailed: the API server refused a mirror pod; the kubelet will retry. Node, Pod, Message.
	MirrorFailed Kind = "MirrorFailed"
	// PodAdmitted and PodRejected: the kubelet's decision. Node, Pod, UID; a rejection also Reason, Message, Rejection.
	PodAdmitted Kind = "PodAdmitted"
	PodRejected Kind = "PodRejected"

	// CheckStarted, CheckWaiting and CheckPassed: the check on a node ran for the first time, still misses mirror pods (Missing), has set
	// the condition. Node, Pod (the check pod).
	CheckStarted Kind = "CheckStarted"
	CheckWaiting Kind = "CheckWaiting"
	CheckPassed  Kind = "CheckPassed"

	// Phase: the runner entered the part of the run that Message names, one of the Phase… constants.
	Phase Kind = "Phase"
	// WatchBroken and WatchResumed: the recorder's watch of the objects that Reason names (nodes, pods) broke, and goes on where it broke off. What happened
	// in between has the time at which it arrived, which is after WatchResumed; without one it is missing.
	WatchBroken  Kind = "WatchBroken"
	WatchResumed Kind = "WatchResumed"
	// FaultStarted and FaultEnded: the experiment has something go wrong, which Message names, or has it over.
	FaultStarted Kind = "FaultStarted"
	FaultEnded   Kind = "FaultEnded"
	// ComponentStopped and ComponentStarted: the experiment restarts the component that Reason names.
	ComponentStopped Kind = "ComponentStopped"
	ComponentStarted Kind = "ComponentStarted"
	// ComponentDied: a part of the control plane or of the simulation ended before the run did. Reason names it, Message has its error.
	ComponentDied Kind = "ComponentDied"
	// RunEnded is the last event of a complete trace. Reason is one of the End… constants, Message says more.
	RunEnded Kind = "RunEnded"
)

// The phases of a run, in order, in the Message of Phase events.
const (
	// PhaseInitial: the nodes that are there from the start are being brought up.
	PhaseInitial = "initial"
	// PhaseWorkload: the workloads are being created.
	PhaseWorkload = "workload"
	// PhaseScaleUp: node groups begin to grow; arrivals count from here.
	PhaseScaleUp = "scale-up"
)

// How a run ended, in the Reason of RunEnded.
const (
	// EndSettled: the stop condition was met.
	EndSettled = "settled"
	// EndTimeLimit: the experiment's time limit came first. What is measured is a lower bound.
	EndTimeLimit = "time-limit"
	// EndStopped: the recording of a cluster was ended by whoever recorded. What had not ended then is a lower bound.
	EndStopped = "stopped"
	// EndInterrupted: the user, or a signal, ended the run.
	EndInterrupted = "interrupted"
	// EndError: a component died or an operation failed.
	EndError = "error"
)

// Sources of events.
const (
	SourceAPI     = "api"
	SourceKubelet = "kubelet"
	SourceCheck   = "check"
	SourceRun     = "run"
)

// Event is one line of a trace. It is flat so that jq, a spreadsheet or a human can use it; which fields are set depends on Kind.
type Event struct {
	// T is the time since Header.Start, in nanoseconds. It never decreases within a file.
	T      time.Duration `json:"t"`
	Kind   Kind          `json:"kind"`
	Source string        `json:"source"`

	Node    string `json:"node,omitempty"`
	NodeUID string `json:"nodeUID,omitempty"`
	// Pod is namespace/name.
	Pod string `json:"pod,omitempty"`
	UID string `json:"uid,omitempty"`
	// RV is the object's resourceVersion as a number. Within one cluster, of two objects of the same resource the one written later has the higher RV.
	RV uint64 `json:"rv,omitempty"`

	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	Condition string `json:"condition,omitempty"`
	Status    string `json:"status,omitempty"`

	Taints    []Taint    `json:"taints,omitempty"`
	NodeInfo  *NodeInfo  `json:"nodeInfo,omitempty"`
	PodInfo   *PodInfo   `json:"podInfo,omitempty"`
	Requests  Resources  `json:"requests,omitempty"`
	Rejection *Rejection `json:"rejection,omitempty"`
	// Missing lists the mirror pods (namespace/name) or files that a check waits for.
	Missing []string `json:"missing,omitempty"`
}

// Taint is a node taint.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Resources maps a resource name to an amount: cpu in millicores, everything else in its own unit (memory in bytes, pods in pods).
type Resources map[string]int64

// NodeInfo is what a node brings at registration.
type NodeInfo struct {
	// Group is the node group of the experiment; empty on a real cluster unless a label names it.
	Group       string    `json:"group,omitempty"`
	Allocatable Resources `json:"allocatable"`
	Capacity    Resources `json:"capacity"`
	// Initial: the node was there before the scale-up, or when recording began.
	Initial bool `json:"initial,omitempty"`
}

// PodInfo is what matters of a pod at its creation.
type PodInfo struct {
	// Requests are the effective requests, as scheduler and kubelet count them (init containers, sidecars, overhead included); pods=1 is left out.
	Requests Resources `json:"requests,omitempty"`
	// Owner is the controller as Kind/name; empty for a bare pod.
	Owner string `json:"owner,omitempty"`
	// Workload is the name of the experiment's workload; empty otherwise.
	Workload string `json:"workload,omitempty"`
	// Mirror: this is the mirror of a static pod; MirrorHash is its kubernetes.io/config.hash, OwnerUID the UID of the Node that owns it.
	Mirror     bool   `json:"mirror,omitempty"`
	MirrorHash string `json:"mirrorHash,omitempty"`
	OwnerUID   string `json:"ownerUID,omitempty"`
	// Pinned: created with spec.nodeName, so that no scheduler decided about it.
	Pinned bool `json:"pinned,omitempty"`
	// Check: the pod belongs to the mirror-pod check.
	Check bool `json:"check,omitempty"`
	// Existing: the pod was there when recording began; when it was created and bound is not known.
	Existing bool `json:"existing,omitempty"`
	// Priority is spec.priority.
	Priority int32 `json:"priority,omitempty"`
	// Scheduler is spec.schedulerName, empty for the default one.
	Scheduler string `json:"scheduler,omitempty"`
}

// Rejection is what the kubelet counted when it rejected a pod. For a rejection that is not about a resource only Pods is set.
type Rejection struct {
	// Resource is the first one that did not fit: cpu (millicores), memory (bytes), pods, …
	Resource  string `json:"resource,omitempty"`
	Requested int64  `json:"requested,omitempty"`
	// Used is the sum over the pods that counted, Capacity the node's allocatable.
	Used     int64 `json:"used,omitempty"`
	Capacity int64 `json:"capacity,omitempty"`
	// Static is the part of Used that is due to static pods, with or without a mirror.
	Static int64 `json:"static,omitempty"`
	// Pods are the UIDs of the pods that counted: for static pods the kubelet's own UID.
	Pods []string `json:"pods,omitempty"`
}
