// Package planner is the drawing office of migration: it decides which key
// groups go to which task, and never moves anything itself.
//
// Each planner turns loads, state sizes and the present route into a new route
// that keeps every task at or below (1+θ) times the mean load, moving as little
// state as it can. Each is one file and one line in List. Every plan comes with
// a proven lower bound on the bytes that any plan has to move, so its
// optimality gap is known, and with the groups that no plan can tame.
//
// All planners are pure and deterministic: ties go to the lower index, nothing
// is kept between calls, and calls may run concurrently.
//
// May import: engine/model, the standard library.
package planner
