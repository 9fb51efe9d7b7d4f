package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func open(t testing.TB, fsys FS, dir string) *Store {
	t.Helper()
	s, err := New(fsys, dir, "wordcount", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// content is what task writes in checkpoint: sections of chunks.
func content(checkpoint uint64, task uint32) map[string][]string {
	return map[string][]string{
		"state": {fmt.Sprintf("count of task %d at %d", task, checkpoint), strings.Repeat("x", int(checkpoint)*100), ""},
		"order": {fmt.Sprint(checkpoint * 1000)},
	}
}

var sectionOrder = []string{"state", "channels", "order"}

func writeTask(s *Store, checkpoint uint64, task uint32) (FileInfo, error) {
	w, err := s.Create(checkpoint, task, 0)
	if err != nil {
		return FileInfo{}, err
	}
	for _, name := range sectionOrder {
		if err := w.Section(name); err != nil {
			w.Abort()
			return FileInfo{}, err
		}
		for _, chunk := range content(checkpoint, task)[name] {
			if _, err := w.Write([]byte(chunk)); err != nil {
				w.Abort()
				return FileInfo{}, err
			}
		}
	}
	return w.Close()
}

// writeCheckpoint writes the files of tasks and commits them.
func writeCheckpoint(s *Store, number uint64, tasks uint32) error {
	_, err := continueCheckpoint(s, number, tasks, nil)
	return err
}

// continueCheckpoint is writeCheckpoint with files that continue those of before, one chain a task. It returns the chains
// of what it has written.
func continueCheckpoint(s *Store, number uint64, tasks uint32, before [][]Link) ([][]Link, error) {
	ck := Checkpoint{Number: number, Meta: fmt.Append(nil, "offset ", number)}
	var chains [][]Link
	for task := range tasks {
		info, err := writeTask(s, number, task)
		if err != nil {
			return nil, err
		}
		if before != nil {
			info.Links = before[task]
		}
		chains = append(chains, info.Chain(number))
		ck.Files = append(ck.Files, info)
	}
	return chains, s.Commit(ck)
}

func mustWrite(t testing.TB, s *Store, tasks uint32, numbers ...uint64) {
	t.Helper()
	for _, n := range numbers {
		if err := writeCheckpoint(s, n, tasks); err != nil {
			t.Fatal(err)
		}
	}
}

// checkContent reads all files of a checkpoint and compares them with what was
// written.
func checkContent(s *Store, ck Checkpoint, tasks uint32) error {
	if len(ck.Files) != int(tasks) || string(ck.Meta) != fmt.Sprint("offset ", ck.Number) {
		return fmt.Errorf("checkpoint %d has %d files and meta %q", ck.Number, len(ck.Files), ck.Meta)
	}
	for task := range tasks {
		r, err := s.Open(ck, task)
		if err != nil {
			return err
		}
		got := map[string][]string{}
		for {
			section, chunk, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			got[section] = append(got[section], string(chunk))
		}
		if err := r.Close(); err != nil {
			return err
		}
		if want := content(ck.Number, task); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("task %d of checkpoint %d: got %v, want %v", task, ck.Number, got, want)
		}
	}
	return nil
}

func TestNewestGivesBackWhatWasWritten(t *testing.T) {
	for name, fsys := range map[string]FS{"os": OS{}, "mem": NewMemFS()} {
		t.Run(name, func(t *testing.T) {
			s := open(t, fsys, filepath.Join(t.TempDir(), "checkpoints"))
			mustWrite(t, s, 3, 1, 2, 10)
			ck, skipped, err := s.Newest()
			if err != nil || len(skipped) > 0 || ck.Number != 10 || ck.Job != "wordcount" {
				t.Fatalf("%+v %v %v", ck, skipped, err)
			}
			if err := checkContent(s, ck, 3); err != nil {
				t.Fatal(err)
			}
			if err := s.Commit(ck); !errors.Is(err, ErrExists) {
				t.Fatalf("committing twice: %v", err)
			}
		})
	}
}

func TestNoCheckpointIsNotAFailureToReadOne(t *testing.T) {
	fsys := NewMemFS()
	s := open(t, fsys, "/data")
	if _, _, err := s.Newest(); !errors.Is(err, ErrNoCheckpoint) || errors.Is(err, ErrNoUsableCheckpoint) {
		t.Fatal(err)
	}
}

// Case 16: everything dies after worker 1 acknowledged the first checkpoint and before
// worker 2 did (or, of three, the last never started). The checkpoint does not count.
func TestCrashInsideFirstCheckpoint(t *testing.T) {
	for _, written := range []uint32{1, 2} {
		s := open(t, NewMemFS(), "/data")
		for task := range written {
			if _, err := writeTask(s, 1, task); err != nil {
				t.Fatal(err)
			}
		}
		w, err := s.Create(1, written, 0) // the next one has only begun
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Section("state"); err != nil {
			t.Fatal(err)
		}
		_, skipped, err := s.Newest()
		if !errors.Is(err, ErrNoCheckpoint) {
			t.Fatalf("%d files written: %v", written, err)
		}
		if len(skipped) != 1 || !errors.Is(skipped[0].Reason, ErrIncomplete) || !strings.Contains(skipped[0].String(), "chk-1") {
			t.Fatalf("the incomplete checkpoint is not reported: %v", skipped)
		}
		mustWrite(t, s, written+1, 1) // the same number again, over what is left
		ck, skipped, err := s.Newest()
		if err != nil || len(skipped) > 0 {
			t.Fatal(skipped, err)
		}
		if err := checkContent(s, ck, written+1); err != nil {
			t.Fatal(err)
		}
	}
}

// damages are the ways in which case 17 breaks a checkpoint.
var damages = []struct {
	name string
	do   func(t *testing.T, m *MemFS, dir string)
	want string // part of the reason
}{
	{"manifest cut in half", func(t *testing.T, m *MemFS, dir string) {
		damage(t, m, dir+"/MANIFEST", func(b []byte) []byte { return b[:len(b)/2] })
	}, "MANIFEST: damaged: cut off"},
	{"manifest of zero bytes", func(t *testing.T, m *MemFS, dir string) {
		damage(t, m, dir+"/MANIFEST", func([]byte) []byte { return nil })
	}, "MANIFEST: damaged: empty"},
	{"state file of zero bytes", func(t *testing.T, m *MemFS, dir string) {
		damage(t, m, dir+"/task-1.state", func([]byte) []byte { return nil })
	}, "task-1.state: damaged"},
	{"state file cut", func(t *testing.T, m *MemFS, dir string) {
		damage(t, m, dir+"/task-0.state", func(b []byte) []byte { return b[:len(b)-1] })
	}, "task-0.state: damaged"},
	{"state file longer", func(t *testing.T, m *MemFS, dir string) {
		damage(t, m, dir+"/task-0.state", func(b []byte) []byte { return append(b, 0) })
	}, "task-0.state: damaged"},
	{"state file removed", func(t *testing.T, m *MemFS, dir string) {
		if err := m.Remove(dir + "/task-1.state"); err != nil {
			t.Fatal(err)
		}
	}, "task-1.state: damaged: the state file is missing"},
	{"one byte flipped", func(t *testing.T, m *MemFS, dir string) {
		damage(t, m, dir+"/task-1.state", func(b []byte) []byte { b[len(b)*2/3] ^= 1; return b })
	}, "task-1.state: damaged"},
	{"file of another checkpoint", func(t *testing.T, m *MemFS, dir string) {
		var other []byte
		damage(t, m, "/data/job-wordcount/chk-1/task-0.state", func(b []byte) []byte { other = b; return b })
		damage(t, m, dir+"/task-0.state", func([]byte) []byte { return other })
	}, "it is checkpoint 1"},
}

func damage(t *testing.T, m *MemFS, name string, change func([]byte) []byte) {
	t.Helper()
	if !m.Damage(name, change) {
		t.Fatalf("no file %s", name)
	}
}

// hurts returns the ways in which a file is damaged that a checkpoint needs besides its own.
func hurts(t *testing.T) map[string]func(m *MemFS, file string) {
	return map[string]func(m *MemFS, file string){
		"flipped": func(m *MemFS, file string) { damage(t, m, file, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }) },
		"cut":     func(m *MemFS, file string) { damage(t, m, file, func(b []byte) []byte { return b[:len(b)/2] }) },
		"missing": func(m *MemFS, file string) {
			if err := m.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// Case 17: the newest of three completed checkpoints is damaged.
func TestNewestIsDamaged(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			m := NewMemFS()
			s := open(t, m, "/data")
			mustWrite(t, s, 2, 1, 2, 3)
			d.do(t, m, "/data/job-wordcount/chk-3")
			ck, skipped, err := s.Newest()
			if err != nil || ck.Number != 2 {
				t.Fatalf("checkpoint %d, %v", ck.Number, err)
			}
			if err := checkContent(s, ck, 2); err != nil {
				t.Fatal(err)
			}
			if len(skipped) != 1 || !errors.Is(skipped[0].Reason, ErrDamaged) || !strings.Contains(skipped[0].String(), d.want) {
				t.Fatalf("skipped %v, want a reason with %q", skipped, d.want)
			}
			// Cleaning up to one checkpoint keeps the good one beside the newest.
			removed, err := s.Retain(1)
			if err != nil || !slices.Equal(removed, []uint64{1}) {
				t.Fatalf("removed %v, %v", removed, err)
			}
			if ck, _, err := s.Newest(); err != nil || ck.Number != 2 {
				t.Fatalf("after cleaning up: checkpoint %d, %v", ck.Number, err)
			}
		})
	}
}

