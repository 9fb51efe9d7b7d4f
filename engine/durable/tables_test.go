package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/state/pebble"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// tabled is a task whose state is on disk, and its checkpoints.
type tabled struct {
	t     *testing.T
	store *storage.Store
	disk  *pebble.Store
	heap  *state.Heap // the same
	bytes int64       // that the last checkpoint wrote
	// written is called when a snapshot has been written and is still held; nil: nothing is.
	written func()
}

func pagedSpec() *state.PagedSpec {
	return &state.PagedSpec{Groups: testGroups, ValueBytes: 100, MemoryBytes: 1 << 20, Steady: true}
}

func newTabled(t *testing.T, store *storage.Store, disk *pebble.Store) *tabled {
	return &tabled{t: t, store: store, disk: disk, heap: state.NewHeap(testGroups, 100)}
}

// change counts up keys.
func (c *tabled) change(from, to uint64) {
	c.t.Helper()
	for ; from < to; from += 100 {
		var keys []uint64
		for k := from; k < min(from+100, to); k++ {
			keys = append(keys, k)
		}
		if err := c.disk.Begin(keys); err != nil {
			c.t.Fatal(err)
		}
		paged, _ := c.disk.Memory()
		for _, k := range keys {
			for _, h := range []*state.Heap{paged, c.heap} {
				v, _ := h.Ref(core.KeyGroup(k, testGroups), k)
				binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
			}
		}
		if err := c.disk.End(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *tabled) checkpoint(number uint64) {
	c.t.Helper()
	req := task.SnapshotRequest{Task: 3, Epoch: 1, Checkpoint: number, State: c.disk.CutTables(all())}
	file, bytes, err := WriteSnapshot(c.store, &req)
	if err != nil {
		c.t.Fatal(err)
	}
	c.bytes = bytes
	if c.written != nil {
		c.written()
	}
	req.State.Release()
	if err := Complete(c.store, &coord.Complete{Checkpoint: number, Files: [][]byte{file}, Meta: []byte("routes")}); err != nil {
		c.t.Fatal(err)
	}
	if err := Retain(c.store, 3); err != nil {
		c.t.Fatal(err)
	}
}

func load(t *testing.T, s *storage.Store, number uint64, as int, into state.Keyed, want []bool) {
	t.Helper()
	r := &task.LoadRequest{Task: as, Checkpoint: number, From: []int{3}, Want: want, Into: into}
	if err := LoadState(s, r); err != nil {
		t.Fatal(err)
	}
}

func diskPrints(t *testing.T, s *pebble.Store) (p [testGroups]uint64) {
	t.Helper()
	for g := range p {
		var err error
		if p[g], err = s.Fingerprint(uint32(g)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// tableStories are checkpoints by tables in a faulty memory, where tables are copied, and on real files, where they are
// linked.
func tableStories(t *testing.T) map[string]func(name string) (*storage.Store, *pebble.Store) {
	mem, dir := storage.NewMemFS(), t.TempDir()
	return map[string]func(name string) (*storage.Store, *pebble.Store){
		"copied": func(name string) (*storage.Store, *pebble.Store) {
			s, err := storage.New(mem, "disk", "tables", storage.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d, err := pebble.Open(vfs.NewMem(), "state", pagedSpec())
			if err != nil {
				t.Fatal(err)
			}
			return s, d
		},
		"linked": func(name string) (*storage.Store, *pebble.Store) {
			s, err := storage.New(storage.OS{}, filepath.Join(dir, "kept"), "tables", storage.Options{Readers: 2})
			if err != nil {
				t.Fatal(err)
			}
			d, err := pebble.OpenDir(filepath.Join(dir, name), pagedSpec())
			if err != nil {
				t.Fatal(err)
			}
			return s, d
		},
	}
}

func TestTables(t *testing.T) {
	for name, open := range tableStories(t) {
		t.Run(name, func(t *testing.T) {
			store, disk := open("first")
			c := newTabled(t, store, disk)
			c.change(0, 20_000)
			c.checkpoint(1)
			first := c.bytes
			c.change(500, 700) // 1 %
			c.checkpoint(2)
			if c.bytes*10 > first {
				t.Errorf("1 %% was changed, and %d bytes are written behind %d", c.bytes, first)
			}
			want := prints(c.heap)
			c.change(0, 9000)
			yes := []bool{true, true, true, true, true}

			// As it was, and on from there.
			_, again := open("second")
			load(t, store, 2, 3, again, yes)
			if got := diskPrints(t, again); got != want {
				t.Errorf("restored %x, want %x", got, want)
			}
			c.disk = again
			c.heap = state.NewHeap(testGroups, 100)
			load2(t, again, c.heap)
			c.change(100, 200)
			c.checkpoint(3)
			if c.bytes*10 > first {
				t.Errorf("a restored task writes %d bytes behind %d", c.bytes, first)
			}
			// As two other tasks, each with its part.
			got := [testGroups]uint64{}
			for i, part := range [][]bool{{true, false, true, false, false}, {false, true, false, true, true}} {
				_, other := open(fmt.Sprint("part", i))
				load(t, store, 3, 7+i, other, part)
				for g, x := range diskPrints(t, other) {
					got[g] += x
				}
				if err := other.Close(); err != nil {
					t.Error(err)
				}
			}
			if got != prints(c.heap) {
				t.Errorf("in parts %x, want %x", got, prints(c.heap))
			}
			if err := errors.Join(disk.Close(), again.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// load2 copies state into memory.
func load2(t *testing.T, from *pebble.Store, to *state.Heap) {
	t.Helper()
	snap := from.Cut(all())
	defer snap.Release()
	for {
		chunk, g, _, done := snap.Next(nil, 1<<20)
		if done {
			return
		}
		if err := to.Install(g, chunk); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTablesAreLinked: on one file system a table is the same file in both places; retention takes only the names in
// storage, and the state that goes only its own.
func TestTablesAreLinked(t *testing.T) {
	dir := t.TempDir()
	store, err := storage.New(storage.OS{}, filepath.Join(dir, "kept"), "tables", storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := pebble.OpenDir(filepath.Join(dir, "state"), pagedSpec())
	if err != nil {
		t.Fatal(err)
	}
	c := newTabled(t, store, disk)
	rng := rand.New(rand.NewPCG(1, 2))
	for number := uint64(1); number <= 12; number++ {
		from := rng.Uint64N(5000)
		c.change(from, from+300)
		c.checkpoint(number)
	}
	ck, _, err := store.Newest()
	if err != nil || ck.Number != 12 {
		t.Fatal(ck.Number, err)
	}
	shared := 0
	for _, x := range ck.Files[0].Tables {
		kept, err := os.Stat(filepath.Join(dir, "kept", "job-tables", "tables", x.Name))
		if err != nil {
			t.Fatal(err)
		}
		if here, err := os.Stat(filepath.Join(dir, "state", fmt.Sprintf("%06d.sst", x.Number()))); err == nil && os.SameFile(here, kept) {
			shared++
		}
	}
	if shared == 0 {
		t.Error("no table is linked")
	}
	if err := errors.Join(disk.Close(), os.RemoveAll(filepath.Join(dir, "state"))); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Verify(12); err != nil {
		t.Error(err)
	}
}

// mixedSnapshot is a snapshot of which there are no tables.
type mixedSnapshot struct{ state.Snapshot }

func (mixedSnapshot) Tables() ([]byte, []state.Table, error) {
	return nil, nil, fmt.Errorf("tables of a cut: %w", state.ErrMixed)
}

func (mixedSnapshot) Write([]state.Table, func(state.Table) (any, error)) error {
	panic("there is nothing to write")
}

// TestWithoutTablesTheStateIsWrittenWhole says that a checkpoint does not fail because no set of tables holds just the snapshot.
func TestWithoutTablesTheStateIsWrittenWhole(t *testing.T) {
	s, err := storage.New(storage.NewMemFS(), "disk", "mixed", storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	blob := state.NewBlob(testGroups)
	for key := range uint64(100) {
		blob.Put(uint32(key%testGroups), key, fmt.Append(nil, "value", key))
	}
	snap := blob.Cut(all())
	file, _, err := WriteSnapshot(s, &task.SnapshotRequest{Task: 3, Checkpoint: 1, State: mixedSnapshot{snap}})
	snap.Release()
	if err != nil {
		t.Fatal(err)
	}
	if err := Complete(s, &coord.Complete{Checkpoint: 1, Files: [][]byte{file}}); err != nil {
		t.Fatal(err)
	}
	got := state.NewBlob(testGroups)
	if err := LoadState(s, &task.LoadRequest{Task: 3, Checkpoint: 1, From: []int{3}, Want: []bool{true, true, true, true, true}, Into: got}); err != nil {
		t.Fatal(err)
	}
	if prints(got) != prints(blob) {
		t.Errorf("%x is restored, want %x", prints(got), prints(blob))
	}
}
