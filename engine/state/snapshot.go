package state

import (
	"fmt"
	"math/bits"
	"slices"
)

// Mark names a moment of a store's history, for CutSince. Marks belong to the
// store that made them.
type Mark struct{ epoch uint32 }

// Snapshot is an immutable view of some key groups at one moment, whole or only
// what changed since a mark. The owner makes and releases it; in between one
// goroutine, not necessarily the owner, may use all its other methods.
type Snapshot struct {
	s      *store
	epoch  uint32
	groups []uint32
	parts  []part
	slabs  []slabView
	bits   []uint64 // changed blocks of the slabs of an incremental snapshot
	vals   [][]byte
	cursor
	released bool
}

// part is one group of a snapshot.
type part struct {
	first, end int // its slabs
	deleted    []deletion
	bytes      int64
	replace    bool // installing starts from an empty group
}

// slabView is the used part of a slab; bits is the offset of its block bits in
// words, or -1 if all its entries belong to the snapshot.
type slabView struct {
	words []uint64
	bits  int
}

// cursor is the place that Next has reached.
type cursor struct {
	part    int
	begun   bool // the current part has given a chunk
	slab    int
	pos     int // entry in the slab
	deleted int
}

// Cut returns a snapshot of whole groups, in the order given. It copies one slice
// header a table; the first write to each table afterwards copies its slab
// until the snapshot is released.
func (s *store) Cut(groups []uint32) *Snapshot {
	return s.cut(groups, 0, true)
}

// CutSince returns a snapshot of what changed in groups since the mark, deletions
// included: installed over the state at the mark it gives the state now.
// The mark must have been kept and not forgotten.
func (s *store) CutSince(groups []uint32, since Mark) *Snapshot {
	if !slices.Contains(s.marks, since.epoch) {
		panic(fmt.Sprintf("state: mark %d is not kept", since.epoch))
	}
	return s.cut(groups, since.epoch, false)
}

// Keep makes the moment of a live snapshot a mark for CutSince. Until Forget the
// store logs deletions for it.
func (s *store) Keep(snap *Snapshot) Mark {
	if snap.released {
		panic("state: keep the mark of a released snapshot")
	}
	s.marks = append(s.marks, snap.epoch)
	return Mark{snap.epoch}
}

// Forget ends a mark; it is called as often as Keep was.
func (s *store) Forget(m Mark) {
	i := slices.Index(s.marks, m.epoch)
	if i < 0 {
		panic(fmt.Sprintf("state: mark %d is not kept", m.epoch))
	}
	s.marks = slices.Delete(s.marks, i, i+1)
	s.settle()
}

func (s *store) cut(groups []uint32, since uint32, whole bool) *Snapshot {
	s.checkGroups(groups)
	snap := &Snapshot{s: s, epoch: s.epoch, groups: slices.Clone(groups), vals: s.vals}
	snap.parts = make([]part, 0, len(groups))
	n := 0
	for _, group := range groups {
		n += len(s.groups[group].dir)
	}
	snap.slabs = make([]slabView, 0, n)
	for _, group := range groups {
		g := &s.groups[group]
		p := part{first: len(snap.slabs), replace: whole || since < g.reset}
		if p.replace {
			p.bytes = g.bytes
			snap.addWhole(g)
		} else {
			snap.addChanged(g, since)
			i := len(g.deleted)
			for i > 0 && g.deleted[i-1].epoch > since {
				i--
			}
			p.deleted = g.deleted[i:len(g.deleted):len(g.deleted)]
		}
		p.end = len(snap.slabs)
		snap.parts = append(snap.parts, p)
		g.maxLive = s.epoch
	}
	snap.skip()
	s.live = append(s.live, snap)
	s.tracking = true
	s.epoch++
	if s.epoch == 0 {
		panic("state: more than 2^32 cuts of one store")
	}
	return snap
}

// addWhole is written without a closure: it is the loop that a cut's pause is
// made of.
func (snap *Snapshot) addWhole(g *keyGroup) {
	stride := snap.s.stride
	for i := 0; i < len(g.dir); {
		t := g.dir[i]
		if t.n > 0 {
			snap.slabs = append(snap.slabs, slabView{t.words[:t.n*stride], -1})
		}
		i += 1 << (64 - g.shift - uint(t.depth))
	}
}

func (snap *Snapshot) addChanged(g *keyGroup, since uint32) {
	s := snap.s
	s.tables(g, func(t *table) bool {
		if t.stamp <= since || t.n == 0 {
			return true
		}
		blocks := (t.n + 1<<s.blockShift - 1) >> s.blockShift
		view := slabView{t.words[:t.n*s.stride], len(snap.bits)}
		snap.bits = append(snap.bits, make([]uint64, (blocks+63)/64)...)
		set := snap.bits[view.bits:]
		var any bool
		for b, epoch := range t.blocks[:blocks] {
			if epoch > since {
				set[b>>6] |= 1 << (b & 63)
				any = true
			}
		}
		if any {
			snap.slabs = append(snap.slabs, view)
		} else {
			snap.bits = snap.bits[:view.bits]
		}
		return true
	})
}

