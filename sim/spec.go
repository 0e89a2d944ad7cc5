package sim

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/sim/random"
)

// Cluster describes a simulated cluster and what happens in it. It is the body of an experiment; every field of it is set after SetDefaults.
type Cluster struct {
	// ControlPlane configures the real components.
	ControlPlane ControlPlane `json:"controlPlane,omitempty"`
	// Kubelet is the behaviour of every kubelet; a node group may override single fields.
	Kubelet Kubelet `json:"kubelet,omitempty"`
	// NodeGroups are the machines. At least one.
	NodeGroups []NodeGroup `json:"nodeGroups"`
	// Workloads ask for room. They are created once the initial nodes are established.
	Workloads []Workload `json:"workloads,omitempty"`
	// Gate is the readiness gate. Arms decide whether it is used.
	Gate Gate `json:"gate,omitempty"`
}

// ControlPlane configures the real components; they shape the race.
type ControlPlane struct {
	Scheduler         Scheduler `json:"scheduler,omitempty"`
	ControllerManager Client    `json:"controllerManager,omitempty"`
	// ReadinessController is the client of the NodeReadinessRule controller.
	ReadinessController Client `json:"readinessController,omitempty"`
	// APIServerFlags are further flags for kube-apiserver, as name: value without the dashes.
	APIServerFlags map[string]string `json:"apiServerFlags,omitempty"`
}

// Client is the client-side throttle of a component.
type Client struct {
	// QPS is the sustained rate of requests per second. Defaults: scheduler 50 (with a Config: its clientConnection's), controller manager 20 (each
	// controller has a client of its own, as in kube-controller-manager), readiness controller 20. Negative: no throttle.
	QPS float32 `json:"qps,omitempty"`
	// Burst is the number of requests that may exceed QPS. Defaults 100, 30 and 30.
	Burst int `json:"burst,omitempty"`
}

// Scheduler configures kube-scheduler.
type Scheduler struct {
	Client `json:",inline"`
	// Config is a KubeSchedulerConfiguration, inline; empty for kube-scheduler's defaults.
	Config json.RawMessage `json:"config,omitempty"`
	// ConfigFile is the path of one, relative to the experiment file. After loading it is always Config.
	ConfigFile string `json:"configFile,omitempty"`
}

// Kubelet is how a kubelet behaves in time. All delays are non-negative.
type Kubelet struct {
	// ReadyDelay is the time from Node CREATE to Ready=True.
	// Default uniform 170–650 ms (measured on the real kubelet v1.37.2: 0.17–0.65 s, usually 0.3 s).
	ReadyDelay *random.Delay `json:"readyDelay,omitempty"`
	// MirrorDelay is the time from Node CREATE to the creation of a static pod's mirror, one draw a static pod.
	// Default preset kubelet-1.22-1.31 (U(60 s, 90 s), kubernetes/kubernetes#126870).
	MirrorDelay *random.Delay `json:"mirrorDelay,omitempty"`
	// MirrorRetry is the wait before another attempt after the API server refused a mirror.
	// Default U(60 s, 90 s): the kubelet's 1 minute resync, jittered by 1.0–1.5.
	MirrorRetry *random.Delay `json:"mirrorRetry,omitempty"`
	// MirrorResync is the wait before a mirror pod that was deleted through the API comes back. Default U(0 s, 90 s): the static pod's next sync.
	MirrorResync *random.Delay `json:"mirrorResync,omitempty"`
	// StatusDelay is the time from an admission decision to the status write that shows it.
	// Default uniform 50–130 ms (measured on the real kubelet v1.37.2, bind → Failed, warm).
	StatusDelay *random.Delay `json:"statusDelay,omitempty"`
	// StatusTick is the period of the kubelet's full status sync: statuses from before the first housekeeping wait for it.
	// Default 10 s (pkg/kubelet/status/status_manager.go, syncPeriod).
	StatusTick *metav1.Duration `json:"statusTick,omitempty"`
	// Housekeeping is the age of the kubelet at its first housekeeping. Default 2 s (pkg/kubelet/kubelet.go, housekeepingPeriod).
	Housekeeping *metav1.Duration `json:"housekeeping,omitempty"`
	// PodSourceDelay is the time from the kubelet's start until it sees pods bound to its node; those bound earlier are then admitted in one batch
	// by creation time. Default 1 s (the kubelet polls every 1 s until the node is in its lister).
	PodSourceDelay *random.Delay `json:"podSourceDelay,omitempty"`
}

