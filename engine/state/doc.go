// Package state is the room where keyed operator state lives: the heap store
// (Heap for fixed-size values, Blob for values of any size), held by key group,
// with copy-on-write snapshots, incremental snapshots and a chunk codec by which
// a key group travels to a checkpoint file, a standby or another task.
//
// # Ownership
//
// A store has one owner goroutine, which alone calls the methods of Heap and
// Blob and Snapshot.Release. A Snapshot is immutable: one other goroutine may
// walk it (Next, Bytes, Fingerprint) while the owner goes on writing.
//
// # Layout
//
// A key group is an extendible-hashing directory of tables. A table is one dense
// slab of up to 64 KiB (entries in insertion order: key word, then value words)
// and a small index of 16-bit slots (position and hash tag). Only slabs are shared with
// snapshots; whoever installs the entries copies them into slabs in runs, as they
// come table by table, and builds the index anew, which checks them on the way. Growth splits
// one table at a time, so no write ever rehashes a whole group. Slabs and
// indexes hold no pointers, so the collector has nothing to scan in them.
// Values above 1 KiB and all Blob values live in memory of their own, and the slab
// holds their number.
//
// # Copy on write
//
// A cut takes the slice header of each group's directory, whatever the group's
// size, and starts a new epoch. A table remembers the epoch of its last write; when that
// is not the current one, the first write copies the slab, and the directory of pointers,
// if a live snapshot covers them (as CALC keeps single records: Ren, Diamond, Abadi,
// Thomson, SIGMOD 2016). While a mark is kept, writes also
// stamp a block of entries (128 bytes) with the epoch, and deletions are logged,
// so that CutSince gives what changed; its reader, not the owner, looks for it.
//
// # Determinism
//
// The same operations give the same iteration order and the same chunk bytes,
// and installing a full stream into an empty group gives the order of its source.
//
// May import: core, standard library without os, net, time.Now, global rand.
package state