// Case 17 (e): all damaged is a failure, never an empty state, and cleaning up
// removes nothing.
func TestAllDamaged(t *testing.T) {
	for _, d := range damages[:7] {
		t.Run(d.name, func(t *testing.T) {
			m := NewMemFS()
			s := open(t, m, "/data")
			mustWrite(t, s, 2, 1, 2, 3)
			for n := 1; n <= 3; n++ {
				d.do(t, m, fmt.Sprintf("/data/job-wordcount/chk-%d", n))
			}
			_, skipped, err := s.Newest()
			if !errors.Is(err, ErrNoUsableCheckpoint) || errors.Is(err, ErrNoCheckpoint) || !errors.Is(err, ErrDamaged) || len(skipped) != 3 {
				t.Fatalf("%v, skipped %v", err, skipped)
			}
			if removed, err := s.Retain(1); err != nil || len(removed) > 0 {
				t.Fatalf("removed %v, %v", removed, err)
			}
		})
	}
}

func TestRetain(t *testing.T) {
	m := NewMemFS()
	s := open(t, m, "/data")
	mustWrite(t, s, 2, 1, 2, 3, 5, 9)
	for _, number := range []uint64{4, 10} { // an old attempt, and one under way
		if _, err := writeTask(s, number, 0); err != nil {
			t.Fatal(err)
		}
	}
	if removed, err := s.Retain(2); err != nil || !slices.Equal(removed, []uint64{1, 2, 3, 4}) {
		t.Fatalf("removed %v, %v", removed, err)
	}
	names, err := m.ReadDir("/data/job-wordcount")
	if err != nil || !slices.Equal(names, []string{"chk-10", "chk-5", "chk-9"}) {
		t.Fatal(names, err)
	}
	if removed, err := s.Retain(2); err != nil || len(removed) > 0 {
		t.Fatalf("removed %v, %v", removed, err)
	}
}

