package pebble

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/cockroachdb/pebble"

	"github.com/weir-bench/weir/engine/core"
)

// run is the run under way.
type run struct {
	seen    seen
	touched []touched
	missing int      // of touched, how many have to be read
	wholes  []uint32 // groups that were brought whole
}

// touched is a key of the run.
type touched struct {
	group   uint32
	missing bool // it has to be read
	key     uint64
	old     int   // size of its value before the run, -1: none
	was     *byte // in a Blob: where the value before the run is
}

// Begin implements state.Paged.
func (s *Store) Begin(keys []uint64) error {
	for _, key := range keys {
		g := core.KeyGroup(key, s.format.Groups)
		if s.run.seen.add(g, key) {
			s.touch(g, key)
		}
		if s.heads {
			s.Head(g)
		}
	}
	return s.read()
}

// Head implements state.Paged.
func (s *Store) Head(group uint32) {
	if s.heads && s.run.seen.add(group, s.head) {
		s.touch(group, s.head)
	}
}

// touch takes a key into the run.
func (s *Store) touch(group uint32, key uint64) {
	t := touched{group: group, key: key, old: -1}
	g := &s.groups[group]
	val, there := s.cachedValue(group, key)
	switch {
	case there:
		t.old, t.was = len(val), unsafe.SliceData(val)
	case !g.whole && !(s.heads && key == s.head): // heads stay in the cache
		t.missing = true
		s.run.missing++
	}
	s.run.touched = append(s.run.touched, t)
}

func (s *Store) cachedValue(group uint32, key uint64) ([]byte, bool) {
	if s.heap != nil {
		return s.heap.Get(group, key)
	}
	return s.blob.Get(group, key)
}

// read brings what is missing into the cache. The keys are sorted: neighbours are found in, and written to, the same
// places.
func (s *Store) read() error {
	slices.SortFunc(s.run.touched, func(a, b touched) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.key, b.key)) })
	for i := 0; i < len(s.run.touched) && s.run.missing > 0; i++ {
		t := &s.run.touched[i]
		if !t.missing {
			continue
		}
		t.missing = false
		s.run.missing--
		_, err := s.get(t.group, t.key, func(val []byte) { s.cache(t, val) })
		if s.fail(err) != nil {
			break
		}
	}
	return s.err
}

// cache puts a value that was read into the cache.
func (s *Store) cache(t *touched, val []byte) {
	t.old = len(val)
	if s.heap != nil {
		to, _ := s.heap.Ref(t.group, t.key)
		copy(to, val)
		return
	}
	own := slices.Clone(val)
	t.was = unsafe.SliceData(own)
	s.blob.Put(t.group, t.key, own)
}

// cacheHead brings a group's head into the cache, where it stays.
func (s *Store) cacheHead(group uint32) {
	t := touched{group: group, key: s.head, old: -1}
	_, err := s.get(group, s.head, func(val []byte) { s.cache(&t, val) })
	_ = s.fail(err) // the next call returns it
	s.count(group)
}

// Group implements state.Paged.
func (s *Store) Group(group uint32) error {
	s.run.wholes = append(s.run.wholes, group)
	if s.groups[group].whole {
		s.blob.Range(group, func(key uint64, val []byte) bool {
			if s.run.seen.add(group, key) {
				s.run.touched = append(s.run.touched, touched{group: group, key: key, old: len(val), was: unsafe.SliceData(val)})
			}
			return true
		})
		return s.err
	}
	lower, upper := bounds(group)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return s.fail(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		key, val := keyOf(it.Key()), it.Value()
		if _, deleted := stampOf(val); deleted || !s.run.seen.add(group, key) {
			continue // or it is in the run already
		}
		t := touched{group: group, key: key, old: -1}
		if have, there := s.cachedValue(group, key); there {
			t.old, t.was = len(have), unsafe.SliceData(have)
		} else {
			s.cache(&t, val[stampBytes:])
		}
		s.run.touched = append(s.run.touched, t)
	}
	s.groups[group].whole = true
	return s.fail(it.Close())
}

