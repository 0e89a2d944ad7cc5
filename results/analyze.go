package results

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Analyze reads a trace to its end and returns what it shows. A trace that was cut short gives a Run whose End is EndTruncated, not an error;
// an error means that the trace could not be read, and names the file and line.
func Analyze(reader *trace.Reader) (*Run, error) {
	l := newLedger(reader.Header())
	for {
		e, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return l.close(), nil
		case errors.Is(err, trace.ErrTruncated):
			l.run.End, l.run.EndMessage = EndTruncated, err.Error()
			return l.close(), nil
		case err != nil:
			return nil, fmt.Errorf("analyze trace: %w", err)
		}
		l.enter(e)
	}
}

// ledger keeps the state of the cluster while a trace is read, and the history that conclusions need at the end.
type ledger struct {
	run         *Run
	now         moment
	machines    map[string]*machine
	pods        map[string]*podRecord
	order       []*podRecord
	controllers map[string]*controllerRecord
	// broken maps a watch that is broken to since when.
	broken map[string]time.Duration
	// names are strings that many pods have, requests those of the last pod of each owner, so that equal ones are kept once.
	names    map[string]string
	requests map[string]trace.Resources
}

// controllerRecord is a Controller with the number of its pods that are there and have not ended.
type controllerRecord struct {
	*Controller
	alive int
}

// nodeRecord is a Node with what is needed until the end of the trace.
type nodeRecord struct {
	*Node
	registeredAt, goneAt moment
	// taints are the present ones that keep pods away, by their start; pastTaints those that have gone.
	taints     map[trace.Taint]time.Duration
	pastTaints []interval
	held       bool
	// heldDuring and exposedDuring are when the gate's taint was on it, and when it was exposed.
	heldDuring, exposedDuring intervals
	wave                      wave
}

// podRecord is a Pod with what is needed until the end of the trace. A storm has millions of them: it is kept small.
type podRecord struct {
	*Pod
	machine *machine
	// boundSeq is the place in the trace of the instant Bound.
	boundSeq int
	mirror   *mirrorPod
	// controller is what created it, as long as it counts as one of its pods; nil for a bare pod.
	controller *controllerRecord
	// wave is the first wave of its node, if it belongs to that.
	wave *wave
	// evidence is nil if it was not rejected.
	evidence *evidence
	// counted: its requests are in machine.visible.
	counted, unschedulable bool
}

// boundAt is when it was bound, which it must have been.
func (p *podRecord) boundAt() moment { return moment{*p.Bound, p.boundSeq} }

func newLedger(header trace.Header) *ledger {
	return &ledger{
		run:         &Run{Header: header, Phases: map[string]time.Duration{}},
		machines:    map[string]*machine{},
		pods:        map[string]*podRecord{},
		controllers: map[string]*controllerRecord{},
		broken:      map[string]time.Duration{},
		names:       map[string]string{},
		requests:    map[string]trace.Resources{},
	}
}

// enter takes the next event into account. Kinds that are not about a metric are passed over.
func (l *ledger) enter(e trace.Event) {
	l.now = moment{at: e.T, seq: l.now.seq + 1}
	l.run.Wall = e.T
	l.run.KubeletEvidence = l.run.KubeletEvidence || e.Source == trace.SourceKubelet
	switch e.Kind {
	case trace.NodeRegistered, trace.NodeReady, trace.NodeTaints, trace.NodeCondition, trace.NodeDeleted:
		l.enterNode(e)
	case trace.PodCreated, trace.PodBound, trace.PodUnschedulable, trace.PodRunning, trace.PodSucceeded, trace.PodFailed, trace.PodDeleted:
		l.enterPod(e)
	case trace.KubeletStopped, trace.StaticPodStarted, trace.StaticPodStopped, trace.PodRejected:
		l.enterKubelet(e)
	case trace.Phase:
		if _, again := l.run.Phases[e.Message]; !again {
			l.run.Phases[e.Message] = e.T
		}
	case trace.WatchBroken:
		l.broken[e.Reason] = e.T
	case trace.WatchResumed:
		l.resume(e.Reason)
	case trace.ComponentDied:
		l.run.Died = append(l.run.Died, Death{Component: e.Reason, Message: e.Message, At: e.T.Seconds()})
	case trace.RunEnded:
		l.run.End, l.run.EndMessage = e.Reason, e.Message
	}
}

