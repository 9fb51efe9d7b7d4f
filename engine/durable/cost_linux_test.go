package durable

import (
	"hash/crc32"
	"syscall"
	"testing"

	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/storage"
)

// cost tells what a part of a checkpoint takes of the processor, for each GB of state: b.Elapsed is of little use where others
// share it, and where a disk is waited for.
type cost struct{ user, system, faults int64 }

func used(b *testing.B) cost {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return cost{u.Utime.Nano(), u.Stime.Nano(), u.Minflt}
}

func (c *cost) add(from, to cost) {
	c.user, c.system, c.faults = c.user+to.user-from.user, c.system+to.system-from.system, c.faults+to.faults-from.faults
}

func (c *cost) report(b *testing.B, bytes int64) {
	gb := float64(bytes) * float64(b.N) / 1e9
	b.ReportMetric(float64(c.user)/1e6/gb, "user-ms/GB")
	b.ReportMetric(float64(c.system)/1e6/gb, "sys-ms/GB")
	b.ReportMetric(float64(c.faults)/gb, "faults/GB")
}

// BenchmarkCheckpointCost takes a checkpoint of 512 MiB of counters apart: writes that touch all of it behind the cut, reading
// and encoding it, the checksum alone, and everything up to the file.
func BenchmarkCheckpointCost(b *testing.B) {
	const bytes = 512 << 20
	h := filled(bytes, 8)
	groups := everyGroup()
	heads := make([][]uint64, benchGroups) // keys of all tables
	for g := range groups {
		i := 0
		h.Range(uint32(g), func(key uint64, _ []byte) bool {
			if i++; i%500 == 0 {
				heads[g] = append(heads[g], key)
			}
			return true
		})
	}
	touch := func() {
		for g, keys := range heads {
			for _, key := range keys {
				*h.Word(uint32(g), key)++
			}
		}
	}
	measured := func(b *testing.B, prepare func() state.Snapshot, part func(state.Snapshot)) {
		var c cost
		for b.Loop() {
			snap := prepare()
			from := used(b)
			part(snap)
			c.add(from, used(b))
			snap.Release()
		}
		c.report(b, bytes)
	}
	cut := func() state.Snapshot { return h.Cut(groups) }
	first := h.Cut(groups) // whose copies are the memory of the others
	touch()
	first.Release()
	b.Run("copy", func(b *testing.B) { measured(b, cut, func(state.Snapshot) { touch() }) })
	var chunk []byte
	b.Run("read", func(b *testing.B) {
		measured(b, cut, func(snap state.Snapshot) {
			for done := false; !done; {
				chunk, _, _, done = snap.Next(chunk, chunkBytes)
			}
		})
	})
	b.Run("checksum", func(b *testing.B) {
		piece, table := make([]byte, 512<<10), crc32.MakeTable(crc32.Castagnoli)
		measured(b, cut, func(state.Snapshot) {
			for range bytes / len(piece) {
				crc32.Checksum(piece, table)
			}
		})
	})
	b.Run("whole", func(b *testing.B) {
		s, err := storage.New(storage.OS{}, b.TempDir(), "cost", storage.Options{})
		if err != nil {
			b.Fatal(err)
		}
		number := uint64(0)
		measured(b, cut, func(snap state.Snapshot) {
			touch()
			number++
			written(b, s, number, snap, 0, nil)
			if err := Retain(s, 1); err != nil {
				b.Fatal(err)
			}
		})
	})
}
