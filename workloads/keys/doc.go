// Package keys is the locksmith: it decides which key record i carries, with
// shares that are known exactly.
//
// A distribution deals in ranks (0 is the most loaded key at the start); an ID
// scheme turns ranks into the 64-bit keys the engine sees. Every draw is a pure
// function of (seed, record number, intended time), so that distributions are
// immutable, seekable and safe for concurrent use.
//
// May import: workloads/rng and the standard library.
package keys
