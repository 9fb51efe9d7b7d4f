package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-bench/weir/engine/storage"
)

func store(t *testing.T, fsys storage.FS, dir, job string) *storage.Store {
	t.Helper()
	s, err := storage.New(fsys, dir, job, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func content(checkpoint uint64, task uint32) string {
	return fmt.Sprintf("state of task %d at %d", task, checkpoint)
}

func writeTask(s *storage.Store, checkpoint uint64, task uint32) (storage.FileInfo, error) {
	w, err := s.Create(checkpoint, task, 0)
	if err != nil {
		return storage.FileInfo{}, err
	}
	if err := w.Section("state"); err == nil {
		_, _ = w.Write([]byte(content(checkpoint, task))) // Close gives the error again
	}
	return w.Close()
}

func write(s *storage.Store, number uint64) error {
	ck := storage.Checkpoint{Number: number, Meta: fmt.Append(nil, "meta ", number)}
	for task := range uint32(2) {
		info, err := writeTask(s, number, task)
		if err != nil {
			return err
		}
		ck.Files = append(ck.Files, info)
	}
	return s.Commit(ck)
}

func mustWrite(t *testing.T, s *storage.Store, numbers ...uint64) {
	t.Helper()
	for _, n := range numbers {
		if err := write(s, n); err != nil {
			t.Fatal(err)
		}
	}
}

// newest reads the newest checkpoint and checks that it is what was written.
func newest(t *testing.T, s *storage.Store, want uint64) []storage.Skipped {
	t.Helper()
	ck, skipped, err := s.Newest()
	if err != nil {
		t.Fatal(err)
	}
	if ck.Number != want || string(ck.Meta) != fmt.Sprint("meta ", want) || len(ck.Files) != 2 {
		t.Fatalf("newest is %+v, want %d; skipped %v", ck, want, skipped)
	}
	for task := range uint32(2) {
		r, err := s.Open(ck, task)
		if err != nil {
			t.Fatal(err)
		}
		section, chunk, err := r.Next()
		if err != nil || section != "state" || string(chunk) != content(want, task) {
			t.Fatalf("task %d: %s %q %v", task, section, chunk, err)
		}
		if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return skipped
}

func TestCheckpointsInBuckets(t *testing.T) {
	eachBucket(t, func(t *testing.T, fsys storage.FS, dir string) {
		s := store(t, fsys, dir, "job")
		if _, _, err := s.Newest(); !errors.Is(err, storage.ErrNoCheckpoint) {
			t.Fatal(err)
		}
		if err := errors.Join(s.Vacant(), storage.Probe(fsys, dir, ".probe")); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, s, 1, 2, 10)
		newest(t, s, 10)
		if err := write(s, 10); !errors.Is(err, storage.ErrExists) {
			t.Fatalf("committing twice: %v", err)
		}
		if err := s.Vacant(); !errors.Is(err, storage.ErrOccupied) || !strings.Contains(err.Error(), "checkpoint 10 of job job") {
			t.Fatal(err)
		}
		if removed, err := s.Retain(2); err != nil || len(removed) != 1 || removed[0] != 1 {
			t.Fatal(removed, err)
		}
		newest(t, s, 10)
		if err := s.Clear(); err != nil {
			t.Fatal(err)
		}
		if names, err := fsys.ReadDir(dir); !errors.Is(err, fs.ErrNotExist) && len(names) > 0 {
			t.Fatal(names, err)
		}
	})
}

// An upload that is not over, or was given up, is not seen; what an earlier attempt left under the name stays.
func TestFilesAppearWholeOrNotAtAll(t *testing.T) {
	eachBucket(t, func(t *testing.T, fsys storage.FS, dir string) {
		s := store(t, fsys, dir, "job")
		mustWrite(t, s, 1)
		if _, err := writeTask(s, 2, 0); err != nil {
			t.Fatal(err)
		}
		before := get(t, fsys, dir+"/job-job/chk-2/task-0.state")
		for _, task := range []uint32{0, 1} {
			w, err := s.Create(2, task, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Section("state"); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(bytes.Repeat([]byte("x"), 200<<10)); err != nil {
				t.Fatal(err)
			}
			check := func() {
				t.Helper()
				names, err := fsys.ReadDir(dir + "/job-job/chk-2")
				if err != nil || len(names) != 1 || names[0] != "task-0.state" {
					t.Fatal(names, err)
				}
				if got := get(t, fsys, dir+"/job-job/chk-2/task-0.state"); !bytes.Equal(got, before) {
					t.Fatal("the file of the earlier attempt has changed")
				}
			}
			check()
			w.Abort()
			check()
		}
		if skipped := newest(t, s, 1); len(skipped) != 1 || !errors.Is(skipped[0].Reason, storage.ErrIncomplete) {
			t.Fatal(skipped)
		}
	})
}

// magic is what a state file begins with; its format version follows.
const magic = "WEIRCKPT"

// What is damaged, of another job, of another version, or foreign is passed over with its reason and never touched.
func TestNewestUsable(t *testing.T) {
	const chk3 = "/job-job/chk-3/"
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, fsys storage.FS, dir string)
		want  error
	}{
		{"cut manifest", func(t *testing.T, fsys storage.FS, dir string) {
			b := get(t, fsys, dir+chk3+"MANIFEST")
			put(t, fsys, dir+chk3+"MANIFEST", b[:len(b)/2])
		}, storage.ErrDamaged},
		{"flipped byte", func(t *testing.T, fsys storage.FS, dir string) {
			b := get(t, fsys, dir+chk3+"task-1.state")
			b[len(b)/2] ^= 1
			put(t, fsys, dir+chk3+"task-1.state", b)
		}, storage.ErrDamaged},
		{"missing file", func(t *testing.T, fsys storage.FS, dir string) {
			if err := fsys.Remove(dir + chk3 + "task-0.state"); err != nil {
				t.Fatal(err)
			}
		}, storage.ErrDamaged},
		{"other job", func(t *testing.T, fsys storage.FS, dir string) {
			mustWrite(t, store(t, fsys, dir, "other"), 3)
			for _, name := range []string{"MANIFEST", "task-0.state", "task-1.state"} {
				put(t, fsys, dir+chk3+name, get(t, fsys, dir+"/job-other/chk-3/"+name))
			}
		}, storage.ErrOtherJob},
		{"other version", func(t *testing.T, fsys storage.FS, dir string) {
			b := get(t, fsys, dir+chk3+"task-0.state")
			b[len(magic)] = 99
			put(t, fsys, dir+chk3+"task-0.state", b)
		}, storage.ErrVersion},
		{"no manifest", func(t *testing.T, fsys storage.FS, dir string) {
			if err := fsys.Remove(dir + chk3 + "MANIFEST"); err != nil {
				t.Fatal(err)
			}
		}, storage.ErrIncomplete},
		{"foreign", func(t *testing.T, fsys storage.FS, dir string) {
			if err := store(t, fsys, dir, "job").Remove(3); err != nil {
				t.Fatal(err)
			}
			put(t, fsys, dir+"/job-job/notes.txt", []byte("mine"))
		}, storage.ErrForeign},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachBucket(t, func(t *testing.T, fsys storage.FS, dir string) {
				s := store(t, fsys, dir, "job")
				mustWrite(t, s, 1, 2, 3)
				c.spoil(t, fsys, dir)
				if skipped := newest(t, s, 2); len(skipped) != 1 || !errors.Is(skipped[0].Reason, c.want) {
					t.Fatalf("skipped %v, want %v", skipped, c.want)
				}
				if errors.Is(c.want, storage.ErrForeign) {
					if err := s.Clear(); !errors.Is(err, storage.ErrForeign) {
						t.Fatal(err)
					}
					if string(get(t, fsys, dir+"/job-job/notes.txt")) != "mine" {
						t.Fatal("a foreign file has changed")
					}
				}
			})
		})
	}
}

