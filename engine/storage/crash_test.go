package storage

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the crash test (0: fixed seeds and a fresh one)")

// A disk that fails and crashes at random: a committed checkpoint is never lost,
// and what Newest gives is always what was written. Without syncing it may be older or
// none, but never wrong.
func TestCrashes(t *testing.T) {
	first, n := *seedFlag, uint64(1)
	if first == 0 {
		first, n = uint64(time.Now().UnixNano())>>1, 150
	}
	for _, noSync := range []bool{false, true} {
		for seed := first; seed < first+n; seed++ {
			if err := crashRun(seed, noSync); err != nil {
				t.Fatalf("noSync=%v: %v\nrepeat: go test ./engine/storage -run '^TestCrashes$' -seed=%d", noSync, err, seed)
			}
		}
	}
}

func crashRun(seed uint64, noSync bool) error {
	rng := rand.New(rand.NewPCG(seed, 3))
	m := NewMemFS()
	s, err := New(m, "/disk/data", "wordcount", Options{NoSync: noSync})
	if err != nil {
		return err
	}
	if err := errors.Join(m.MkdirAll("/disk"), m.SyncDir("/")); err != nil {
		return err
	}
	const tasks = 2
	committed, next := uint64(0), uint64(1)
	var chains [][]Link
	for range 20 {
		m.Heal()
		switch rng.IntN(6) {
		case 0:
			m.LimitSpace(int64(rng.IntN(3000)))
		case 1:
			ops := []Op{OpMkdir, OpCreate, OpWrite, OpSync, OpRename, OpSyncDir, OpRemove}
			m.Inject(DiskFault{Op: ops[rng.IntN(len(ops))], Skip: rng.IntN(8), Err: syscall.EIO})
		}
		var before [][]Link
		if rng.IntN(4) > 0 {
			before = chains
		}
		if written, err := continueCheckpoint(s, next, tasks, before); err == nil {
			committed, chains = next, written
		}
		next++
		if rng.IntN(3) == 0 {
			// A failed removal is tried again by the next one; what must hold is below.
			_, _ = s.Retain(1 + rng.IntN(2))
		}
		if rng.IntN(2) == 0 {
			m.Crash(rng)
		}
		m.Heal()
		if err := checkNewest(s, committed, noSync); err != nil {
			return err
		}
	}
	return nil
}

func checkNewest(s *Store, committed uint64, noSync bool) error {
	ck, skipped, err := s.Newest()
	if err == nil {
		if ck.Number < committed && !noSync {
			return fmt.Errorf("checkpoint %d was committed, %d is the newest; skipped %v", committed, ck.Number, skipped)
		}
		return checkContent(s, ck, uint32(len(ck.Files)))
	}
	if !errors.Is(err, ErrNoCheckpoint) && !errors.Is(err, ErrNoUsableCheckpoint) {
		return err
	}
	if committed > 0 && !noSync {
		return fmt.Errorf("checkpoint %d was committed, now: %w; skipped %v", committed, err, skipped)
	}
	return nil
}

// A commit that fails after its MANIFEST got its name is visible and not durable. Cleaning up
// must not let it stand in for the one before.
func TestRetainDoesNotTrustAnUnsyncedManifest(t *testing.T) {
	for seed := range uint64(20) {
		m := NewMemFS()
		s := open(t, m, "/data")
		mustWrite(t, s, 1, 1)
		info, err := writeTask(s, 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		m.Inject(DiskFault{Op: OpSyncDir, Path: "chk-2", Err: syscall.EIO})
		ck := Checkpoint{Number: 2, Files: []FileInfo{info}, Meta: []byte("offset 2")}
		if err := s.Commit(ck); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		if ck, _, err := s.Newest(); err != nil || ck.Number != 2 {
			t.Fatalf("the failed commit is not visible: %d %v", ck.Number, err)
		}
		if removed, err := s.Retain(1); !errors.Is(err, syscall.EIO) || len(removed) > 0 {
			t.Fatalf("removed %v, %v", removed, err)
		}
		m.Heal()
		if seed%2 == 1 { // the disk recovered, so the newer one can be made durable
			if removed, err := s.Retain(1); err != nil || len(removed) != 1 {
				t.Fatalf("removed %v, %v", removed, err)
			}
		}
		m.Crash(rand.New(rand.NewPCG(seed, 1)))
		ck, _, err = s.Newest()
		if err != nil {
			t.Fatal(err)
		}
		if err := checkContent(s, ck, 1); err != nil {
			t.Fatal(err)
		}
	}
}
