// Package arrivals is the station clock: it says when record i is meant to
// arrive, whatever the system under test does meanwhile.
//
// A process is a shape (how the rate changes over time) and a spacing (even, or
// Poisson). By the time-change theorem a Poisson process of any rate is one of
// unit rate read on a bent time axis, so each shape works with each spacing.
// Intended times are whole nanoseconds since the start of the run; they never
// decrease, and are functions of (seed, record number) alone.
//
// May import: workloads/rng, workloads/measure and the standard library.
package arrivals
