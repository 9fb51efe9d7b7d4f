package pebble

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

var seedFlag = flag.Uint64("seed", 0, "run this seed only")

const testGroups = 6

// memory is a store in memory.
type memory interface {
	state.Keyed
	Fingerprint(group uint32) uint64
	Len(group uint32) int
}

// pair is the same content in memory and on disk.
type pair struct {
	blob bool
	mem  memory
	disk *Store
}

func newPair(t *testing.T, rng *rand.Rand, blob bool, valueBytes int) *pair {
	t.Helper()
	spec := state.PagedSpec{Operator: "test", Groups: testGroups, ValueBytes: valueBytes, Blob: blob, Head: ^uint64(0), HasHead: blob,
		MemoryBytes: int64(rng.IntN(2))}
	s, err := Open(vfs.NewMem(), "state", &spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.maxCache = []int64{0, 500, 1 << 20}[rng.IntN(3)]
	p := &pair{blob: blob, disk: s}
	if blob {
		p.mem = state.NewBlob(testGroups)
	} else {
		p.mem = state.NewHeap(testGroups, valueBytes)
	}
	return p
}

func every() []uint32 { return []uint32{0, 1, 2, 3, 4, 5} }

// same compares contents.
func (p *pair) same(t *testing.T, what string) {
	t.Helper()
	for _, g := range every() {
		got, err := p.disk.Fingerprint(g)
		if err != nil {
			t.Fatal(err)
		}
		if got != p.mem.Fingerprint(g) || p.disk.Len(g) != p.mem.Len(g) || p.disk.Bytes(g) != p.mem.Bytes(g) {
			t.Fatalf("%s: group %d has fingerprint %x, %d keys, %d bytes on disk; %x, %d, %d in memory", what, g,
				got, p.disk.Len(g), p.disk.Bytes(g), p.mem.Fingerprint(g), p.mem.Len(g), p.mem.Bytes(g))
		}
	}
}

// step does the same at random to both.
func (p *pair) step(t *testing.T, rng *rand.Rand) {
	t.Helper()
	if rng.IntN(120) == 0 {
		g := uint32(rng.IntN(testGroups))
		p.mem.Drop(g)
		p.disk.Drop(g)
		return
	}
	keys := make([]uint64, 1+rng.IntN(40))
	for i := range keys {
		keys[i] = rng.Uint64N(200)
	}
	must(t, p.disk.Begin(keys))
	heap, blob := p.disk.Memory()
	for _, k := range keys {
		g := core.KeyGroup(k, testGroups)
		if !p.blob {
			n := rng.Uint64()
			for _, h := range []*state.Heap{heap, p.mem.(*state.Heap)} {
				v, _ := h.Ref(g, k)
				binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+n)
				v[len(v)-1]++
			}
			continue
		}
		p.change(t, rng, blob, g, k)
	}
	if p.blob && rng.IntN(3) == 0 {
		p.fire(t, rng, blob)
	}
	must(t, p.disk.End())
}

// change does the same to a key of two blob stores.
func (p *pair) change(t *testing.T, rng *rand.Rand, disk *state.Blob, g uint32, k uint64) {
	t.Helper()
	mem := p.mem.(*state.Blob)
	a, okA := disk.Get(g, k)
	b, okB := mem.Get(g, k)
	if okA != okB || string(a) != string(b) {
		t.Fatalf("key %d of group %d is %q %v on disk, %q %v in memory", k, g, a, okA, b, okB)
	}
	switch rng.IntN(4) {
	case 0:
		disk.Delete(g, k)
		mem.Delete(g, k)
	case 1: // only looked at
	default:
		v := make([]byte, rng.IntN(60))
		for i := range v {
			v[i] = byte(rng.Uint32())
		}
		disk.Put(g, k, append([]byte(nil), v...))
		mem.Put(g, k, v)
	}
}

// fire walks over whole groups, as a watermark does.
func (p *pair) fire(t *testing.T, rng *rand.Rand, disk *state.Blob) {
	t.Helper()
	mem := p.mem.(*state.Blob)
	g := uint32(rng.IntN(testGroups))
	p.disk.Head(g)
	must(t, p.disk.Group(g))
	if disk.Len(g) != mem.Len(g) {
		t.Fatalf("group %d was brought with %d keys, it has %d", g, disk.Len(g), mem.Len(g))
	}
	var keys []uint64
	mem.Range(g, func(k uint64, _ []byte) bool { keys = append(keys, k); return true })
	for _, k := range append(keys, ^uint64(0), 1000+rng.Uint64N(5)) {
		p.change(t, rng, disk, g, k)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// send installs all of a snapshot.
func send(t *testing.T, snap state.Snapshot, maxBytes int, to state.Keyed) {
	t.Helper()
	for {
		chunk, group, _, done := snap.Next(nil, maxBytes)
		if done {
			break
		}
		must(t, to.Install(group, chunk))
	}
	if f, ok := snap.(interface{ Err() error }); ok {
		must(t, f.Err())
	}
}

// TestSameAsMemory does the same at random to state in memory and on disk, carries both to and fro by whole and by
// incremental snapshots, and wants the same content everywhere.
func TestSameAsMemory(t *testing.T) {
	first, n := *seedFlag, uint64(1)
	if first == 0 {
		first, n = 1, 40
	}
	for seed := first; seed < first+n; seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) { sameAsMemory(t, seed) })
		if !ok {
			t.Fatalf("repeat: go test ./engine/state/pebble -run TestSameAsMemory -seed=%d", seed)
		}
	}
}

