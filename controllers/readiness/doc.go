// Package readiness is the NodeReadinessRule controller: what is decided, apart from how it is done.
//
// Decisions are pure functions of API objects:
//   - RuleSet says which rules govern a node, and which rules stand back because an older one has the same taint;
//   - Decide says what a rule wants done to a node, and Decision.Apply and Withdraw do it to a copy of the node;
//   - Report makes the status of a rule from the nodes in the cache.
//
// Three thin reconcilers do the reading and writing, each the only writer of what it writes:
//   - the node reconciler writes taints and completion annotations of nodes, in one patch a node, under an optimistic lock;
//   - the rule reconciler writes the finalizer of rules and withdraws deleted ones from the nodes;
//   - the status reconciler writes the status of rules, gathering what happens within Options.StatusInterval into one write.
//
// Everything that decides is read from informer caches that are synced before the first reconcile, or from the API server; nothing is decided
// from memory. What is kept in memory (the ledger) only says what to report.
package readiness
