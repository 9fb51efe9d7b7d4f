// Package suites is the shelf by the door of the house: the suites that come
// with the program, embedded, so that a name such as quickstart is enough to run
// one, and the JSON Schema that editors use for suite files.
//
// Its job is to hand out bytes. What they mean is suites/spec's business.
//
// May import: the standard library.
package suites
