package durable

import (
	"errors"
	"testing"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// TestLoadOnGoroutines loads key groups of several chunks each, some of them not wanted, on one to four goroutines: the
// state is that of the snapshot every time, and damage in the middle of the file is an error.
func TestLoadOnGoroutines(t *testing.T) {
	fs := storage.NewMemFS()
	h := state.NewHeap(testGroups, 24)
	for key := range uint64(1 << 20) {
		*h.Word(core.KeyGroup(key, testGroups), key) = core.Mix64(key)
	}
	write, err := storage.New(fs, "disk", "many", storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	snap := h.Cut(all())
	file, _, err := WriteSnapshot(write, &task.SnapshotRequest{Checkpoint: 1, State: snap})
	if err != nil {
		t.Fatal(err)
	}
	if err := Complete(write, &coord.Complete{Checkpoint: 1, Files: [][]byte{file}}); err != nil {
		t.Fatal(err)
	}
	load := func(readers int) (*state.Heap, error) {
		s, err := storage.New(fs, "disk", "many", storage.Options{Readers: readers})
		if err != nil {
			t.Fatal(err)
		}
		into := state.NewHeap(testGroups, 24)
		return into, LoadState(s, &task.LoadRequest{Checkpoint: 1, From: []int{0}, Want: []bool{true, true, false, true, true}, Into: into})
	}
	for readers := 1; readers <= 4; readers++ {
		into, err := load(readers)
		if err != nil {
			t.Fatal(err)
		}
		want := prints(h)
		want[2] = 0
		if got := prints(into); got != want {
			t.Fatalf("%d goroutines give %x, want %x", readers, got, want)
		}
	}
	fs.Damage("disk/job-many/chk-1/task-0.state", func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	})
	for readers := 1; readers <= 4; readers++ {
		if _, err := load(readers); !errors.Is(err, storage.ErrDamaged) {
			t.Fatalf("%d goroutines loaded a damaged file: %v", readers, err)
		}
	}
}