// resume ends the interruption of a watch, if there is one.
func (l *ledger) resume(watch string) {
	if since, broken := l.broken[watch]; broken {
		delete(l.broken, watch)
		l.run.Interruptions = append(l.run.Interruptions, Interruption{watch, Period{since, l.now.at}})
	}
}

func (l *ledger) machine(name string) *machine {
	m, ok := l.machines[name]
	if !ok {
		m = newMachine(name)
		l.machines[name] = m
	}
	return m
}

// shared returns an equal string that is kept once.
func (l *ledger) shared(name string) string {
	kept, ok := l.names[name]
	if !ok {
		l.names[name], kept = name, name
	}
	return kept
}

// instant is the current time, to be kept.
func (l *ledger) instant() *time.Duration { return new(l.now.at) }

// once sets *at to the current time, unless it is set.
func (l *ledger) once(at **time.Duration) {
	if *at == nil {
		*at = l.instant()
	}
}

func (l *ledger) enterNode(e trace.Event) {
	m := l.machine(e.Node)
	if e.Kind == trace.NodeRegistered {
		l.register(m, e)
		return
	}
	node := m.current
	if node == nil || node.UID != e.NodeUID {
		return // of a Node whose registration the trace does not have
	}
	switch e.Kind {
	case trace.NodeReady:
		l.once(&node.Ready)
	case trace.NodeTaints:
		l.setTaints(node, e.Taints)
	case trace.NodeCondition:
		if gate := l.run.Header.Gate; gate != nil && e.Condition == gate.Condition && e.Status == "True" {
			l.once(&node.ConditionTrue)
		}
	case trace.NodeDeleted:
		node.Gone, node.goneAt = l.instant(), l.now
		m.current = nil
	}
}

func (l *ledger) register(m *machine, e trace.Event) {
	if m.current != nil && m.current.UID == e.NodeUID {
		return
	}
	info := e.NodeInfo
	if info == nil {
		info = &trace.NodeInfo{}
	}
	_, scaling := l.run.Phases[trace.PhaseScaleUp]
	node := &nodeRecord{
		Node: &Node{
			Name: e.Node, UID: e.NodeUID, Group: info.Group, Allocatable: info.Allocatable, Registered: l.now.at,
			Initial: info.Initial && !scaling, // one of the initial size that comes back is as fresh as a new one
		},
		registeredAt: l.now,
		goneAt:       endOfTrace,
		taints:       map[trace.Taint]time.Duration{},
	}
	m.nodes, m.current = append(m.nodes, node), node
	l.run.Nodes = append(l.run.Nodes, node.Node)
	l.setTaints(node, e.Taints)
}

// setTaints keeps the taints that keep pods away, by key and effect as Kubernetes matches them.
func (l *ledger) setTaints(node *nodeRecord, taints []trace.Taint) {
	present := map[trace.Taint]bool{}
	for _, t := range taints {
		if l.keepsPodsAway(t) {
			present[trace.Taint{Key: t.Key, Effect: t.Effect}] = true
		}
	}
	for t, since := range node.taints {
		if present[t] {
			continue
		}
		delete(node.taints, t)
		node.pastTaints = append(node.pastTaints, interval{since, l.now.at})
		if l.isGateTaint(t) {
			node.heldDuring = append(node.heldDuring, interval{since, l.now.at})
			l.once(&node.Released)
		}
	}
	for t := range present {
		if _, old := node.taints[t]; !old {
			node.taints[t] = l.now.at
		}
		node.held = node.held || l.isGateTaint(t)
	}
}

// keepsPodsAway tells whether a scheduler heeds the taint. NoExecute taints for a node that is not ready or not reachable keep nobody away: the API
// server's admission plugin DefaultTolerationSeconds has every pod tolerate them (for 300 s).
func (l *ledger) keepsPodsAway(t trace.Taint) bool {
	switch t.Effect {
	case "NoSchedule":
		return true
	case "NoExecute":
		return t.Key != "node.kubernetes.io/not-ready" && t.Key != "node.kubernetes.io/unreachable" || l.isGateTaint(t)
	}
	return l.isGateTaint(t)
}

