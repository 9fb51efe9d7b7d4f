package state

import (
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

func TestFill(t *testing.T) {
	for _, valueBytes := range []int{8, 24, 2000} {
		const groups, n = 64, 20_000
		want := make([]bool, groups)
		for g := range want {
			want[g] = g%3 != 1
		}
		h := NewHeap(groups, valueBytes)
		h.Fill(n, want)
		by, expect := make([]int, groups), NewHeap(groups, valueBytes)
		for key := range uint64(n) {
			g := core.KeyGroup(key, groups)
			v, there := h.Get(g, key)
			if there != want[g] {
				t.Fatalf("values of %d bytes: key %d of group %d: there %v, want %v", valueBytes, key, g, there, want[g])
			}
			for _, b := range v {
				if b != 0 {
					t.Fatalf("values of %d bytes: key %d is not zero", valueBytes, key)
				}
			}
			if want[g] {
				by[g]++
				expect.Ref(g, key)
			}
		}
		for g := range uint32(groups) {
			if h.Len(g) != by[g] || h.Bytes(g) != expect.Bytes(g) || h.Fingerprint(g) != expect.Fingerprint(g) {
				t.Errorf("values of %d bytes: group %d has %d keys, %d bytes; want %d, %d", valueBytes, g, h.Len(g), h.Bytes(g), by[g], expect.Bytes(g))
			}
		}
	}
}

func BenchmarkFill(b *testing.B) {
	const groups, n = 1024, 16_000_000
	want := make([]bool, groups)
	for g := range groups / 2 {
		want[g] = true
	}
	for b.Loop() {
		NewHeap(groups, 8).Fill(n, want)
	}
	b.ReportMetric(float64(n)/2*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mkeys/s")
}
