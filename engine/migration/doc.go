// Package migration is the room of the migration strategies: how key groups move between running tasks while parallelism
// stays as it is. A strategy is a small policy over the coordinator's mechanisms (pause, checkpoint, redeploy, route
// change): it is told what happened and answers what to do next. One file a strategy, one line in Strategies.
//
// May import: engine/core, engine/model and the standard library without os, net, sync, time.Now and global math/rand.
package migration
