package sim

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Cluster describes a simulated cluster and what happens in it. It is the body of an experiment; every field of it is set after SetDefaults.
type Cluster struct {
	// ControlPlane configures the real components.
	ControlPlane ControlPlane `json:"controlPlane,omitempty"`
	// Kubelet is the behaviour of every kubelet; a node group may override single fields.
	Kubelet Kubelet `json:"kubelet,omitempty"`
	// NodeGroups are the machines. At least one.
	NodeGroups []NodeGroup `json:"nodeGroups"`
	// PriorityClasses are there from the beginning, besides those of every API server.
	PriorityClasses []PriorityClass `json:"priorityClasses,omitempty"`
	// Workloads ask for room. They are created once the initial nodes are established.
	Workloads []Workload `json:"workloads,omitempty"`
	// Gate is the readiness gate. Arms decide whether it is used.
	Gate Gate `json:"gate,omitempty"`
	// APIFaults are what the API refuses for a while. They meet model and real kubelets alike.
	APIFaults []APIFault `json:"apiFaults,omitempty"`
	// Autoscaler adds nodes for pods that are Pending. Nil: none.
	Autoscaler *Autoscaler `json:"autoscaler,omitempty"`
}

// ControlPlane configures the real components; they shape the race.
type ControlPlane struct {
	Scheduler Scheduler `json:"scheduler,omitempty"`
	// OtherSchedulers are the names of further schedulers, each a kube-scheduler with kube-scheduler's identity and defaults, but a cache and a throttle of
	// its own. Pods choose one by spec.schedulerName. Names are DNS labels, and differ from each other and from the profiles of Scheduler.
	OtherSchedulers   []string `json:"otherSchedulers,omitempty"`
	ControllerManager Client   `json:"controllerManager,omitempty"`
	// ReadinessController is the NodeReadinessRule controller.
	ReadinessController ReadinessController `json:"readinessController,omitempty"`
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

// ReadinessController configures the NodeReadinessRule controller.
type ReadinessController struct {
	Client `json:",inline"`
	// Restarts are when the controller stops and starts again, in ascending order and without overlap.
	Restarts []Restart `json:"restarts,omitempty"`
}

// Restart is an outage of a component.
type Restart struct {
	// At is the time since the start of the scale-up phase. The component is down for the time Down.
	At   metav1.Duration `json:"at"`
	Down metav1.Duration `json:"down"`
}

// Scheduler configures kube-scheduler.
type Scheduler struct {
	Client `json:",inline"`
	// Config is a KubeSchedulerConfiguration, inline; empty for kube-scheduler's defaults.
	Config json.RawMessage `json:"config,omitempty"`
	// ConfigFile is the path of one, relative to the experiment file. After loading it is always Config.
	ConfigFile string `json:"configFile,omitempty"`
	// PodWatchLag is by how much kube-scheduler's watch of pods lags behind its watch of nodes. Default 0.
	PodWatchLag metav1.Duration `json:"podWatchLag"`
}

// Implementation says what plays a kubelet.
type Implementation string

const (
	// KubeletModel is the kubelet model (sim/kubelet).
	KubeletModel Implementation = "model"
	// KubeletReal is the real kubelet's code, a process for each node, over a container runtime without containers (sim/kubelet/real).
	KubeletReal Implementation = "real"
)

// Kubelet is how a kubelet behaves in time. All delays are non-negative.
type Kubelet struct {
	// Implementation is KubeletModel (the default) or KubeletReal. In the real kubelet all delays below arise by themselves, and their values here do
	// not count.
	Implementation Implementation `json:"implementation,omitempty"`
	// APIUnreachable is how long after its start, and after each restart, a kubelet cannot reach the API server. Default 0.
	APIUnreachable *metav1.Duration `json:"apiUnreachable,omitempty"`
	// ReadyDelay is the time from Node CREATE to Ready=True.
	// Default empirical, 227–338 ms (measured on the real kubelet v1.37.2 by mirrorgap validate-model, docs/model-agreement.md).
	ReadyDelay *random.Delay `json:"readyDelay,omitempty"`
	// MirrorDelay is the time from Node CREATE to the creation of a static pod's mirror, one draw a static pod.
	// Default preset kubelet-1.22-1.31 (U(60 s, 90 s), kubernetes/kubernetes#126870).
	MirrorDelay *random.Delay `json:"mirrorDelay,omitempty"`
	// MirrorRetry is the wait before another attempt after the API server refused a mirror.
	// Default U(60 s, 90 s): the kubelet's 1 minute resync, jittered by 1.0–1.5.
	MirrorRetry *random.Delay `json:"mirrorRetry,omitempty"`
	// MirrorResync is the wait before a mirror pod that was deleted through the API comes back. Default U(0 s, 90 s): the static pod's next sync.
	MirrorResync *random.Delay `json:"mirrorResync,omitempty"`
	// StatusDelay is the time from an admission decision to when the kubelet begins to write the status that shows it. The write itself, which reads the pod
	// first, takes what the API server takes.
	// Default uniform 0–10 ms, with which bind → Failed agrees with the real kubelet v1.37.2 (mirrorgap validate-model, docs/model-agreement.md).
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
	// Source is where the kubelet has the manifest from: SourceFolder (the default) or SourceURL, which a check that looks into the folder never sees.
	Source StaticPodSource `json:"source,omitempty"`
}

// StaticPodSource is one of a kubelet's sources of static pods.
type StaticPodSource string

const (
	// SourceFolder is the kubelet's staticPodPath.
	SourceFolder StaticPodSource = "folder"
	// SourceURL is the kubelet's staticPodURL.
	SourceURL StaticPodSource = "url"
)

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
	// RestartKubelet kills the nodes' kubelets and starts them again. What runs on the nodes goes on.
	RestartKubelet *Reboot `json:"restartKubelet,omitempty"`
	// PutStaticPod adds a manifest, or replaces the one of the same file name.
	PutStaticPod *StaticPod `json:"putStaticPod,omitempty"`
	// RemoveStaticPod removes the manifest of that file name.
	RemoveStaticPod string `json:"removeStaticPod,omitempty"`
	// DeleteMirror deletes the mirror of the static pod of that name (the manifest's metadata.name) through the API.
	DeleteMirror string `json:"deleteMirror,omitempty"`
	// DeletePod deletes the pod of that namespace/name through the API, wherever it is.
	DeletePod string `json:"deletePod,omitempty"`
}

