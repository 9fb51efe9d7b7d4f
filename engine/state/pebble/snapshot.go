package pebble

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/sstable"

	"github.com/weir-bench/weir/engine/state"
)

// snapshot is a state.Snapshot of a Store.
type snapshot struct {
	s        *Store // its reader uses only what never changes
	at       *pebble.Snapshot
	epoch    uint32
	since    uint32
	groups   []uint32
	parts    []part
	released bool

	// What Next has reached: it is at the next pair of the group, or the group was not begun.
	part    int
	it      *pebble.Iterator
	entries []byte
	err     error
}

type part struct {
	bytes   int64 // of the whole group
	replace bool
}

// Cut implements state.Keyed.
func (s *Store) Cut(groups []uint32) state.Snapshot { return s.cut(groups, 0, true) }

// CutSince implements state.Keyed.
func (s *Store) CutSince(groups []uint32, since state.Mark) state.Snapshot {
	if !slices.Contains(s.marks, uint32(since)) {
		panic(fmt.Sprintf("pebble: mark %d is not kept", since))
	}
	return s.cut(groups, uint32(since), false)
}

func (s *Store) cut(groups []uint32, since uint32, whole bool) *snapshot {
	if len(s.run.touched) > 0 {
		panic("pebble: a cut in the middle of a run")
	}
	snap := &snapshot{s: s, at: s.db.NewSnapshot(), epoch: s.epoch, since: since, groups: slices.Clone(groups), parts: make([]part, len(groups))}
	for i, group := range groups {
		g := &s.groups[group]
		snap.parts[i] = part{g.bytes, whole || since < g.reset}
	}
	s.live = append(s.live, snap)
	if s.epoch++; s.epoch >= 1<<31 {
		panic("pebble: more than 2^31 cuts of one store")
	}
	return snap
}

// Keep implements state.Keyed.
func (s *Store) Keep(of state.Snapshot) state.Mark {
	snap := of.(*snapshot)
	if snap.released {
		panic("pebble: keep the mark of a released snapshot")
	}
	s.marks = append(s.marks, snap.epoch)
	return state.Mark(snap.epoch)
}

// Forget implements state.Keyed.
func (s *Store) Forget(m state.Mark) {
	i := slices.Index(s.marks, uint32(m))
	if i < 0 {
		panic(fmt.Sprintf("pebble: mark %d is not kept", m))
	}
	s.marks = slices.Delete(s.marks, i, i+1)
	s.settle()
}

// Release implements state.Snapshot.
func (snap *snapshot) Release() {
	s := snap.s
	i := slices.Index(s.live, snap)
	if i < 0 {
		panic("pebble: snapshot released twice")
	}
	s.live = slices.Delete(s.live, i, i+1)
	snap.released = true
	snap.endGroup()
	_ = s.fail(snap.at.Close()) // the next call returns it
	s.settle()
}

// settle removes the markers of deletions that nobody can ask for any more.
func (s *Store) settle() {
	oldest := s.epoch
	for _, m := range s.marks {
		oldest = min(oldest, m)
	}
	for _, snap := range s.live {
		oldest = min(oldest, snap.epoch)
	}
	s.bury(oldest)
}

// maxDead bounds the markers of deletions. Beyond it, whole groups are given instead.
const maxDead = 1 << 20

// boundDead gives up the markers when there are too many.
func (s *Store) boundDead() {
	if len(s.dead) <= maxDead {
		return
	}
	for _, d := range s.dead {
		s.groups[d.group].reset = s.epoch
	}
	s.bury(s.epoch)
}

// bury removes the markers of deletions up to an epoch, unless the key came back, or came back and was deleted again.
func (s *Store) bury(upto uint32) {
	n := 0
	for n < len(s.dead) && s.dead[n].epoch <= upto {
		n++
	}
	if n == 0 || s.err != nil {
		return
	}
	b := s.db.NewBatch()
	defer b.Close()
	for _, d := range s.dead[:n] {
		var buf [keyBytes]byte
		key := appendKey(buf[:0], d.group, d.key)
		val, closer, err := s.db.Get(key)
		if err == pebble.ErrNotFound {
			continue
		}
		if s.fail(err) != nil {
			return
		}
		if epoch, deleted := stampOf(val); deleted && epoch == d.epoch {
			err = b.Delete(key, nil)
		}
		if s.fail(err) != nil || s.fail(closer.Close()) != nil {
			return
		}
	}
	s.dead = append(s.dead[:0], s.dead[n:]...)
	_ = s.fail(s.commit(b)) // the next call returns it
}

// Err returns the error that ended the reading early. Who has read to the end has to ask.
func (snap *snapshot) Err() error { return snap.err }

// Groups implements state.Snapshot.
func (snap *snapshot) Groups() []uint32 { return snap.groups }

