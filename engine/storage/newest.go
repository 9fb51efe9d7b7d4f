package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// numbers returns the checkpoint numbers that have a directory, newest first,
// and what else is there.
func (s *Store) numbers() (list []uint64, foreign []Skipped, err error) {
	names, err := s.fs.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list checkpoints in %s: %w", s.dir, err)
	}
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, chkPrefix)
		n, err := strconv.ParseUint(digits, 10, 64)
		if !ok || err != nil || strconv.FormatUint(n, 10) != digits {
			foreign = append(foreign, Skipped{path.Join(s.dir, name), ErrForeign})
			continue
		}
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b uint64) int { return cmp.Compare(b, a) })
	return list, foreign, nil
}

// Newest returns the newest checkpoint that is complete and whose files all
// verify, and what it passed over, with reasons. It returns ErrNoCheckpoint if there is no
// complete one at all, and ErrNoUsableCheckpoint, which wraps every reason, if there are some
// and none verifies: then starting empty would lose state.
func (s *Store) Newest() (Checkpoint, []Skipped, error) {
	list, skipped, err := s.numbers()
	if err != nil {
		return Checkpoint{}, nil, err
	}
	var reasons []error
	for _, number := range list {
		ck, err := s.Verify(number)
		if err == nil {
			return ck, skipped, nil
		}
		skipped = append(skipped, Skipped{s.checkpointDir(number), err})
		if !errors.Is(err, ErrIncomplete) {
			reasons = append(reasons, err)
		}
	}
	if len(reasons) == 0 {
		return Checkpoint{}, skipped, fmt.Errorf("%s: %w", s.dir, ErrNoCheckpoint)
	}
	return Checkpoint{}, skipped, fmt.Errorf("%s: %w: %w", s.dir, ErrNoUsableCheckpoint, errors.Join(reasons...))
}

// Retain removes checkpoints so that keep complete ones (at least 1) stay, the newest, and
// returns the numbers removed. It removes nothing unless one of those that stay verifies;
// if none does, the newest older one that verifies stays too. Incomplete
// checkpoints older than the newest complete one go as well. It reads a whole checkpoint to
// be sure, so it belongs off the record path.
func (s *Store) Retain(keep int) (removed []uint64, err error) {
	if keep < 1 {
		panic(fmt.Sprintf("storage: retain %d checkpoints", keep))
	}
	list, _, err := s.numbers()
	if err != nil {
		return nil, err
	}
	var complete, incomplete []uint64
	for _, number := range list {
		if _, err := s.Load(number); !errors.Is(err, ErrIncomplete) {
			complete = append(complete, number)
		} else if len(complete) > 0 {
			incomplete = append(incomplete, number)
		}
	}
	kept := complete[:min(keep, len(complete))]
	surplus := slices.Clone(complete[len(kept):])
	if len(surplus)+len(incomplete) == 0 {
		return nil, nil
	}
	good := slices.IndexFunc(complete, func(number uint64) bool {
		_, err := s.Verify(number)
		return err == nil
	})
	if good < 0 {
		return nil, nil
	}
	if good >= len(kept) {
		surplus = slices.Delete(surplus, good-len(kept), good-len(kept)+1)
	}
	if err := s.settle(complete[good]); err != nil {
		return nil, err
	}
	surplus = append(surplus, incomplete...)
	slices.Sort(surplus)
	for _, number := range surplus {
		if err := s.Remove(number); err != nil {
			return removed, err
		}
		removed = append(removed, number)
	}
	return removed, nil
}

// settle makes what is seen of a complete checkpoint durable. Its Commit may have
// died, or failed, between the rename and the sync of the directory: a crash of the machine
// could still take the MANIFEST back.
func (s *Store) settle(number uint64) error {
	if !s.sync {
		return nil
	}
	dir := s.checkpointDir(number)
	if err := s.fs.SyncDir(dir); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := s.syncParents(); err != nil {
		return fmt.Errorf("sync the directories above %s: %w", dir, err)
	}
	return nil
}

// Remove deletes a checkpoint, the MANIFEST first, so that a crash in between leaves
// an incomplete one. Files that are not a checkpoint's stay, and are an error.
func (s *Store) Remove(number uint64) error {
	dir := s.checkpointDir(number)
	fail := func(err error) error { return fmt.Errorf("remove checkpoint %d in %s: %w", number, dir, err) }
	names, err := s.fs.ReadDir(dir)
	if err != nil {
		return fail(err)
	}
	if slices.Contains(names, manifestName) {
		if err := s.fs.Remove(path.Join(dir, manifestName)); err != nil {
			return fail(err)
		}
		if s.sync {
			if err := s.fs.SyncDir(dir); err != nil {
				return fail(err)
			}
		}
	}
	for _, name := range names {
		if name == manifestName {
			continue
		}
		if !isCheckpointFile(name) {
			return fail(fmt.Errorf("%s: %w", path.Join(dir, name), ErrForeign))
		}
		if err := s.fs.Remove(path.Join(dir, name)); err != nil {
			return fail(err)
		}
	}
	if err := s.fs.Remove(dir); err != nil {
		return fail(err)
	}
	if s.sync {
		return s.fs.SyncDir(s.dir)
	}
	return nil
}

func isTaskName(name string) bool {
	n, ok := strings.CutPrefix(name, "task-")
	n, ok2 := strings.CutSuffix(n, ".state")
	_, err := strconv.ParseUint(n, 10, 32)
	return ok && ok2 && err == nil
}