func sameAsMemory(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	blob, valueBytes := seed%2 == 0, []int{8, 13, 100, 1500}[rng.IntN(4)]
	p := newPair(t, rng, blob, valueBytes)
	copyOf := newPair(t, rng, blob, valueBytes) // its memory side follows the disk, its disk side the memory
	type marks struct{ disk, mem state.Mark }
	var kept []marks // the last one is what copyOf has
	chunkBytes := 40 + rng.IntN(3000)
	for round := range 12 {
		for range rng.IntN(30) {
			p.step(t, rng)
		}
		p.same(t, "after steps")
		var d, m state.Snapshot
		if round == 0 || rng.IntN(5) == 0 {
			d, m = p.disk.Cut(every()), p.mem.Cut(every())
		} else {
			// Since the last one, or since one before: what changed twice comes twice.
			since := kept[len(kept)-1-rng.IntN(len(kept))]
			d, m = p.disk.CutSince(every(), since.disk), p.mem.CutSince(every(), since.mem)
		}
		kept = append(kept, marks{p.disk.Keep(d), p.mem.Keep(m)})
		for range rng.IntN(10) { // the snapshot stays as it was
			p.step(t, rng)
		}
		for len(kept) > 3 || len(kept) > 1 && rng.IntN(2) == 0 {
			i := rng.IntN(len(kept) - 1)
			p.disk.Forget(kept[i].disk)
			p.mem.Forget(kept[i].mem)
			kept = append(kept[:i], kept[i+1:]...)
		}
		send(t, d, chunkBytes, copyOf.mem)
		send(t, m, chunkBytes, copyOf.disk)
		copyOf.same(t, "copies")
		for _, g := range every() {
			if whole := p.disk.Cut([]uint32{g}); rng.IntN(4) == 0 {
				d.Rewind()
				d.Prefer(g)
				whole.Release()
			} else {
				whole.Release()
			}
		}
		d.Release()
		m.Release()
		if rng.IntN(3) == 0 && p.disk.db.Flush() != nil {
			t.Fatal("flush")
		}
		if rng.IntN(4) == 0 {
			must(t, p.disk.db.Compact([]byte{0}, []byte{255}, false))
		}
	}
	// There and back: the last state goes from disk to disk and back.
	there, err := Open(vfs.NewMem(), "there", &state.PagedSpec{Groups: testGroups, ValueBytes: valueBytes, Blob: blob})
	must(t, err)
	whole := p.disk.Cut(every())
	send(t, whole, chunkBytes, there)
	whole.Release()
	for _, g := range every() {
		p.disk.Drop(g)
	}
	back := there.Cut(every())
	send(t, back, chunkBytes, p.disk)
	must(t, there.Close())
	p.same(t, "there and back")
}

// TestIncrementReadsLittle says that what changed since a mark is found without reading all.
func TestIncrementReadsLittle(t *testing.T) {
	s, err := Open(vfs.NewMem(), "state", &state.PagedSpec{Groups: testGroups, ValueBytes: 100})
	must(t, err)
	heap, _ := s.Memory()
	update := func(from, to uint64) {
		for k := from; k < to; k += 1000 {
			keys := make([]uint64, 0, 1000)
			for i := k; i < min(k+1000, to); i++ {
				keys = append(keys, i)
			}
			must(t, s.Begin(keys))
			for _, k := range keys {
				v, _ := heap.Ref(core.KeyGroup(k, testGroups), k)
				v[0]++
			}
			must(t, s.End())
		}
	}
	update(0, 50_000)
	must(t, s.db.Flush())
	whole := s.Cut(every())
	mark := s.Keep(whole)
	whole.Release()
	update(100, 200)
	must(t, s.db.Flush())
	delta := s.CutSince(every(), mark)
	if got := delta.Bytes(); got != 100*108 {
		t.Errorf("the increment has %d bytes, want %d", got, 100*108)
	}
	var before, after int64
	it := delta.(*snapshot).open(0)
	for ok := it.First(); ok; ok = it.Next() {
		after++
	}
	must(t, it.Close())
	all := s.Cut(every())
	it = all.(*snapshot).open(0)
	for ok := it.First(); ok; ok = it.Next() {
		before++
	}
	must(t, it.Close())
	if after*10 > before {
		t.Errorf("an increment of 100 of 50,000 keys looks at %d pairs of a group, all are %d", after, before)
	}
	s.Forget(mark)
	must(t, s.Close()) // with its snapshots
}

// TestBadChunk says that a damaged chunk changes nothing.
func TestBadChunk(t *testing.T) {
	p := newPair(t, rand.New(rand.NewPCG(1, 1)), false, 8)
	p.step(t, rand.New(rand.NewPCG(5, 1)))
	snap := p.disk.Cut([]uint32{1})
	chunk, _, _, _ := snap.Next(nil, 1<<20)
	snap.Release()
	for i := range chunk[:24] {
		bad := append([]byte(nil), chunk...)
		bad[i] ^= 0x40
		if err := p.disk.Install(1, bad); i != 2 && !errors.Is(err, state.ErrChunk) { // byte 2 is the flags
			t.Errorf("byte %d of the header: %v", i, err)
		}
	}
	p.same(t, "after bad chunks")
}

// TestErrorsStay says that a disk that fails is not taken for one that has nothing.
func TestErrorsStay(t *testing.T) {
	s, err := Open(vfs.NewMem(), "state", &state.PagedSpec{Groups: testGroups, ValueBytes: 8})
	must(t, err)
	want := errors.New("the disk is gone")
	_ = s.fail(want)
	for name, err := range map[string]error{"begin": s.Begin([]uint64{1}), "end": s.End(), "close": s.Close()} {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
