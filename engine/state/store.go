package state

import (
	"fmt"
	"math/bits"
	"slices"
)

const (
	// recycleBytes is the smallest memory worth keeping for reuse.
	recycleBytes = 16 << 10
	// minFreeBytes and maxFreeBytes bound what a store keeps for reuse, see spareBytes; the rest goes to the collector.
	minFreeBytes = 64 << 20
	maxFreeBytes = 640 << 20
	// blockBytes is the granularity of change tracking within a slab.
	blockBytes = 128
	// indirectBytes is the value size above which values live outside the slab.
	indirectBytes = 1024
)

// store is what Heap and Blob share: groups of tables, epochs and sharing.
// Values are either inline in the slab (stride words an entry) or indirect: the
// slab then holds the value's number in vals.
type store struct {
	groups     []keyGroup
	roots      []*table // of groups with one table, which spares the hot path two loads
	epoch      uint32   // of writes being made now; a cut has the epoch before
	tracking   bool     // a mark is kept: writes stamp blocks, deletions are logged
	indirect   bool
	fixed      bool // values have valueBytes bytes
	stride     int
	blockShift uint
	maxEntries int
	valueBytes int

	live  []*cut
	marks []uint32 // kept epochs, in the order they were kept

	vals       [][]byte
	valStamp   []uint32 // epoch of last write of each value
	valFree    []uint32 // numbers free for reuse
	valPending []pendingVal

	give        func(mem []byte) // see GiveTo
	made        int              // bytes of slabs ever allocated
	touched     uint64           // see Warm
	slabPending []pendingSlab
	slabFree    map[int][][]uint64 // by length
	bufFree     [][]byte
	freeBytes   int
	copiedBytes int // since the last snapshot ended: what writes copied because snapshots share it
	copyBytes   int // the same of the last snapshots
}

// keyGroup is one key group: a directory indexed by the leading hash bits.
type keyGroup struct {
	dir     []*table
	shift   uint   // 64 - depth of the directory
	stamp   uint32 // epoch in which dir was made
	n       int
	bytes   int64
	maxLive uint32 // newest live snapshot that covers the group
	reset   uint32 // marks older than this need the whole group
	deleted []deletion
}

type deletion struct {
	key   uint64
	epoch uint32
}

// pendingVal and pendingSlab are memory given up at an epoch, still readable by
// snapshots cut before it.
type pendingVal struct {
	val   uint32
	epoch uint32
}

type pendingSlab struct {
	words []uint64
	epoch uint32
}

func newStore(groups uint32, valueBytes int, fixed bool) store {
	s := store{groups: make([]keyGroup, groups), roots: make([]*table, groups), slabFree: map[int][][]uint64{}, epoch: 1, valueBytes: valueBytes, fixed: fixed}
	s.indirect = !fixed || valueBytes > indirectBytes
	s.stride = 2
	if !s.indirect {
		s.stride = 1 + (valueBytes+7)/8
	}
	if !s.indirect {
		for s.stride*8<<(s.blockShift+1) <= blockBytes {
			s.blockShift++
		}
	}
	s.maxEntries = min(maxTableEntries, maxSlabBytes/(s.stride*8))
	return s
}

// lookup returns the table and position of key, with the index slot that it has or
// would have; pos is -1 if the key is absent, t nil if the group is empty.
func (s *store) lookup(g *keyGroup, hash, key uint64) (t *table, pos int, slot uint64) {
	if len(g.dir) == 0 {
		return nil, -1, 0
	}
	t = g.dir[hash>>g.shift]
	pos, slot = t.find(hash, key, s.stride)
	return t, pos, slot
}

// upsert returns the writable table and position of key, adding a zeroed entry
// if it is absent.
func (s *store) upsert(group uint32, key uint64) (t *table, pos int, fresh bool) {
	g := &s.groups[group]
	hash := hashKey(key)
	t, pos, slot := s.lookup(g, hash, key)
	if t == nil {
		t = s.newTable(0, minTableEntries)
		g.dir, g.shift, g.stamp = []*table{t}, 64, s.epoch
		s.roots[group] = t
		slot = t.vacant(hash)
	}
	if pos < 0 {
		t, slot = s.reserve(group, t, hash, slot)
		pos = int(t.n)
		entry := t.words[pos*s.stride : (pos+1)*s.stride]
		clear(entry)
		entry[0] = key
		t.n++
		t.link(slot, hash, pos)
		g.n++
		fresh = true
	} else if t.stamp != s.epoch {
		t = s.own(group, t, hash)
	}
	if s.tracking {
		t.blocks[pos>>s.blockShift] = s.epoch
	}
	return t, pos, fresh
}

