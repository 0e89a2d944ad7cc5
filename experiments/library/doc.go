// Package library holds the experiments that come with the program. Each file's description says what it shows and how long it takes.
//
//   - scale-up-3-to-20 is the canonical experiment, and the default; quick is the same made small.
//   - several-static-pods, node-lifecycle and invalid-static-pod show what else opens the gap, or keeps the gate shut.
//   - pinned is a negative control, in which the gate must not help.
//   - scale-100, scale-1000 and scale-1000-default measure the simulator and the control plane, not the race.
package library
