package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
		if name == tablesName {
			continue
		}
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
	known := map[string]error{}
	for _, number := range list {
		ck, err := s.verify(number, known)
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

// Retain removes checkpoints so that keep complete ones (at least 1) stay, the newest, with those that they link to, and
// returns the numbers removed. If keep is 2 or more, one stays that shares no file with the newest. It removes nothing
// unless one of those that stay can be trusted; if none can, the newest older one that can stays too. Incomplete
// checkpoints older than the newest complete one go as well. Files are read only where their stamps are not those of
// their writers.
func (s *Store) Retain(keep int) (removed []uint64, err error) {
	if keep < 1 {
		panic(fmt.Sprintf("storage: retain %d checkpoints", keep))
	}
	list, _, err := s.numbers()
	if err != nil {
		return nil, err
	}
	var complete []Checkpoint // of damaged ones only the number is known
	var surplus []uint64
	for _, number := range list {
		ck, err := s.Load(number)
		if !errors.Is(err, ErrIncomplete) {
			ck.Number = number
			complete = append(complete, ck)
		} else if len(complete) > 0 {
			surplus = append(surplus, number)
		}
	}
	if len(surplus) == 0 && len(complete) <= keep {
		return nil, nil
	}
	kept, err := s.keep(complete, keep)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	for _, ck := range complete {
		if !kept[ck.Number] {
			surplus = append(surplus, ck.Number)
		}
	}
	// The newest first: what links goes before what it links to.
	slices.SortFunc(surplus, func(a, b uint64) int { return cmp.Compare(b, a) })
	for _, number := range surplus {
		if err := s.Remove(number); err != nil {
			return removed, err
		}
		s.forget(number)
		removed = append(removed, number)
	}
	slices.Sort(removed)
	return removed, s.sweep(complete[0].Number)
}

// keep returns the numbers of the checkpoints that must stay, of complete ones, newest first; none when none can be
// trusted.
func (s *Store) keep(complete []Checkpoint, keep int) (map[uint64]bool, error) {
	stay := slices.Clone(complete[:min(keep, len(complete))])
	apart := func(ck Checkpoint) bool { return !shares(complete[0], ck) }
	if keep > 1 && !slices.ContainsFunc(stay, apart) {
		if i := slices.IndexFunc(complete, apart); i >= 0 {
			stay = append(stay, complete[i])
		}
	}
	good := slices.IndexFunc(complete, func(ck Checkpoint) bool { return s.trust(ck.Number) == nil })
	if good < 0 {
		return nil, nil
	}
	if err := s.settle(complete[good].Number); err != nil {
		return nil, err
	}
	kept := map[uint64]bool{}
	for _, ck := range append(stay, complete[good]) {
		kept[ck.Number] = true
		for _, f := range ck.Files {
			for _, l := range f.Links {
				kept[l.Checkpoint] = true
			}
		}
	}
	return kept, nil
}

// shares says whether two checkpoints need a file in common.
func shares(a, b Checkpoint) bool {
	type file struct {
		task       uint32
		checkpoint uint64
	}
	files := map[file]bool{}
	for _, f := range a.Files {
		for _, l := range f.Chain(a.Number) {
			files[file{f.Task, l.Checkpoint}] = true
		}
	}
	for _, f := range b.Files {
		for _, l := range f.Chain(b.Number) {
			if files[file{f.Task, l.Checkpoint}] {
				return true
			}
		}
	}
	return false
}

// forget drops what is known of a removed checkpoint's files.
func (s *Store) forget(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.checkpointDir(number)
	maps.DeleteFunc(s.verified, func(name string, _ verified) bool { return path.Dir(name) == dir })
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
	task, epoch, deployed := strings.Cut(n, "-e")
	_, err := strconv.ParseUint(task, 10, 32)
	if deployed {
		_, err2 := strconv.ParseUint(epoch, 10, 32)
		return ok && ok2 && err == nil && err2 == nil
	}
	return ok && ok2 && err == nil
}
