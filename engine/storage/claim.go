package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// ErrOccupied says that a place is taken by what this run did not write.
var ErrOccupied = errors.New("in use already")

// probeBytes is how much Probe writes: a page, so that a file system without room says so.
const probeBytes = 4 << 10

// Probe makes dir, writes a file called name into it, and removes it: what a checkpoint would otherwise fail with is
// known early. A file of that name must not be somebody's.
func Probe(fsys FS, dir, name string) error {
	if err := fsys.MkdirAll(dir); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	name = path.Join(dir, name)
	f, err := fsys.Create(name)
	if err != nil {
		return fmt.Errorf("it is not writable: %w", err)
	}
	_, err = f.Write(make([]byte, probeBytes))
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		giveUp(f)
		if !isObjects(fsys) {
			_ = fsys.Remove(name) // the write's error is the one to report
		}
		return fmt.Errorf("it is not writable: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("it is not writable: %w", err)
	}
	if err := fsys.Remove(name); err != nil {
		return fmt.Errorf("what was written cannot be removed: %w", err)
	}
	return nil
}

// Vacant returns an error that wraps ErrOccupied if the job's directory holds anything that a new run would meet: complete
// checkpoints, of whichever job or version, or files that are not a checkpoint's. What never became complete is no
// obstacle. Nothing is changed.
func (s *Store) Vacant() error {
	list, foreign, err := s.numbers()
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		return fmt.Errorf("%s: %w: %s", s.dir, ErrOccupied, describe(foreign))
	}
	for _, number := range list {
		switch _, err := s.Load(number); {
		case err == nil:
			return fmt.Errorf("%s: %w: checkpoint %d of job %s is there", s.dir, ErrOccupied, number, s.job)
		case !errors.Is(err, ErrIncomplete):
			return fmt.Errorf("%w: %w", ErrOccupied, err)
		}
		if foreign, err := s.strange(number); err != nil || foreign != "" {
			return errors.Join(err, fmt.Errorf("%s: %w: %s is not a checkpoint's", s.checkpointDir(number), ErrOccupied, foreign))
		}
	}
	if foreign, err := s.strangeTable(); err != nil || foreign != "" {
		return errors.Join(err, fmt.Errorf("%s: %w: %s is not a table", s.tablesDir(), ErrOccupied, foreign))
	}
	return nil
}

// describe names what is foreign, the first few of it.
func describe(list []Skipped) string {
	const most = 3
	var names []string
	for _, f := range list[:min(most, len(list))] {
		names = append(names, path.Base(f.Path))
	}
	text := strings.Join(names, ", ")
	if n := len(list) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if len(list) == 1 {
		return text + " is not a checkpoint"
	}
	return text + " are not checkpoints"
}

// strange returns a file of a checkpoint's directory that no checkpoint has, or "".
func (s *Store) strange(number uint64) (string, error) {
	names, err := s.fs.ReadDir(s.checkpointDir(number))
	if err != nil {
		return "", fmt.Errorf("list %s: %w", s.checkpointDir(number), err)
	}
	for _, name := range names {
		if !isCheckpointFile(name) {
			return name, nil
		}
	}
	return "", nil
}

// isCheckpointFile says whether a name is one that a checkpoint's files have, also while they are written.
func isCheckpointFile(name string) bool {
	base := strings.TrimSuffix(name, tempSuffix)
	return base == manifestName || isTaskName(base)
}

// Clear removes every checkpoint of the job, complete or not, and its directory. What is not a checkpoint stays, and is an
// error that wraps ErrForeign.
func (s *Store) Clear() error {
	list, foreign, err := s.numbers()
	if err != nil {
		return err
	}
	for _, number := range list {
		if err := s.Remove(number); err != nil {
			return err
		}
	}
	if err := s.clearTables(); err != nil {
		return err
	}
	if len(foreign) > 0 {
		return fmt.Errorf("%s: %w: %s", s.dir, ErrForeign, describe(foreign))
	}
	if err := s.fs.Remove(s.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", s.dir, err)
	}
	return nil
}
