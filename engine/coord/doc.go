// Package coord is the room of the coordinator: a pure machine that places tasks on workers, deploys them, takes
// checkpoints, notices lost workers and recovers from them, and carries out migrations. Strategies
// (engine/migration, engine/recovery) tell it what to do; it knows how.
//
// May import: engine/core, engine/task, engine/operator, engine/migration, engine/recovery and the standard library
// without os, net, sync, time.Now and global math/rand.
package coord
