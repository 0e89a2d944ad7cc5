package results

import (
	"cmp"
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
	run      *Run
	now      moment
	machines map[string]*machine
	pods     map[string]*podRecord
	order    []*podRecord
	// controllers are by name; alive counts their pods that are there and have not ended.
	controllers map[string]*Controller
	alive       map[*Controller]int
	// requests are those of the last pod of each controller, so that equal ones are kept once.
	requests map[string]trace.Resources
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

// podRecord is a Pod with what is needed until the end of the trace.
type podRecord struct {
	*Pod
	machine *machine
	boundAt moment
	// counted: its requests are in machine.visible.
	counted       bool
	unschedulable bool
	// existing: it was there when recording began.
	existing bool
	mirror   *mirrorPod
	// controller is what created it, as long as it counts as one of its pods; nil for a bare pod.
	controller *Controller
	// wave is the first wave of its node, if it belongs to that.
	wave *wave
	// overcommitted lists the resources of which the node had too little for it in the scheduler's own view when it was bound.
	overcommitted []string
	// byKubelet and byAPI are the witnesses of its rejection.
	byKubelet, byAPI *evidence
}

// evidence is that of the best witness; nil if the pod was not rejected.
func (p *podRecord) evidence() *evidence {
	if p.byKubelet != nil {
		return p.byKubelet
	}
	return p.byAPI
}

func newLedger(header trace.Header) *ledger {
	return &ledger{
		run:      &Run{Header: header, Phases: map[string]time.Duration{}},
		machines: map[string]*machine{},
		pods:     map[string]*podRecord{},
		requests: map[string]trace.Resources{},

		controllers: map[string]*Controller{},
		alive:       map[*Controller]int{},
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
	case trace.ComponentDied:
		l.run.Died = append(l.run.Died, Death{Component: e.Reason, Message: e.Message, At: e.T.Seconds()})
	case trace.RunEnded:
		l.run.End, l.run.EndMessage = e.Reason, e.Message
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
		if isRejection(e.Reason, e.Message) {
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
	if p.byAPI == nil {
		p.byAPI = newEvidence(e, l.now)
	}
}

func (l *ledger) create(p *podRecord, e trace.Event) {
	info := e.PodInfo
	if info == nil {
		info = &trace.PodInfo{}
	}
	p.Created = l.instant()
	p.existing = info.Existing
	p.Owner, p.Workload, p.Pinned, p.Role = info.Owner, info.Workload, info.Pinned, roleOf(info)
	p.Requests = l.shared(p, info.Requests)
	l.gain(p)
	if info.Mirror {
		p.mirror = &mirrorPod{hash: info.MirrorHash, ownerUID: info.OwnerUID, requests: info.Requests, from: l.mirrorFrom(p), to: endOfTrace}
	}
	if p.machine == nil {
		return
	}
	l.count(p)
	if info.Mirror {
		p.machine.mirrors[e.Pod] = append(p.machine.mirrors[e.Pod], p.mirror)
	}
}

// gain counts a new workload pod as one of its controller's.
func (l *ledger) gain(p *podRecord) {
	if p.Role != RoleWorkload || p.Owner == "" || p.controller != nil {
		return
	}
	namespace, _, _ := strings.Cut(p.Name, "/")
	name := namespace + "/" + p.Owner
	c, ok := l.controllers[name]
	if !ok {
		c = &Controller{Name: name}
		l.controllers[name] = c
		l.run.Controllers = append(l.run.Controllers, c)
	}
	p.controller = c
	c.Created++
	l.alive[c]++
	c.Wanted = max(c.Wanted, l.alive[c])
}

// lose notes that its controller has one pod less.
func (l *ledger) lose(p *podRecord) {
	if p.controller != nil {
		l.alive[p.controller]--
		p.controller = nil
	}
}

// mirrorFrom is when the pod, a mirror, came. One that was there when recording began came with its node, as far as the trace knows.
func (l *ledger) mirrorFrom(p *podRecord) moment {
	if p.existing && p.machine != nil && p.machine.current != nil {
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

// shared returns the requests of a new pod, as the same map that its controller's last pod has if they are equal.
func (l *ledger) shared(p *podRecord, requests trace.Resources) trace.Resources {
	namespace, _, _ := strings.Cut(p.Name, "/")
	key := namespace + "/" + p.Owner
	if !maps.Equal(l.requests[key], requests) {
		l.requests[key] = requests
	}
	return l.requests[key]
}

func (l *ledger) bind(p *podRecord) {
	if p.Bound != nil || p.machine == nil {
		return
	}
	p.Bound, p.boundAt = l.instant(), l.now
	if node := p.machine.current; node != nil {
		before := maps.Clone(p.machine.visible)
		if p.Role == RoleWorkload {
			node.wave.take(p, l.now, node.Allocatable)
		}
		before.add(p.Requests)
		p.overcommitted = before.shortOf(node.Allocatable)
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
	if p.mirror != nil {
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
		m.stopKubelet(l.now)
	case trace.StaticPodStarted:
		m.startStatic(e, l.now)
	case trace.StaticPodStopped:
		m.stopStatic(e.Pod, l.now)
	case trace.PodRejected:
		p := l.pod(e)
		if p.byKubelet == nil {
			p.byKubelet = newEvidence(e, l.now)
			p.byKubelet.counted = m.running(l.now)
			if e.Rejection != nil {
				p.byKubelet.counted = m.counted(e.Rejection.Pods, l.now)
			}
		}
	}
}

// close concludes what needs the whole trace.
func (l *ledger) close() *Run {
	if !l.run.KubeletEvidence {
		for _, m := range l.machines {
			m.inferStatics()
		}
	}
	binds := l.closePods()
	for _, m := range l.machines {
		for _, n := range m.nodes {
			l.closeNode(m, n, binds[n])
		}
	}
	l.closeUsage()
	return l.run
}

// closePods settles where each pod was, how it ended and why it was rejected, and returns the binds of workload pods by node, in order.
func (l *ledger) closePods() map[*nodeRecord][]time.Duration {
	binds := map[*nodeRecord][]time.Duration{}
	for _, p := range l.order {
		l.run.Pods = append(l.run.Pods, p.Pod)
		p.State = p.lastState()
		node := p.placed()
		if p.evidence() != nil {
			p.Rejection = p.rejection()
		}
		p.Start = l.start(p)
		if node == nil {
			continue
		}
		if p.Rejection != nil {
			node.Rejected++
		}
		if p.Role != RoleWorkload {
			continue
		}
		node.Bound++
		if p.Bound != nil {
			binds[node] = append(binds[node], *p.Bound)
		}
	}
	for _, times := range binds {
		slices.SortFunc(times, cmp.Compare[time.Duration])
	}
	return binds
}

// start is how long the pod took to run.
func (l *ledger) start(p *podRecord) *Span {
	switch {
	case p.Created == nil || p.existing:
		return nil
	case p.Running != nil:
		return &Span{Duration: *p.Running - *p.Created}
	case p.Rejection != nil || p.State == StateFailed || p.State == StateSucceeded || p.State == StateDeleted:
		return nil
	}
	return &Span{Duration: l.run.Wall - *p.Created, Censored: true}
}

// placed sets the pod's node and returns it; nil if it has none.
func (p *podRecord) placed() *nodeRecord {
	if p.machine == nil {
		return nil
	}
	p.Node = p.machine.name
	seq := p.boundAt.seq
	if p.Bound == nil && p.evidence() != nil {
		seq = p.evidence().at.seq
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

func (p *podRecord) rejection() *Rejection {
	found := p.evidence()
	return &Rejection{
		At: found.at.at, Reason: found.reason, Cause: p.cause(), FirstWave: p.wave != nil,
		SeenByKubelet: p.byKubelet != nil, SeenByAPI: p.byAPI != nil,
	}
}
