// Package recovery is the room of the fault-tolerance strategies: what the coordinator does when the node of a task is
// lost, what the strategy may promise with which sink and scope (Promises), and which protections do not go together in one
// job (Check). One file a strategy, one line in Strategies.
//
// May import: engine/core, engine/model and the standard library without os, net, sync, time.Now and global math/rand.
package recovery
