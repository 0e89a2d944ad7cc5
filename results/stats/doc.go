// Package stats turns samples into estimates: a value, an interval of 95 % confidence where the sample is large enough to have one, the sample's size,
// and warnings where it is not. It knows nothing of runs, nodes or pods.
//
// Three habits hold everywhere:
//
//   - What cannot be said is nil, with a Warning that says why, and what would be needed.
//   - Values of one run belong together (a cluster): they share delays, and a machine. An interval that is to hold for other runs is made by
//     resampling whole runs.
//   - Random draws come from a stream that is seeded by the name of what is estimated, so that the same sample always gives the same interval.
//
// Quantiles and the beta distribution are gonum's, the Mann–Whitney test is go-moremath's. No kept Go library has the Wilcoxon signed-rank test with
// ties, nor the Kaplan–Meier estimator; these are written here, and held against published examples.
package stats
