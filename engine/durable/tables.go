package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// sectionTables holds the description that belongs to the tables of a task's state; the tables are files beside.
const sectionTables = "tables"

// tableWrite is the state of a snapshot as tables that are in storage.
type tableWrite struct {
	form   []byte
	tables []storage.TableInfo
	bytes  int64 // of tables that were not there before
}

// writeTables brings the tables of a snapshot into storage, those that are not there yet; nil for a snapshot of chunks, as also one
// is of which there are no tables.
func writeTables(s *storage.Store, req *task.SnapshotRequest) (*tableWrite, error) {
	snap, ok := req.State.(state.TableSnapshot)
	if !ok {
		return nil, nil
	}
	form, files, err := snap.Tables()
	if errors.Is(err, state.ErrMixed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	there, err := s.TableNames()
	if err != nil {
		return nil, err
	}
	w := &tableWrite{form: form}
	err = snap.Write(files, func(t state.Table) (any, error) {
		info, kept := t.Kept.(storage.TableInfo)
		if !kept || !there[info.Name] { // a checkpoint that was given up may have taken it along
			var err error
			info, err = s.PutTable(req.Checkpoint, uint32(req.Task), req.Epoch, t.Number, storage.TableSource{Path: t.Path, Open: t.Open})
			if err != nil {
				return nil, err
			}
			w.bytes += info.Bytes
		}
		w.tables = append(w.tables, info)
		return info, nil
	})
	if err == nil && w.bytes > 0 {
		err = s.SyncTables()
	}
	return w, err
}

// loadTables makes state of the tables of a task's file. Those of the task itself become its store; of others, the wanted
// groups are installed.
func loadTables(s *storage.Store, file *storage.FileInfo, checkpoint uint64, req *task.LoadRequest) error {
	into, ok := req.Into.(state.Tabled)
	if !ok {
		return errors.New("its state is in tables, which only state on disk can read")
	}
	form, err := readForm(s, file, checkpoint)
	if err != nil {
		return err
	}
	fetch := func(number uint64, to string, create func() (io.WriteCloser, error)) (any, error) {
		i := slices.IndexFunc(file.Tables, func(t storage.TableInfo) bool { return t.Number() == number })
		if i < 0 {
			return nil, fmt.Errorf("%w: table %d is described but not listed", storage.ErrDamaged, number)
		}
		return file.Tables[i], s.GetTable(file.Tables[i], to, create)
	}
	if file.Task == uint32(req.Task) {
		return into.Attach(form, fetch, req.Want)
	}
	return into.Import(form, fetch, req.Want)
}

// readForm reads the description of a file's tables.
func readForm(s *storage.Store, file *storage.FileInfo, checkpoint uint64) ([]byte, error) {
	r, err := s.OpenFile(file.Task, storage.Link{Checkpoint: checkpoint, Epoch: file.Epoch, Stamp: file.Stamp, CRC32C: file.CRC32C})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		section, chunk, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: no description of its tables", storage.ErrDamaged)
		}
		if err != nil {
			return nil, err
		}
		if section == sectionTables {
			return bytes.Clone(chunk), nil
		}
	}
}

// ownFirst returns the tasks to load from with the task itself first: its tables need state that is empty.
func ownFirst(req *task.LoadRequest) []int {
	from := slices.Clone(req.From)
	slices.SortStableFunc(from, func(a, b int) int {
		switch {
		case a == req.Task && b != a:
			return -1
		case b == req.Task && a != b:
			return 1
		}
		return 0
	})
	return from
}
