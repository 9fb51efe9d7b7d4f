// Package runner is the stage manager's room: it plays the trials of a suite's plan one after the other, each with fresh
// workers, and writes down what happened and how long it took.
//
// For each trial it builds the engine's job from the cell, opens the workload, starts a harness (engine/host), and goes
// through the phases: warm-up, steady, the events (a migration, faults), after, and a saturating burst if one is asked
// for. The collector records the delay of each record, from its intended time to its arrival, and an oracle
// (suites/verify) checks each answer. Raw measurements are on disk before they are analysed.
//
// May import: engine, workloads, chaos, suites/spec, suites/spec/load, suites/queries, suites/verify, suites/progress,
// reports/runlog, reports/stats, and the standard library.
package runner
