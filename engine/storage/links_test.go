package storage

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

// chain writes complete checkpoints; those in whole begin a new chain, the others link to the files of the one before.
func chain(t *testing.T, s *Store, tasks uint32, whole []uint64, numbers ...uint64) {
	t.Helper()
	var last [][]Link
	for _, number := range numbers {
		if slices.Contains(whole, number) {
			last = nil
		}
		var err error
		if last, err = continueCheckpoint(s, number, tasks, last); err != nil {
			t.Fatal(err)
		}
	}
}

func listed(t *testing.T, m *MemFS) string {
	t.Helper()
	names, err := m.ReadDir("/data/job-wordcount")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func TestLinksComeBackInOrder(t *testing.T) {
	s := open(t, NewMemFS(), "/data")
	chain(t, s, 2, []uint64{2}, 2, 4, 7)
	ck, skipped, err := s.Newest()
	if err != nil || len(skipped) > 0 || ck.Number != 7 {
		t.Fatal(ck.Number, skipped, err)
	}
	for _, f := range ck.Files {
		if len(f.Links) != 2 || f.Links[0].Checkpoint != 2 || f.Links[1].Checkpoint != 4 {
			t.Fatalf("%+v", f)
		}
		for _, l := range f.Links {
			r, err := s.OpenFile(f.Task, l)
			if err != nil {
				t.Fatal(err)
			}
			if _, chunk, err := r.Next(); err != nil || string(chunk) != content(l.Checkpoint, f.Task)["state"][0] {
				t.Fatalf("%q %v", chunk, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDamagedLinkMakesACheckpointUnusable(t *testing.T) {
	for name, hurt := range hurts(t) {
		t.Run(name, func(t *testing.T) {
			m := NewMemFS()
			s := open(t, m, "/data")
			chain(t, s, 2, []uint64{1, 2}, 1, 2, 3, 4)
			hurt(m, "/data/job-wordcount/chk-2/task-1.state")
			ck, skipped, err := s.Newest()
			if err != nil || ck.Number != 1 || len(skipped) != 3 {
				t.Fatal(ck.Number, skipped, err)
			}
			for _, p := range skipped {
				if !strings.Contains(p.String(), "chk-2/task-1.state") {
					t.Errorf("the reason does not name the damaged file: %s", p)
				}
			}
		})
	}
}

func TestCommitRefusesMissingLinks(t *testing.T) {
	m := NewMemFS()
	s := open(t, m, "/data")
	chain(t, s, 1, []uint64{1}, 1, 2)
	info, err := writeTask(s, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Load(2)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string][]Link{
		"not complete": {{Checkpoint: 1}, {Checkpoint: 9}},
		"out of order": {two.Files[0].Links[0], two.Files[0].Links[0]},
		"other size":   {{Checkpoint: 1, Stamp: Stamp{Bytes: 3}}},
	} {
		info.Links = l
		if err := s.Commit(Checkpoint{Number: 3, Files: []FileInfo{info}}); err == nil {
			t.Errorf("%s: committed", name)
		}
	}
	if err := s.Remove(1); err != nil {
		t.Fatal(err)
	}
	info.Links = two.Files[0].Chain(2)
	if err := s.Commit(Checkpoint{Number: 3, Files: []FileInfo{info}}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a link to what is gone: %v", err)
	}
}

func TestRetainKeepsWhatIsLinked(t *testing.T) {
	m := NewMemFS()
	s := open(t, m, "/data")
	chain(t, s, 2, []uint64{1, 4, 7}, 1, 2, 3, 4, 5, 6, 7, 8)
	// 8 and 7 share a file, so 6 stays with its chain; 1 to 3 go.
	if removed, err := s.Retain(2); err != nil || !slices.Equal(removed, []uint64{1, 2, 3}) {
		t.Fatal(removed, err)
	}
	if got := listed(t, m); got != "chk-4 chk-5 chk-6 chk-7 chk-8" {
		t.Fatal(got)
	}
	if removed, err := s.Retain(1); err != nil || !slices.Equal(removed, []uint64{4, 5, 6}) {
		t.Fatal(removed, err)
	}
	if ck, _, err := s.Newest(); err != nil || ck.Number != 8 {
		t.Fatal(ck.Number, err)
	}
}

func TestRetainKeepsTheLastGoodChain(t *testing.T) {
	m := NewMemFS()
	s := open(t, m, "/data")
	chain(t, s, 1, []uint64{1, 3}, 1, 2, 3, 4)
	damage(t, m, "/data/job-wordcount/chk-3/task-0.state", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	if removed, err := s.Retain(1); err != nil || len(removed) > 0 {
		t.Fatal(removed, err) // 4 cannot be used without 3, and 2 not without 1
	}
	if ck, _, err := s.Newest(); err != nil || ck.Number != 2 {
		t.Fatal(ck.Number, err)
	}
}

// countingFS counts the state files that are read.
type countingFS struct {
	*MemFS
	opened map[string]int
}

func (c countingFS) Open(name string) (io.ReadCloser, error) {
	if path.Base(name) != manifestName {
		c.opened[name]++
	}
	return c.MemFS.Open(name)
}

func TestRetainReadsAFileOnceAndOnlyIfItChanged(t *testing.T) {
	m := countingFS{NewMemFS(), map[string]int{}}
	s := open(t, m, "/data")
	chain(t, s, 2, []uint64{1, 2, 3, 4, 5}, 1, 2, 3, 4)
	if removed, err := s.Retain(2); err != nil || len(removed) != 2 || len(m.opened) > 0 {
		t.Fatal(removed, err, m.opened)
	}
	// Another stamp, the same bytes: read, once.
	touched := "/data/job-wordcount/chk-5/task-0.state"
	chain(t, s, 2, []uint64{5}, 5)
	damage(t, m.MemFS, touched, func(b []byte) []byte { return b })
	for range 3 {
		if _, err := s.Retain(1); err != nil {
			t.Fatal(err)
		}
		mustWriteIncomplete(t, s, 4)
	}
	if len(m.opened) != 1 || m.opened[touched] != 1 {
		t.Fatal(m.opened)
	}
}

// mustWriteIncomplete leaves something for Retain to remove.
func mustWriteIncomplete(t *testing.T, s *Store, number uint64) {
	t.Helper()
	if _, err := writeTask(s, number, 0); err != nil {
		t.Fatal(err)
	}
}

// TestTheReplacedWriteToAFileOfTheirOwn: a worker that was fenced may write its part of a checkpoint when that of its successor
// is already in the manifest.
func TestTheReplacedWriteToAFileOfTheirOwn(t *testing.T) {
	s := open(t, NewMemFS(), "/data")
	write := func(epoch uint32, text string) FileInfo {
		w, err := s.Create(1, 0, epoch)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Section("state"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		info, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if err := s.Commit(Checkpoint{Number: 1, Files: []FileInfo{write(2, "of the successor")}}); err != nil {
		t.Fatal(err)
	}
	write(1, "of the one that was replaced")
	ck, passed, err := s.Newest()
	if err != nil || ck.Number != 1 || len(passed) > 0 {
		t.Fatalf("newest is %d, passed over %v, %v", ck.Number, passed, err)
	}
	r, err := s.Open(ck, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, chunk, err := r.Next(); err != nil || string(chunk) != "of the successor" {
		t.Errorf("read %q, %v", chunk, err)
	}
	if _, err := s.Retain(1); err != nil {
		t.Errorf("retention with a file that no manifest names: %v", err)
	}
}
