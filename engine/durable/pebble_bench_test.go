package durable

import (
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/state/pebble"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// The state of the benchmarks below: 208 MB.
const (
	diskKeys       = 1_000_000
	diskValueBytes = 200
)

// onDisk opens state on disk, and fills it if it is to be full.
func onDisk(b *testing.B, full bool) *pebble.Store {
	b.Helper()
	s, err := pebble.OpenDir(filepath.Join(b.TempDir(), "state"), &state.PagedSpec{Groups: benchGroups, ValueBytes: diskValueBytes})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	if !full {
		return s
	}
	h := filled(diskKeys*(8+diskValueBytes), diskValueBytes)
	snap := h.Cut(everyGroup())
	for {
		chunk, g, _, done := snap.Next(nil, chunkBytes)
		if done {
			return s
		}
		if err := s.Install(g, chunk); err != nil {
			b.Fatal(err)
		}
	}
}

// touch counts up random keys of state on disk.
func touch(b *testing.B, s *pebble.Store, rng *rand.Rand, n int) {
	b.Helper()
	keys := make([]uint64, 100)
	for range n / len(keys) {
		for i := range keys {
			keys[i] = rng.Uint64N(diskKeys)
		}
		if err := s.Begin(keys); err != nil {
			b.Fatal(err)
		}
		heap, _ := s.Memory()
		for _, k := range keys {
			v, _ := heap.Ref(core.KeyGroup(k, benchGroups), k)
			binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
		}
		if err := s.End(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOnDisk makes checkpoints of state on disk, of which 1 % of the keys is changed before each, and restores the last
// one: whole ones as chunks, ones of what changed as chunks that continue a whole one, and ones by tables. The synchronous
// part is that on the event loop, the asynchronous one until it is complete and the older ones are removed.
func BenchmarkOnDisk(b *testing.B) {
	for _, kind := range []string{"whole", "delta", "tables"} {
		b.Run(kind, func(b *testing.B) {
			s, store, rng := onDisk(b, true), benchStore(b), rand.New(rand.NewPCG(1, 1))
			var since uint64
			var mark state.Mark
			var file []byte
			var cut, longest, write time.Duration
			var bytes int64
			once := func(number uint64) {
				start := time.Now()
				var snap state.Snapshot
				switch {
				case kind == "tables":
					snap = s.CutTables(everyGroup())
				case kind == "delta" && since > 0:
					snap = s.CutSince(everyGroup(), mark)
				default:
					snap = s.Cut(everyGroup())
				}
				took := time.Since(start)
				from := since
				if kind == "delta" {
					old := mark
					if mark = s.Keep(snap); since > 0 {
						s.Forget(old)
					}
					since = number
				}
				start = time.Now()
				var n int64
				file, n = written(b, store, number, snap, from, file)
				if err := Retain(store, 2); err != nil {
					b.Fatal(err)
				}
				snap.Release()
				if number > 1 {
					cut, longest, write, bytes = cut+took, max(longest, took), write+time.Since(start), bytes+n
				}
			}
			once(1)
			number := uint64(1)
			for b.Loop() {
				b.StopTimer()
				touch(b, s, rng, diskKeys/100)
				b.StartTimer()
				number++
				once(number)
			}
			n := time.Duration(b.N)
			b.ReportMetric(float64(bytes)/float64(n)/1e6, "MB/op")
			b.ReportMetric(float64((cut/n).Microseconds())/1e3, "sync-ms/op")
			b.ReportMetric(float64(longest.Microseconds())/1e3, "sync-max-ms")
			b.ReportMetric(float64((write/n).Microseconds())/1e3, "async-ms/op")
			choose, load := restored(b, store)
			b.ReportMetric(float64(choose.Milliseconds()), "verify-ms")
			b.ReportMetric(float64(load.Milliseconds()), "load-ms")
		})
	}
}

// restored chooses and loads the newest checkpoint into state on disk.
func restored(b *testing.B, store *storage.Store) (choose, load time.Duration) {
	b.Helper()
	into, want := onDisk(b, false), make([]bool, benchGroups)
	for g := range want {
		want[g] = true
	}
	start := time.Now()
	number, _, _, err := Choose(store)
	if err != nil {
		b.Fatal(err)
	}
	choose = time.Since(start)
	start = time.Now()
	if err := LoadState(store, &task.LoadRequest{Checkpoint: number, From: []int{0}, Want: want, Into: into}); err != nil {
		b.Fatal(err)
	}
	return choose, time.Since(start)
}
