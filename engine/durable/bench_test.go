package durable

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

const benchGroups = 1024

func benchStore(b *testing.B) *storage.Store {
	b.Helper()
	s, err := storage.New(storage.OS{}, b.TempDir(), "bench", storage.Options{NoSync: true, Readers: 2})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func filled(bytes int, valueBytes int) *state.Heap {
	h, want := state.NewHeap(benchGroups, valueBytes), make([]bool, benchGroups)
	for g := range want {
		want[g] = true
	}
	h.Fill(uint64(bytes/(8+valueBytes)), want)
	return h
}

func everyGroup() []uint32 {
	groups := make([]uint32, benchGroups)
	for i := range groups {
		groups[i] = uint32(i)
	}
	return groups
}

// written makes a complete checkpoint of one task.
func written(b *testing.B, s *storage.Store, number uint64, snap state.Snapshot, since uint64, sinceFile []byte) (file []byte, bytes int64) {
	b.Helper()
	file, bytes, err := WriteSnapshot(s, &task.SnapshotRequest{Checkpoint: number, Meta: func() []byte { return []byte("{}") }, State: snap, Since: since, SinceFile: sinceFile})
	if err != nil {
		b.Fatal(err)
	}
	if err := Complete(s, &coord.Complete{Checkpoint: number, Files: [][]byte{file}}); err != nil {
		b.Fatal(err)
	}
	return file, bytes
}

// BenchmarkRestore reads 512 MiB of state from the page cache: chosen (which verifies it) and installed.
func BenchmarkRestore(b *testing.B) {
	const bytes = 512 << 20
	for _, valueBytes := range []int{8, 64, 1024} {
		b.Run(fmt.Sprintf("%dB", valueBytes), func(b *testing.B) {
			s, h := benchStore(b), filled(bytes, valueBytes)
			_, size := written(b, s, 1, h.Cut(everyGroup()), 0, nil)
			h = nil
			want := make([]bool, benchGroups)
			for g := range want {
				want[g] = true
			}
			if _, _, _, err := Choose(s); err != nil { // what is written goes past the page cache
				b.Fatal(err)
			}
			b.SetBytes(size)
			var choose time.Duration
			for b.Loop() {
				start := time.Now()
				number, _, _, err := Choose(s)
				if err != nil {
					b.Fatal(err)
				}
				choose += time.Since(start)
				into := state.NewHeap(benchGroups, valueBytes)
				if err := LoadState(s, &task.LoadRequest{Checkpoint: number, From: []int{0}, Want: want, Into: into}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size)*float64(b.N)/1e6/choose.Seconds(), "verify-MB/s")
			b.ReportMetric(float64(size)*float64(b.N)/1e6/(b.Elapsed()-choose).Seconds(), "load-MB/s")
		})
	}
}

// BenchmarkIncrement writes checkpoints of 1 GB of counters of which 1 % of the keys, at random, or of key groups, changed.
func BenchmarkIncrement(b *testing.B) {
	for _, spread := range []string{"random", "clustered"} {
		b.Run(spread, func(b *testing.B) {
			s, h := benchStore(b), filled(1<<30, 8)
			keys := uint64(1<<30) / 16
			full := h.Cut(everyGroup())
			start := time.Now()
			file, fullBytes := written(b, s, 1, full, 0, nil)
			fullTime := time.Since(start)
			mark := h.Keep(full)
			full.Release()
			for i := range keys / 100 {
				key := core.Mix64(i) % keys
				if spread == "clustered" {
					key = i
				}
				if g := core.KeyGroup(key, benchGroups); spread == "random" || g < benchGroups/50 {
					*h.Word(g, key)++
				}
			}
			number, deltaBytes := uint64(2), int64(0)
			for b.Loop() {
				delta := h.CutSince(everyGroup(), mark)
				_, deltaBytes = written(b, s, number, delta, 1, file)
				delta.Release()
				number++
			}
			b.ReportMetric(float64(fullBytes)/1e6, "full-MB")
			b.ReportMetric(fullTime.Seconds()*1e3, "full-ms")
			b.ReportMetric(float64(deltaBytes)/1e6, "delta-MB")
		})
	}
}

// BenchmarkRetain removes one checkpoint of 256 MB, with two that stay.
func BenchmarkRetain(b *testing.B) {
	s, h := benchStore(b), filled(256<<20, 1024)
	number := uint64(0)
	write := func() {
		number++
		snap := h.Cut(everyGroup())
		written(b, s, number, snap, 0, nil)
		snap.Release()
	}
	write()
	write()
	for b.Loop() {
		b.StopTimer()
		write()
		b.StartTimer()
		if err := Retain(s, 2); err != nil {
			b.Fatal(err)
		}
	}
}
