// Package model is the study of the house: the formulas that predict delay,
// recovery and migration cost, each with its unit, its errors and its source.
//
// It holds the open Jackson network (M/M/1 and M/M/c stations), the fluid
// recovery model with its numeric minimum, the checkpoint intervals of Young,
// Daly and Jayasekara, the cost of moving state in rounds, and regret. All
// functions are pure: equal arguments give equal results, nothing is kept, and
// everything may be called from any number of goroutines.
//
// Rates are events per second (names end in PerSecond), times are
// time.Duration. A queue that cannot keep up is the named state Unstable; it
// never appears as a negative, infinite or zero delay.
//
// May import: the standard library.
package model