func TestOtherJobAndVersion(t *testing.T) {
	m := NewMemFS()
	s := open(t, m, "/data")
	mustWrite(t, s, 1, 1)
	other, err := New(m, "/data", "other", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := writeCheckpoint(other, 1, 1); err != nil {
		t.Fatal(err)
	}
	move := func(name string) {
		var b []byte
		damage(t, m, "/data/job-wordcount/chk-1/"+name, func(c []byte) []byte { b = c; return c })
		damage(t, m, "/data/job-other/chk-1/"+name, func([]byte) []byte { return b })
	}
	move("task-0.state")
	if _, err := other.Verify(1); !errors.Is(err, ErrOtherJob) || !strings.Contains(err.Error(), `of job "wordcount", want "other"`) {
		t.Fatal(err)
	}
	move("MANIFEST")
	if _, _, err := other.Newest(); !errors.Is(err, ErrNoUsableCheckpoint) || !errors.Is(err, ErrOtherJob) {
		t.Fatal(err)
	}
	damage(t, m, "/data/job-wordcount/chk-1/task-0.state", func(b []byte) []byte { b[len(magic)] = 9; return b })
	if _, _, err := s.Newest(); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), fmt.Sprintf("version 9, this program reads %d", formatVersion)) {
		t.Fatal(err)
	}
}

