// Package shufflebench is the sorting office: the opaque records of ShuffleBench
// (Henning, Vogel, Leichtfried, Ertl, Rabiser: "ShuffleBench: a benchmark for
// large-scale data shuffling operations with distributed stream processing
// frameworks", ICPE 2024) and the rules that match them.
//
// Its query matches each record against the rules, shuffles the matching ones by
// rule, and keeps a state of 32 bytes a rule from which every tenth record makes
// an output.
//
// May import: engine/core, workloads/rng and the standard library.
package shufflebench
