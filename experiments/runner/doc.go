// Package runner makes the runs of an experiment: for every arm and seed it starts a control plane, composes the components of the simulated cluster
// around it, takes the cluster through its phases, and leaves a results folder behind.
//
// The phases: the initial nodes come up and are established; the workloads are created and placed; the scale-up and the actions take place; the run
// settles (experiments.Stop) or its time is up. It is the only package that knows all the others.
//
// A results folder holds experiment.yaml (resolved, with everything that it named inline), summary.json and summary.txt over all runs, and for each
// run <arm>/seed-<n>/ with trace.jsonl, nodes.csv, pods.csv, summary.json and logs/.
package runner
