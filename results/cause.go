package results

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Cause is why a kubelet rejected a pod, concluded from what the scheduler and the kubelet could see.
type Cause string

// The causes of rejections.
const (
	// CausePinned: the pod was created with spec.nodeName, so that no scheduler looked for room.
	CausePinned Cause = "pinned-by-node-name"
	// CauseHiddenStaticPod: the pod would have fitted but for static pods whose requests were not visible in the API when it was bound.
	CauseHiddenStaticPod Cause = "hidden-static-pod"
	// CauseMirrorInFlight: the pod would have fitted but for those and static pods whose mirror became visible less than InFlightWindow before.
	CauseMirrorInFlight Cause = "mirror-in-flight"
	// CauseOtherBoundPods: it would not have fitted beside the visible pods either.
	CauseOtherBoundPods Cause = "other-bound-pods"
	// CauseNodeAffinity: node selector or node affinity do not match the node's labels.
	CauseNodeAffinity Cause = "node-affinity"
	// CauseNodeName: spec.nodeName names another node.
	CauseNodeName Cause = "node-name"
	// CauseHostPort: a host port is taken.
	CauseHostPort Cause = "host-port"
	// CauseTaint: the pod does not tolerate a NoExecute taint.
	CauseTaint Cause = "taint"
	// CauseUnexpectedAdmissionError: admission itself failed; also a critical pod for which nothing could be evicted.
	CauseUnexpectedAdmissionError Cause = "unexpected-admission-error"
	// CauseUnknown: the trace does not hold the evidence, or the reason is none of the above.
	CauseUnknown Cause = "unknown"
)

// Causes lists all causes.
func Causes() []Cause {
	return []Cause{
		CausePinned, CauseHiddenStaticPod, CauseMirrorInFlight, CauseOtherBoundPods, CauseNodeAffinity, CauseNodeName, CauseHostPort, CauseTaint,
		CauseUnexpectedAdmissionError, CauseUnknown,
	}
}

// InFlightWindow is how far behind the API a scheduler may be when its bind reaches it. The scheduler decides on a snapshot of its informer's
// cache, and the bind is written later by a goroutine of its own, behind a client-side throttle. With the real components 9–100 ms were measured
// from the removal of a taint to the bind that it allowed; ten times the longest of that is generous, yet far below mirror delays of a minute.
// A scheduler whose binds queue behind its throttle for longer makes rejections of this cause look like CauseOtherBoundPods.
// The same window orders events of pods against events of nodes, which come through different watches.
const InFlightWindow = time.Second

// resourceReason starts the kubelet's reason for a pod that did not fit (pkg/kubelet/lifecycle/predicate.go, InsufficientResourcePrefix).
const resourceReason = "OutOf"

// rejectedMessage starts the status message of a pod that the kubelet rejected (pkg/kubelet/kubelet.go, rejectPod).
const rejectedMessage = "Pod was rejected"

// causeOfReason maps the kubelet's reasons that are their own evidence. Predicates are named after scheduler plugins since Kubernetes 1.22;
// MatchNodeSelector, PodFitsHostPorts and HostName are their names before.
var causeOfReason = map[string]Cause{
	"NodeAffinity":             CauseNodeAffinity,
	"MatchNodeSelector":        CauseNodeAffinity,
	"NodeName":                 CauseNodeName,
	"HostName":                 CauseNodeName,
	"NodePorts":                CauseHostPort,
	"PodFitsHostPorts":         CauseHostPort,
	"TaintToleration":          CauseTaint,
	"UnexpectedAdmissionError": CauseUnexpectedAdmissionError,
}

// otherReasons are the remaining reasons of kubelet admission, from pkg/kubelet/lifecycle, sysctl, nodeshutdown and cm/topologymanager of v1.37.2.
var otherReasons = []string{
	"InvalidNodeInfo", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "InitContainerRestartPolicyForbidden",
	"SupplementalGroupsPolicyNotSupported", "UnknownReason", "UnexpectedPredicateFailureType", "AppArmor", "PodLevelResourcesNotSupported",
	"SysctlForbidden", "NodeShutdown", "TopologyAffinityError", "VolumeAttachmentLimitExceeded",
}

// IsRejection tells whether a Failed pod's status is that of a pod which the kubelet did not admit.
func IsRejection(reason, message string) bool {
	_, known := causeOfReason[reason]
	return known || strings.HasPrefix(reason, resourceReason) || slices.Contains(otherReasons, reason) || strings.HasPrefix(message, rejectedMessage)
}

