package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

// encode returns the chunks of a snapshot one after the other.
func encode(snap Snapshot, maxBytes int) []byte {
	var all, buf []byte
	for done := false; !done; {
		buf, _, _, done = snap.Next(buf, maxBytes)
		all = append(all, buf...)
	}
	return all
}

func copyGroups(t *testing.T, from, to keyed, maxBytes int) []byte {
	t.Helper()
	snap := from.Cut(allGroups)
	defer snap.Release()
	for {
		chunk, group, _, done := snap.Next(nil, maxBytes)
		if done {
			snap.Rewind()
			return encode(snap, maxBytes)
		}
		if err := to.Install(group, chunk); err != nil {
			t.Fatal(err)
		}
	}
}

// Moving state there and back is the identity, down to the bytes, and so is
// making the same operations again.
func TestMoveThereAndBackIsIdentity(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			forSeeds(t, 1, func(t *testing.T, rng *rand.Rand) {
				seed := rng.Uint64()
				build := func() keyed {
					rng := rand.New(rand.NewPCG(seed, 1))
					k, m := w.make(), newModel()
					m.mutate(w, k, rng, 8*w.keys)
					return k
				}
				a, again, b := build(), build(), w.make()
				const chunkBytes = 50_000
				first := copyGroups(t, a, b, chunkBytes)
				if same := copyGroups(t, again, w.make(), chunkBytes); !bytes.Equal(first, same) {
					t.Fatal("the same operations gave other bytes")
				}
				second := copyGroups(t, b, a, chunkBytes)
				third := copyGroups(t, a, w.make(), chunkBytes)
				if !bytes.Equal(first, second) || !bytes.Equal(first, third) {
					t.Fatal("a move changed the bytes of the state")
				}
			})
		})
	}
}

// One goroutine reads a snapshot while the owner writes every part of the store.
// The race detector watches.
func TestReaderBesideOwner(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			forSeeds(t, 0, func(t *testing.T, rng *rand.Rand) {
				k, m := w.make(), newModel()
				m.mutate(w, k, rng, 4*w.keys)
				first := k.Cut(allGroups)
				mark := k.Keep(first)
				first.Release()
				for range 4 {
					m.mutate(w, k, rng, w.keys/2)
					whole, changed := k.Cut(allGroups), k.CutSince(allGroups, mark)
					want := [testGroups]uint64{}
					for g := range want {
						want[g] = k.Fingerprint(uint32(g))
					}
					type result struct {
						sums         [testGroups]uint64
						whole, delta []byte
					}
					got := make(chan result)
					go func() {
						var r result
						for g := range r.sums {
							r.sums[g] = whole.Fingerprint(uint32(g))
						}
						r.whole, r.delta = encode(whole, 8<<10), encode(changed, 8<<10)
						got <- r
					}()
					m.mutate(w, k, rng, w.keys)
					r := <-got
					if r.sums != want {
						t.Fatal("the reader saw writes made after the cut")
					}
					whole.Rewind()
					changed.Rewind()
					if !bytes.Equal(r.whole, encode(whole, 8<<10)) || !bytes.Equal(r.delta, encode(changed, 8<<10)) {
						t.Fatal("a snapshot changed")
					}
					whole.Release()
					changed.Release()
				}
				m.check(t, k, "owner")
			})
		})
	}
}

