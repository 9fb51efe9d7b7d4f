// Package criticality is the triage of recovery: it ranks the tasks of a job by
// what their failure would cost, and picks those that get a standby under a
// budget.
//
// Measures score single tasks (articulation, dominance, minimum cut, critical
// path, PageRank times risk, and the usual baselines). Planners choose sets:
// the default prefers whole source-to-sink trees, because when several tasks
// fail at once half a protected path protects nothing. Compare prints every
// planner's choice with its regret.
//
// All functions are pure and deterministic; ties go to the lower task index.
//
// May import: gonum graph packages, the standard library.
package criticality
