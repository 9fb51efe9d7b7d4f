// Package calc is the room of the calculations that `bench model` does without running anything: how many rounds a move
// should take, and which groups should move, from numbers that the user gives or from what a run wrote down.
//
// May import: engine/model, engine/migration/planner, reports/runlog and the standard library.
package calc
