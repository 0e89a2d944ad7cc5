// Package recorder writes what any client can see of a cluster into its trace: nodes and pods, as two watches through the API server deliver them.
//
// It changes nothing in the cluster, knows nothing of the simulation, and never misses an event silently: a watch that cannot be continued where it
// broke off ends the recording with an error.
package recorder
