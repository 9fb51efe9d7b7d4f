package workloads

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/weir-bench/weir/engine/core"
)

// Tally is the number of records a key. The zero value is empty and ready. It
// is not safe for concurrent writing.
type Tally struct {
	// An open-addressing table of 2^k slots, at most half full. A slot with
	// count 0 is free, so any key can be held.
	slots []tallySlot
	shift int
	used  int
	total uint64
}

type tallySlot struct{ key, count uint64 }

// Counts returns how many of a stream's first n records each key has: the
// golden answer of a keyed count. It works on a clone, in chunks.
func Counts(stream Stream, n uint64) *Tally {
	const chunk = 4096
	s, t := stream.Clone(), &Tally{}
	var cols core.Columns
	for from := uint64(0); from < n; from += chunk {
		cols.Reset()
		s.Fill(&cols, from, int(min(chunk, n-from)))
		t.AddAll(cols.Keys)
	}
	return t
}

// AddAll counts each of keys once.
func (t *Tally) AddAll(keys []uint64) {
	for _, key := range keys {
		t.Add(key, 1)
	}
}

// Add counts key n more times.
func (t *Tally) Add(key, n uint64) {
	if n == 0 {
		return
	}
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	s := t.find(key)
	if s.count == 0 {
		s.key = key
		t.used++
	}
	s.count += n
	t.total += n
}

// find returns the slot of key, or the free one where it would go.
func (t *Tally) find(key uint64) *tallySlot {
	mask := uint64(len(t.slots) - 1)
	// Fibonacci hashing: one multiplication spreads dense keys well.
	for at := key * 0x9E3779B97F4A7C15 >> t.shift; ; at++ {
		if s := &t.slots[at&mask]; s.count == 0 || s.key == key {
			return s
		}
	}
}

func (t *Tally) grow() {
	old := t.slots
	size := max(1024, 4*len(old))
	t.slots, t.shift = make([]tallySlot, size), 64-bits.Len(uint(size-1))
	for _, s := range old {
		if s.count > 0 {
			*t.find(s.key) = s
		}
	}
}

// Count returns the number of records of key, 0 if it has none.
func (t *Tally) Count(key uint64) uint64 {
	if t.used == 0 {
		return 0
	}
	return t.find(key).count
}

// Len returns the number of different keys.
func (t *Tally) Len() int { return t.used }

// Total returns the number of records.
func (t *Tally) Total() uint64 { return t.total }

// All yields each key with its count, by ascending key.
func (t *Tally) All() iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		for _, s := range t.sorted(func(a, b tallySlot) bool { return a.key < b.key }) {
			if !yield(s.key, s.count) {
				return
			}
		}
	}
}

// Top returns up to n keys with the highest counts, highest first, ties by
// ascending key.
func (t *Tally) Top(n int) []uint64 {
	all := t.sorted(func(a, b tallySlot) bool { return a.count > b.count || (a.count == b.count && a.key < b.key) })
	keys := make([]uint64, min(n, len(all)))
	for i := range keys {
		keys[i] = all[i].key
	}
	return keys
}

func (t *Tally) sorted(less func(a, b tallySlot) bool) []tallySlot {
	all := make([]tallySlot, 0, t.used)
	for _, s := range t.slots {
		if s.count > 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b tallySlot) int {
		if less(a, b) {
			return -1
		}
		return 1
	})
	return all
}