// Rewind implements state.Snapshot.
func (snap *snapshot) Rewind() {
	snap.endGroup()
	snap.part = 0
}

// Prefer implements state.Snapshot.
func (snap *snapshot) Prefer(group uint32) bool {
	next := snap.part
	if snap.it != nil {
		next++
	}
	return state.PutFirst(snap.groups, snap.parts, next, group)
}

func (snap *snapshot) fail(err error) {
	if snap.err == nil && err != nil {
		snap.err = fmt.Errorf("read state on disk: %w", err)
	}
}

// open returns an iterator over what may belong to a part.
func (snap *snapshot) open(i int) *pebble.Iterator {
	lower, upper := bounds(snap.groups[i])
	opts := &pebble.IterOptions{LowerBound: lower, UpperBound: upper}
	if !snap.parts[i].replace {
		opts.PointKeyFilters = append(make([]pebble.BlockPropertyFilter, 0, 2), sstable.NewBlockIntervalFilter(epochsName, uint64(snap.since)+1, 1<<32))
	}
	it, err := snap.at.NewIter(opts)
	snap.fail(err)
	return it
}

// belongs says whether a pair of the store is of the part, and whether it is a deletion. Where blocks are skipped, an older
// value may show; it is no newer than the mark.
func (snap *snapshot) belongs(p part, val []byte) (yes, deleted bool) {
	epoch, deleted := stampOf(val)
	if p.replace {
		return !deleted, false
	}
	return epoch > snap.since, deleted
}

// seek moves it to the next pair of a part, from where it is, and reports whether there is one.
func (snap *snapshot) seek(it *pebble.Iterator, p part, ok bool) bool {
	for ; ok; ok = it.Next() {
		if yes, _ := snap.belongs(p, it.Value()); yes {
			return true
		}
	}
	snap.fail(it.Error())
	return false
}

func (snap *snapshot) endGroup() {
	if snap.it != nil {
		snap.fail(snap.it.Close())
		snap.it = nil
	}
}

// Next implements state.Snapshot.
func (snap *snapshot) Next(dst []byte, maxBytes int) (chunk []byte, group uint32, last, done bool) {
	if snap.part == len(snap.parts) || snap.err != nil {
		return dst[:0], 0, false, true
	}
	p, f := snap.parts[snap.part], &snap.s.format
	group = snap.groups[snap.part]
	begins := snap.it == nil
	if begins {
		if snap.it = snap.open(snap.part); snap.err != nil {
			return dst[:0], 0, false, true
		}
		snap.seek(snap.it, p, snap.it.First())
	}
	it := snap.it
	chunk = f.Begin(dst[:0], group, p.replace && begins)
	snap.entries = snap.entries[:0]
	deleted, entries := 0, 0
	for it.Valid() {
		val := it.Value()
		_, gone := stampOf(val)
		size := 8
		if !gone {
			size = f.EntryBytes(len(val) - stampBytes)
		}
		if deleted+entries > 0 && len(chunk)+len(snap.entries)+size > maxBytes {
			break
		}
		if gone {
			chunk = f.AppendDeleted(chunk, keyOf(it.Key()))
			deleted++
		} else {
			snap.entries = f.AppendEntry(snap.entries, keyOf(it.Key()), val[stampBytes:])
			entries++
		}
		snap.seek(it, p, it.Next())
	}
	chunk = append(chunk, snap.entries...)
	state.FinishChunk(chunk, deleted, entries)
	if last = !it.Valid(); last {
		snap.endGroup()
		snap.part++
	}
	return chunk, group, last, false
}

func keyOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[4:]) }

// each visits the pairs of a part.
func (snap *snapshot) each(i int, visit func(key uint64, val []byte, deleted bool)) {
	it := snap.open(i)
	if it == nil {
		return
	}
	p := snap.parts[i]
	for ok := snap.seek(it, p, it.First()); ok; ok = snap.seek(it, p, it.Next()) {
		_, deleted := stampOf(it.Value())
		visit(keyOf(it.Key()), it.Value()[stampBytes:], deleted)
	}
	snap.fail(it.Close())
}

// Bytes implements state.Snapshot.
func (snap *snapshot) Bytes() int64 {
	var sum int64
	for i, p := range snap.parts {
		if p.replace {
			sum += p.bytes
			continue
		}
		snap.each(i, func(_ uint64, val []byte, _ bool) { sum += int64(8 + len(val)) })
	}
	return sum
}

// Fingerprint implements state.Snapshot.
func (snap *snapshot) Fingerprint(group uint32) uint64 {
	i := slices.Index(snap.groups, group)
	if i < 0 {
		panic(fmt.Sprintf("pebble: snapshot does not cover key group %d", group))
	}
	var sum uint64
	snap.each(i, func(key uint64, val []byte, deleted bool) {
		if !deleted {
			sum += state.HashEntry(key, val)
		}
	})
	return sum
}