// A folder has the same files whether it is written by the operating system or through the library.
func TestFoldersHaveTheSameNames(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, store(t, storage.OS{}, dir, "job"), 1)
	s := store(t, New(folderBucket(t, dir)), "", "job")
	newest(t, s, 1)
	mustWrite(t, s, 2)
	newest(t, store(t, storage.OS{}, dir, "job"), 2)
}

// What a server refuses is an error with a known meaning and the path, and the checkpoints before stay.
func TestServersThatRefuse(t *testing.T) {
	for _, c := range []struct {
		name, method, part string
		status             int
		code               string
		want               error
	}{
		{"denied", http.MethodPut, "task-1", http.StatusForbidden, "AccessDenied", fs.ErrPermission},
		{"full", http.MethodPut, "task-1", http.StatusInsufficientStorage, "Whatever", syscall.ENOSPC},
		{"full at the manifest", http.MethodPut, "MANIFEST", http.StatusBadRequest, "XMinioStorageFull", syscall.ENOSPC},
		{"quota", http.MethodPut, "MANIFEST", http.StatusForbidden, "QuotaExceeded", syscall.ENOSPC},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := newFakeS3(t)
			fsys, dir := server.open(t, "bucket")
			s := store(t, fsys, dir, "job")
			mustWrite(t, s, 1)
			server.fail(c.method, c.part, c.status, c.code)
			err := write(s, 2)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "runs/one/job-job/chk-2") {
				t.Fatalf("%v, want %v with the path", err, c.want)
			}
			server.heal()
			newest(t, s, 1)
			mustWrite(t, s, 2) // over what is left
			newest(t, s, 2)
		})
	}
}

