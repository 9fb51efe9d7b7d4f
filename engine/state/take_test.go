package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Groups are taken in parts while the store goes on, among snapshots that share what is taken: the new owner gets the
// state at the moment of taking, the store has none of it, and the snapshots keep theirs.
func TestTake(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			forSeeds(t, 3, func(t *testing.T, rng *rand.Rand) {
				k, m := w.make(), newModel()
				for round := range 6 {
					m.mutate(w, k, rng, 2*w.keys)
					var before Snapshot
					old := m.clone()
					if rng.IntN(2) == 0 {
						before = k.Cut(allGroups)
						m.mutate(w, k, rng, w.keys/2)
					}
					groups := []uint32{0, 1, 2, 3}
					rng.Shuffle(4, func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
					groups = groups[:1+rng.IntN(4)]
					takeAway(t, w, k, m, groups, rng)
					if before != nil {
						copied := w.make()
						stream(t, before, copied, rng)
						old.check(t, copied, fmt.Sprintf("round %d: snapshot from before", round))
						before.Release()
					}
					m.check(t, k, fmt.Sprintf("round %d: the rest", round))
				}
			})
		})
	}
}

// takeAway takes groups and checks what comes of them; m is brought up to date.
func takeAway(t *testing.T, w world, k keyed, m *model, groups []uint32, rng *rand.Rand) {
	t.Helper()
	want, to := newModel(), w.make()
	for _, g := range groups {
		want[g], m[g] = m[g], map[uint64][]byte{}
	}
	snap := k.(Taker).Take(groups)
	m.check(t, k, "after taking")
	for lasts := 0; ; {
		if rng.IntN(3) == 0 {
			snap.Prefer(groups[rng.IntN(len(groups))])
		}
		chunk, group, last, done := snap.Next(nil, 64+rng.IntN(20000))
		if done {
			if lasts != len(groups) {
				t.Fatalf("%d groups ended, want %d", lasts, len(groups))
			}
			break
		}
		if last {
			lasts++
		}
		if err := to.Install(group, chunk); err != nil {
			t.Fatal(err)
		}
		m.mutate(w, k, rng, 20)
		if rng.IntN(200) == 0 { // given up half-way: the rest is gone
			snap.Release()
			return
		}
	}
	snap.Release()
	want.check(t, to, "what was taken")
}

// What is taken is free for reuse group by group, and takes no memory twice.
func TestTakeFreesAsItGoes(t *testing.T) {
	h := NewHeap(8, 8)
	for key := range uint64(80_000) {
		h.Ref(uint32(key%8), key)
	}
	held := h.freeBytes
	snap := h.Take([]uint32{0, 1, 2, 3})
	var buf []byte
	var freed []int
	for {
		chunk, _, last, done := snap.Next(buf[:0], 4096)
		if done {
			break
		}
		if buf = chunk; last {
			freed = append(freed, h.freeBytes-held)
		}
	}
	if len(freed) != 4 || freed[0] < 100_000 || !slices.IsSorted(freed) || freed[3] < 4*freed[0]/2 {
		t.Errorf("free after each of 4 groups of 10,000 keys: %v bytes more", freed)
	}
	snap.Release()
	if h.tracking || len(h.live) != 0 {
		t.Error("taking makes writes note what they change")
	}
}

// Whoever is given the memory of what is taken gets all of it, group by group, and nothing that a snapshot still reads.
func TestTakeGivesMemory(t *testing.T) {
	for _, valueBytes := range []int{8, 5000} {
		h := NewHeap(4, valueBytes)
		for key := range uint64(4000) {
			v, _ := h.Ref(uint32(key%4), key)
			v[0] = byte(key)
		}
		given := 0
		h.GiveTo(func(mem []byte) { given += len(mem); clear(mem) })
		shared := h.Cut([]uint32{1})
		before := shared.Fingerprint(1)
		for _, group := range []uint32{0, 1} {
			given = 0
			snap := h.Take([]uint32{group})
			sum := snap.Fingerprint(group)
			to := NewHeap(4, valueBytes)
			for {
				chunk, g, _, done := snap.Next(nil, 9000)
				if done {
					break
				}
				if err := to.Install(g, chunk); err != nil {
					t.Fatal(err)
				}
			}
			snap.Release()
			if to.Fingerprint(group) != sum {
				t.Errorf("values of %d bytes: group %d is not what was taken", valueBytes, group)
			}
			if least := 1000 * (8 + valueBytes); group == 0 && given < least || group == 1 && given > 0 {
				t.Errorf("values of %d bytes: %d bytes given of group %d, want %d of group 0 and none of group 1, which a snapshot shares", valueBytes, given, group, least)
			}
		}
		if shared.Fingerprint(1) != before {
			t.Errorf("values of %d bytes: the snapshot has changed", valueBytes)
		}
		shared.Release()
	}
}