func TestDiskErrorsNameThePathAndSpareWhatIsThere(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(m *MemFS)
		want  error
	}{
		{"disk full in a state file", func(m *MemFS) { m.LimitSpace(50) }, syscall.ENOSPC},
		{"disk full in the manifest", func(m *MemFS) { m.Inject(DiskFault{Op: OpWrite, Path: "MANIFEST", Err: syscall.ENOSPC}) }, syscall.ENOSPC},
		{"unwritable directory", func(m *MemFS) { m.Inject(DiskFault{Op: OpMkdir, Err: syscall.EACCES}) }, fs.ErrPermission},
		{"unwritable file", func(m *MemFS) { m.Inject(DiskFault{Op: OpCreate, Path: "task-1", Err: syscall.EACCES}) }, fs.ErrPermission},
		{"sync fails", func(m *MemFS) { m.Inject(DiskFault{Op: OpSync, Skip: 1, Err: syscall.EIO}) }, syscall.EIO},
		{"rename fails", func(m *MemFS) { m.Inject(DiskFault{Op: OpRename, Path: "MANIFEST", Err: syscall.EIO}) }, syscall.EIO},
		{"directory sync fails", func(m *MemFS) { m.Inject(DiskFault{Op: OpSyncDir, Err: syscall.EIO}) }, syscall.EIO},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMemFS()
			s := open(t, m, "/data")
			mustWrite(t, s, 2, 1)
			c.spoil(m)
			err := writeCheckpoint(s, 2, 2)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "/data/job-wordcount/chk-2") {
				t.Fatalf("error %v, want %v with the path", err, c.want)
			}
			m.Heal()
			ck, _, err := s.Newest()
			if err != nil || ck.Number != 1 {
				t.Fatalf("checkpoint %d, %v", ck.Number, err)
			}
			if err := checkContent(s, ck, 2); err != nil {
				t.Fatal(err)
			}
			mustWrite(t, s, 2, 2, 3)
			if ck, _, err := s.Newest(); err != nil || ck.Number != 3 {
				t.Fatalf("after healing: checkpoint %d, %v", ck.Number, err)
			}
		})
	}
}

func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, OS{}, dir)
	mustWrite(t, s, 1, 1, 2)
	job := filepath.Join(dir, "job-wordcount")
	for _, name := range []string{"notes.txt", "chk-x", "chk-007", "chk-1/keep.me"} {
		if err := os.WriteFile(filepath.Join(job, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ck, skipped, err := s.Newest()
	if err != nil || ck.Number != 2 || len(skipped) != 3 {
		t.Fatalf("checkpoint %d, skipped %v, %v", ck.Number, skipped, err)
	}
	for _, sk := range skipped {
		if !errors.Is(sk.Reason, ErrForeign) {
			t.Fatal(sk)
		}
	}
	_, err = s.Retain(1)
	if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), filepath.Join(job, "chk-1", "keep.me")) {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(job, "chk-1", "keep.me")); err != nil || string(b) != "mine" {
		t.Fatal("a foreign file was touched")
	}
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeCheckpoint(open(t, OS{}, blocked), 1, 1); !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), blocked) {
		t.Fatal(err)
	}
}