func TestWritesCopyOnlyWhatASnapshotShares(t *testing.T) {
	h := NewHeap(2, 10<<20)
	address := func(group uint32, key uint64) *byte {
		val, _ := h.Ref(group, key)
		return &val[0]
	}
	for key := range uint64(3) {
		address(0, key)
		address(1, key)
	}
	snap := h.Cut([]uint32{0})
	shared, _ := h.Get(0, 1)
	if address(0, 1) == &shared[0] {
		t.Fatal("a shared value was handed out for writing")
	}
	kept, _ := h.Get(0, 2)
	if before := address(1, 1); before != address(1, 1) {
		t.Fatal("a value that no snapshot covers moved")
	}
	if now, _ := h.Get(0, 2); &now[0] != &kept[0] {
		t.Fatal("writing one value copied another")
	}
	snap.Release()
	if address(0, 2) != &kept[0] {
		t.Fatal("a write after the release copied")
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	h, wide := NewHeap(8, 8), NewHeap(8, 4096)
	for key := range uint64(1000) {
		*h.Word(uint32(key%8), key) = key
		wide.Ref(uint32(key%8), key)
	}
	key := uint64(0)
	allocs := testing.AllocsPerRun(2000, func() {
		key = (key + 1) % 1000
		*h.Word(uint32(key%8), key)++
		wide.Ref(uint32(key%8), key)
		h.Get(uint32(key%8), key)
	})
	if allocs != 0 {
		t.Fatalf("%v allocations an access", allocs)
	}
}

func TestSlabsAreReused(t *testing.T) {
	h := NewHeap(1, 8)
	load := func() {
		for key := range uint64(10_000) {
			*h.Word(0, key) = key
		}
	}
	load()
	snap := h.Cut([]uint32{0})
	before := h.freeBytes
	h.Drop(0)
	if h.freeBytes != before {
		t.Fatal("slabs that a snapshot reads were freed")
	}
	snap.Release()
	free := h.freeBytes
	if free < 10_000*16/2 {
		t.Fatalf("%d bytes free after drop and release", free)
	}
	load()
	if h.freeBytes >= free {
		t.Fatal("free slabs were not used")
	}
}

func TestMemoryPerKey(t *testing.T) {
	var before, after runtime.MemStats
	for _, keys := range []int{1 << 20, 1<<20 + 1<<18, 1<<20 + 1<<19} {
		runtime.GC()
		runtime.ReadMemStats(&before)
		h := NewHeap(64, 8)
		for key := range uint64(keys) {
			*h.Word(core.KeyGroup(key, 64), key) = key
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		perKey := float64(after.HeapAlloc-before.HeapAlloc-uint64(h.freeBytes)) / float64(keys)
		t.Logf("%d keys: %.1f bytes a key", keys, perKey)
		if perKey > 32 {
			t.Errorf("%d keys take %.1f bytes each, want at most 32", keys, perKey)
		}
		runtime.KeepAlive(h)
	}
}

func TestOneGroupGrowsDeep(t *testing.T) {
	h := NewHeap(1, 8)
	const keys = 300_000
	for key := range uint64(keys) {
		*h.Word(0, key<<32) = key
	}
	for key := range uint64(keys) {
		if got := *h.Word(0, key<<32); got != key {
			t.Fatalf("key %d = %d", key, got)
		}
	}
	for key := uint64(0); key < keys; key += 2 {
		if !h.Delete(0, key<<32) || h.Delete(0, key<<32) {
			t.Fatalf("delete of key %d", key)
		}
	}
	if h.Len(0) != keys/2 || h.Bytes(0) != keys/2*16 {
		t.Fatalf("len %d bytes %d", h.Len(0), h.Bytes(0))
	}
}

func TestPreferMovesAGroupAhead(t *testing.T) {
	h := NewHeap(8, 8)
	for key := range uint64(800) {
		*h.Word(uint32(key%8), key) = key
	}
	snap := h.Cut([]uint32{0, 1, 2, 3, 4, 5, 6, 7})
	var order []uint32
	next := func() {
		_, group, last, _ := snap.Next(nil, 1000)
		if last {
			order = append(order, group)
		}
	}
	snap.Prefer(3) // before anything is begun
	next()         // a part of 3
	if snap.Prefer(3) || !snap.Prefer(6) || !snap.Prefer(7) {
		t.Fatal("prefer: 3 is under way, 6 and 7 are not begun")
	}
	for len(order) < 8 {
		next()
	}
	if want := []uint32{3, 7, 6, 0, 1, 2, 4, 5}; !slices.Equal(order, want) {
		t.Fatalf("order %v, want %v", order, want)
	}
}

// A group whose keys are mostly deleted is sent whole rather than as a longer log.
func TestDeletionLogIsBounded(t *testing.T) {
	h, copied := NewHeap(1, 8), NewHeap(1, 8)
	for key := range uint64(5000) {
		*h.Word(0, key) = key
	}
	first := h.Cut([]uint32{0})
	mark := h.Keep(first)
	first.Release()
	for round := range uint64(5) {
		for key := range uint64(5000) {
			h.Delete(0, key+5000*round)
			*h.Word(0, key+5000*(round+1)) = key
		}
	}
	if n := len(h.groups[0].deleted); n > 5000+1025 {
		t.Fatalf("%d deletions logged for a group of 5000 keys", n)
	}
	*copied.Word(0, 99999) = 1
	changed := h.CutSince([]uint32{0}, mark)
	chunk, _, last, _ := changed.Next(nil, 1<<20)
	if err := copied.Install(0, chunk); err != nil || !last {
		t.Fatal(err, last)
	}
	if h.Fingerprint(0) != copied.Fingerprint(0) {
		t.Fatal("the increment does not give the state")
	}
	h.Forget(mark)
}

func TestIncrementHoldsOnlyWhatChanged(t *testing.T) {
	h := NewHeap(1, 8)
	for key := range uint64(100_000) {
		*h.Word(0, key) = key
	}
	first := h.Cut([]uint32{0})
	mark := h.Keep(first)
	first.Release()
	for key := range uint64(10) {
		*h.Word(0, key*1000)++
	}
	h.Delete(0, 77)
	changed := h.CutSince([]uint32{0}, mark)
	// Ten blocks of 128 bytes, the block of the hole, one key deleted.
	if size := changed.Bytes(); size > 11*128+8 {
		t.Fatalf("increment of %d bytes for ten keys", size)
	}
}

func TestInstallRefusesDamage(t *testing.T) {
	make8 := func() keyed { return NewHeap(testGroups, 8) }
	h := make8().(*Heap)
	for key := range uint64(10) {
		*h.Word(2, key) = key
	}
	blob := NewBlob(testGroups)
	blob.Put(2, 7, []byte("seven"))
	good, _, _, _ := h.Cut([]uint32{2}).Next(nil, 1<<20)
	goodBlob, _, _, _ := blob.Cut([]uint32{2}).Next(nil, 1<<20)
	odd := NewHeap(testGroups, 13)
	odd.Ref(2, 1)
	goodOdd, _, _, _ := odd.Cut([]uint32{2}).Next(nil, 1<<20)
	edit := func(chunk []byte, at int, b byte) []byte {
		c := slices.Clone(chunk)
		c[at] = b
		return c
	}
	for _, c := range []struct {
		name  string
		to    keyed
		group uint32
		chunk []byte
	}{
		{"empty", make8(), 2, nil},
		{"cut header", make8(), 2, good[:20]},
		{"cut entry", make8(), 2, good[:len(good)-1]},
		{"missing entry", make8(), 2, good[:len(good)-16]},
		{"more bytes", make8(), 2, append(slices.Clone(good), 0)},
		{"other group", make8(), 1, good},
		{"no such group", make8(), 9, good},
		{"other kind", NewBlob(testGroups), 2, good},
		{"other size", NewHeap(testGroups, 16), 2, good},
		{"version", make8(), 2, edit(good, 1, 2)},
		{"flags", make8(), 2, edit(good, 2, 3)},
		{"reserved", make8(), 2, edit(good, 20, 1)},
		{"deletions beyond the end", make8(), 2, edit(good, 15, 0xff)},
		{"blob cut", NewBlob(testGroups), 2, goodBlob[:len(goodBlob)-1]},
		{"blob length", NewBlob(testGroups), 2, edit(goodBlob, chunkHeaderBytes+8, 4)},
		{"blob count", NewBlob(testGroups), 2, edit(goodBlob, 16, 2)},
		{"padding", NewHeap(testGroups, 13), 2, edit(goodOdd, len(goodOdd)-1, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.to.Install(c.group, c.chunk)
			if !errors.Is(err, ErrChunk) {
				t.Fatalf("error %v, want ErrChunk", err)
			}
			if c.to.Len(2) != 0 {
				t.Fatal("a refused chunk changed the store")
			}
		})
	}
}

// FuzzInstall: no chunk panics; a chunk that is accepted gives a state that
// survives a move.
func FuzzInstall(f *testing.F) {
	h := NewHeap(testGroups, 8)
	for key := range uint64(20) {
		*h.Word(1, key) = key
	}
	first := h.Cut([]uint32{1})
	mark := h.Keep(first)
	h.Delete(1, 3)
	seed, _, _, _ := first.Next(nil, 1<<20)
	f.Add(uint8(0), seed)
	seed, _, _, _ = h.CutSince([]uint32{1}, mark).Next(nil, 1<<20)
	f.Add(uint8(0), seed)
	for i, size := range []int{13, 2000} {
		wide := NewHeap(testGroups, size)
		wide.Ref(1, 5)
		seed, _, _, _ = wide.Cut([]uint32{1}).Next(nil, 1<<20)
		f.Add(uint8(i+1), seed)
	}
	blob := NewBlob(testGroups)
	blob.Put(1, 9, []byte("nine"))
	seed, _, _, _ = blob.Cut([]uint32{1}).Next(nil, 1<<20)
	f.Add(uint8(3), seed)
	makers := []func() keyed{
		func() keyed { return NewHeap(testGroups, 8) },
		func() keyed { return NewHeap(testGroups, 13) },
		func() keyed { return NewHeap(testGroups, 2000) },
		func() keyed { return NewBlob(testGroups) },
	}
	f.Fuzz(func(t *testing.T, kind uint8, chunk []byte) {
		maker := makers[int(kind)%len(makers)]
		k, copied := maker(), maker()
		group := uint32(1)
		if len(chunk) >= 8 {
			group = binary.LittleEndian.Uint32(chunk[4:]) % testGroups
		}
		if err := k.Install(group, chunk); err != nil {
			if !errors.Is(err, ErrChunk) {
				t.Fatal(err)
			}
			return
		}
		copyGroups(t, k, copied, 100)
		if k.Fingerprint(group) != copied.Fingerprint(group) || k.Len(group) != copied.Len(group) {
			t.Fatal("a move changed the state")
		}
	})
}
