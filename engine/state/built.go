package state

import (
	"unsafe"
)

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
	if !v.Replace || v.deletedN > 0 || v.count < minTableEntries || h.indirect || h.tracking || !aligned(v.entries) {
		return b, nil
	}
	b.whole = true
	h.build(&b)
	return b, nil
}

// InstallBuilt does what Install of the same chunk would have done. The chunks of a group have to be installed in order.
func (h *Heap) InstallBuilt(b *Built) {
	if !b.whole {
		h.install(b.group, b.chunk)
		return
	}
	h.drop(b.group)
	g := &h.groups[b.group]
	g.dir, g.shift, g.stamp, g.n = b.dir, b.shift, h.epoch, b.n
	g.bytes = int64(b.n) * int64(8+h.valueBytes)
	if len(g.dir) == 1 {
		h.roots[b.group] = g.dir[0]
	}
	h.made += b.made
	if len(b.rest) > 0 {
		h.installInline(b.group, Chunk{entries: b.rest, count: len(b.rest) / (h.stride * 8)})
	}
}

// aligned says whether entries can be read as words.
func aligned(entries []byte) bool { return uintptr(unsafe.Pointer(&entries[0]))%8 == 0 }

// build makes the tables. A store writes its tables one after the other, in the order of their hashes, so that the entries
// of a table here are in one piece there and are copied at once, which also spares clearing the slab. From the first
// entry on for which that is not so, nothing is entered.
func (h *Heap) build(b *Built) {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&b.chunk.entries[0])), len(b.chunk.entries)/8)
	depth, counts := h.countPrefixes(words, b.chunk.count)
	b.dir, b.shift = h.layout(depth, counts, func(uint8, int) *table { return &table{stamp: h.epoch} })
	from, cell, sorted := 0, 0, true
	for i := 0; i < len(b.dir); {
		t := b.dir[i]
		cells := 1 << (depth - uint(t.depth))
		n := 0
		for _, c := range counts[cell : cell+cells] {
			n += c
		}
		h.lay(t, words[from*h.stride:], n)
		b.made += len(t.words) * 8
		if sorted {
			linked := h.linkRun(t, min(n, h.maxEntries), uint64(cell)>>(depth-uint(t.depth)))
			from += linked
			sorted = linked == n
		}
		cell += cells
		i += 1 << (64 - b.shift - uint(t.depth))
	}
	b.n, b.rest = from, b.chunk.entries[from*h.stride*8:]
}

// lay gives a table the slab and index for n entries, with those that words begin with in it.
func (h *Heap) lay(t *table, words []uint64, n int) {
	entries := max(minTableEntries, min(n, h.maxEntries))
	size := nextCapacity(entries-1, h.maxEntries) * h.stride
	if size <= len(words) {
		t.words = append([]uint64(nil), words[:size]...)[:size:size] // what is behind the entries does not matter
	} else {
		t.words = make([]uint64, size)
		copy(t.words, words)
	}
	t.reindex(entries, h.stride)
}

// linkRun indexes the first n entries of a slab whose hashes begin with prefix and that are not there twice, and returns
// how many: n if that is so for all of them.
func (h *Heap) linkRun(t *table, n int, prefix uint64) int {
	shift := 64 - uint(t.depth)
	for pos := range n {
		key := t.words[pos*h.stride]
		hash := hashKey(key)
		if hash>>shift != prefix {
			return pos
		}
		at, slot := t.find(hash, key, h.stride)
		if at >= 0 {
			return pos
		}
		t.link(slot, hash, pos)
		t.n++
	}
	return n
}

// countPrefixes counts the entries by the leading bits of their hashes, so many that the tables are at most half full.
func (h *Heap) countPrefixes(words []uint64, n int) (depth uint, counts []int) {
	for h.maxEntries<<depth < 2*n {
		depth++
	}
	counts = make([]int, 1<<depth)
	for e := 0; e < len(words); e += h.stride {
		counts[hashKey(words[e])>>(64-depth)]++
	}
	return depth, counts
}
