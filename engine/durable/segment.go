package durable

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// DoSegment carries out what a worker asks of a segment of a sender log; dir is the worker's own folder, which must be there. A
// file that could not be written whole is removed. What is written is not synced: it is of no use once the process is gone.
func DoSegment(fs storage.FS, dir string, r *task.SegmentRequest) error {
	name := path.Join(dir, fmt.Sprintf("segment-%d", r.ID))
	switch r.Op {
	case task.SegmentWrite:
		if err := writeSegment(fs, name, r.Data); err != nil {
			_ = fs.Remove(name) // the first error is the one to report
			return err
		}
	case task.SegmentRead:
		f, err := fs.Open(name)
		if err != nil {
			return err
		}
		r.Data, err = io.ReadAll(f)
		return errors.Join(err, f.Close())
	case task.SegmentRemove:
		return fs.Remove(name)
	}
	return nil
}

func writeSegment(fs storage.FS, name string, data []byte) error {
	f, err := fs.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
