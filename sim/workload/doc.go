// Package workload turns the workloads of an experiment into the objects that ask for room: manifests as they are, or generated ones, labelled
// so that their pods can be told apart, pinned to their node groups, and created through the API as kubectl would.
package workload
