// Package trace is the examination room for traces: it measures the skew, the
// drift and the burstiness of a recorded trace, and writes a workload that
// imitates it.
//
// May import: workloads, workloads/replay and the standard library.
package trace