func TestCommitRefusesWhatIsNotThere(t *testing.T) {
	s := open(t, NewMemFS(), "/data")
	info, err := writeTask(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	absent := FileInfo{Task: 1, Name: "task-1.state", Stamp: Stamp{Bytes: 1}}
	for name, files := range map[string][]FileInfo{
		"absent": {info, absent}, "none": nil, "twice": {info, info}, "misnamed": {{Task: 0, Name: "task-1.state"}},
	} {
		if err := s.Commit(Checkpoint{Number: 1, Files: files}); err == nil {
			t.Fatalf("%s: committed", name)
		}
	}
	if _, _, err := s.Newest(); !errors.Is(err, ErrNoCheckpoint) {
		t.Fatal(err)
	}
}

func TestJobNames(t *testing.T) {
	for _, job := range []string{"", ".", "..", "a/b", "a b", strings.Repeat("a", 65), "ä"} {
		if _, err := New(NewMemFS(), "/data", job, Options{}); err == nil {
			t.Errorf("job name %q was accepted", job)
		}
	}
}

// Every single flipped bit and every length of a file is noticed by the reader.
func TestReaderNoticesEveryFlippedBit(t *testing.T) {
	m := NewMemFS()
	s := open(t, m, "/data")
	mustWrite(t, s, 1, 1)
	var good []byte
	damage(t, m, "/data/job-wordcount/chk-1/task-0.state", func(b []byte) []byte { good = b; return b })
	id := FileID{Job: "wordcount", Checkpoint: 1}
	if err := drain(good, id); err != nil {
		t.Fatal(err)
	}
	for i := range len(good) * 8 {
		b := slices.Clone(good)
		b[i/8] ^= 1 << (i % 8)
		if err := drain(b, id); err == nil {
			t.Fatalf("bit %d of byte %d", i%8, i/8)
		}
	}
	for n := range len(good) {
		if err := drain(good[:n], id); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

// Records that are whole each, but missing, doubled or in another order, are noticed
// by the checksums of sections and the trailer.
func TestReaderNoticesMisplacedRecords(t *testing.T) {
	m := NewMemFS()
	s := open(t, m, "/data")
	mustWrite(t, s, 1, 1)
	var good []byte
	damage(t, m, "/data/job-wordcount/chk-1/task-0.state", func(b []byte) []byte { good = b; return b })
	var records [][]byte
	for rest := good[preambleBytes:]; len(rest) > 0; {
		n := recordHeaderBytes + int(binary.LittleEndian.Uint32(rest[4:]))
		records = append(records, rest[:n])
		rest = rest[n:]
	}
	// 0 identity, 1 start of "state", 2 3 4 chunks, 5 end, 6 7 empty "channels",
	// 8 start of "order", 9 chunk, 10 end, 11 trailer.
	for name, order := range map[string][]int{
		"chunk missing":     {0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11},
		"empty one missing": {0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11},
		"chunk doubled":     {0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		"chunks exchanged":  {0, 1, 3, 2, 4, 5, 6, 7, 8, 9, 10, 11},
		"section missing":   {0, 1, 2, 3, 4, 5, 8, 9, 10, 11},
		"section doubled":   {0, 1, 2, 3, 4, 5, 6, 7, 6, 7, 8, 9, 10, 11},
		"end missing":       {0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11},
		"trailer missing":   {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		"chunk outside":     {0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
	} {
		b := slices.Clone(good[:preambleBytes])
		for _, i := range order {
			b = append(b, records[i]...)
		}
		if err := drain(b, FileID{Job: "wordcount", Checkpoint: 1}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func drain(b []byte, id FileID) error {
	r, err := NewReader(bytes.NewReader(b), "file", id)
	for err == nil {
		_, _, err = r.Next()
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func FuzzReader(f *testing.F) {
	m := NewMemFS()
	s := open(f, m, "/data")
	mustWrite(f, s, 1, 1)
	m.Damage("/data/job-wordcount/chk-1/task-0.state", func(b []byte) []byte { f.Add(b); return b })
	f.Fuzz(func(t *testing.T, b []byte) {
		err := drain(b, FileID{Job: "wordcount", Checkpoint: 1})
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrOtherJob) {
			t.Fatal(err)
		}
	})
}

func FuzzManifest(f *testing.F) {
	s := open(f, NewMemFS(), "/data")
	f.Add(encodeManifest(Checkpoint{Job: "wordcount", Number: 1, Files: []FileInfo{{Name: "task-0.state"}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		ck, err := s.decodeManifest(b, 1)
		if err == nil {
			if again, err := s.decodeManifest(encodeManifest(ck), 1); err != nil || fmt.Sprint(again) != fmt.Sprint(ck) {
				t.Fatalf("%v: %v became %v", err, ck, again)
			}
		}
	})
}
