package results

import (
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// EndTruncated is how a run ended whose trace has no RunEnded event: it was killed, or the file was cut. The other ends are trace.End….
const EndTruncated = "truncated"

// Run is what one trace shows.
type Run struct {
	// Header is the trace's.
	Header trace.Header
	// End is one of trace.EndSettled, EndTimeLimit, EndStopped, EndInterrupted, EndError and EndTruncated; EndMessage says more.
	End        string
	EndMessage string
	// Died lists the components that ended before the run did, in order.
	Died []Death
	// Interruptions are the times during which the recorder's watches were broken, in order of their ends.
	Interruptions []Interruption
	// Wall is the time from the start of the trace to its last event.
	Wall time.Duration
	// Phases maps the name of a phase (trace.Phase…) to its start; a phase that was not reached is absent.
	Phases map[string]time.Duration
	// KubeletEvidence says whether kubelets wrote events. Without (a real cluster) static pods are known by their mirror pods only.
	KubeletEvidence bool
	// Nodes are in order of registration. A node that returned under its old name is another Node.
	Nodes []*Node
	// Pods are in the order in which the trace first named them: all API pods, and the static pods that a kubelet rejected.
	Pods []*Pod
	// Controllers are those of workload pods, in the order in which the trace first named them.
	Controllers []*Controller
	// Usage is what the nodes had to run; Series are the quantities over time, in the order of the Series… constants.
	Usage  Usage
	Series []Series
}

// Controller is what created workload pods.
type Controller struct {
	// Name is namespace/Kind/name.
	Name string
	// Created counts its pods. Wanted is the most of them that were there at one time and had neither Failed nor Succeeded: a controller replaces what
	// it lost, so the others are extra.
	Created, Wanted int
}

// Death is a component that ended before its run did.
type Death struct {
	// Component is its name, Message its error.
	Component string `json:"component"`
	Message   string `json:"message"`
	// At is when, in seconds since the start of the trace.
	At float64 `json:"atSeconds"`
}

// Interruption is a time during which a watch of the recorder was broken. What happened then is in the trace at the time of its end.
type Interruption struct {
	// Watch is what was watched: nodes or pods.
	Watch string
	Period
}

// LongestInterruption is the most by which a time in the trace may be too late because a watch was broken.
func (r *Run) LongestInterruption() time.Duration {
	var longest time.Duration
	for _, i := range r.Interruptions {
		longest = max(longest, i.To-i.From)
	}
	return longest
}

// Conclusive tells whether the trace may be judged: it is whole and its run was not cut short. A run that reached its time limit, or a recording that was
// stopped, is conclusive about what it saw, but did not settle (see Settled): what had not ended is a lower bound.
func (r *Run) Conclusive() bool {
	return len(r.Died) == 0 && (r.End == trace.EndSettled || r.End == trace.EndTimeLimit || r.End == trace.EndStopped)
}

// Settled tells whether the run met its stop condition.
func (r *Run) Settled() bool { return r.End == trace.EndSettled }

// Span is a measured length of time.
type Span struct {
	Duration time.Duration
	// Censored: it was not over when the trace, or the node, ended; Duration is a lower bound.
	Censored bool
}

// Period is a stretch of time since the start of the trace, of which To does not belong to it.
type Period struct{ From, To time.Duration }

// Node is one node from its registration to its deletion. All instants are times since the start of the trace; nil is "did not happen".
type Node struct {
	Name, UID, Group string
	// Initial: the node was there before the scale-up. All others are new nodes.
	Initial     bool
	Allocatable trace.Resources
	// Registered is when the Node object appeared, Gone when it was deleted.
	Registered time.Duration
	Gone       *time.Duration
	// Ready is when the node was first Ready.
	Ready *time.Duration
	// Schedulable is when for the first time no blocking taint was left.
	Schedulable *time.Duration
	// MirrorsVisible is when the last missing mirror pod of the node's static pods appeared: before the gate released the node, or after, if one
	// was missing then. It is Registered if a returning node found them there, and nil for a node without static pods, or if one never got its mirror.
	MirrorsVisible *time.Duration
	// ConditionTrue is when the gate's condition was first True, Released when the gate's taint first went.
	ConditionTrue, Released *time.Duration
	// FirstBind is the first bind of a workload pod by a scheduler; on a node that a gate held, the first after its release.
	FirstBind *time.Duration
	// Exposure is the time during which the node was schedulable and a static pod was missing its mirror. Nil if the node never was schedulable,
	// or if no static pod of it is known.
	Exposure *Span
	// Exposed are the times during which it was; those of Exposure's length.
	Exposed []Period
	// Hold is the time from Registered to Released. Nil if the node never had the gate's taint.
	Hold *Hold
	// StaticPods is the number of static pods that ran on the node, or whose mirror was seen.
	StaticPods int
	// Bound counts the workload pods bound or pinned to the node, Rejected all pods that its kubelet rejected.
	Bound, Rejected int
	// FirstWave is what was bound before room was used twice.
	FirstWave FirstWave
}

// Hold is the time during which the readiness gate held a node, and its parts. The first three parts add up to Total. A part whose beginning is
// not known is nil.
type Hold struct {
	Total Span
	// BeyondReady is the part of Total after the node was first Ready: without the gate it could have been used then. Nil if it never was.
	BeyondReady *Span
	// Idle is the cpu of the node that nothing on it requested over BeyondReady, in millicore-seconds. Nil if that is nil, or the cpu not known.
	Idle *float64
	// Mirrors: registration → last mirror pod visible; nil if no static pod is known. Checker: → condition True. Controller: → taint removed.
	Mirrors, Checker, Controller *Span
	// Scheduler: taint removed → first bind of a workload pod. Nil if none followed.
	Scheduler *Span
	// OutOfOrder: the parts did not follow one another in that order (the condition was True before the mirrors were visible, say); those with a
	// negative length were set to 0.
	OutOfOrder bool
}

// FirstWave is the workload pods that schedulers bound to a node up to the first one which had no room but that which a rejected pod of the same
// node had given back, as the API shows it. What stands in for a pod rejected on another node takes room that nobody had here, and belongs to it.
type FirstWave struct {
	// Bound and Rejected count its pods. HiddenRejected counts the rejected ones whose cause is CauseHiddenStaticPod or CauseMirrorInFlight.
	Bound, Rejected, HiddenRejected int
	// ClosedForm is what arithmetic expects of the wave. Nil if it does not apply, for the reason NotApplicable.
	ClosedForm    *ClosedForm
	NotApplicable string
}

// ClosedForm is the expected outcome of a first wave of equal pods that fills a fresh node while its mirror pods are missing. With A the node's
// allocatable, v the requests that the scheduler saw on it, h those of static pods that it did not see, r one pod's requests.
type ClosedForm struct {
	// Bound is floor((A−v)/r), Admitted floor((A−v−h)/r), over the resource that allows the fewest.
	Bound, Admitted int
}

// Rejected is Bound − Admitted.
func (c *ClosedForm) Rejected() int { return c.Bound - c.Admitted }

// Role is what a pod is for.
type Role string

// The roles of pods.
const (
	// RoleWorkload: the pod belongs to a workload of the experiment; on a real cluster, any pod that has none of the other roles.
	RoleWorkload Role = "workload"
	// RoleDaemon: a pod of a DaemonSet that is no workload of the experiment.
	RoleDaemon Role = "daemon"
	// RoleCheck: the mirror-pod check on a node.
	RoleCheck Role = "check"
	// RoleMirror: the mirror pod of a static pod.
	RoleMirror Role = "mirror"
	// RoleStatic: a static pod, known here only because the kubelet rejected it.
	RoleStatic Role = "static"
)

// State is where a pod stood at the end of the trace.
type State string

// The states of pods.
const (
	StateRunning   State = "Running"
	StateSucceeded State = "Succeeded"
	StateFailed    State = "Failed"
	StateDeleted   State = "Deleted"
	// StateUnschedulable: not bound, and the scheduler said that no node has room.
	StateUnschedulable State = "Unschedulable"
	// StatePending: neither of the above: not yet looked at by the scheduler, or bound and not yet running.
	StatePending State = "Pending"
)

// Pod is one pod. All instants are times since the start of the trace; nil is "did not happen".
type Pod struct {
	// Name is namespace/name.
	Name, UID string
	// Owner is the controller as Kind/name; Workload the experiment's name for it.
	Owner, Workload string
	Role            Role
	Requests        trace.Resources
	// Pinned: created with spec.nodeName. Existing: there when recording began. Failed: the API showed it Failed, even if it was deleted since.
	Pinned, Existing, Failed bool
	// Node and NodeUID are where it was bound, pinned or rejected.
	Node, NodeUID string
	// Created is when the Pod object appeared, Bound when a scheduler bound it, Running when the API first showed it Running, Ended when it
	// showed it Failed or Succeeded, Deleted when the object went.
	Created, Bound, Running, Ended, Deleted *time.Duration
	State                                   State
	// Rejection is nil for a pod that no kubelet rejected.
	Rejection *Rejection
}

// Rejection is a kubelet's decision not to run a pod.
type Rejection struct {
	// At is when the kubelet decided; if only the API witnessed it, when the API showed it.
	At time.Duration
	// Reason is the kubelet's ("OutOfcpu").
	Reason string
	Cause  Cause
	// FirstWave: the pod belonged to the first wave of its node.
	FirstWave bool
	// SeenByKubelet and SeenByAPI tell who witnessed it. A kubelet's decision reaches the API later, or after the end of the trace.
	SeenByKubelet, SeenByAPI bool
}
