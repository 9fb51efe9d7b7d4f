package storage

import (
	"bufio"
	"fmt"
	"path"
	"slices"
)

// FileInfo is what the MANIFEST says of a state file.
type FileInfo struct {
	Task uint32 `json:"task"`
	// Epoch is that of the deployment that wrote the file.
	Epoch uint32 `json:"epoch,omitempty"`
	Name  string `json:"name"`
	Stamp
	CRC32C uint32 `json:"crc32c"`
	// Links are the files of earlier checkpoints that this one continues, of the same task, the base first; none: the file
	// is whole in itself.
	Links []Link `json:"links,omitempty"`
	// Tables are the tables that hold the state which the file describes.
	Tables []TableInfo `json:"tables,omitempty"`
}

// Link names a task's file in an earlier checkpoint, and says what it must be.
type Link struct {
	Checkpoint uint64 `json:"checkpoint"`
	Epoch      uint32 `json:"epoch,omitempty"`
	Stamp
	CRC32C uint32 `json:"crc32c"`
}

// Chain returns the links of a file that continues f, which is of the given checkpoint: those of f, then f itself.
func (f FileInfo) Chain(checkpoint uint64) []Link {
	return append(slices.Clone(f.Links), Link{checkpoint, f.Epoch, f.Stamp, f.CRC32C})
}

// Writer streams one task's state file. Nothing of it is visible under its name
// until Close. After an error only Abort is left to do. One goroutine uses it.
type Writer struct {
	store *Store
	id    FileID
	epoch uint32
	dir   string
	temp  string
	file  File
	encoder
	err error
}

// Create starts the state file of a task, deployed in epoch, in a checkpoint that is not
// complete yet; a file of an earlier attempt of the same deployment is replaced at Close.
func (s *Store) Create(checkpoint uint64, task, epoch uint32) (*Writer, error) {
	dir := s.checkpointDir(checkpoint)
	if err := s.fs.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("create checkpoint directory %s: %w", dir, err)
	}
	w := &Writer{store: s, dir: dir, epoch: epoch, id: FileID{Job: s.job, Checkpoint: checkpoint, Task: task}}
	w.temp = s.tempName(path.Join(dir, taskName(task, epoch)))
	file, err := s.fs.Create(w.temp)
	if err != nil {
		return nil, fmt.Errorf("create state file %s: %w", w.temp, err)
	}
	w.file = file
	w.out = bufio.NewWriterSize(file, 64<<10)
	if err := w.check(w.begin(w.id)); err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

func (w *Writer) check(err error) error {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("write state file %s: %w", w.temp, err)
	}
	return w.err
}

// Section ends the current section and starts the next one ("state", "channels",
// "order", "inflight" …). Names are up to 255 bytes.
func (w *Writer) Section(name string) error {
	if w.err != nil {
		return w.err
	}
	if name == "" || len(name) > 255 {
		panic(fmt.Sprintf("storage: section name of %d bytes", len(name)))
	}
	return w.check(w.startSection(name))
}

// Expect says how large the file will be, more or less.
func (w *Writer) Expect(bytes int64) {
	if x, ok := w.file.(Expecter); ok {
		x.Expect(bytes)
	}
}

// Write adds one chunk, of at most 1 GiB, to the current section; Reader.Next gives
// it back as one. The chunk is not kept.
func (w *Writer) Write(chunk []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if !w.open {
		panic("storage: write outside a section")
	}
	if len(chunk) > maxChunkBytes {
		return 0, w.check(fmt.Errorf("chunk of %d bytes, at most %d", len(chunk), maxChunkBytes))
	}
	if err := w.check(w.chunk(chunk)); err != nil {
		return 0, err
	}
	return len(chunk), nil
}

// Close makes the file durable under its name and returns its entry for Commit. On an
// error the file is aborted.
func (w *Writer) Close() (FileInfo, error) {
	if w.err == nil {
		w.check(w.finish())
	}
	if w.err == nil {
		w.check(w.out.Flush())
	}
	if w.err != nil {
		w.Abort()
		return FileInfo{}, w.err
	}
	name := taskName(w.id.Task, w.epoch)
	file := w.file
	w.file = nil
	final := path.Join(w.dir, name)
	if err := w.store.publish(file, w.temp, final); err != nil {
		return FileInfo{}, w.check(err)
	}
	stamp, err := w.store.fs.Stat(final)
	if err == nil && stamp.Bytes != w.size {
		err = fmt.Errorf("%w: it has %d bytes, %d were written", ErrDamaged, stamp.Bytes, w.size)
	}
	if err != nil {
		return FileInfo{}, w.check(err)
	}
	return FileInfo{Task: w.id.Task, Epoch: w.epoch, Name: name, Stamp: stamp, CRC32C: w.crc}, nil
}

// Abort gives the file up and removes what was written. It is safe to call it after
// Close, then it does nothing.
func (w *Writer) Abort() {
	if w.file == nil {
		return
	}
	w.store.abandon(w.file, w.temp)
	w.file = nil
}

// abandon gives up a file under its temporary name. The write's own error is the one to report; a temporary file left
// behind is never read, and the next attempt truncates it.
func (s *Store) abandon(file File, temp string) {
	giveUp(file)
	if !s.whole { // else nothing has appeared, and what is there under the name is of an earlier attempt
		_ = s.fs.Remove(temp)
	}
}

// publish syncs and closes a file written under a temporary name and renames it.
func (s *Store) publish(file File, temp, final string) error {
	if s.sync {
		if err := file.Sync(); err != nil {
			s.abandon(file, temp)
			return err
		}
	}
	err := file.Close()
	if err == nil && temp != final {
		err = s.fs.Rename(temp, final)
	}
	if err != nil {
		if !s.whole {
			_ = s.fs.Remove(temp) // as in abandon
		}
		return err
	}
	if s.sync {
		return s.fs.SyncDir(path.Dir(final))
	}
	return nil
}
