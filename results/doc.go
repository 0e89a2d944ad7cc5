// Package results turns traces into figures: trace → records of nodes and pods → metrics → statistics → table and files.
//
// Analyze reads one trace as a stream and returns a Run: a record of every node and every pod, and how the run ended. Its memory grows with the
// number of nodes, pods, static pods and their changes, not with the number of events. A metric is a function of a Run; the list of them
// (Metrics) is the only place where one is defined, and everything that is written, printed or, later, judged is made from that list. Summarize
// puts the runs of an experiment together by arm; Table, WriteRun and WriteSummary show them. docs/metrics.md defines every metric.
//
// Three habits hold everywhere:
//
//   - A length of time that was still running when the trace (or the node) ended is censored: it is a lower bound, counted apart, and never
//     mixed into a mean or a quantile.
//   - What was not measured is absent (nil, null, an empty cell), never 0.
//   - Every figure comes with its sample size.
//
// The package reads traces only. It knows neither package sim nor Kubernetes, so that a run of last month, or of a real cluster, is measured by
// the same code.
package results
