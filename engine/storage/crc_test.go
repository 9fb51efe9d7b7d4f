package storage

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

func TestJoinCRC(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 70_000)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	for range 200 {
		from, to := rng.IntN(len(data)), rng.IntN(len(data)+1)
		from, to = min(from, to), max(from, to)
		first, second := crc32.Checksum(data[:from], castagnoli()), crc32.Checksum(data[from:to], castagnoli())
		if got, want := joinCRC(first, second, to-from), crc32.Checksum(data[:to], castagnoli()); got != want {
			t.Fatalf("%d bytes and %d more: %08x, want %08x", from, to-from, got, want)
		}
	}
}

func BenchmarkJoinCRC(b *testing.B) {
	crc := uint32(1)
	for b.Loop() {
		crc = joinCRC(crc, 2, 1<<20)
	}
}
