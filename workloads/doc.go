// Package workloads is the loading dock: replayable, open-loop streams of
// records whose truth is known.
//
// A stream is a log that nobody has to store: record i is a function of
// (seed, i), with an intended time that never waits for the system under test.
// It is put together from arrivals (when), keys (which key, and how that
// changes over time) and payloads (how big). Because every part is such a
// function, a source can seek anywhere, any number of sources read one and the
// same stream, and golden answers follow from the workload alone.
//
// May import: engine/core and the packages below workloads.
package workloads
