// Package library holds the experiments that come with the program. Each file's description says what it shows and how long it takes.
//
//   - scale-up-3-to-20 is the canonical experiment, and the default; quick is the same made small.
//   - several-static-pods, node-lifecycle and invalid-static-pod show what else opens the gap, or keeps the gate shut.
//   - scale-100, scale-1000 and scale-1000-default measure the simulator and the control plane, not the race.
//
// The folder regression holds a public report of the race each, named by its issue, and negative controls; gaps holds what the published gate does not
// cover. Experiments are named without their folder.
//
// Sweeps are experiments with parameters that are varied; all are based on quick.
//
//   - mirror-delay-nodes, arrival-spread and kubelet-version: what the race costs, by what opens the gap.
//   - static-pod-size: first-wave rejections beside the closed form.
//   - checker-controller and register-with-taint: what the parts of the readiness gate cost, and whether one can be left out.
package library