func (l *ledger) isGateTaint(t trace.Taint) bool {
	gate := l.run.Header.Gate
	return gate != nil && t.Key == gate.TaintKey && t.Effect == gate.TaintEffect
}

// pod returns the record of the pod that the event names. Witnesses may name a pod before the API shows its creation.
func (l *ledger) pod(e trace.Event) *podRecord {
	p, ok := l.pods[e.UID]
	if !ok {
		p = &podRecord{Pod: &Pod{Name: e.Pod, UID: e.UID, Role: RoleWorkload}}
		if e.Source == trace.SourceKubelet {
			p.Role = RoleStatic // unless the API shows it later
		}
		l.pods[e.UID] = p
		l.order = append(l.order, p)
	}
	if p.machine == nil && e.Node != "" {
		p.machine = l.machine(e.Node)
	}
	return p
}

func (l *ledger) enterPod(e trace.Event) {
	p := l.pod(e)
	switch e.Kind {
	case trace.PodCreated:
		l.create(p, e)
	case trace.PodBound:
		l.bind(p)
	case trace.PodUnschedulable:
		p.unschedulable = true
	case trace.PodRunning:
		l.once(&p.Running)
	case trace.PodSucceeded:
		l.end(p, StateSucceeded)
	case trace.PodFailed:
		if IsRejection(e.Reason, e.Message) {
			l.rejectedInAPI(p, e)
		}
		l.end(p, StateFailed)
	case trace.PodDeleted:
		l.release(p)
		l.lose(p)
		p.Deleted, p.State = l.instant(), StateDeleted
	}
}

// rejectedInAPI notes that the API shows a pod as rejected. What a mirror pod shows happened to its static pod, if its kubelet told of that.
func (l *ledger) rejectedInAPI(p *podRecord, e trace.Event) {
	if p.mirror != nil && l.pods[p.mirror.hash] != nil {
		p = l.pods[p.mirror.hash]
	}
	l.witness(p, e, false)
}

func (l *ledger) create(p *podRecord, e trace.Event) {
	info := e.PodInfo
	if info == nil {
		info = &trace.PodInfo{}
	}
	p.Created = l.instant()
	p.Owner, p.Workload, p.Role = l.shared(info.Owner), l.shared(info.Workload), roleOf(info)
	p.Pinned, p.Existing = info.Pinned, info.Existing
	p.Requests = l.sharedRequests(p, info.Requests)
	l.gain(p)
	if info.Mirror {
		p.mirror = &mirrorPod{hash: info.MirrorHash, ownerUID: info.OwnerUID, requests: p.Requests, from: l.mirrorFrom(p), to: endOfTrace}
	}
	if p.machine == nil {
		return
	}
	l.count(p)
	if info.Mirror {
		p.machine.addMirror(e.Pod, p.mirror)
	}
}

// gain counts a new workload pod as one of its controller's.
func (l *ledger) gain(p *podRecord) {
	if p.Role != RoleWorkload || p.Owner == "" || p.controller != nil {
		return
	}
	name := p.family()
	c, ok := l.controllers[name]
	if !ok {
		c = &controllerRecord{Controller: &Controller{Name: name}}
		l.controllers[name] = c
		l.run.Controllers = append(l.run.Controllers, c.Controller)
	}
	p.controller = c
	c.Created++
	c.alive++
	c.Wanted = max(c.Wanted, c.alive)
}

// family is the name of its controller: namespace/Kind/name.
func (p *Pod) family() string {
	namespace, _, _ := strings.Cut(p.Name, "/")
	return namespace + "/" + p.Owner
}

// lose notes that its controller has one pod less.
func (l *ledger) lose(p *podRecord) {
	if p.controller != nil {
		p.controller.alive--
		p.controller = nil
	}
}

// mirrorFrom is when the pod, a mirror, came. One that was there when recording began came with its node, as far as the trace knows.
func (l *ledger) mirrorFrom(p *podRecord) moment {
	if p.Existing && p.machine != nil && p.machine.current != nil {
		return p.machine.current.registeredAt
	}
	return l.now
}

