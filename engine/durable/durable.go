package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// The sections of a task's file.
const (
	sectionMeta     = "meta"
	sectionInFlight = "inflight"
	sectionState    = "state"
)

// chunkBytes is the largest chunk. Most key groups are one, so that the heap makes tables of the right size for them.
const chunkBytes = 4 << 20

// WriteSnapshot makes a snapshot durable. It returns the description that the manifest needs and the size of what is new
// in storage. It may run beside the task's event loop.
func WriteSnapshot(s *storage.Store, req *task.SnapshotRequest) (file []byte, bytes int64, err error) {
	tables, err := writeTables(s, req)
	if err != nil {
		return nil, 0, fmt.Errorf("tables of task %d for checkpoint %d: %w", req.Task, req.Checkpoint, err)
	}
	w, err := s.Create(req.Checkpoint, uint32(req.Task), req.Epoch)
	if err != nil {
		return nil, 0, err
	}
	if err := writeSections(w, req, tables); err != nil {
		w.Abort()
		return nil, 0, fmt.Errorf("snapshot of task %d for checkpoint %d: %w", req.Task, req.Checkpoint, err)
	}
	info, err := w.Close()
	if err != nil {
		return nil, 0, err
	}
	if req.Since > 0 {
		var base storage.FileInfo
		if err := json.Unmarshal(req.SinceFile, &base); err != nil {
			return nil, 0, fmt.Errorf("description of the file of task %d in checkpoint %d: %w", req.Task, req.Since, err)
		}
		info.Links = base.Chain(req.Since)
	}
	bytes = info.Bytes
	if tables != nil {
		info.Tables = tables.tables
		bytes += tables.bytes
	}
	file, err = json.Marshal(info)
	return file, bytes, err
}

func writeSections(w *storage.Writer, req *task.SnapshotRequest, tables *tableWrite) error {
	if err := w.Section(sectionMeta); err != nil {
		return err
	}
	if req.Meta != nil {
		if _, err := w.Write(req.Meta()); err != nil {
			return err
		}
	}
	if len(req.InFlight) > 0 {
		if err := w.Section(sectionInFlight); err != nil {
			return err
		}
	}
	for _, frame := range req.InFlight {
		if _, err := w.Write(frame); err != nil {
			return err
		}
	}
	if req.State == nil {
		return nil
	}
	if tables != nil {
		if err := w.Section(sectionTables); err != nil {
			return err
		}
		_, err := w.Write(tables.form)
		return err
	}
	if err := w.Section(sectionState); err != nil {
		return err
	}
	if req.Since == 0 {
		w.Expect(req.State.Bytes()) // of an increment, it would have to be counted
	}
	buf := make([]byte, 0, 64<<10)
	for {
		chunk, _, _, done := req.State.Next(buf, chunkBytes)
		if done {
			return readWhole(req.State)
		}
		if _, err := w.Write(chunk); err != nil {
			return err
		}
		buf = chunk[:0]
	}
}

// readWhole returns the error that ended the reading of a snapshot early: state that is not in memory has some.
func readWhole(snap state.Snapshot) error {
	if f, ok := snap.(interface{ Err() error }); ok {
		return f.Err()
	}
	return nil
}

// LoadState installs the wanted key groups of a checkpoint, from the files that its own continue on, and reads what was
// in flight. The files were verified when the checkpoint was chosen (see Choose); damage since then is an error all the
// same. As many goroutines as the store has readers install key groups beside each other; they are gone when it returns.
func LoadState(s *storage.Store, req *task.LoadRequest) error {
	ck, err := s.Load(req.Checkpoint)
	if err != nil {
		return err
	}
	if req.WantMeta {
		if err := loadMeta(s, ck, req); err != nil {
			return fmt.Errorf("load task %d from checkpoint %d: %w", req.Task, req.Checkpoint, err)
		}
	}
	for _, from := range ownFirst(req) {
		if err := loadTask(s, ck, from, req); err != nil {
			return fmt.Errorf("load task %d from checkpoint %d of task %d: %w", req.Task, req.Checkpoint, from, err)
		}
	}
	return nil
}

// loadMeta reads what the task itself put into its file.
func loadMeta(s *storage.Store, ck storage.Checkpoint, req *task.LoadRequest) error {
	r, err := s.Open(ck, uint32(req.Task))
	if err != nil {
		return err
	}
	defer r.Close()
	req.Meta = req.Meta[:0]
	for {
		section, chunk, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && section != sectionMeta {
			return nil // it comes first
		}
		if err != nil {
			return err
		}
		req.Meta = append(req.Meta, chunk...)
	}
}

// loadTask loads what a task's file in the checkpoint holds.
func loadTask(s *storage.Store, ck storage.Checkpoint, from int, req *task.LoadRequest) error {
	i := slices.IndexFunc(ck.Files, func(f storage.FileInfo) bool { return f.Task == uint32(from) })
	if i < 0 {
		return fmt.Errorf("the checkpoint has no file of task %d", from)
	}
	if file := &ck.Files[i]; len(file.Tables) > 0 {
		if err := loadTables(s, file, ck.Number, req); err != nil {
			return err
		}
	}
	for _, l := range ck.Files[i].Chain(ck.Number) {
		if err := loadFile(s, l, from, l.Checkpoint == ck.Number, req); err != nil {
			return err
		}
	}
	return nil
}

// Complete writes a checkpoint's manifest: it is complete then. What is beyond the retention is removed by Retain, which
// reads a whole checkpoint to be sure and so must not delay the word that this one is complete.
func Complete(s *storage.Store, c *coord.Complete) error {
	ck := storage.Checkpoint{Number: c.Checkpoint, Meta: c.Meta}
	for _, f := range c.Files {
		var info storage.FileInfo
		if err := json.Unmarshal(f, &info); err != nil {
			return fmt.Errorf("complete checkpoint %d: description of a file: %w", c.Checkpoint, err)
		}
		ck.Files = append(ck.Files, info)
	}
	if err := s.Commit(ck); err != nil && !errors.Is(err, storage.ErrExists) {
		return err
	}
	return nil
}

// Retain removes complete checkpoints so that keep of them stay, and what never became complete.
func Retain(s *storage.Store, keep int) error {
	_, err := s.Retain(keep)
	return err
}

// Choose finds the newest usable checkpoint: number 0 when none was ever completed. What was passed over on the way is
// told with its reason. All completed ones damaged is an error: a job must not start from empty state then.
func Choose(s *storage.Store) (number uint64, meta []byte, skipped []string, err error) {
	ck, passed, err := s.Newest()
	for _, p := range passed {
		skipped = append(skipped, p.String())
	}
	if errors.Is(err, storage.ErrNoCheckpoint) {
		return 0, nil, skipped, nil
	}
	return ck.Number, ck.Meta, skipped, err
}
