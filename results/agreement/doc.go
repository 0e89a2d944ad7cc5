// Package agreement says how far the kubelet model can be trusted: it holds what modelled kubelets did against what real ones did in the same runs, in the
// same cluster, and what the two decided about the same pods.
//
// Measure takes the figures from the traces of an experiment that has a group of modelled nodes beside an equal group of real ones. Report puts them beside
// the counts of the differential admission test, judges them, and is written as agreement.json, .md, .html and .csv. The report that a release of
// mirrorgap comes with is embedded (Committed).
//
// Three habits hold everywhere:
//
//   - Agreement has to be shown: samples that are too small to show a difference worth speaking of are inconclusive, and so is the zero value.
//   - Nodes of one run share a machine, and rejections of one node a kubelet: both count as one piece of evidence (stats.KolmogorovSmirnov).
//   - What was not over when a run ended is never mixed with what was; a quantity that has such values is not judged.
package agreement
