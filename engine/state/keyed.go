package state

// Keyed is what snapshots and moves need of keyed state, whatever its values are. Ownership and concurrency are those of
// Heap.
type Keyed interface {
	// Cut returns a snapshot of whole groups.
	Cut(groups []uint32) *Snapshot
	// CutSince returns what changed in groups since a kept mark; Keep makes the moment of a live snapshot one.
	CutSince(groups []uint32, since Mark) *Snapshot
	Keep(snap *Snapshot) Mark
	Forget(m Mark)
	// Install applies a chunk of a snapshot of the same kind of store.
	Install(group uint32, chunk []byte) error
	// Drop empties a group.
	Drop(group uint32)
	// Bytes returns the size of the group's keys and values.
	Bytes(group uint32) int64
}
