package storage

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// tablesName is the directory of a job's tables: immutable files that several checkpoints may name. A checkpoint's MANIFEST
// names them, and what nobody names is removed with the checkpoints before (see Retain).
const tablesName = "tables"

// TableInfo is what a MANIFEST says of a table.
type TableInfo struct {
	Name string `json:"name"`
	Stamp
	CRC32C uint32 `json:"crc32c"`
}

// TableSource is where a table comes from: a file of this machine, or if Path is empty, what Open reads.
type TableSource struct {
	Path string
	Open func() (io.ReadCloser, error)
}

// Linker is an optional interface of an FS on which a file may have several names, also ones outside of it on the same
// machine.
type Linker interface {
	// Link gives a file another name. Between places that cannot share a file it returns errors that wrap EXDEV or
	// errors.ErrUnsupported.
	Link(from, to string) error
	// SyncFile makes the content of a file durable that somebody else has written.
	SyncFile(name string) error
}

// tableID is what a table's name says: the checkpoint for which it was written, by whom, and its number there.
type tableID struct {
	checkpoint  uint64
	task, epoch uint32
	number      uint64
}

func (t tableID) String() string {
	return fmt.Sprintf("%d-task-%d-e%d-%d.table", t.checkpoint, t.task, t.epoch, t.number)
}

// Number returns the number of the table in its store.
func (t TableInfo) Number() uint64 {
	id, _ := parseTable(t.Name)
	return id.number
}

func parseTable(name string) (t tableID, ok bool) {
	var n [4]uint64
	rest, ok := strings.CutSuffix(name, ".table")
	for i, part := range []string{"-task-", "-e", "-", ""} {
		digits := rest
		if part != "" {
			digits, rest, _ = strings.Cut(rest, part)
		}
		bits := 64
		if i == 1 || i == 2 {
			bits = 32
		}
		var err error
		n[i], err = strconv.ParseUint(digits, 10, bits)
		ok = ok && err == nil
	}
	t = tableID{n[0], uint32(n[1]), uint32(n[2]), n[3]}
	return t, ok && t.String() == name
}

// IsTable says whether a path is that of a table, also while it is written.
func IsTable(name string) bool {
	_, ok := parseTable(strings.TrimSuffix(path.Base(name), tempSuffix))
	return ok
}

func (s *Store) tablesDir() string { return path.Join(s.dir, tablesName) }

func (s *Store) tablePath(name string) string { return path.Join(s.dir, tablesName, name) }

// TableNames returns the names in the directory of tables.
func (s *Store) TableNames() (map[string]bool, error) {
	names, err := s.fs.ReadDir(s.tablesDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	return there, nil
}

// PutTable takes table number of a task, deployed in epoch, into storage for a checkpoint: under another name of the same
// file where that can be, else as a copy. It returns what the MANIFEST has to say of it. The table is durable under its
// name after SyncTables.
func (s *Store) PutTable(checkpoint uint64, task, epoch uint32, number uint64, src TableSource) (TableInfo, error) {
	t := TableInfo{Name: tableID{checkpoint, task, epoch, number}.String()}
	final := s.tablePath(t.Name)
	fail := func(err error) (TableInfo, error) { return TableInfo{}, fmt.Errorf("write table %s: %w", final, err) }
	if err := s.fs.MkdirAll(s.tablesDir()); err != nil {
		return fail(err)
	}
	linked, err := s.linkTable(src.Path, final)
	if err == nil && !linked {
		t.CRC32C, err = s.copyTable(src, final)
	}
	if err != nil {
		return fail(err)
	}
	if t.Stamp, err = s.fs.Stat(final); err != nil {
		return fail(err)
	}
	if linked {
		if t.CRC32C, err = s.checksum(final, t.Bytes); err != nil {
			return fail(err)
		}
	}
	return t, nil
}

// cannotLink says that a file cannot have a name in another place, though it can be copied there.
func cannotLink(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EMLINK)
}

