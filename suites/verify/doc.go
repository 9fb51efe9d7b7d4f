// Package verify is the examiner's room: it checks the outputs of a run against golden answers that come from the
// workload alone, while they arrive, and judges them against what the recovery strategy promises.
//
// A keyed count must answer 1, 2, … n for each key that the workload holds n times, each number once. Which of these
// are lost, duplicated or wrong is exact, whatever the order they come in. Order is promised only within one channel
// of a sink and one epoch of its deployment: two sinks of one job, or a sink and its successor, are independent.
//
// May import: engine/core, engine/operator, engine/recovery, workloads and the standard library.
package verify
