// Package operator is the room of the built-in operators: what a task does with a run of records. An operator is a
// deterministic function of its state and its inputs; it knows nothing of channels, numbers, routes or the time of day.
//
// What an operator computes is said by its parameters: expressions (expr.go) over a record and the fields of its payload
// (layout.go). Operators that go by event time are told watermarks (Timed); all that they know of a key group, its
// watermark included, is in the group's state (timed.go), so that it moves and comes back with it.
//
// May import: engine/core, engine/state and the standard library without os, net, sync, time.Now and global math/rand.
package operator