// NodeGroup is a set of equal machines, named <group>-<index> from 0.
type NodeGroup struct {
	// Name is a DNS label, unique in the cluster. Nodes carry it in the label LabelGroup.
	Name string `json:"name"`
	// Capacity of a node. cpu and memory are required; pods defaults to 110.
	Capacity corev1.ResourceList `json:"capacity"`
	// Allocatable of a node, at most Capacity; what is absent equals Capacity.
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Labels and Taints that kubelets of the group register with, besides those every kubelet sets and the readiness taint of a gated arm.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// Initial is the number of nodes that are there before the workloads. They are established: their mirror pods are created as soon as
	// they register, as on nodes that have been running for long.
	Initial int `json:"initial,omitempty"`
	// ScaleUp adds nodes. Nil for none.
	ScaleUp *ScaleUp `json:"scaleUp,omitempty"`
	// StaticPods run on every node of the group.
	StaticPods []StaticPod `json:"staticPods,omitempty"`
	// Kubelet overrides fields of Cluster.Kubelet for this group.
	Kubelet *Kubelet `json:"kubelet,omitempty"`
	// Actions happen to nodes of the group while the experiment runs.
	Actions []Action `json:"actions,omitempty"`
}

// ScaleUp grows a node group.
type ScaleUp struct {
	// To is the size afterwards, more than Initial.
	To int `json:"to"`
	// After is the time from the start of the scale-up phase to the first arrival's reference point. Default 0.
	After metav1.Duration `json:"after,omitempty"`
	// Arrival spreads the new nodes over time. Default: all at once.
	Arrival Arrival `json:"arrival,omitempty"`
}

// Arrival is an arrival process; at most one field is set. None set: all nodes at once.
type Arrival struct {
	// Evenly spreads the arrivals at equal distances over this span, the first one at its start, the last one at its end.
	Evenly *metav1.Duration `json:"evenly,omitempty"`
	// Poisson draws exponential distances with this mean.
	Poisson *metav1.Duration `json:"poisson,omitempty"`
	// Times lists each arrival, one for every new node, in ascending order.
	Times []metav1.Duration `json:"times,omitempty"`
}

// StaticPod is a manifest in the static pod folder of a node. Exactly one of Manifest, File and Folder is set; after loading it is always Manifest.
type StaticPod struct {
	// Manifest is an ordinary Pod manifest, inline.
	Manifest json.RawMessage `json:"manifest,omitempty"`
	// File is the path of a Pod manifest (YAML or JSON), relative to the experiment file.
	File string `json:"file,omitempty"`
	// Folder is the path of a folder of Pod manifests, of which every file that is not a dotfile becomes one static pod, as in a kubelet's staticPodPath.
	Folder string `json:"folder,omitempty"`
	// FileName is the name of the file on the node. Default: File's or the folder entry's own name, or <pod name>.yaml.
	FileName string `json:"fileName,omitempty"`
	// Invalid says that the kubelet is meant to refuse the manifest. Without it such a manifest is an error in the experiment.
	Invalid bool `json:"invalid,omitempty"`
	// MirrorDelay overrides the kubelet's for this static pod.
	MirrorDelay *random.Delay `json:"mirrorDelay,omitempty"`
}

// Action is something that happens to nodes of a group. Exactly one of the verbs is set.
type Action struct {
	// At is the time since the start of the scale-up phase.
	At metav1.Duration `json:"at"`
	// Nodes are indices into the group; empty for every node of the group that exists then.
	Nodes []int `json:"nodes,omitempty"`

	// Leave removes the nodes: their kubelets stop and their Node objects are deleted, as by a cloud controller. With Return they come back under
	// the same name that long afterwards.
	Leave *Leave `json:"leave,omitempty"`
	// Reboot restarts the nodes: their kubelets stop for the given time, then start again with the Node object still there.
	Reboot *Reboot `json:"reboot,omitempty"`
	// PutStaticPod adds a manifest, or replaces the one of the same file name.
	PutStaticPod *StaticPod `json:"putStaticPod,omitempty"`
	// RemoveStaticPod removes the manifest of that file name.
	RemoveStaticPod string `json:"removeStaticPod,omitempty"`
	// DeleteMirror deletes the mirror of the static pod of that name (the manifest's metadata.name) through the API.
	DeleteMirror string `json:"deleteMirror,omitempty"`
}

// Leave is the end of a node, with or without a return.
type Leave struct {
	// Return is the time until a machine of the same name registers; nil: never.
	Return *metav1.Duration `json:"return,omitempty"`
}