// linkTable gives a file of this machine its name in storage, if that can be.
func (s *Store) linkTable(from, final string) (bool, error) {
	l, ok := s.fs.(Linker)
	if !ok || from == "" {
		return false, nil
	}
	err := l.Link(from, final)
	if errors.Is(err, fs.ErrExist) { // of an attempt that failed: nobody names it
		if err = s.fs.Remove(final); err == nil {
			err = l.Link(from, final)
		}
	}
	if cannotLink(err) {
		return false, nil
	}
	if err == nil && s.sync {
		err = l.SyncFile(final)
	}
	return true, err
}

func (s *Store) copyTable(src TableSource, final string) (crc uint32, err error) {
	r, err := src.Open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	temp := s.tempName(final)
	file, err := s.fs.Create(temp)
	if err != nil {
		return 0, err
	}
	sum := crc32.New(castagnoli())
	if _, err := io.CopyBuffer(struct{ io.Writer }{file}, struct{ io.Reader }{io.TeeReader(r, sum)}, make([]byte, readBytes)); err != nil {
		s.abandon(file, temp)
		return 0, err
	}
	return sum.Sum32(), s.publish(file, temp, final)
}

// checksum reads a file of so many bytes.
func (s *Store) checksum(name string, bytes int64) (uint32, error) {
	f, err := s.fs.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sum := crc32.New(castagnoli())
	n, err := io.CopyBuffer(sum, struct{ io.Reader }{f}, make([]byte, readBytes))
	if err == nil && n != bytes {
		err = fmt.Errorf("%w: %d bytes, want %d", ErrDamaged, n, bytes)
	}
	return sum.Sum32(), err
}

// SyncTables makes the names of tables durable. It comes before the checkpoint's MANIFEST.
func (s *Store) SyncTables() error {
	if !s.sync {
		return nil
	}
	if err := s.fs.SyncDir(s.tablesDir()); err != nil {
		return fmt.Errorf("sync %s: %w", s.tablesDir(), err)
	}
	return nil
}

// GetTable brings a table back: as a file of this machine at to, unless that is "", or into what create makes. Damage is
// found when it is copied; a link was checked when the checkpoint was chosen, as every file of it.
func (s *Store) GetTable(t TableInfo, to string, create func() (io.WriteCloser, error)) error {
	name := s.tablePath(t.Name)
	fail := func(err error) error { return fmt.Errorf("read table %s: %w", name, err) }
	if l, ok := s.fs.(Linker); ok && to != "" {
		if stamp, err := s.fs.Stat(name); err != nil || stamp.Bytes != t.Bytes {
			return fail(errors.Join(err, fmt.Errorf("%w: %d bytes, want %d", ErrDamaged, stamp.Bytes, t.Bytes)))
		}
		if err := l.Link(name, to); !cannotLink(err) {
			if err != nil {
				return fail(err)
			}
			return nil
		}
	}
	r, err := s.fs.Open(name)
	if err != nil {
		return fail(err)
	}
	defer r.Close()
	w, err := create()
	if err != nil {
		return fail(err)
	}
	sum := crc32.New(castagnoli())
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{io.TeeReader(r, sum)}, make([]byte, readBytes))
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err == nil && (n != t.Bytes || sum.Sum32() != t.CRC32C) {
		err = fmt.Errorf("%w: %d bytes with checksum %08x, want %d and %08x", ErrDamaged, n, sum.Sum32(), t.Bytes, t.CRC32C)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// verifyTable reads a table and says what is wrong with it.
func (s *Store) verifyTable(t TableInfo) error {
	name := s.tablePath(t.Name)
	stamp, statErr := s.fs.Stat(name)
	crc, err := s.checksum(name, t.Bytes)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: the table is missing", name, ErrDamaged)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if crc != t.CRC32C {
		return fmt.Errorf("%s: %w: checksum %08x, the MANIFEST says %08x", name, ErrDamaged, crc, t.CRC32C)
	}
	if statErr == nil {
		s.remember(name, stamp, crc)
	}
	return nil
}