// Leave is the end of a node, with or without a return.
type Leave struct {
	// Return is the time until a machine of the same name registers; nil: never.
	Return *metav1.Duration `json:"return,omitempty"`
	// StaticPods are those of the machines that return, which a new image may bring; empty: those of the group.
	StaticPods []StaticPod `json:"staticPods,omitempty"`
}

// Reboot is a restart of a node, or of its kubelet.
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
	// Phase is the phase in which it is created. Default: WorkloadBefore.
	Phase WorkloadPhase `json:"phase,omitempty"`
	// After delays the creation, counted from the start of that phase.
	After metav1.Duration `json:"after,omitempty"`
}

// NodesLeave tells whether any Node object is deleted: what it owned is garbage then.
func (c *Cluster) NodesLeave() bool {
	for i := range c.NodeGroups {
		if slices.ContainsFunc(c.NodeGroups[i].Actions, func(a Action) bool { return a.Leave != nil }) {
			return true
		}
	}
	return false
}

// WorkloadPhase is a phase of a run in which workloads are created.
type WorkloadPhase string

const (
	// WorkloadBefore creates the workload before the scale-up, which begins when all of its pods are bound, or the scheduler has found no room for them.
	WorkloadBefore WorkloadPhase = trace.PhaseWorkload
	// WorkloadDuring creates it during the scale-up: pods that come when new nodes are there already.
	WorkloadDuring WorkloadPhase = trace.PhaseScaleUp
)

