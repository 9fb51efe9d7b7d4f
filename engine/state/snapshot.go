package state

import (
	"fmt"
	"math/bits"
	"slices"
)

// cut is a Snapshot of a store in memory.
type cut struct {
	s      *store // what its reader touches of it never changes: sizes, and values by snap.vals
	epoch  uint32
	since  uint32
	groups []uint32
	parts  []part
	vals   [][]byte
	cursor
	released bool
}

// part is one group of a snapshot. The directory, its tables (without their index)
// and the blocks' epochs are immutable while the snapshot is alive.
type part struct {
	dir     []*table
	deleted []deletion
	bytes   int64 // of the whole group
	replace bool  // the group is given whole, and installing starts from an empty one
}

// cursor is the place that Next has reached. Within a part it is at an entry that
// belongs to the snapshot, or at the end of the directory.
type cursor struct {
	part    int
	begun   bool // the current part has given a chunk
	dir     int
	pos     int
	run     int // entries from pos on that belong to the snapshot
	deleted int
}

// Cut returns a snapshot of whole groups, in the order given. It copies one slice
// header a group, whatever their size; the first write to each table afterwards copies
// its slab until the snapshot is released.
func (s *store) Cut(groups []uint32) Snapshot {
	return s.cut(groups, 0, true)
}

// CutSince returns a snapshot of what changed in groups since the mark, deletions
// included: installed over the state at the mark it gives the state now.
// The mark must have been kept and not forgotten.
func (s *store) CutSince(groups []uint32, since Mark) Snapshot {
	if !slices.Contains(s.marks, uint32(since)) {
		panic(fmt.Sprintf("state: mark %d is not kept", since))
	}
	return s.cut(groups, uint32(since), false)
}

// Keep makes the moment of a live snapshot a mark for CutSince. Until Forget the
// store logs deletions for it, and writes note what they change. It is best called right behind the cut: while there is no
// mark, nobody notes which entries change, so of groups written to in between CutSince gives all.
func (s *store) Keep(of Snapshot) Mark {
	snap := of.(*cut)
	if snap.released {
		panic("state: keep the mark of a released snapshot")
	}
	if !s.tracking {
		s.track(snap)
	}
	s.marks = append(s.marks, snap.epoch)
	return Mark(snap.epoch)
}

// track begins to note changes for the mark of a snapshot. A group that the snapshot covers and that was written to since
// has another directory.
func (s *store) track(since *cut) {
	s.epoch++ // tables that are writable already have nowhere to note anything
	same := make([]bool, len(s.groups))
	for i, group := range since.groups {
		was, is := since.parts[i].dir, s.groups[group].dir
		same[group] = len(was) == len(is) && (len(was) == 0 || &was[0] == &is[0])
	}
	for i := range s.groups {
		if !same[i] {
			s.groups[i].reset, s.groups[i].deleted = s.epoch, nil
		}
	}
	s.tracking = true
}

// Forget ends a mark; it is called as often as Keep was.
func (s *store) Forget(m Mark) {
	i := slices.Index(s.marks, uint32(m))
	if i < 0 {
		panic(fmt.Sprintf("state: mark %d is not kept", m))
	}
	s.marks = slices.Delete(s.marks, i, i+1)
	s.settle()
}

func (s *store) cut(groups []uint32, since uint32, whole bool) *cut {
	s.checkGroups(groups)
	snap := &cut{s: s, epoch: s.epoch, since: since, groups: slices.Clone(groups), vals: s.vals}
	snap.parts = make([]part, len(groups))
	for i, group := range groups {
		g := &s.groups[group]
		p := &snap.parts[i]
		*p = part{dir: g.dir, bytes: g.bytes, replace: whole || since < g.reset}
		if !p.replace {
			first := len(g.deleted)
			for first > 0 && g.deleted[first-1].epoch > since {
				first--
			}
			p.deleted = g.deleted[first:len(g.deleted):len(g.deleted)]
		}
		g.maxLive = s.epoch
	}
	s.live = append(s.live, snap)
	s.epoch++
	if s.epoch == 0 {
		panic("state: more than 2^32 cuts of one store")
	}
	return snap
}

// Release ends the snapshot: the store writes without copying again, and reuses
// what only the snapshot held. The owner calls it, after the reader is done. Releasing
// twice is a bug and panics.
func (snap *cut) Release() {
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
	snap.parts, snap.vals = nil, nil
	s.noteCopies()
	s.reclaim()
	s.trimFree()
	s.settle()
}

// settle stops tracking when nobody can ask for changes, and cuts deletion logs
// that reach further back than any mark.
func (s *store) settle() {
	s.tracking = len(s.marks) > 0
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
func (snap *cut) Groups() []uint32 { return snap.groups }

// Bytes returns the size of the keys and values that the snapshot holds, and of
// the keys deleted (8 bytes each), in bytes.
func (snap *cut) Bytes() int64 {
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
func (snap *cut) Fingerprint(group uint32) uint64 {
	i := slices.Index(snap.groups, group)
	if i < 0 {
		panic(fmt.Sprintf("state: snapshot does not cover key group %d", group))
	}
	var sum uint64
	snap.each(&snap.parts[i], func(key uint64, val []byte) { sum += hashEntry(key, val) })
	return sum
}

func (snap *cut) each(p *part, visit func(key uint64, val []byte)) {
	stride := snap.s.stride
	tables(p.dir, func(t *table) bool {
		for pos, run := snap.runOf(p, t, 0); run > 0; pos, run = snap.runOf(p, t, pos+run) {
			for e := pos; e < pos+run; e++ {
				entry := t.words[e*stride : (e+1)*stride]
				visit(entry[0], snap.s.value(entry, snap.vals))
			}
		}
		return true
	})
}

// runOf returns the next run of entries, at from or later, that belong to the
// snapshot; its length is 0 if there is none.
func (snap *cut) runOf(p *part, t *table, from int) (pos, length int) {
	n := int(t.n)
	if p.replace {
		return from, n - from
	}
	if t.stamp <= snap.since {
		return n, 0
	}
	shift := snap.s.blockShift
	for from < n && t.blocks[from>>shift] <= snap.since {
		from = (from>>shift + 1) << shift
	}
	end := from
	for end < n && t.blocks[end>>shift] > snap.since {
		end = (end>>shift + 1) << shift
	}
	from, end = min(from, n), min(end, n)
	return from, end - from
}

// seek moves the cursor to the first run at pos or later.
func (snap *cut) seek(p *part) {
	c := &snap.cursor
	depth := bits.Len(uint(len(p.dir))) - 1
	for c.dir < len(p.dir) {
		t := p.dir[c.dir]
		if c.pos, c.run = snap.runOf(p, t, c.pos); c.run > 0 {
			return
		}
		c.dir += 1 << (depth - int(t.depth))
		c.pos = 0
	}
}
