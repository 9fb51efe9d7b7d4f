package durable

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// TestSegments writes, reads and removes segments, also on a disk that is full: nothing of a file that does not fit stays.
func TestSegments(t *testing.T) {
	disk := storage.NewMemFS()
	if err := disk.MkdirAll("spill"); err != nil {
		t.Fatal(err)
	}
	do := func(op task.SegmentOp, id uint64, data []byte) ([]byte, error) {
		r := task.SegmentRequest{Op: op, Segment: core.Segment{ID: id}, Data: data}
		err := DoSegment(disk, "spill", &r)
		return r.Data, err
	}
	for id := uint64(1); id < 4; id++ {
		if _, err := do(task.SegmentWrite, id, bytes.Repeat([]byte{byte(id)}, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := do(task.SegmentRead, 2, nil); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{2}, 100)) {
		t.Fatalf("read %v, %v", got, err)
	}
	if _, err := do(task.SegmentRemove, 2, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := do(task.SegmentRead, 2, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("read of what was removed: %v", err)
	}
	disk.LimitSpace(60)
	if _, err := do(task.SegmentWrite, 4, make([]byte, 100)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("write to a full disk: %v", err)
	}
	if names, err := disk.ReadDir("spill"); err != nil || len(names) != 2 {
		t.Fatalf("%v is left, %v, want segments 1 and 3", names, err)
	}
}