// Generate describes a manifest to be made.
type Generate struct {
	// Kind is ReplicaSet (default), Deployment, Job, DaemonSet or Pod.
	Kind string `json:"kind,omitempty"`
	// Requests of each pod.
	Requests corev1.ResourceList `json:"requests"`
	// PriorityClassName of the pods: one of the two system classes, of Cluster.PriorityClasses or of an API fault.
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// Tolerations of the pods.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// SchedulerName is the scheduler of the pods: one of ControlPlane.OtherSchedulers, a profile of ControlPlane.Scheduler, or empty for default-scheduler.
	SchedulerName string `json:"schedulerName,omitempty"`
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
	// Accept says which pod the check takes for a static pod's mirror. Default AcceptOwnMirror.
	Accept Accept `json:"accept,omitempty"`
	// Settle is how long all mirror pods must have been there before the check sets its condition. Default 0, as in the published script.
	Settle metav1.Duration `json:"settle"`
	// StaticPods are static pods, as namespace/name, that the check waits for although their manifests are not in the folder.
	StaticPods []string `json:"staticPods,omitempty"`
	// ConfirmSchedulers are schedulers that must be seen to know of the mirror pods before the check sets its condition. Default none.
	ConfirmSchedulers []string `json:"confirmSchedulers,omitempty"`
	// Continuous has the check go on after it passed, and take the condition back while a mirror pod is missing: for a rule that is enforced
	// continuously. Default false.
	Continuous bool `json:"continuous,omitempty"`
}

// Accept says which pod a check takes for a static pod's mirror.
type Accept string

const (
	// AcceptOwnMirror: a mirror pod that belongs to this Node object, requests what the manifest does, and is not being deleted.
	AcceptOwnMirror Accept = "own-mirror"
	// AcceptName: any pod of the mirror's name, as in the published script.
	AcceptName Accept = "name"
)

// APIFault is something that the API refuses for a while, so that mirror pods cannot be created. Exactly one of RefuseMirrors, MissingNamespace and
// MissingPriorityClass is set.
type APIFault struct {
	// From and Until are times since the start of the scale-up phase. From is 0 for what is missing, which it is from the beginning. Until nil: to the
	// end of the run.
	From  metav1.Duration  `json:"from"`
	Until *metav1.Duration `json:"until,omitempty"`
	// RefuseMirrors has admission refuse mirror pods, by a ValidatingAdmissionPolicy. Only for nodes of these groups; all of them if it is empty.
	RefuseMirrors *RefuseMirrors `json:"refuseMirrors,omitempty"`
	// MissingNamespace is a namespace that is not there.
	MissingNamespace string `json:"missingNamespace,omitempty"`
	// MissingPriorityClass is a PriorityClass that is not there.
	MissingPriorityClass *PriorityClass `json:"missingPriorityClass,omitempty"`
}

// RefuseMirrors says whose mirror pods admission refuses.
type RefuseMirrors struct {
	// Groups are node groups; empty: all.
	Groups []string `json:"groups,omitempty"`
	// Deletions are refused, and not creations: a kubelet cannot replace a mirror pod that is not its static pod's.
	Deletions bool `json:"deletions,omitempty"`
}

// PriorityClass is a PriorityClass to be created.
type PriorityClass struct {
	// Name is a DNS subdomain that does not begin with system-, which Kubernetes keeps for its own.
	Name string `json:"name"`
	// Value is the priority of its pods, at most 1,000,000,000; pods without a class have 0.
	Value int32 `json:"value"`
}

// Autoscaler adds nodes to a group while pods are Pending: a simple model of a cluster autoscaler (sim/fleet).
type Autoscaler struct {
	// Group is the node group that grows, which has no ScaleUp of its own, from its Initial nodes up to Max.
	Group string `json:"group"`
	Max   int    `json:"max"`
	// ScanInterval is the wait between two looks. Default 10 s (cluster-autoscaler --scan-interval).
	ScanInterval *metav1.Duration `json:"scanInterval,omitempty"`
	// ProvisionDelay is the time from the decision to the start of a node's kubelet. Default 0.
	ProvisionDelay *random.Delay `json:"provisionDelay,omitempty"`
	// StartupTaints says that the autoscaler takes the readiness taint for a startup taint: a node that has it counts as one that is still coming, with
	// all of its room. Otherwise pending pods find no room there, and more nodes are added. Default false.
	StartupTaints bool `json:"startupTaints,omitempty"`
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
