package state

import (
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

// Warm reads only, whatever the keys are: there, absent, or of groups that are empty.
func TestWarmChangesNothing(t *testing.T) {
	const groups = 64
	want := make([]bool, groups)
	for g := range want {
		want[g] = g%2 == 0
	}
	h := NewHeap(groups, 8)
	h.Fill(2_000_000, want)
	if h.made < warmBytes {
		t.Fatalf("a heap of %d bytes is left alone", h.made)
	}
	var before []uint64
	for g := range uint32(groups) {
		before = append(before, h.Fingerprint(g))
	}
	keys := make([]uint64, WarmKeys)
	for i := range keys {
		keys[i] = uint64(i) * 12_345 // the last ones are absent
	}
	for n := range len(keys) + 1 {
		h.Warm(keys[:n])
	}
	for g := range uint32(groups) {
		if h.Fingerprint(g) != before[g] {
			t.Errorf("group %d has changed", g)
		}
	}
	h.Drop(core.KeyGroup(0, groups))
	h.Warm(keys)
}

func BenchmarkWordOfLargeHeap(b *testing.B) {
	const groups, n = 4096, 16_000_000
	want := make([]bool, groups)
	for g := range want {
		want[g] = true
	}
	h := NewHeap(groups, 8)
	h.Fill(n, want)
	for _, warm := range []bool{false, true} {
		b.Run(map[bool]string{false: "cold", true: "warm"}[warm], func(b *testing.B) {
			keys, seed := make([]uint64, WarmKeys), uint64(0)
			for b.Loop() { // one operation is WarmKeys words
				for i := range keys {
					seed++
					keys[i] = core.Mix64(seed) % n
				}
				if warm {
					h.Warm(keys)
				}
				for _, k := range keys {
					*h.Word(core.KeyGroup(k, groups), k)++
				}
			}
		})
	}
}
