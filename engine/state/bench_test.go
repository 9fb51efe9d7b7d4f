package state

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

const benchGroups = 1024

// fill puts n counters into a heap of benchGroups groups and returns their keys.
func fill(h *Heap, n int, owned uint32) []uint64 {
	keys := make([]uint64, 0, n)
	for key := uint64(0); len(keys) < n; key++ {
		if group := core.KeyGroup(key, benchGroups); group < owned {
			*h.Word(group, key) = key
			keys = append(keys, key)
		}
	}
	return keys
}

func everyGroup(n uint32) []uint32 {
	groups := make([]uint32, n)
	for i := range groups {
		groups[i] = uint32(i)
	}
	return groups
}

type access struct {
	key   uint32
	group uint32
}

func accesses(keys []uint64) []access {
	rng := rand.New(rand.NewPCG(1, 2))
	list := make([]access, 1<<16)
	for i := range list {
		key := keys[rng.IntN(len(keys))]
		list[i] = access{uint32(key), core.KeyGroup(key, benchGroups)}
	}
	return list
}

func BenchmarkWord(b *testing.B) {
	h := NewHeap(benchGroups, 8)
	list := accesses(fill(h, 50_000, 512))
	i := 0
	for b.Loop() {
		a := list[i&(1<<16-1)]
		*h.Word(a.group, uint64(a.key))++
		i++
	}
}

func BenchmarkWordTracked(b *testing.B) {
	h := NewHeap(benchGroups, 8)
	list := accesses(fill(h, 50_000, 512))
	snap := h.Cut(everyGroup(benchGroups))
	h.Keep(snap)
	snap.Release()
	i := 0
	for b.Loop() {
		a := list[i&(1<<16-1)]
		*h.Word(a.group, uint64(a.key))++
		i++
	}
}

func BenchmarkRef(b *testing.B) {
	for _, bm := range []struct {
		name  string
		bytes int
		keys  int
	}{{"64B", 64, 50_000}, {"16KiB", 16 << 10, 5_000}} {
		b.Run(bm.name, func(b *testing.B) {
			h := NewHeap(benchGroups, bm.bytes)
			list := accesses(fill(h, bm.keys, 512))
			i := 0
			for b.Loop() {
				a := list[i&(1<<16-1)]
				val, _ := h.Ref(a.group, uint64(a.key))
				val[0]++
				i++
			}
		})
	}
}

// BenchmarkCut measures the pause of a cut over 1 GB of state.
func BenchmarkCut(b *testing.B) {
	for _, bm := range []struct {
		name  string
		bytes int
		keys  int
	}{{"1GB_of_8B", 8, 1 << 26}, {"1GB_of_16KiB", 16 << 10, 1 << 16}} {
		b.Run(bm.name, func(b *testing.B) {
			h := NewHeap(benchGroups, bm.bytes)
			for key := range uint64(bm.keys) {
				h.Ref(core.KeyGroup(key, benchGroups), key)
			}
			runtime.GC()
			groups := everyGroup(benchGroups)
			for b.Loop() {
				snap := h.Cut(groups)
				b.StopTimer()
				snap.Release()
				b.StartTimer()
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	for _, bm := range []struct {
		name  string
		bytes int
		keys  int
	}{{"8B", 8, 4 << 20}, {"1KiB", 1024, 64 << 10}, {"16KiB", 16 << 10, 4 << 10}} {
		b.Run(bm.name, func(b *testing.B) {
			h := NewHeap(benchGroups, bm.bytes)
			fill(h, bm.keys, benchGroups)
			snap := h.Cut(everyGroup(benchGroups))
			b.SetBytes(snap.Bytes())
			var buf []byte
			for b.Loop() {
				snap.Rewind()
				for done := false; !done; {
					buf, _, _, done = snap.Next(buf, 256<<10)
				}
			}
		})
	}
}

func BenchmarkInstall(b *testing.B) {
	for _, bm := range []struct {
		name  string
		bytes int
		keys  int
	}{{"8B", 8, 4 << 20}, {"64B", 64, 1 << 20}, {"1KiB", 1024, 64 << 10}, {"16KiB", 16 << 10, 4 << 10}} {
		b.Run(bm.name, func(b *testing.B) {
			h := NewHeap(benchGroups, bm.bytes)
			fill(h, bm.keys, benchGroups)
			snap := h.Cut(everyGroup(benchGroups))
			b.SetBytes(snap.Bytes())
			type sent struct {
				group uint32
				chunk []byte
			}
			var chunks []sent
			for {
				chunk, group, _, done := snap.Next(nil, 256<<10)
				if done {
					break
				}
				chunks = append(chunks, sent{group, chunk})
			}
			for b.Loop() {
				to := NewHeap(benchGroups, bm.bytes)
				for _, c := range chunks {
					if err := to.Install(c.group, c.chunk); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkInstallLarge enters groups of 15,625 counters, a chunk each, into a heap that has no memory yet.
func BenchmarkInstallLarge(b *testing.B) {
	const groups, perGroup = 1024, 15_625
	want := make([]bool, groups)
	for g := range want {
		want[g] = true
	}
	h := NewHeap(groups, 8)
	h.Fill(groups*perGroup, want)
	snap := h.Take(everyGroup(groups))
	var chunks [][]byte
	for {
		chunk, _, _, done := snap.Next(nil, 256<<10)
		if done {
			break
		}
		chunks = append(chunks, chunk)
	}
	snap.Release()
	h = nil
	b.SetBytes(groups * perGroup * 16)
	for b.Loop() {
		b.StopTimer()
		debug.FreeOSMemory()
		b.StartTimer()
		to := NewHeap(groups, 8)
		for _, c := range chunks {
			group, _ := ChunkGroup(c)
			if err := to.Install(group, c); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*groups*perGroup), "ns/entry")
}
