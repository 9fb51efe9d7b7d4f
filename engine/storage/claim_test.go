package storage

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"strings"
	"syscall"
	"testing"
)

// put writes a file that no checkpoint has.
func put(t *testing.T, m *MemFS, name string) {
	t.Helper()
	if err := m.MkdirAll(path.Dir(name)); err != nil {
		t.Fatal(err)
	}
	f, err := m.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ignoreCount(f.Write([]byte("mine"))), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func ignoreCount(_ int, err error) error { return err }

// ofVersion is a MANIFEST as a program of another format version would have written it.
func ofVersion(manifest []byte, version int) []byte {
	_, rest, _ := bytes.Cut(manifest[:len(manifest)-checksumLineBytes], []byte("\n"))
	b := fmt.Appendf(nil, "%s%d\n%s", manifestTitle, version, rest)
	return fmt.Appendf(b, "crc32c %08x\n", crc32.Checksum(b, castagnoli()))
}

// A run neither begins where something lies that it did not write, nor changes it.
func TestVacant(t *testing.T) {
	const dir = "/data/job-wordcount"
	for _, c := range []struct {
		name string
		do   func(t *testing.T, m *MemFS, s *Store)
		want string // part of the message; "" means vacant
	}{
		{"nothing", func(*testing.T, *MemFS, *Store) {}, ""},
		{"incomplete", func(t *testing.T, _ *MemFS, s *Store) {
			if _, err := writeTask(s, 1, 0); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"another job beside it", func(t *testing.T, m *MemFS, _ *Store) {
			other, err := New(m, "/data", "other", Options{})
			if err != nil {
				t.Fatal(err)
			}
			mustWrite(t, other, 1, 1)
		}, ""},
		{"a complete one", func(t *testing.T, _ *MemFS, s *Store) { mustWrite(t, s, 1, 7) }, "checkpoint 7 of job wordcount is there"},
		{"foreign file", func(t *testing.T, m *MemFS, _ *Store) { put(t, m, dir+"/notes.txt") }, "notes.txt is not a checkpoint"},
		{"foreign files", func(t *testing.T, m *MemFS, _ *Store) {
			for i := range 5 {
				put(t, m, fmt.Sprintf("%s/%d.txt", dir, i))
			}
		}, "0.txt, 1.txt, 2.txt and 2 more are not checkpoints"},
		{"foreign file in a checkpoint", func(t *testing.T, m *MemFS, _ *Store) { put(t, m, dir+"/chk-3/notes.txt") }, "notes.txt is not a checkpoint's"},
		{"of another job", func(t *testing.T, m *MemFS, s *Store) {
			other, err := New(m, "/data", "other", Options{})
			if err != nil {
				t.Fatal(err)
			}
			mustWrite(t, other, 1, 2)
			other.dir = s.dir
			mustWrite(t, other, 1, 2)
		}, "checkpoint of another job"},
		{"of another version", func(t *testing.T, m *MemFS, s *Store) {
			mustWrite(t, s, 1, 2)
			damage(t, m, dir+"/chk-2/MANIFEST", func(b []byte) []byte { return ofVersion(b, 9) })
		}, "other checkpoint format version"},
		{"damaged", func(t *testing.T, m *MemFS, s *Store) {
			mustWrite(t, s, 1, 2)
			damage(t, m, dir+"/chk-2/MANIFEST", func(b []byte) []byte { return b[:9] })
		}, "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMemFS()
			s := open(t, m, "/data")
			c.do(t, m, s)
			before := listing(m.root, "")
			err := s.Vacant()
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := listing(m.root, ""); after != before {
				t.Errorf("before: %s\nafter: %s", before, after)
			}
		})
	}
}

// listing is every file with its length.
func listing(n *node, name string) string {
	if !n.dir {
		return fmt.Sprintf("%s(%d) ", name, len(n.data))
	}
	var out strings.Builder
	for _, base := range sortedKeys(n.entries) {
		out.WriteString(listing(n.entries[base], name+"/"+base))
	}
	return out.String()
}

func TestClearRemovesCheckpointsAndNothingElse(t *testing.T) {
	m := NewMemFS()
	s := open(t, m, "/data")
	mustWrite(t, s, 2, 1, 2)
	if _, err := writeTask(s, 3, 0); err != nil {
		t.Fatal(err)
	}
	put(t, m, "/data/job-wordcount/notes.txt")
	put(t, m, "/data/other.txt")
	if err := s.Clear(); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "notes.txt") {
		t.Fatal(err)
	}
	if got := listing(m.root, ""); got != "/data/job-wordcount/notes.txt(4) /data/other.txt(4) " {
		t.Fatal(got)
	}
	if err := m.Remove("/data/job-wordcount/notes.txt"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also when there is nothing
		if err := s.Clear(); err != nil {
			t.Fatal(err)
		}
	}
	if m.find("/data/job-wordcount") != nil {
		t.Fatal("the job's directory is still there")
	}
}

func TestProbe(t *testing.T) {
	m := NewMemFS()
	if err := Probe(m, "/data", ".probe"); err != nil {
		t.Fatal(err)
	}
	for _, op := range []Op{OpMkdir, OpCreate, OpWrite, OpSync, OpRemove} {
		m.Heal()
		m.Inject(DiskFault{Op: op, Err: syscall.EROFS})
		if err := Probe(m, "/data", ".probe"); !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", op, err)
		}
		m.Heal()
		if err := m.Remove("/data/.probe"); err == nil && op != OpRemove {
			t.Errorf("%s: something was left behind", op)
		}
	}
	m.LimitSpace(100)
	if err := Probe(m, "/data", ".probe"); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}
