// Package experiments says what to run: the Experiment file, its strict loader, and the arms and seeds that make up its runs.
//
// Load and Parse return an experiment that is resolved: every default is set, every file that it names is read and held inline, and everything
// that can be checked without a control plane has been. What they refuse they refuse with a BadInput, which lists all problems of the file, each
// with file, line and field. A resolved experiment written as YAML loads to the same experiment, from any folder.
//
// docs/experiment-file.md is the reference of the file. The experiments that come with the program are in package library, and what runs them in
// package runner.
package experiments
