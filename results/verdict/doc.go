// Package verdict judges the runs of an experiment: Judge holds a summary against the thresholds of a Plan, after the assumptions under which they
// mean anything. Table, WriteJUnit and the JSON form of Verdict show it. docs/gate.md is the reference.
//
// Three habits hold everywhere:
//
//   - Nothing passes by default: the zero value of an Outcome is Inconclusive, a plan without thresholds is refused, a value that is not set is not 0,
//     and what was not measured is neither met nor missed.
//   - A threshold passes only if every assumption holds: that no pod was rejected says nothing where the race never took place.
//   - What rests on a censored observation is a lower bound, and decides only what a lower bound can.
package verdict
