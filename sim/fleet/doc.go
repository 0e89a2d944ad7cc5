// Package fleet brings machines into the cluster, as an autoscaler does, and makes things happen to them: they leave and return, reboot, and get
// their static pod folders changed.
//
// Modelled: a machine is a kubelet that starts at a given moment; how long it took to boot before is part of the arrival process. Random: the
// distances of Poisson arrivals (stream "fleet/arrivals", one for each node group).
package fleet
