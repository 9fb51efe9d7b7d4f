package state

import (
	"encoding/binary"
	"slices"
)

// Next encodes the next part of the snapshot into dst[:0], growing it if it must.
// The chunk has at most maxBytes bytes, unless a single entry is larger. Each
// group gives at least one chunk, also an empty one, and last marks its last. When
// nothing is left, done is true and there is no chunk. The groups come in the order of
// Groups, each group's deletions before its entries: chunks of a group have to be
// installed in order.
func (snap *cut) Next(dst []byte, maxBytes int) (chunk []byte, group uint32, last, done bool) {
	if snap.part == len(snap.parts) {
		return dst[:0], 0, false, true
	}
	p := &snap.parts[snap.part]
	group = snap.groups[snap.part]
	chunk = snap.s.format().Begin(dst[:0], group, p.replace && !snap.begun)
	if !snap.begun {
		snap.seek(p)
		snap.begun = true
	}
	deleted, entries := 0, 0
	for snap.deleted < len(p.deleted) && (deleted == 0 || len(chunk)+8 <= maxBytes) {
		chunk = binary.LittleEndian.AppendUint64(chunk, p.deleted[snap.deleted].key)
		snap.deleted++
		deleted++
	}
	if snap.deleted == len(p.deleted) {
		chunk, entries = snap.appendEntries(chunk, maxBytes, p, deleted > 0)
	}
	FinishChunk(chunk, deleted, entries)
	last = snap.deleted == len(p.deleted) && snap.dir == len(p.dir)
	if last {
		snap.cursor = cursor{part: snap.part + 1}
	}
	return chunk, group, last, false
}

// Rewind makes Next start again from the first group.
func (snap *cut) Rewind() { snap.cursor = cursor{} }

// Prefer makes group the next one that Next begins, and reports whether it had not
// been begun yet. A group under way is finished first.
func (snap *cut) Prefer(group uint32) bool {
	next := snap.part
	if snap.begun {
		next++
	}
	return PutFirst(snap.groups, snap.parts, next, group)
}

// PutFirst moves group, with the part at its index, to index next, and those between one further. It reports whether the
// group stood there or behind.
func PutFirst[P any](groups []uint32, parts []P, next int, group uint32) bool {
	if next >= len(groups) {
		return false
	}
	i := slices.Index(groups[next:], group)
	if i < 0 {
		return false
	}
	p := parts[next+i]
	copy(groups[next+1:], groups[next:next+i])
	copy(parts[next+1:], parts[next:next+i])
	groups[next], parts[next] = group, p
	return true
}

// appendEntries adds entries from the cursor on while they fit; one always does,
// unless the chunk has other content.
func (snap *cut) appendEntries(chunk []byte, maxBytes int, p *part, content bool) ([]byte, int) {
	s, entries := snap.s, 0
	for snap.dir < len(p.dir) {
		words := p.dir[snap.dir].words[snap.pos*s.stride : (snap.pos+snap.run)*s.stride]
		count := 1
		if !s.indirect {
			count = min(snap.run, max(0, maxBytes-len(chunk))/(s.stride*8))
		} else if len(chunk)+s.entryBytes(words, snap.vals) > maxBytes {
			count = 0
		}
		if count == 0 {
			if content || entries > 0 {
				break
			}
			count = 1
		}
		if s.indirect {
			chunk = s.appendIndirect(chunk, words, snap.vals)
		} else {
			chunk = append(chunk, bytesOf(words[:count*s.stride])...)
		}
		entries += count
		snap.pos += count
		if snap.run -= count; snap.run == 0 {
			snap.seek(p)
		}
	}
	return chunk, entries
}

// entryBytes is the encoded size of an indirect entry.
func (s *store) entryBytes(entry []uint64, vals [][]byte) int {
	if s.fixed {
		return 8 + (s.valueBytes+7)&^7
	}
	return 12 + len(vals[entry[1]])
}

func (s *store) appendIndirect(chunk []byte, entry []uint64, vals [][]byte) []byte {
	val := vals[entry[1]]
	chunk = binary.LittleEndian.AppendUint64(chunk, entry[0])
	if !s.fixed {
		chunk = binary.LittleEndian.AppendUint32(chunk, uint32(len(val)))
		return append(chunk, val...)
	}
	chunk = append(chunk, val...)
	return append(chunk, make([]byte, -len(val)&7)...)
}

// Install applies a chunk from Next of a store of the same kind: the first chunk
// of a whole group empties the group, then deletions, then entries, which replace those
// present. The chunk is not kept. Errors wrap ErrChunk and leave the heap unchanged.
func (h *Heap) Install(group uint32, chunk []byte) error {
	v, err := h.format().Parse(group, chunk)
	if err != nil {
		return err
	}
	h.install(group, v)
	return nil
}

func (h *Heap) install(group uint32, v Chunk) {
	h.prepare(group, v)
	if h.indirect {
		size := 8 + (h.valueBytes+7)&^7
		for e := v.entries; len(e) > 0; e = e[size:] {
			val, _ := h.Ref(group, binary.LittleEndian.Uint64(e))
			copy(val, e[8:])
		}
		return
	}
	h.installInline(group, v)
}