// reserve makes the table that hash belongs to writable, with room for one more.
// It takes and returns the table and the index slot for hash.
func (s *store) reserve(group uint32, t *table, hash, slot uint64) (*table, uint64) {
	g := &s.groups[group]
	n := int(t.n)
	if n < s.maxEntries && (n+1)*s.stride <= len(t.words) && 2*(n+1) <= len(t.index) {
		if t.stamp != s.epoch {
			t = s.own(group, t, hash)
		}
		return t, slot
	}
	for int(t.n) == s.maxEntries {
		s.split(group, t, hash)
		t = g.dir[hash>>g.shift]
	}
	if t.stamp != s.epoch {
		t = s.own(group, t, hash)
	}
	if (int(t.n)+1)*s.stride > len(t.words) {
		s.growSlab(t)
	}
	if 2*(int(t.n)+1) > len(t.index) {
		t.reindex(int(t.n)+1, s.stride)
	}
	return t, t.vacant(hash)
}

// own makes the table that hash belongs to writable in the current epoch. If a
// live snapshot shares it, a copy takes its place in the directory; only the index
// goes over as it is, since snapshots do not read it.
func (s *store) own(group uint32, t *table, hash uint64) *table {
	g := &s.groups[group]
	if t.stamp <= g.maxLive {
		shared := t
		t = &table{
			words: s.slab(len(shared.words) / s.stride), index: shared.index, posMask: shared.posMask,
			n: shared.n, depth: shared.depth,
		}
		if s.tracking {
			t.blocks = slices.Clone(shared.blocks)
		}
		copy(t.words, shared.words[:int(t.n)*s.stride])
		s.copiedBytes += len(t.words) * 8
		s.retireSlab(g, shared)
		s.place(group, hash, t.depth, t)
	}
	t.stamp = s.epoch
	if s.tracking && t.blocks == nil {
		t.blocks = make([]uint32, s.blockCount(t))
	}
	return t
}

// place makes t the table of all hashes that share the first depth bits with hash,
// in a directory copied first if a live snapshot shares it.
func (s *store) place(group uint32, hash uint64, depth uint8, t *table) {
	g := &s.groups[group]
	if g.stamp <= g.maxLive {
		g.dir, g.stamp = slices.Clone(g.dir), s.epoch
	}
	span := 1 << (64 - g.shift - uint(depth))
	first := int(hash>>g.shift) &^ (span - 1)
	for i := range span {
		g.dir[first+i] = t
	}
	if len(g.dir) == 1 {
		s.roots[group] = t
	}
}

func (s *store) blockCount(t *table) int {
	return (len(t.words)/s.stride + 1<<s.blockShift - 1) >> s.blockShift
}

func (s *store) newTable(depth uint8, entries int) *table {
	t := &table{stamp: s.epoch, depth: depth}
	t.words = s.slab(nextCapacity(min(entries, s.maxEntries)-1, s.maxEntries))
	t.reindex(entries, s.stride)
	if s.tracking {
		t.blocks = make([]uint32, s.blockCount(t))
	}
	return t
}

// growSlab moves the entries of a writable table to the next slab size.
func (s *store) growSlab(t *table) {
	old := t.words
	t.words = s.slab(nextCapacity(int(t.n), s.maxEntries))
	copy(t.words, old[:int(t.n)*s.stride])
	s.keepSlab(old)
	if t.blocks != nil {
		blocks := make([]uint32, s.blockCount(t))
		copy(blocks, t.blocks)
		t.blocks = blocks
	}
}

