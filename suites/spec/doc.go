// Package spec is the front desk of the house: it reads a suite (a YAML file
// that says which job, which load, which strategies and which faults), refuses
// what cannot be run before anything is started, and lays out the trials.
//
// Its job, in order: bytes → strict node tree (limits, duplicates, merges) →
// --set overrides → one resolved configuration per cell → Go structs → semantic
// checks against the lists of what the engine knows → plan of trials. Every
// error of a file is reported at once, each with file, line, column, field, what
// is wrong and what would be right.
//
// The package is pure: it opens no file, reads no clock and draws no random
// number except from the suite's seed. It knows no strategy by name: the caller
// hands it the lists (see Known), so the engine stays the one place that has them.
//
// May import: gopkg.in/yaml.v3 and the standard library without os, net, sync.
package spec