// installInline upserts entries as words.
func (h *Heap) installInline(group uint32, v Chunk) {
	g := &h.groups[group]
	if g.n == 0 && v.count >= minTableEntries {
		b := Built{group: group, chunk: v}
		h.build(&b, h.slab)
		h.adopt(&b)
		return
	}
	before := g.n
	h.enter(group, v.entries)
	g.bytes += int64(g.n-before) * int64(8+h.valueBytes)
}

// enterAtOnce is how many entries are copied into a table before they are linked. What is copied and cannot be linked was
// copied for nothing, so fewer are where runs are short.
const enterAtOnce = 128

// enter upserts inline entries. A heap gives a group table by table, so most entries come in runs that belong to one table
// and are new to it: runs are copied as they are and linked, and only what is left goes through upsert.
func (h *Heap) enter(group uint32, entries []byte) {
	g, size := &h.groups[group], h.stride*8
	most := enterAtOnce
	for e := entries; len(e) >= size; {
		key := binary.LittleEndian.Uint64(e)
		if len(g.dir) > 0 {
			if t := g.dir[hashKey(key)>>g.shift]; t.stamp == h.epoch {
				run, tried := h.enterRun(t, e, most)
				if most = min(2*most, enterAtOnce); run < tried {
					most = run + 1
				}
				if run > 0 {
					g.n += run
					e = e[run*size:]
					continue
				}
			}
		}
		t, pos, _ := h.upsert(group, key)
		copy(bytesOf(t.words[pos*h.stride+1:(pos+1)*h.stride]), e[8:size])
		e = e[size:]
	}
}

// enterRun adds the first entries, at most most, to a writable table, as far as there is room, they belong to the table of the
// first one and they are new. It returns how many, and how many it has tried.
func (h *Heap) enterRun(t *table, entries []byte, most int) (run, tried int) {
	n := int(t.n)
	room := min(h.maxEntries, len(t.words)/h.stride, len(t.index)/2) - n
	tried = min(room, len(entries)/(h.stride*8), most)
	if tried <= 0 {
		return 0, 0
	}
	words := t.words[n*h.stride : (n+tried)*h.stride]
	copy(bytesOf(words), entries)
	run = t.linkRun(words, h.stride, hashKey(words[0])>>(64-uint(t.depth)))
	if h.tracking && run > 0 {
		for b := n >> h.blockShift; b <= (n+run-1)>>h.blockShift; b++ {
			t.blocks[b] = h.epoch
		}
	}
	return run, tried
}

// shape gives an empty group tables for counts[i] entries whose hash begins with the bits i, of which there are depth.
func (h *Heap) shape(group uint32, depth uint, counts []int) {
	g := &h.groups[group]
	g.dir, g.shift = h.layout(depth, counts, func(depth uint8, n int) *table {
		return h.newTable(depth, max(minTableEntries, min(n, h.maxEntries)))
	})
	g.stamp = h.epoch
	if len(g.dir) == 1 {
		h.roots[group] = g.dir[0]
	}
}

// layout returns the directory for counts[i] entries whose hash begins with the bits i, of which there are depth;
// newTable makes a table of a depth for n entries.
func (h *Heap) layout(depth uint, counts []int, newTable func(depth uint8, n int) *table) (dir []*table, shift uint) {
	shift = 64 - depth
	dir = make([]*table, len(counts))
	deepest := h.plant(dir, counts, 0, newTable)
	for 64-shift > uint(deepest) { // a directory no wider than growth makes it
		half := make([]*table, len(dir)/2)
		for i := range half {
			half[i] = dir[2*i]
		}
		dir = half
		shift++
	}
	return dir, shift
}

// plant fills a part of a directory with tables for the given numbers of entries, a
// single one if they fit, and returns the greatest depth.
func (h *Heap) plant(dir []*table, counts []int, depth uint8, newTable func(depth uint8, n int) *table) uint8 {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if sum <= h.maxEntries || len(dir) == 1 {
		t := newTable(depth, sum)
		t.depth = depth
		for i := range dir {
			dir[i] = t
		}
		return depth
	}
	half := len(dir) / 2
	return max(h.plant(dir[:half], counts[:half], depth+1, newTable), h.plant(dir[half:], counts[half:], depth+1, newTable))
}

// Install applies a chunk from Next of a Blob, as Heap.Install does. Values are
// copied.
func (b *Blob) Install(group uint32, chunk []byte) error {
	v, err := b.format().Parse(group, chunk)
	if err != nil {
		return err
	}
	b.prepare(group, v)
	for e := v.entries; len(e) > 0; {
		size := int(binary.LittleEndian.Uint32(e[8:]))
		b.Put(group, binary.LittleEndian.Uint64(e), slices.Clone(e[12:12+size]))
		e = e[12+size:]
	}
	return nil
}

// prepare empties the group if the chunk says so and applies its deletions.
func (s *store) prepare(group uint32, v Chunk) {
	if v.Replace {
		s.drop(group)
	}
	for d := v.deleted; len(d) > 0; d = d[8:] {
		s.remove(group, binary.LittleEndian.Uint64(d))
	}
}
