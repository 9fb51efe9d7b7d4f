// Package load carries a suite's workload over to the generators: the same
// fields, in their units. It also lets the generators check a workload at the
// time a suite is read, with messages in the suite's own words.
//
// May import: suites/spec, workloads.
package load