// shortage is what a kubelet reports of a resource that was short.
type shortage struct {
	resource                  string
	requested, used, capacity int64
}

// missing is the amount that was lacking; not positive if the figures contradict the rejection.
func (s shortage) missing() int64 { return s.requested - (s.capacity - s.used) }

// shortageMessage matches the kubelet's message (InsufficientResourceError.Error in pkg/kubelet/lifecycle/predicate.go), whatever precedes it:
// "Pod was rejected: " in the status of new kubelets, "Pod " in that of old ones, nothing in the event.
var shortageMessage = regexp.MustCompile(`Node didn't have enough resource: ([^\s,]+), requested: (-?\d+), used: (-?\d+), capacity: (-?\d+)$`)

// parseShortage reads a kubelet's message about a resource. It is false for any other message.
func parseShortage(message string) (shortage, bool) {
	match := shortageMessage.FindStringSubmatch(message)
	if match == nil {
		return shortage{}, false
	}
	var amounts [3]int64
	for i, digits := range match[2:] {
		amount, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return shortage{}, false
		}
		amounts[i] = amount
	}
	return shortage{resource: match[1], requested: amounts[0], used: amounts[1], capacity: amounts[2]}, true
}

// evidence is what the best witness of a rejection tells about its cause.
type evidence struct {
	seq int
	// resource was short, by missing; empty when the rejection is not about a resource, or nothing is known about it.
	resource string
	missing  int64
	// counted are the static pods that the kubelet counted; known only to the kubelet.
	counted []*staticPod
}

// witness notes a PodRejected or PodFailed event. The kubelet's word is better than the API's, and the first of each counts.
func (l *ledger) witness(p *podRecord, e trace.Event, byKubelet bool) {
	if p.Rejection == nil {
		p.Rejection = &Rejection{}
	}
	r := p.Rejection
	better := !r.SeenByAPI && !r.SeenByKubelet || byKubelet && !r.SeenByKubelet
	r.SeenByKubelet, r.SeenByAPI = r.SeenByKubelet || byKubelet, r.SeenByAPI || !byKubelet
	if !better {
		return
	}
	r.At, r.Reason = l.now.at, l.shared(e.Reason)
	p.evidence = &evidence{seq: l.now.seq}
	if short, known := shortageOf(e); known {
		p.evidence.resource, p.evidence.missing = l.shared(short.resource), short.missing()
	}
	if byKubelet {
		p.evidence.counted = l.machine(e.Node).counted(e.Rejection)
	}
}

// shortageOf is false for an event that tells of none.
func shortageOf(e trace.Event) (shortage, bool) {
	if r := e.Rejection; r != nil && r.Resource != "" {
		return shortage{resource: r.Resource, requested: r.Requested, used: r.Used, capacity: r.Capacity}, true
	}
	return parseShortage(e.Message)
}

// cause concludes why the pod was rejected. Static pods and mirrors must be known.
func (p *podRecord) cause() Cause {
	switch {
	case p.Pinned:
		return CausePinned
	case strings.HasPrefix(p.Rejection.Reason, resourceReason):
		return p.resourceCause()
	}
	if cause, ok := causeOfReason[p.Rejection.Reason]; ok {
		return cause
	}
	return CauseUnknown
}

// resourceCause asks who took the room: would the pod have fitted without the static pods that the scheduler could not see?
func (p *podRecord) resourceCause() Cause {
	found := p.evidence
	switch {
	case p.Role == RoleStatic || p.Role == RoleMirror:
		return CauseOtherBoundPods // the node's own pod came after those that a scheduler had bound
	case found.missing <= 0 || p.Bound == nil || p.machine == nil:
		return CauseUnknown
	}
	counted := found.counted
	if !p.Rejection.SeenByKubelet {
		counted = p.machine.running(found.seq)
	}
	switch {
	case p.machine.hidden(counted, p.boundAt(), 0)[found.resource] >= found.missing:
		return CauseHiddenStaticPod
	case p.machine.hidden(counted, p.boundAt(), InFlightWindow)[found.resource] >= found.missing:
		return CauseMirrorInFlight
	case p.Rejection.SeenByKubelet || slices.Contains(p.machine.overcommitted[p], found.resource):
		return CauseOtherBoundPods
	}
	return CauseUnknown
}