func roleOf(info *trace.PodInfo) Role {
	switch {
	case info.Mirror:
		return RoleMirror
	case info.Check:
		return RoleCheck
	case info.Workload == "" && strings.HasPrefix(info.Owner, "DaemonSet/"):
		return RoleDaemon
	}
	return RoleWorkload
}

// sharedRequests returns the requests of a new pod, as the same map that its controller's last pod has if they are equal.
func (l *ledger) sharedRequests(p *podRecord, requests trace.Resources) trace.Resources {
	family := p.family()
	if !maps.Equal(l.requests[family], requests) {
		l.requests[family] = requests
	}
	return l.requests[family]
}

func (l *ledger) bind(p *podRecord) {
	if p.Bound != nil || p.machine == nil {
		return
	}
	p.Bound, p.boundSeq = l.instant(), l.now.seq
	if node := p.machine.current; node != nil {
		if p.Role == RoleWorkload {
			node.wave.take(p, l.now, node.Allocatable)
		}
		if short := p.machine.visible.shortOf(p.Requests, node.Allocatable); short != nil {
			p.machine.overcommitted[p] = short
		}
	}
	l.count(p)
}

// count adds the pod to what the scheduler sees on its node.
func (l *ledger) count(p *podRecord) {
	if !p.counted {
		p.counted = true
		p.machine.visible.add(p.Requests)
	}
}

// release takes the pod out of what the scheduler sees on its node.
func (l *ledger) release(p *podRecord) {
	if !p.counted {
		return
	}
	p.counted = false
	p.machine.visible.remove(p.Requests)
	if p.mirror != nil && p.mirror.to == endOfTrace {
		p.mirror.to = l.now
	}
	if p.wave != nil {
		p.wave.release(p)
	}
}

func (l *ledger) end(p *podRecord, state State) {
	l.release(p)
	l.lose(p)
	l.once(&p.Ended)
	p.State = state
	p.Failed = p.Failed || state == StateFailed
}

func (l *ledger) enterKubelet(e trace.Event) {
	m := l.machine(e.Node)
	switch e.Kind {
	case trace.KubeletStopped:
		m.stopStatics(l.now, func(*staticPod) bool { return true })
	case trace.StaticPodStarted:
		m.startStatic(e, l.now)
	case trace.StaticPodStopped:
		m.stopStatics(l.now, func(s *staticPod) bool { return s.pod == e.Pod })
	case trace.PodRejected:
		l.witness(l.pod(e), e, true)
	}
}

// close concludes what needs the whole trace.
func (l *ledger) close() *Run {
	for _, watch := range slices.Sorted(maps.Keys(l.broken)) {
		l.resume(watch)
	}
	if !l.run.KubeletEvidence {
		for _, m := range l.machines {
			m.inferStatics()
		}
	}
	l.closePods()
	for _, m := range l.machines {
		l.closeNodes(m)
	}
	l.closeUsage()
	return l.run
}

// closePods settles where each pod was, how it ended and why it was rejected, and what that says about its node.
func (l *ledger) closePods() {
	l.run.Pods = make([]*Pod, len(l.order))
	l.pods = nil // as evidence below: of millions of pods, a good part of the memory
	for i, p := range l.order {
		l.run.Pods[i] = p.Pod
		p.State = p.lastState()
		node := p.placed()
		if p.Rejection != nil {
			p.Rejection.Cause, p.Rejection.FirstWave = p.cause(), p.wave != nil
			p.evidence = nil
		}
		if node == nil {
			continue
		}
		if p.Rejection != nil {
			node.Rejected++
		}
		if p.Role == RoleWorkload {
			node.Bound++
			node.use(p.Bound)
		}
	}
}

// placed sets the pod's node and returns it; nil if it has none.
func (p *podRecord) placed() *nodeRecord {
	if p.machine == nil {
		return nil
	}
	p.Node = p.machine.name
	seq := p.boundSeq
	if p.Bound == nil && p.evidence != nil {
		seq = p.evidence.seq
	}
	node := p.machine.nodeAt(seq)
	if node != nil {
		p.NodeUID = node.UID
	}
	return node
}

func (p *podRecord) lastState() State {
	switch {
	case p.State != "":
		return p.State
	case p.Running != nil:
		return StateRunning
	case p.unschedulable && p.Bound == nil:
		return StateUnschedulable
	}
	return StatePending
}