// Reboot is a restart of a node.
type Reboot struct {
	// Down is how long the kubelet does not run.
	Down metav1.Duration `json:"down"`
}

// Fill says how many replicas a workload has when it is not given as a number.
type Fill string

const (
	// FillAllocatable makes as many replicas as the allocatable of the target groups holds at their final size: what the scheduler sees before the
	// mirror pods. What static pods and DaemonSets take must end Pending.
	FillAllocatable Fill = "allocatable"
	// FillFree makes as many replicas as really fit beside static pods, DaemonSets of the experiment and the mirror-pod check.
	FillFree Fill = "free"
)

// Workload asks for room, as an ordinary manifest or a generated one. Exactly one of Manifest, File and Generate is set; after loading never File.
type Workload struct {
	// Name is a DNS label, unique in the cluster. Pods carry it in the label LabelWorkload.
	Name string `json:"name"`
	// Manifest is a Deployment, ReplicaSet, Job, DaemonSet or Pod, inline.
	Manifest json.RawMessage `json:"manifest,omitempty"`
	// File is the path of such a manifest, relative to the experiment file.
	File string `json:"file,omitempty"`
	// Generate makes a manifest.
	Generate *Generate `json:"generate,omitempty"`
	// Replicas overrides the manifest's; for a Pod that many copies are made. Not together with Fill.
	Replicas *int32 `json:"replicas,omitempty"`
	// Fill computes the replicas from the room in Groups. Not for a DaemonSet.
	Fill Fill `json:"fill,omitempty"`
	// Groups pins the pods to these node groups by a node selector (one group) or node affinity (several), and is what Fill counts over.
	// Empty: no pinning, and all groups count.
	Groups []string `json:"groups,omitempty"`
	// PinTo sets spec.nodeName of the pods, bypassing the scheduler: a negative control. Only for a Pod or the generated kind Pod.
	PinTo string `json:"pinTo,omitempty"`
	// After delays the creation, counted from the start of the workload phase.
	After metav1.Duration `json:"after,omitempty"`
}

// Generate describes a manifest to be made.
type Generate struct {
	// Kind is ReplicaSet (default), Deployment, Job, DaemonSet or Pod.
	Kind string `json:"kind,omitempty"`
	// Requests of each pod.
	Requests corev1.ResourceList `json:"requests"`
	// PriorityClassName of the pods; it must exist (the two system classes do).
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// Tolerations of the pods.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Gate is the readiness gate: the taint that nodes register with, the check on the node and the rule whose controller removes the taint.
type Gate struct {
	// Rule is a NodeReadinessRule manifest. Default: the published static-pods-mirrored rule.
	Rule json.RawMessage `json:"rule,omitempty"`
	// TaintValue is the value of the taint that nodes register with; key and effect are the rule's. Default "pending".
	TaintValue string `json:"taintValue,omitempty"`
	// Check configures the mirror-pod check.
	Check Check `json:"check,omitempty"`
}

// Check is the mirror-pod check, a DaemonSet whose init container waits for the mirror pods.
type Check struct {
	// DaemonSet is the manifest. Default: the published one, embedded in checker/manifests.
	DaemonSet json.RawMessage `json:"daemonSet,omitempty"`
	// StartDelay is the time from the check pod's admission to its init container's first look: sandbox, image pull, start.
	// Default constant 2 s; an assumption, since it depends on image and network. Measure yours.
	StartDelay *random.Delay `json:"startDelay,omitempty"`
	// PollInterval is the wait between two looks. Default 2 s (the published script).
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
}

// GatePart is a part of the readiness gate that an arm may leave out, so that another implementation can be run by hand.
type GatePart string

// The parts of the gate.
const (
	// GateTaint: kubelets register with the taint.
	GateTaint GatePart = "taint"
	// GateCheck: the check's DaemonSet is applied.
	GateCheck GatePart = "check"
	// GateRule: the NodeReadinessRule is applied (the CRD always is).
	GateRule GatePart = "rule"
	// GateController: the readiness controller runs.
	GateController GatePart = "controller"
)

// Labels on simulated objects.
const (
	// LabelGroup is on every node, with its node group's name.
	LabelGroup = "mirrorgap.dev/group"
	// LabelWorkload is on every pod of a workload, with the workload's name.
	LabelWorkload = "mirrorgap.dev/workload"
	// LabelInitial is "true" on nodes that were there before the scale-up.
	LabelInitial = "mirrorgap.dev/initial"
)
