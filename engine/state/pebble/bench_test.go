package pebble

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

const (
	benchGroups = 1024
	benchRun    = 4096
)

// fill gives a store n keys.
func fill(b *testing.B, s *Store, n uint64) {
	b.Helper()
	heap, _ := s.Memory()
	keys := make([]uint64, 0, benchRun)
	for k := uint64(0); k < n; k++ {
		if keys = append(keys, k); len(keys) == benchRun || k == n-1 {
			update(b, s, heap, keys)
			keys = keys[:0]
		}
	}
}

func update(b *testing.B, s *Store, heap *state.Heap, keys []uint64) {
	if err := s.Begin(keys); err != nil {
		b.Fatal(err)
	}
	count(heap, keys)
	if err := s.End(); err != nil {
		b.Fatal(err)
	}
}

func count(heap *state.Heap, keys []uint64) {
	for _, k := range keys {
		v, _ := heap.Ref(core.KeyGroup(k, benchGroups), k)
		v[0]++
	}
}

func benchStore(b *testing.B, memory int64) *Store {
	b.Helper()
	s, err := OpenDir(b.TempDir()+"/state", &state.PagedSpec{Groups: benchGroups, ValueBytes: 100, MemoryBytes: memory})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkUpdate counts records in runs of 4,096 over state of 108 MB, with keys drawn evenly or with a Zipf exponent of
// 1.1: on the heap, on disk with room for all in memory, and with room for a tenth.
func BenchmarkUpdate(b *testing.B) {
	const keys = 1 << 20
	for _, skew := range []string{"even", "zipf"} {
		rng := rand.New(rand.NewPCG(1, 2))
		zipf := rand.NewZipf(rng, 1.1, 1, keys-1)
		runs := make([][]uint64, 64)
		for i := range runs {
			for range benchRun {
				k := rng.Uint64N(keys)
				if skew == "zipf" {
					k = zipf.Uint64()
				}
				runs[i] = append(runs[i], k)
			}
		}
		b.Run(skew+"/heap", func(b *testing.B) {
			heap := state.NewHeap(benchGroups, 100)
			for k := range uint64(keys) {
				heap.Ref(core.KeyGroup(k, benchGroups), k)
			}
			n := 0
			for b.Loop() {
				count(heap, runs[n%len(runs)])
				n++
			}
			b.ReportMetric(float64(n*benchRun)/b.Elapsed().Seconds(), "updates/s")
		})
		for _, memory := range []int64{1 << 30, 12 << 20} {
			b.Run(fmt.Sprintf("%s/disk-%dMB", skew, memory>>20), func(b *testing.B) {
				s := benchStore(b, memory)
				fill(b, s, keys)
				heap, _ := s.Memory()
				n := 0
				for b.Loop() {
					update(b, s, heap, runs[n%len(runs)])
					n++
				}
				b.ReportMetric(float64(n*benchRun)/b.Elapsed().Seconds(), "updates/s")
			})
		}
	}
}

// BenchmarkCutAndIncrement cuts 108 MB of which 1 % changed, and reads the increment.
func BenchmarkCutAndIncrement(b *testing.B) {
	const keys = 1 << 20
	s := benchStore(b, 64<<20)
	fill(b, s, keys)
	whole := s.Cut(everyOf(benchGroups))
	mark := s.Keep(whole)
	whole.Release()
	heap, _ := s.Memory()
	changed := make([]uint64, 0, benchRun)
	for i := range uint64(keys / 100) {
		if changed = append(changed, core.Mix64(i)%keys); len(changed) == benchRun {
			update(b, s, heap, changed)
			changed = changed[:0]
		}
	}
	b.Run("cut", func(b *testing.B) {
		for b.Loop() {
			s.Cut(everyOf(benchGroups)).Release()
		}
	})
	for _, kind := range []string{"whole", "increment"} {
		b.Run(kind, func(b *testing.B) {
			bytes := 0
			for b.Loop() {
				snap := s.Cut(everyOf(benchGroups))
				if kind == "increment" {
					snap.Release()
					snap = s.CutSince(everyOf(benchGroups), mark)
				}
				var buf []byte
				for bytes = 0; ; bytes += len(buf) {
					var done bool
					if buf, _, _, done = snap.Next(buf, 4<<20); done {
						break
					}
				}
				snap.Release()
			}
			b.ReportMetric(float64(bytes)/1e6, "MB")
		})
	}
}

func everyOf(n uint32) []uint32 {
	groups := make([]uint32, n)
	for i := range groups {
		groups[i] = uint32(i)
	}
	return groups
}
