// Package stats is the measuring bench of the house: it records delays, merges them, and turns series of intervals
// into the few figures a comparison needs, with their uncertainty.
//
// Rules it keeps: a delay is arrival minus intended time and is never corrected a second time; parts are merged as
// histograms, percentiles are never averaged; no samples gives no figure; what a histogram cannot hold is counted and
// shown; a limit that was reached is never used as a value.
//
// All functions are pure: no clock, no file, no global random source.
//
// May import: the standard library, hdrhistogram-go.
package stats
