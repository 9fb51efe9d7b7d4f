package durable

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/state/pebble"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

var seedFlag = flag.Uint64("seed", 0, "run this seed only")

const testGroups = 5

func all() []uint32 { return []uint32{0, 1, 2, 3, 4} }

func prints(k interface{ Fingerprint(uint32) uint64 }) (p [testGroups]uint64) {
	for g := range p {
		p[g] = k.Fingerprint(uint32(g))
	}
	return p
}

// chained writes checkpoints of a blob store one after the other, as a task does: some continue the newest complete one,
// some are given up.
type chained struct {
	t     *testing.T
	rng   *rand.Rand
	fs    *storage.MemFS
	store *storage.Store
	blob  *state.Blob
	base  uint64 // newest complete
	file  []byte
	mark  state.Mark
	depth int
	want  map[uint64][testGroups]uint64 // by complete checkpoint
}

func (c *chained) change() {
	for range c.rng.IntN(60) {
		k := c.rng.Uint64N(150)
		g := core.KeyGroup(k, testGroups)
		switch c.rng.IntN(3) {
		case 0:
			c.blob.Delete(g, k)
		default:
			c.blob.Put(g, k, []byte(strings.Repeat("v", c.rng.IntN(40))+fmt.Sprint(c.rng.Uint32())))
		}
	}
	if c.rng.IntN(10) == 0 {
		c.blob.Drop(uint32(c.rng.IntN(testGroups)))
	}
}

func (c *chained) checkpoint(number uint64) {
	c.t.Helper()
	req := task.SnapshotRequest{Task: 3, Checkpoint: number, Meta: func() []byte { return fmt.Append(nil, "meta ", number) }, InFlight: [][]byte{fmt.Append(nil, "in flight ", number)}}
	if c.base == 0 || c.depth == 4 {
		req.State, c.depth = c.blob.Cut(all()), 0
	} else {
		req.State, req.Since, req.SinceFile = c.blob.CutSince(all(), c.mark), c.base, c.file
		c.depth++
	}
	mark, at := c.blob.Keep(req.State), prints(c.blob)
	file, _, err := WriteSnapshot(c.store, &req)
	req.State.Release()
	if err != nil {
		c.t.Fatal(err)
	}
	if c.rng.IntN(3) == 0 { // given up
		c.blob.Forget(mark)
		if c.depth > 0 {
			c.depth--
		}
		return
	}
	if err := Complete(c.store, &coord.Complete{Checkpoint: number, Files: [][]byte{file}, Meta: []byte("routes")}); err != nil {
		c.t.Fatal(err)
	}
	if c.base > 0 {
		c.blob.Forget(c.mark)
	}
	c.base, c.file, c.mark = number, file, mark
	c.want[number] = at
	if err := Retain(c.store, 2); err != nil {
		c.t.Fatal(err)
	}
}

// load restores a checkpoint and says what came.
func (c *chained) load(number uint64, into state.Keyed) (*task.LoadRequest, error) {
	r := &task.LoadRequest{Task: 3, Checkpoint: number, From: []int{3}, Want: []bool{true, true, true, true, true}, Into: into, WantMeta: true}
	return r, LoadState(c.store, r)
}

// TestChains restores chains of checkpoints into memory and onto disk, also when a file of the newest chain is damaged:
// then an older chain is chosen.
func TestChains(t *testing.T) {
	first, n := *seedFlag, uint64(1)
	if first == 0 {
		first, n = 1, 40
	}
	for seed := first; seed < first+n; seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { chains(t, seed) }) {
			t.Fatalf("repeat: go test ./engine/durable -run TestChains -seed=%d", seed)
		}
	}
}

func chains(t *testing.T, seed uint64) {
	c := &chained{t: t, rng: rand.New(rand.NewPCG(seed, 9)), fs: storage.NewMemFS(), blob: state.NewBlob(testGroups), want: map[uint64][testGroups]uint64{}}
	var err error
	if c.store, err = storage.New(c.fs, "disk", "chains", storage.Options{Readers: 1 + int(seed%3)}); err != nil {
		t.Fatal(err)
	}
	for number := uint64(1); number <= 25; number++ {
		c.change()
		c.checkpoint(number)
	}
	c.restores(c.base)
	ck, err := c.store.Load(c.base)
	if err != nil {
		t.Fatal(err)
	}
	chain := ck.Files[0].Chain(c.base)
	l := chain[c.rng.IntN(len(chain))]
	c.fs.Damage(fmt.Sprintf("disk/job-chains/chk-%d/task-3.state", l.Checkpoint), func(b []byte) []byte {
		b[c.rng.IntN(len(b))] ^= 8
		return b
	})
	if _, err := c.load(c.base, state.NewBlob(testGroups)); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("a damaged file of checkpoint %d was loaded: %v", l.Checkpoint, err)
	}
	number, meta, skipped, err := Choose(c.store)
	if err != nil || number >= c.base || len(skipped) == 0 || string(meta) != "routes" {
		t.Fatalf("checkpoint %d of the chain of %d is damaged: chose %d, passed over %v, %v", l.Checkpoint, c.base, number, skipped, err)
	}
	c.restores(number)
}

// restores wants what was there at a checkpoint, in memory and on disk.
func (c *chained) restores(number uint64) {
	c.t.Helper()
	blob := state.NewBlob(testGroups)
	r, err := c.load(number, blob)
	if err != nil {
		c.t.Fatal(err)
	}
	if got := prints(blob); got != c.want[number] {
		c.t.Fatalf("checkpoint %d gives %x, want %x", number, got, c.want[number])
	}
	if string(r.Meta) != fmt.Sprint("meta ", number) || len(r.InFlight) != 1 || string(r.InFlight[0]) != fmt.Sprint("in flight ", number) {
		c.t.Fatalf("checkpoint %d has meta %q and %q in flight", number, r.Meta, r.InFlight)
	}
	disk, err := pebble.Open(vfs.NewMem(), "state", &state.PagedSpec{Groups: testGroups, Blob: true})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.load(number, disk); err != nil {
		c.t.Fatal(err)
	}
	for g, want := range c.want[number] {
		if got, err := disk.Fingerprint(uint32(g)); err != nil || got != want {
			c.t.Fatalf("checkpoint %d gives group %d on disk %x, want %x (%v)", number, g, got, want, err)
		}
	}
	if err := disk.Close(); err != nil {
		c.t.Fatal(err)
	}
}
