// Package core is the vocabulary room of the house: columns of records, numbered batches and their frames, control
// inputs, the order log, key groups, route tables and the job graph. Every other engine package speaks in these words.
//
// It is pure: no goroutine, clock, socket, file or global random source, and nothing here ranges over a map where the
// order could matter.
//
// May import: the standard library without os, net, sync, time.Now and global math/rand.
package core