func TestProbeFindsWhatIsWrongWithABucket(t *testing.T) {
	server := newFakeS3(t)
	fsys, dir := server.open(t, "no-such-bucket")
	if err := storage.Probe(fsys, dir, ".probe"); err == nil || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Error(err)
	}
	if _, _, err := store(t, fsys, dir, "job").Newest(); err == nil || errors.Is(err, storage.ErrNoCheckpoint) {
		t.Errorf("a bucket that is missing looks like one without checkpoints: %v", err)
	}
	fsys, dir = server.open(t, "bucket")
	server.fail(http.MethodPut, ".probe", http.StatusForbidden, "AccessDenied")
	if err := storage.Probe(fsys, dir, ".probe"); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}

// Files larger than one part are put together by the server.
func TestFilesOfManyParts(t *testing.T) {
	fsys, dir := newFakeS3(t).open(t, "bucket")
	s := store(t, fsys, dir, "job")
	w, err := s.Create(1, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Section("state"); err != nil {
		t.Fatal(err)
	}
	const chunks = 90
	chunk := make([]byte, 256<<10)
	for i := range chunks { // 22.5 MiB
		chunk[0], chunk[len(chunk)-1] = byte(i), byte(i)
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	info, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(storage.Checkpoint{Number: 1, Files: []storage.FileInfo{info}}); err != nil {
		t.Fatal(err)
	}
	ck, _, err := s.Newest()
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(ck, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range chunks {
		_, got, err := r.Next()
		if err != nil || got[0] != byte(i) || got[len(got)-1] != byte(i) {
			t.Fatalf("chunk %d: %v", i, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// A server that does not answer does not hold up somebody who has lost interest.
func TestWithContextEndsWhatHangs(t *testing.T) {
	server := newFakeS3(t)
	asked, release := make(chan struct{}, 8), make(chan struct{})
	hang := func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			asked <- struct{}{}
			<-release
		}
		return false
	}
	server.trouble.Store(&hang)
	t.Cleanup(func() { close(release) })
	fsys, dir := server.open(t, "bucket")
	ctx, cancel := context.WithCancel(context.Background())
	s := store(t, fsys.(storage.Interruptible).WithContext(ctx), dir, "job")
	done := make(chan error)
	go func() { _, err := writeTask(s, 1, 0); done <- err }()
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	server := newFakeS3(t)
	for in, want := range map[string]string{
		"s3://bucket":                           "add ?region=REGION",
		"s3://bucket?region=eu-west-1":          "",
		"s3://bucket?endpoint=" + server.URL:    "",
		"s3://bucket?region=a&profile=no-such-": "configure the access to s3://bucket/?profile=no-such-&region=a",
		"folder":                                "",
	} {
		a, err := storage.ParseAddress(in)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(a)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

// What has another content has another stamp, also when it has the same size and was written within a second, which is how
// precisely S3 tells times.
func TestStampsChangeWithContent(t *testing.T) {
	fsys, dir := newFakeS3(t).open(t, "bucket")
	stamps := map[storage.Stamp]bool{}
	for i := range 3 {
		put(t, fsys, dir+"/x", []byte{byte(i)})
		stamp, err := fsys.Stat(dir + "/x")
		if again, err2 := fsys.Stat(dir + "/x"); err != nil || err2 != nil || again != stamp || stamp.Bytes != 1 {
			t.Fatal(stamp, again, err, err2)
		}
		stamps[stamp] = true
	}
	if len(stamps) != 3 {
		t.Fatal(stamps)
	}
	if _, err := fsys.Stat(dir + "/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