// Release ends the snapshot: the store writes without copying again, and reuses
// what only the snapshot held. The owner calls it, after the reader is done. Releasing
// twice is a bug and panics.
func (snap *Snapshot) Release() {
	s := snap.s
	i := slices.Index(s.live, snap)
	if i < 0 {
		panic("state: snapshot released twice")
	}
	s.live = slices.Delete(s.live, i, i+1)
	for _, group := range snap.groups {
		if g := &s.groups[group]; g.maxLive == snap.epoch {
			g.maxLive = 0
		}
	}
	for _, other := range s.live { // oldest first, so the newest is left standing
		for _, group := range other.groups {
			s.groups[group].maxLive = other.epoch
		}
	}
	snap.released = true
	snap.parts, snap.slabs, snap.bits, snap.vals = nil, nil, nil, nil
	s.reclaim()
	s.settle()
}

// settle stops tracking when nobody can ask for changes, and cuts deletion logs
// that reach further back than any mark.
func (s *store) settle() {
	s.tracking = len(s.live)+len(s.marks) > 0
	oldest := s.epoch
	for _, m := range s.marks {
		oldest = min(oldest, m)
	}
	for _, snap := range s.live {
		oldest = min(oldest, snap.epoch)
	}
	for i := range s.groups {
		g := &s.groups[i]
		dead := 0
		for dead < len(g.deleted) && g.deleted[dead].epoch <= oldest {
			dead++
		}
		if dead == len(g.deleted) {
			g.deleted = nil
		} else if dead > len(g.deleted)/2 {
			g.deleted = slices.Clone(g.deleted[dead:]) // snapshots hold the old array
		}
	}
}

// Groups returns the groups in the order in which Next gives them; not to be changed.
func (snap *Snapshot) Groups() []uint32 { return snap.groups }

// Bytes returns the size of the keys and values that the snapshot holds, and of
// the keys deleted (8 bytes each), in bytes.
func (snap *Snapshot) Bytes() int64 {
	var sum int64
	for i := range snap.parts {
		p := &snap.parts[i]
		if p.replace {
			sum += p.bytes
			continue
		}
		sum += int64(8 * len(p.deleted))
		snap.each(p, func(_ uint64, val []byte) { sum += int64(8 + len(val)) })
	}
	return sum
}

// Fingerprint returns the hash over the (key, value) pairs that the snapshot holds
// of the group; for a whole snapshot it is the store's at the cut. It panics if the
// snapshot does not cover the group.
func (snap *Snapshot) Fingerprint(group uint32) uint64 {
	i := slices.Index(snap.groups, group)
	if i < 0 {
		panic(fmt.Sprintf("state: snapshot does not cover key group %d", group))
	}
	var sum uint64
	snap.each(&snap.parts[i], func(key uint64, val []byte) { sum += hashEntry(key, val) })
	return sum
}

func (snap *Snapshot) each(p *part, visit func(key uint64, val []byte)) {
	stride := snap.s.stride
	for i := p.first; i < p.end; i++ {
		view := &snap.slabs[i]
		n := len(view.words) / stride
		for pos, run := snap.run(view, 0); pos < n; pos, run = snap.run(view, pos+run) {
			for e := pos; e < pos+run; e++ {
				entry := view.words[e*stride : (e+1)*stride]
				visit(entry[0], snap.s.value(entry, snap.vals))
			}
		}
	}
}

// run returns the next run of entries, at from or later, that belong to the
// snapshot; pos is the number of entries if there is none.
func (snap *Snapshot) run(view *slabView, from int) (pos, length int) {
	n := len(view.words) / snap.s.stride
	if view.bits < 0 || from >= n {
		return min(from, n), n - min(from, n)
	}
	shift := snap.s.blockShift
	blocks := (n + 1<<shift - 1) >> shift
	set := snap.bits[view.bits : view.bits+(blocks+63)/64]
	first := nextBit(set, from>>shift, blocks, 1)
	end := nextBit(set, first, blocks, 0)
	pos = min(max(from, first<<shift), n)
	return pos, min(end<<shift, n) - pos
}

// nextBit returns the first bit of the given value at from or later, or limit.
func nextBit(set []uint64, from, limit int, value uint64) int {
	for from < limit {
		word := set[from>>6]
		if value == 0 {
			word = ^word
		}
		if word >>= from & 63; word != 0 {
			return min(from+bits.TrailingZeros64(word), limit)
		}
		from = from&^63 + 64
	}
	return limit
}
