// Package durable is the room between the machines' snapshot and load requests and the checkpoint files: both worlds,
// real and simulated, write and read checkpoints with it.
//
// May import: engine/core, engine/state, engine/storage, engine/task, engine/coord and the standard library.
package durable
