package state

import (
	"math/rand/v2"
	"testing"
)

// Entries come in any order, some of them again and some of keys that are there, and land as if written one by one; what
// they change is in the next increment.
func TestEntriesInAnyOrder(t *testing.T) {
	for _, valueBytes := range []int{8, 13, 64} {
		forSeeds(t, 0, func(t *testing.T, rng *rand.Rand) {
			h, want := NewHeap(1, valueBytes), NewHeap(1, valueBytes)
			copied := NewHeap(1, valueBytes)
			write := func(to *Heap, key uint64, b byte) {
				val, _ := to.Ref(0, key)
				val[valueBytes-1] = b
			}
			for range rng.IntN(5000) {
				key, b := rng.Uint64N(8000), byte(rng.Uint32())
				for _, to := range []*Heap{h, want, copied} {
					write(to, key, b)
				}
			}
			mark := Mark(0)
			marked := rng.IntN(2) == 0
			if marked {
				snap := h.Cut([]uint32{0})
				mark = h.Keep(snap)
				snap.Release()
			}
			f, val := h.format(), make([]byte, valueBytes)
			for range 3 {
				chunk, entries := f.Begin(nil, 0, false), rng.IntN(3000)
				source := NewHeap(1, valueBytes) // for runs of a table's order
				for range entries {
					key := rng.Uint64N(12_000)
					val[valueBytes-1] = byte(rng.Uint32())
					chunk = f.AppendEntry(chunk, key, val)
					write(want, key, val[valueBytes-1])
					write(source, key+1, 1)
				}
				source.Range(0, func(key uint64, val []byte) bool {
					chunk = f.AppendEntry(chunk, key, val)
					entries++
					write(want, key, val[valueBytes-1])
					return true
				})
				FinishChunk(chunk, 0, entries)
				if err := h.Install(0, chunk); err != nil {
					t.Fatal(err)
				}
			}
			if h.Fingerprint(0) != want.Fingerprint(0) || h.Len(0) != want.Len(0) || h.Bytes(0) != want.Bytes(0) {
				t.Fatalf("%d entries of %d bytes, want %d of %d", h.Len(0), h.Bytes(0), want.Len(0), want.Bytes(0))
			}
			want.Range(0, func(key uint64, _ []byte) bool {
				if _, ok := h.Get(0, key); !ok {
					t.Fatalf("key %d is not found", key)
				}
				return true
			})
			if !marked {
				return
			}
			changed := h.CutSince([]uint32{0}, mark)
			for {
				chunk, group, _, done := changed.Next(nil, 5000)
				if done {
					break
				}
				if err := copied.Install(group, chunk); err != nil {
					t.Fatal(err)
				}
			}
			if copied.Fingerprint(0) != want.Fingerprint(0) {
				t.Fatal("the increment misses something")
			}
		})
	}
}
