// Package progress is the window of the house: while a suite runs it shows which
// trial, which phase and which delay, as a bar, as plain lines or as JSON lines,
// on standard error. It decides nothing and keeps nothing.
//
// May import: mpb/v8 and the standard library.
package progress
