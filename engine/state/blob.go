package state

// Blob is keyed state with values of any size, by key group, in memory: window
// panes, join buffers and the like. A value is an immutable byte slice that Put
// replaces. Ownership and concurrency are those of Heap.
type Blob struct {
	store
}

// NewBlob returns an empty store for groups key groups.
func NewBlob(groups uint32) *Blob {
	requireLittleEndian()
	return &Blob{store: newStore(groups, 0, false)}
}

// NumGroups returns the number of key groups that the store was made for.
func (b *Blob) NumGroups() uint32 { return uint32(len(b.groups)) }

// Put sets the value of key. The store takes val over: nobody may write to it any
// more.
func (b *Blob) Put(group uint32, key uint64, val []byte) {
	g := &b.groups[group]
	t, pos, fresh := b.upsert(group, key)
	slot := &t.words[pos*b.stride+1]
	g.bytes += int64(8 + len(val))
	if fresh {
		*slot = uint64(b.newVal(val))
		return
	}
	old := uint32(*slot)
	if b.valStamp[old] <= g.maxLive {
		b.freeVal(g, old)
		*slot = uint64(b.newVal(val))
		return
	}
	g.bytes -= int64(8 + len(b.vals[old]))
	b.vals[old], b.valStamp[old] = val, b.epoch
}

// Get returns the value of key for reading; it stays valid for good, since values
// are never changed in place.
func (b *Blob) Get(group uint32, key uint64) ([]byte, bool) {
	return b.get(group, key)
}

// Delete removes key and reports whether it was there.
func (b *Blob) Delete(group uint32, key uint64) bool {
	return b.remove(group, key)
}