// trustTables is trust for the tables of a file.
func (s *Store) trustTables(f *FileInfo) error {
	for _, t := range f.Tables {
		stamp, err := s.fs.Stat(s.tablePath(t.Name))
		if err == nil && (stamp == t.Stamp || s.wasVerified(s.tablePath(t.Name), stamp, t.CRC32C)) {
			continue
		}
		if err := s.verifyTable(t); err != nil {
			return err
		}
	}
	return nil
}

// checkTables says what is wrong with a file's list of tables.
func checkTables(number uint64, f *FileInfo) error {
	seen := map[uint64]bool{}
	for _, t := range f.Tables {
		id, ok := parseTable(t.Name)
		if !ok || id.checkpoint > number || seen[id.number] {
			return fmt.Errorf("file %q of checkpoint %d names table %q, or one of its number twice", f.Name, number, t.Name)
		}
		seen[id.number] = true
	}
	return nil
}

// haveTables says which table of a checkpoint is not there.
func (s *Store) haveTables(files []FileInfo) error {
	var there map[string]bool
	for _, f := range files {
		for _, t := range f.Tables {
			if there == nil {
				var err error
				if there, err = s.TableNames(); err != nil {
					return err
				}
			}
			if !there[t.Name] {
				return fmt.Errorf("table %s: %w", s.tablePath(t.Name), fs.ErrNotExist)
			}
		}
	}
	return nil
}

// sweep removes the tables that no checkpoint names. Those of a checkpoint beyond newest may be about to be named. An older
// one that newest does not name has left the state that it was of, for good, or was of a task that has been replaced since.
// Nothing is removed while a MANIFEST that is there cannot be read.
func (s *Store) sweep(newest uint64) error {
	list, _, err := s.numbers()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, number := range list {
		ck, err := s.Load(number)
		if errors.Is(err, ErrIncomplete) {
			continue
		}
		if err != nil {
			return nil
		}
		for _, f := range ck.Files {
			for _, t := range f.Tables {
				named[t.Name] = true
			}
		}
	}
	names, err := s.fs.ReadDir(s.tablesDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	for _, name := range names {
		id, ok := parseTable(strings.TrimSuffix(name, tempSuffix))
		if !ok || named[name] || id.checkpoint >= newest {
			continue
		}
		if err := s.fs.Remove(s.tablePath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove table %s: %w", s.tablePath(name), err)
		}
		s.forgetFile(s.tablePath(name))
	}
	return nil
}

func (s *Store) forgetFile(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.verified, name)
}

// strangeTable returns a name among the tables that no table has, or "".
func (s *Store) strangeTable() (string, error) {
	names, err := s.fs.ReadDir(s.tablesDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("list tables: %w", err)
	}
	for _, name := range names {
		if _, ok := parseTable(strings.TrimSuffix(name, tempSuffix)); !ok {
			return name, nil
		}
	}
	return "", nil
}

// clearTables removes every table, and the directory.
func (s *Store) clearTables() error {
	foreign, err := s.strangeTable()
	if err == nil {
		err = s.removeTables()
	}
	if err == nil && foreign != "" {
		return fmt.Errorf("%s: %w", s.tablePath(foreign), ErrForeign)
	}
	if err == nil {
		if err = s.fs.Remove(s.tablesDir()); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return err
}

func (s *Store) removeTables() error {
	names, err := s.TableNames()
	if err != nil {
		return err
	}
	for name := range names {
		if _, ok := parseTable(strings.TrimSuffix(name, tempSuffix)); !ok {
			continue
		}
		if err := s.fs.Remove(s.tablePath(name)); err != nil {
			return fmt.Errorf("remove table %s: %w", s.tablePath(name), err)
		}
	}
	return nil
}
