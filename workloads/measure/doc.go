// Package measure is the yardstick: distributions of sizes and service times,
// by their quantile functions.
//
// May import: workloads/rng and the standard library.
package measure
