// Package rng is the dice cupboard: stateless random numbers addressed by
// (seed, index), so that any record can be drawn without drawing those before it.
//
// All functions are pure and safe for concurrent use. They are not for
// cryptography.
//
// May import: engine/core and the standard library.
package rng
