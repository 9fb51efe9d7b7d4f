package state

import "encoding/binary"

// Built is a chunk on its way into a heap, of which the expensive part is done: see Heap.Build. It is used once.
type Built struct {
	group uint32
	chunk Chunk
	whole bool // the fields below are a whole group
	dir   []*table
	shift uint
	n     int
	made  int    // bytes of slabs
	rest  []byte // entries that are not in the tables yet
}

// Build checks a chunk as Install does and makes the tables of the group that it begins, if it does and its values lie in
// slabs. It touches nothing of the heap that InstallBuilt or Install change, so goroutines may build chunks while
// the owner of the heap installs others; nobody may make snapshots or otherwise write meanwhile. The chunk must stay as it
// is until it is installed.
func (h *Heap) Build(group uint32, chunk []byte) (Built, error) {
	v, err := h.format().Parse(group, chunk)
	if err != nil {
		return Built{}, err
	}
	b := Built{group: group, chunk: v}
	if v.Replace && v.deletedN == 0 && v.count >= minTableEntries && !h.indirect {
		b.whole = true
		h.build(&b, func(entries int) []uint64 { // the store's own list is its owner's
			b.made += entries * h.stride * 8
			return make([]uint64, entries*h.stride)
		})
	}
	return b, nil
}

// InstallBuilt does what Install of the same chunk would have done. The chunks of a group have to be installed in order.
func (h *Heap) InstallBuilt(b *Built) {
	if b.whole {
		h.adopt(b)
		return
	}
	h.install(b.group, b.chunk)
}

// adopt makes what was built the content of its group.
func (h *Heap) adopt(b *Built) {
	h.drop(b.group)
	g := &h.groups[b.group]
	g.dir, g.shift, g.stamp, g.n = b.dir, b.shift, h.epoch, b.n
	if len(g.dir) == 1 {
		h.roots[b.group] = g.dir[0]
	}
	h.made += b.made
	h.enter(b.group, b.rest)
	g.bytes = int64(g.n) * int64(8+h.valueBytes)
}

// build makes the tables that inserting the entries of a chunk one by one would leave an empty group with, so that
// installing it neither grows nor splits them. A store writes its tables one after the other, in the order of their hashes,
// so that the entries of a table here are in one piece there and are copied at once. From the first entry on for which that
// is not so, nothing is entered.
func (h *Heap) build(b *Built, slab func(entries int) []uint64) {
	entries, size := b.chunk.entries, h.stride*8
	depth, counts := h.countPrefixes(entries, b.chunk.count)
	b.dir, b.shift = h.layout(depth, counts, func(uint8, int) *table { return &table{stamp: h.epoch} })
	cell, sorted := 0, true
	for i := 0; i < len(b.dir); {
		t := b.dir[i]
		cells := 1 << (depth - uint(t.depth))
		n := 0
		for _, c := range counts[cell : cell+cells] {
			n += c
		}
		room := max(minTableEntries, min(n, h.maxEntries))
		t.words = slab(nextCapacity(room-1, h.maxEntries))
		t.reindex(room, h.stride)
		if h.tracking {
			t.blocks = make([]uint32, h.blockCount(t))
		}
		if sorted {
			words := t.words[:min(n, h.maxEntries)*h.stride]
			copy(bytesOf(words), entries)
			linked := t.linkRun(words, h.stride, uint64(cell)>>(depth-uint(t.depth)))
			entries = entries[linked*size:]
			b.n += linked
			sorted = linked == n
		}
		cell += cells
		i += 1 << (64 - b.shift - uint(t.depth))
	}
	b.rest = entries
}

// countPrefixes counts the entries by the leading bits of their hashes, so many that the tables are at most half full.
func (h *Heap) countPrefixes(entries []byte, n int) (depth uint, counts []int) {
	for h.maxEntries<<depth < 2*n {
		depth++
	}
	// Neighbours mostly belong to the same count, and adding to it waits for the addition before: hence two of each.
	counts = make([]int, 2<<depth)
	size, past := h.stride*8, 64-depth
	for i := range n {
		at := hashKey(binary.LittleEndian.Uint64(entries[i*size:]))>>past<<1 | uint64(i&1)
		counts[at]++
	}
	for i := range counts[:1<<depth] {
		counts[i] = counts[2*i] + counts[2*i+1]
	}
	return depth, counts[:1<<depth]
}