// split divides a full table in two by the next hash bit, keeping the order of
// entries, and doubles the directory if it must.
func (s *store) split(group uint32, t *table, hash uint64) {
	if t.depth == maxDirectoryDepth {
		panic(fmt.Sprintf("state: more than %d keys share the first %d hash bits", s.maxEntries, t.depth))
	}
	s.widen(group, uint(t.depth)+1)
	old, oldBlocks := t.words, t.blocks
	bit := 63 - uint(t.depth)
	ones := 0
	for w := 0; w < int(t.n)*s.stride; w += s.stride {
		ones += int(hashKey(old[w]) >> bit & 1)
	}
	low, high := s.newTable(t.depth+1, int(t.n)-ones+1), s.newTable(t.depth+1, ones+1)
	for pos := range int(t.n) {
		entry := old[pos*s.stride : (pos+1)*s.stride]
		h := hashKey(entry[0])
		to := low
		if h>>bit&1 == 1 {
			to = high
		}
		n := int(to.n)
		copy(to.words[n*s.stride:], entry)
		to.link(to.vacant(h), h, n)
		if to.blocks != nil && oldBlocks != nil {
			b := n >> s.blockShift
			to.blocks[b] = max(to.blocks[b], oldBlocks[pos>>s.blockShift])
		}
		to.n++
	}
	s.place(group, hash&^(1<<bit), low.depth, low)
	s.place(group, hash|1<<bit, high.depth, high)
	s.retireSlab(&s.groups[group], t)
}

// widen doubles the directory until it has the given depth.
func (s *store) widen(group uint32, depth uint) {
	g := &s.groups[group]
	for 64-g.shift < depth {
		dir := make([]*table, 2*len(g.dir))
		for i := range dir {
			dir[i] = g.dir[i/2]
		}
		s.roots[group] = nil
		g.dir, g.stamp = dir, s.epoch
		g.shift--
	}
}

// remove deletes key and reports whether it was there.
func (s *store) remove(group uint32, key uint64) bool {
	g := &s.groups[group]
	hash := hashKey(key)
	t, pos, _ := s.lookup(g, hash, key)
	if pos < 0 {
		return false
	}
	if t.stamp != s.epoch {
		t = s.own(group, t, hash)
	}
	if s.indirect {
		s.freeVal(g, uint32(t.words[pos*s.stride+1]))
	} else {
		g.bytes -= int64(8 + s.valueBytes)
	}
	t.remove(hash, pos, s.stride)
	g.n--
	if s.tracking {
		t.blocks[pos>>s.blockShift] = s.epoch
		s.logDeletion(g, key)
	}
	return true
}

// logDeletion records a deletion for CutSince. A log longer than the group is
// worth less than sending the group whole, which also bounds it.
func (s *store) logDeletion(g *keyGroup, key uint64) {
	if g.reset == s.epoch {
		return // every mark already needs the whole group
	}
	if len(g.deleted) > g.n+1024 {
		g.deleted, g.reset = nil, s.epoch
		return
	}
	g.deleted = append(g.deleted, deletion{key, s.epoch})
}

// drop empties a group.
func (s *store) drop(group uint32) {
	g := &s.groups[group]
	tables(g.dir, func(t *table) bool {
		if s.indirect {
			for pos := range int(t.n) {
				s.freeVal(g, uint32(t.words[pos*s.stride+1]))
			}
		}
		s.retireSlab(g, t)
		return true
	})
	s.roots[group] = nil
	*g = keyGroup{maxLive: g.maxLive, reset: g.reset}
	if s.tracking {
		g.reset = s.epoch
	}
}

// tables visits a directory's tables in order until visit returns false.
func tables(dir []*table, visit func(*table) bool) {
	depth := bits.Len(uint(len(dir))) - 1
	for i := 0; i < len(dir); {
		t := dir[i]
		if !visit(t) {
			return
		}
		i += 1 << (depth - int(t.depth))
	}
}

// each visits a group's entries in iteration order until visit returns false.
func (s *store) each(g *keyGroup, visit func(key uint64, val []byte) bool) {
	tables(g.dir, func(t *table) bool {
		for pos := range int(t.n) {
			entry := t.words[pos*s.stride : (pos+1)*s.stride]
			if !visit(entry[0], s.value(entry, s.vals)) {
				return false
			}
		}
		return true
	})
}

// value views the value of an entry; vals is the value table the entry belongs to.
func (s *store) value(entry []uint64, vals [][]byte) []byte {
	if s.indirect {
		return vals[entry[1]]
	}
	return bytesOf(entry[1:])[:s.valueBytes:s.valueBytes]
}

// checkGroups panics on a group that the store does not have: routing is broken then.
func (s *store) checkGroups(groups []uint32) {
	if i := slices.IndexFunc(groups, func(g uint32) bool { return int(g) >= len(s.groups) }); i >= 0 {
		panic(fmt.Sprintf("state: key group %d of a store with %d groups", groups[i], len(s.groups)))
	}
}
