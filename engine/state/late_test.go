package state

import (
	"math/rand/v2"
	"testing"
)

// A mark made of a snapshot after writes gives all that changed since the snapshot, also in groups that it does not cover.
func TestLateMark(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			forSeeds(t, 3, func(t *testing.T, rng *rand.Rand) {
				k, m := w.make(), newModel()
				m.mutate(w, k, rng, 4*w.keys)
				copied := w.make()
				whole := k.Cut(allGroups)
				stream(t, whole, copied, rng)
				covered := allGroups
				if rng.IntN(2) == 0 {
					covered = allGroups[:2]
				}
				snap := k.Cut(covered)
				whole.Release()
				if rng.IntN(3) == 0 {
					k.Drop(1)
					m[1] = map[uint64][]byte{}
				}
				m.mutate(w, k, rng, rng.IntN(20))
				mark := k.Keep(snap)
				m.mutate(w, k, rng, rng.IntN(w.keys))
				snap.Release()
				m.mutate(w, k, rng, rng.IntN(w.keys))
				step := k.CutSince(allGroups, mark)
				stream(t, step, copied, rng)
				m.check(t, copied, "what changed since a late mark")
				step.Release()
				k.Forget(mark)
			})
		})
	}
}

// What writes had to copy because of a snapshot is kept for those of the next one, and let go when it is not needed.
func TestCopiesAreReused(t *testing.T) {
	const keys = 5 << 20 // 80 MiB of them, more than is kept anyway
	h := NewHeap(4, 8)
	h.Fill(keys, []bool{true, true, true, true})
	touch := func() {
		for g := range uint32(4) {
			tables(h.groups[g].dir, func(tb *table) bool {
				*h.Word(g, tb.words[0])++
				return true
			})
		}
	}
	checkpoint := func(write bool) {
		snap := h.Cut(everyGroup(4))
		if write {
			touch()
		}
		snap.Release()
	}
	checkpoint(true)
	made := h.made
	for range 3 {
		checkpoint(true)
	}
	if h.made != made {
		t.Errorf("%d bytes of slabs were made for the writes behind three more snapshots", h.made-made)
	}
	if h.freeBytes < 16*keys {
		t.Errorf("%d bytes are kept, the state has %d", h.freeBytes, 16*keys)
	}
	for range 2 {
		checkpoint(false)
	}
	if h.freeBytes > minFreeBytes {
		t.Errorf("%d bytes are kept behind snapshots that copied nothing", h.freeBytes)
	}
}