// End implements state.Paged.
func (s *Store) End() error {
	for _, g := range s.run.wholes { // what is new in them
		if s.blob != nil {
			s.blob.Range(g, func(key uint64, _ []byte) bool {
				if s.run.seen.add(g, key) {
					s.run.touched = append(s.run.touched, touched{group: g, key: key, old: -1})
				}
				return true
			})
		}
	}
	if len(s.run.touched) > 0 && s.err == nil {
		s.batch(func(b *pebble.Batch) {
			for i := range s.run.touched {
				if s.fail(s.write(b, &s.run.touched[i])) != nil {
					break
				}
			}
		})
	}
	for _, t := range s.run.touched {
		s.count(t.group)
	}
	s.run.seen.clear()
	s.run.touched, s.run.wholes, s.run.missing = s.run.touched[:0], s.run.wholes[:0], 0
	s.evict()
	s.boundDead()
	return s.err
}

// write adds what the run made of a key to a batch.
func (s *Store) write(b *pebble.Batch, t *touched) error {
	val, there := s.cachedValue(t.group, t.key)
	g := &s.groups[t.group]
	if !there {
		if t.old < 0 {
			return nil
		}
		g.account(t.old, -1)
		return s.remove(b, t.group, t.key)
	}
	if s.blob != nil && t.old == len(val) && t.was == unsafe.SliceData(val) {
		return nil // values of a Blob are never changed in place
	}
	g.account(t.old, len(val))
	return s.put(b, t.group, t.key, val)
}

// count keeps the size of what is cached of a group.
func (s *Store) count(group uint32) {
	g := &s.groups[group]
	g.used = true
	now := int64(0)
	if s.heap != nil {
		now = s.heap.Bytes(group)
	} else {
		now = s.blob.Bytes(group)
	}
	s.cached += now - g.cached
	g.cached = now
}

// evict brings the cache back to its bound. All of it has been written.
func (s *Store) evict() {
	for looks := 2 * len(s.groups); s.cached > s.maxCache && looks > 0; looks-- {
		at := uint32(s.hand)
		if s.hand++; s.hand == len(s.groups) {
			s.hand = 0
		}
		g := &s.groups[at]
		if g.used {
			g.used = false
			continue
		}
		if g.cached > 0 {
			s.uncache(at, true)
		}
	}
}

// uncache lets a group go from the cache, except for its head if that is to stay.
func (s *Store) uncache(group uint32, keepHead bool) {
	g := &s.groups[group]
	if s.heap != nil {
		s.heap.Drop(group)
	} else {
		head, there := s.blob.Get(group, s.head)
		s.blob.Drop(group)
		if s.heads && there && keepHead {
			s.blob.Put(group, s.head, head)
		}
	}
	g.whole = g.n == 0
	s.count(group)
	g.used = false
}

// seen is a set of (group, key), which is emptied without touching it.
type seen struct {
	slots []slot
	n     int
	turn  uint32
}

type slot struct {
	key   uint64
	group uint32
	turn  uint32
}

const firstSlots = 16 << 10

// add puts a key in and reports whether it was not there.
func (s *seen) add(group uint32, key uint64) bool {
	if 2*(s.n+1) > len(s.slots) {
		s.grow()
	}
	mask := uint64(len(s.slots) - 1)
	for i := core.Mix64(key^uint64(group)<<32) & mask; ; i = (i + 1) & mask {
		at := &s.slots[i]
		if at.turn != s.turn {
			*at = slot{key, group, s.turn}
			s.n++
			return true
		}
		if at.key == key && at.group == group {
			return false
		}
	}
}

func (s *seen) grow() {
	old, turn := s.slots, s.turn
	s.slots = make([]slot, max(firstSlots, 2*len(old)))
	s.n, s.turn = 0, 1
	for _, x := range old {
		if x.turn == turn {
			s.add(x.group, x.key)
		}
	}
}

func (s *seen) clear() {
	s.n = 0
	if s.turn++; s.turn == 0 { // after 2^32 runs
		clear(s.slots)
		s.turn = 1
	}
}
