package state

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestBuild wants a heap of chunks that were built first to be the one of chunks installed at once, also when the entries
// are not in the order in which a heap gives them or some are there twice, and after further operations.
func TestBuild(t *testing.T) {
	first, n := *seedFlag, uint64(1)
	if first == 0 {
		first, n = 1, 60
	}
	for seed := first; seed < first+n; seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { buildAsInstalled(t, rand.New(rand.NewPCG(seed, 21))) }) {
			t.Fatalf("repeat: go test ./engine/state -run TestBuild -seed=%d", seed)
		}
	}
}

func buildAsInstalled(t *testing.T, rng *rand.Rand) {
	valueBytes := []int{8, 12, 64, 1024, 4096}[rng.IntN(5)]
	keys := uint64([]int{1, 10, 3000, 40000}[rng.IntN(4)])
	if valueBytes > 64 {
		keys = min(keys, 3000)
	}
	from, built, installed := NewHeap(2, valueBytes), NewHeap(2, valueBytes), NewHeap(2, valueBytes)
	change := func(heaps ...*Heap) {
		for range rng.IntN(int(2 * keys)) {
			g, key, fill := uint32(rng.IntN(2)), rng.Uint64N(keys), rng.Uint64()
			remove := rng.IntN(4) == 0
			for _, h := range heaps {
				if remove {
					h.Delete(g, key)
					continue
				}
				val, _ := h.Ref(g, key)
				binary.LittleEndian.PutUint64(val, fill)
			}
		}
	}
	change(from)
	change(built, installed) // what is there before
	snap := from.Cut([]uint32{0, 1})
	spoil, whole := rng.IntN(3) == 0, 0
	for {
		chunk, group, _, done := snap.Next(nil, 64<<rng.IntN(16))
		if done {
			break
		}
		if spoil {
			shuffleEntries(rng, chunk, 8+(valueBytes+7)&^7)
		}
		b, err := built.Build(group, chunk)
		if err != nil {
			t.Fatal(err)
		}
		if b.whole {
			whole++
		}
		built.InstallBuilt(&b)
		if err := installed.Install(group, chunk); err != nil {
			t.Fatal(err)
		}
	}
	snap.Release()
	if whole == 0 && keys == 40000 {
		t.Log("no chunk was built")
	}
	sameHeaps(t, built, installed)
	change(built, installed)
	sameHeaps(t, built, installed)
}

// shuffleEntries swaps entries of a chunk, and gives some the key of another.
func shuffleEntries(rng *rand.Rand, chunk []byte, size int) {
	entries := chunk[chunkHeaderBytes:]
	n := len(entries) / size
	for range min(n, 1+rng.IntN(4)) {
		a, b := rng.IntN(n)*size, rng.IntN(n)*size
		old := append([]byte(nil), entries[a:a+size]...)
		copy(entries[a:], entries[b:b+size])
		if rng.IntN(2) == 0 {
			copy(entries[b:], old)
		}
	}
}

func sameHeaps(t *testing.T, a, b *Heap) {
	t.Helper()
	for g := range uint32(2) {
		if a.Fingerprint(g) != b.Fingerprint(g) || a.Len(g) != b.Len(g) || a.Bytes(g) != b.Bytes(g) {
			t.Fatalf("group %d: built %d keys, %d bytes, %x; installed %d keys, %d bytes, %x", g, a.Len(g), a.Bytes(g), a.Fingerprint(g),
				b.Len(g), b.Bytes(g), b.Fingerprint(g))
		}
		b.Range(g, func(key uint64, val []byte) bool {
			if got, ok := a.Get(g, key); !ok || string(got) != string(val) {
				t.Fatalf("group %d key %d: built %x (%v), installed %x", g, key, got, ok, val)
			}
			return true
		})
	}
}
