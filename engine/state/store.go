package state

import (
	"fmt"
	"slices"
)

const (
	// recycleBytes is the smallest memory worth keeping for reuse.
	recycleBytes = 16 << 10
	// maxFreeBytes bounds what a store keeps for reuse; the rest goes to the collector.
	maxFreeBytes = 64 << 20
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
	epoch      uint32 // of writes being made now; a cut has the epoch before
	tracking   bool   // a snapshot or mark is alive: writes stamp blocks, deletions are logged
	indirect   bool
	fixed      bool // values have valueBytes bytes
	stride     int
	blockShift uint
	maxEntries int
	valueBytes int

	live  []*Snapshot
	marks []uint32 // kept epochs, in the order they were kept

	vals       [][]byte
	valStamp   []uint32 // epoch of last write of each value
	valFree    []uint32 // numbers free for reuse
	valPending []pendingVal

	slabPending []pendingSlab
	slabFree    [][]uint64
	bufFree     [][]byte
	freeBytes   int
}

// keyGroup is one key group: a directory indexed by the leading hash bits.
type keyGroup struct {
	dir     []*table
	shift   uint // 64 - depth of the directory
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
	s := store{groups: make([]keyGroup, groups), epoch: 1, valueBytes: valueBytes, fixed: fixed}
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

// lookup returns the table and position of key; pos is -1 if it is absent, t nil if
// the group is empty.
func (s *store) lookup(g *keyGroup, hash, key uint64) (t *table, pos int) {
	if len(g.dir) == 0 {
		return nil, -1
	}
	t = g.dir[hash>>g.shift]
	return t, t.find(hash, key, s.stride)
}

// upsert returns the writable table and position of key, adding a zeroed entry
// if it is absent.
func (s *store) upsert(g *keyGroup, key uint64) (t *table, pos int, fresh bool) {
	hash := hashKey(key)
	t, pos = s.lookup(g, hash, key)
	if t == nil {
		t = s.newTable(0, minTableEntries)
		g.dir, g.shift = []*table{t}, 64
	}
	if pos < 0 {
		t = s.reserve(g, t, hash)
		pos = t.n
		entry := t.words[pos*s.stride : (pos+1)*s.stride]
		clear(entry)
		entry[0] = key
		t.n++
		t.link(hash, pos)
		g.n++
		fresh = true
	} else if t.stamp != s.epoch {
		s.own(g, t)
	}
	if s.tracking {
		t.blocks[pos>>s.blockShift] = s.epoch
	}
	return t, pos, fresh
}

// reserve makes the table that hash belongs to writable, with room for one more.
func (s *store) reserve(g *keyGroup, t *table, hash uint64) *table {
	for t.n == s.maxEntries {
		s.split(g, t, hash)
		t = g.dir[hash>>g.shift]
	}
	if t.stamp != s.epoch {
		s.own(g, t)
	}
	if (t.n+1)*s.stride > len(t.words) {
		s.growSlab(t)
	}
	if (t.n+1)*4 > len(t.index)*3 {
		t.reindex(2*t.n, s.stride)
	}
	return t
}

// own makes a table writable in the current epoch: it copies the slab if a live
// snapshot shares it.
func (s *store) own(g *keyGroup, t *table) {
	if t.stamp <= g.maxLive {
		old := t.words
		t.words = s.slab(len(old) / s.stride)
		copy(t.words, old[:t.n*s.stride])
		s.giveUp(old)
	}
	t.stamp = s.epoch
	if s.tracking && t.blocks == nil {
		t.blocks = make([]uint32, s.blockCount(t))
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
	t.words = s.slab(nextCapacity(t.n, s.maxEntries))
	copy(t.words, old[:t.n*s.stride])
	s.giveUp(old)
	if t.blocks != nil {
		blocks := make([]uint32, s.blockCount(t))
		copy(blocks, t.blocks)
		t.blocks = blocks
	}
}

// split divides a full table in two by the next hash bit, keeping the order of
// entries, and doubles the directory if it must.
func (s *store) split(g *keyGroup, t *table, hash uint64) {
	if t.depth == maxDirectoryDepth {
		panic(fmt.Sprintf("state: more than %d keys share the first %d hash bits", s.maxEntries, t.depth))
	}
	if 64-g.shift == uint(t.depth) {
		dir := make([]*table, 2*len(g.dir))
		for i := range dir {
			dir[i] = g.dir[i/2]
		}
		g.dir = dir
		g.shift--
	}
	old, oldBlocks := t.words, t.blocks
	bit := 63 - uint(t.depth)
	ones := 0
	for w := 0; w < t.n*s.stride; w += s.stride {
		ones += int(hashKey(old[w]) >> bit & 1)
	}
	low, high := s.newTable(t.depth+1, t.n-ones+1), s.newTable(t.depth+1, ones+1)
	for pos := range t.n {
		entry := old[pos*s.stride : (pos+1)*s.stride]
		h := hashKey(entry[0])
		to := low
		if h>>bit&1 == 1 {
			to = high
		}
		copy(to.words[to.n*s.stride:], entry)
		to.link(h, to.n)
		if to.blocks != nil && oldBlocks != nil {
			b := to.n >> s.blockShift
			to.blocks[b] = max(to.blocks[b], oldBlocks[pos>>s.blockShift])
		}
		to.n++
	}
	span := 1 << (64 - g.shift - uint(t.depth))
	first := int(hash>>g.shift) &^ (span - 1)
	for i := range span / 2 {
		g.dir[first+i], g.dir[first+span/2+i] = low, high
	}
	s.giveUp(old)
}

// remove deletes key and reports whether it was there.
func (s *store) remove(g *keyGroup, key uint64) bool {
	hash := hashKey(key)
	t, pos := s.lookup(g, hash, key)
	if pos < 0 {
		return false
	}
	if t.stamp != s.epoch {
		s.own(g, t)
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
func (s *store) drop(g *keyGroup) {
	s.tables(g, func(t *table) bool {
		if s.indirect {
			for pos := range t.n {
				s.freeVal(g, uint32(t.words[pos*s.stride+1]))
			}
		}
		if t.stamp <= g.maxLive {
			s.giveUp(t.words)
		} else {
			s.keepSlab(t.words)
		}
		return true
	})
	*g = keyGroup{maxLive: g.maxLive, reset: g.reset}
	if s.tracking {
		g.reset = s.epoch
	}
}

// tables visits a group's tables in directory order until visit returns false.
func (s *store) tables(g *keyGroup, visit func(*table) bool) bool {
	for i := 0; i < len(g.dir); {
		t := g.dir[i]
		if !visit(t) {
			return false
		}
		i += 1 << (64 - g.shift - uint(t.depth))
	}
	return true
}

// each visits a group's entries in iteration order until visit returns false.
func (s *store) each(g *keyGroup, visit func(key uint64, val []byte) bool) {
	s.tables(g, func(t *table) bool {
		for pos := range t.n {
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
