// Package fault plays the faults of an experiment that lie in the API: admission that refuses mirror pods, and objects that mirror pods need and that come
// late. A kubelet whose first attempt at a mirror fails waits for 60 to 90 s before the next, so that these make long mirror delays arise by themselves.
//
// Real: the refusal is a ValidatingAdmissionPolicy of the API server, a missing namespace or PriorityClass is one that nobody has created yet. Nothing is
// modelled, and nothing is random.
package fault
