// Package trace is the record of one run: what happened in a (simulated or real) cluster, in the order in which it was seen.
//
// A trace is a JSON Lines file. Its first line is the Header, every further line is an Event, and a complete trace ends with an event of
// kind RunEnded: a trace without one was cut short, and nothing may be concluded from what it does not contain.
//
// Three witnesses write events, named in Event.Source:
//
//   - "api": the recorder, which watches nodes and pods through the API server as any client does. Pods come through one watch and nodes
//     through another, so the order of two pod events, or of two node events, is the order of the API server; the order of a pod event and a
//     node event is only the order in which they arrived.
//   - "kubelet": the kubelet model (or, one day, a real kubelet), which alone knows what it counted when it admitted or rejected a pod.
//   - "check" and "run": the mirror-pod check on a node, and the experiment's runner.
//
// A trace recorded on a real cluster holds only "api" events; readers must do without the others.
//
// The package imports the standard library only, so that traces can be read anywhere.
package trace
