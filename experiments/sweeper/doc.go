// Package sweeper makes the runs of a sweep, several at a time if asked to, each in a process of its own: a run has loggers and other things that are
// global in its process. It continues where an earlier attempt has stopped, and puts the results together.
//
// A results folder of a sweep holds sweep.yaml (resolved: with it the sweep can be continued or made again), the files of package results/sweep, and for
// each case cases/<case>/, an ordinary results folder of an experiment.
//
// A run counts as finished when its trace is whole, ended as settled or by the time limit, and has been evaluated. Whatever else is there of a run is
// removed when it is made again; it never takes part in the results.
package sweeper
