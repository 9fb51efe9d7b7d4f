package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
)

// readBytes is how much of a file is read at a time to verify it.
const readBytes = 256 << 10

// Verify reads all files of a checkpoint, those that they link to included, and returns its MANIFEST if they are what was
// written.
func (s *Store) Verify(number uint64) (Checkpoint, error) {
	return s.verify(number, map[string]error{})
}

// verify is Verify; known holds what was found out about files by their path, and gets what is found out.
func (s *Store) verify(number uint64, known map[string]error) (Checkpoint, error) {
	ck, err := s.Load(number)
	if err != nil {
		return Checkpoint{}, err
	}
	type file struct {
		path   string
		verify func(buf []byte) error
		err    error
	}
	var files []*file
	for _, f := range ck.Files {
		for _, l := range f.Chain(number) {
			info := f.At(l)
			files = append(files, &file{s.filePath(l.Checkpoint, info.Name), func(buf []byte) error { return s.verifyFile(l.Checkpoint, info, buf) }, nil})
		}
		for _, t := range f.Tables {
			files = append(files, &file{s.tablePath(t.Name), func([]byte) error { return s.verifyTable(t) }, nil})
		}
	}
	files = slices.DeleteFunc(files, func(f *file) bool {
		found, ok := known[f.path]
		err = cmp.Or(err, found)
		return ok
	})
	if err != nil {
		return Checkpoint{}, err
	}
	todo := make(chan *file, len(files))
	for _, f := range files {
		todo <- f
	}
	close(todo)
	var done sync.WaitGroup
	read := func() {
		buf := make([]byte, readBytes)
		for f := range todo {
			f.err = f.verify(buf)
		}
	}
	for range s.readers - 1 {
		done.Go(read)
	}
	read()
	done.Wait()
	for _, f := range files {
		known[f.path] = f.err
		if err == nil {
			err = f.err
		}
	}
	if err != nil {
		return Checkpoint{}, err
	}
	return ck, nil
}

// At is what the file of the same task that l names must be.
func (f FileInfo) At(l Link) FileInfo {
	return FileInfo{Task: f.Task, Epoch: l.Epoch, Name: taskName(f.Task, l.Epoch), Stamp: l.Stamp, CRC32C: l.CRC32C}
}

func (s *Store) filePath(checkpoint uint64, name string) string {
	return path.Join(s.checkpointDir(checkpoint), name)
}

func (s *Store) verifyFile(number uint64, want FileInfo, buf []byte) error {
	name := s.filePath(number, want.Name)
	stamp, statErr := s.fs.Stat(name) // before the reading: what is written meanwhile makes it another file
	f, err := s.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: the state file is missing", name, ErrDamaged)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer f.Close()
	// The preamble and identity first: another job or version is not damage.
	n, err := io.ReadFull(f, buf[:maxHeadBytes])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	id := FileID{Job: s.job, Checkpoint: number, Task: want.Task}
	if _, err := NewReader(bytes.NewReader(buf[:n]), name, id); err != nil {
		return err
	}
	sum := crc32.New(castagnoli())
	sum.Write(buf[:n])
	rest, err := io.CopyBuffer(sum, struct{ io.Reader }{f}, buf)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	size := int64(n) + rest
	if size != want.Bytes {
		return fmt.Errorf("%s: %w: %d bytes, the MANIFEST says %d", name, ErrDamaged, size, want.Bytes)
	}
	if got := sum.Sum32(); got != want.CRC32C {
		return fmt.Errorf("%s: %w: checksum %08x, the MANIFEST says %08x", name, ErrDamaged, got, want.CRC32C)
	}
	if statErr == nil {
		s.remember(name, stamp, want.CRC32C)
	}
	return nil
}

// trust says what is wrong with a checkpoint's files. A file is not read when its stamp is the one that its writer left,
// who had the file system's word for every byte, or the one it had when it was last read: reading it again would for the
// most part read the same page cache. What changes a file's bytes changes its stamp, short of a medium that forgets;
// Newest, on which a recovery relies, reads everything.
func (s *Store) trust(number uint64) error {
	ck, err := s.Load(number)
	if err != nil {
		return err
	}
	var buf []byte
	for _, f := range ck.Files {
		for _, l := range f.Chain(number) {
			name := s.filePath(l.Checkpoint, f.At(l).Name)
			stamp, err := s.fs.Stat(name)
			if err == nil && (stamp == l.Stamp || s.wasVerified(name, stamp, l.CRC32C)) {
				continue
			}
			if buf == nil {
				buf = make([]byte, readBytes)
			}
			if err := s.verifyFile(l.Checkpoint, f.At(l), buf); err != nil {
				return err
			}
		}
		if err := s.trustTables(&f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) remember(name string, stamp Stamp, crc uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verified[name] = verified{stamp, crc}
}

func (s *Store) wasVerified(name string, stamp Stamp, crc uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verified[name] == verified{stamp, crc}
}
