// Package pebble is the room of keyed state on disk: more than fits in memory, in a Pebble store (an LSM tree) of one task.
//
// # Runs
//
// The operator works in memory all the same, on a Heap or Blob that is a write-through cache of the store. Before a run of
// records, the values of its keys that are not in the cache are read (Begin); behind it, what the run changed is written as
// one batch (End). So the operators, and tasks that keep their state in memory, pay nothing for it: there is no call a
// record. Key groups leave the cache by the clock algorithm (Corbató 1968), whole, when it has outgrown its share.
//
// # Durability
//
// There is no write-ahead log, and nothing is synced: what makes a task's state durable is its checkpoint, and a task
// that starts begins with an empty store. The store's folder is a scratch folder.
//
// # Snapshots
//
// A cut is a snapshot of the store: it costs nothing at the cut, whatever the size. Every value carries the epoch of its
// last write, and so do, as their largest and smallest, the blocks and tables of the store (block properties): a reader of
// what changed since a mark skips the others (as time-bound iteration does in CockroachDB). Deletions stay as markers while
// a mark may ask for them. Chunks are those of Heap and Blob, so that state goes from memory to disk and back.
//
// # Tables
//
// A cut can be had as the store's tables (state.Tabled): it ends the memory table, and is the tables that are live when that
// has been written to disk, with a description of them. The store is made of them again by writing that description as a MANIFEST
// of Pebble's; the format is LevelDB's, which Pebble and RocksDB keep to. Cuts that are written keep their tables from being
// removed. A steady store does nothing in the background: the same calls give the same tables, for the simulator.
//
// # Memory
//
// Half of the budget is the store's block cache, a quarter its memory tables (four), a quarter the cache of values.
//
// May import: core, state, Pebble, standard library.
package pebble
