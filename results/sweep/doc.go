// Package sweep puts the results of a sweep together: the summaries of its cases, as one table, CSV, JSON, plots over the parameters and a page.
//
// A case is a point of the sweep, a combination of the values of its parameters, and has a results folder of its own. Only runs that are finished take
// part; how many there are of how many stands beside every figure that has fewer than planned.
package sweep
