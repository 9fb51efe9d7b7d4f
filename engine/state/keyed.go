package state

// Keyed is what snapshots and moves need of keyed state, whatever its values are and wherever it is. Ownership and
// concurrency are those of Heap.
type Keyed interface {
	// Cut returns a snapshot of whole groups.
	Cut(groups []uint32) Snapshot
	// CutSince returns what changed in groups since a kept mark; Keep makes the moment of a live snapshot one.
	CutSince(groups []uint32, since Mark) Snapshot
	Keep(snap Snapshot) Mark
	Forget(m Mark)
	// Install applies a chunk of a snapshot of the same kind of store, in memory or not.
	Install(group uint32, chunk []byte) error
	// Drop empties a group.
	Drop(group uint32)
	// Bytes returns the size of the group's keys and values.
	Bytes(group uint32) int64
}

// Mark names a moment of a store's history, for CutSince. Marks belong to the store that made them.
type Mark uint32

// Snapshot is an immutable view of some key groups at one moment, whole or only what changed since a mark. The owner
// makes and releases it; in between one goroutine, not necessarily the owner, may use all its other methods.
type Snapshot interface {
	// Groups returns the groups in the order in which Next gives them; not to be changed.
	Groups() []uint32
	// Next encodes the next part into dst[:0], growing it if it must, in at most maxBytes bytes unless a single entry is
	// larger. Each group gives at least one chunk, also an empty one, and last marks its last. When nothing is left, done is
	// true and there is no chunk. Chunks of a group have to be installed in order.
	Next(dst []byte, maxBytes int) (chunk []byte, group uint32, last, done bool)
	// Rewind makes Next start again from the first group.
	Rewind()
	// Prefer makes group the next one that Next begins, and reports whether it had not been begun yet.
	Prefer(group uint32) bool
	// Bytes returns the size of the keys and values that the snapshot holds, and of the keys deleted (8 bytes each).
	Bytes() int64
	// Fingerprint returns the hash over the (key, value) pairs that the snapshot holds of the group. It panics if the
	// snapshot does not cover the group.
	Fingerprint(group uint32) uint64
	// Release ends the snapshot. The owner calls it, after the reader is done. Releasing twice is a bug and panics.
	Release()
}

// Paged is keyed state of which only a part is in memory, in a Heap or Blob that the operator works on between Begin and
// End. Errors stay: after one of the disk every later call returns it, too. Ownership and concurrency are those of Heap.
type Paged interface {
	Keyed
	// Memory returns the heap or the blob store that is worked on; the other one is nil.
	Memory() (*Heap, *Blob)
	// Begin brings the state of a run of keys into memory, those of their groups' heads included. An operator with a Heap
	// must use every one of them, and only them.
	Begin(keys []uint64) error
	// Head brings the head of a group into the run: the value of a key that the store was told of.
	Head(group uint32)
	// Group brings a whole key group into the run.
	Group(group uint32) error
	// End takes over what the run has changed, and lets go what there is no room for.
	End() error
	// Close gives up the state, with the snapshots of it.
	Close() error
}

// PagedSpec says what keyed state is wanted.
type PagedSpec struct {
	Operator   string
	Task       int
	Epoch      uint32
	Groups     uint32
	ValueBytes int  // of a Heap
	Blob       bool // values of any size
	// Head is the key whose value stays in memory in every group of a Blob; HasHead says that there is one.
	Head    uint64
	HasHead bool
	// MemoryBytes bounds what is kept in memory; 0: 64 MiB.
	MemoryBytes int64
	// Steady makes the same calls give the same files: what is otherwise done in the background is waited for.
	Steady bool
}
