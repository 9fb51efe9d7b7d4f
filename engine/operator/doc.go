// Package operator is the room of the built-in operators: what a task does with a run of records. An operator is a
// deterministic function of its state and its inputs; it knows nothing of channels, numbers, routes or time.
//
// May import: engine/core, engine/state and the standard library without os, net, sync, time.Now and global math/rand.
package operator
