//go:build linux

package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// onDisk opens every address on one faulty disk.
func onDisk(m *storage.MemFS) storage.Opener {
	return func(storage.Address) (storage.FS, error) { return m, nil }
}

// What is wrong with a place is known before anything is started, and says what it is about.
func TestPlacesThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct {
		name, address string
		spoil         func(m *storage.MemFS)
		want          error
		text          string
	}{
		{"full", "s3://bucket/x?region=eu", func(m *storage.MemFS) { m.LimitSpace(1000) }, syscall.ENOSPC, "s3://bucket/x?region=eu"},
		{"read-only", "/data", func(m *storage.MemFS) { m.Inject(storage.DiskFault{Op: storage.OpCreate, Err: syscall.EROFS}) }, syscall.EROFS, "/data: it is not writable"},
		{"cannot be made", "/data", func(m *storage.MemFS) { m.Inject(storage.DiskFault{Op: storage.OpMkdir, Err: syscall.EACCES}) }, syscall.EACCES, "/data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := storage.NewMemFS()
			p, err := OpenPlace(c.address, onDisk(m))
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(m)
			if err := p.Check(); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v", err, c.want)
			}
			m.Heal()
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := OpenPlace("s3://id:hush@bucket", nil); !errors.Is(err, storage.ErrAddress) || strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
	if _, err := OpenPlace("s3://bucket", nil); err == nil || !strings.Contains(err.Error(), "no other storage") {
		t.Error(err)
	}
}

// A file system without room says so before a run.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("weir-test", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("mount a small file system: %v (it needs root)", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "x"), make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Start(Config{Job: countJob("full", "checkpoint", false), Dir: dir})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// A run neither begins on somebody else's files nor touches them, and cleans up after itself only.
func TestPlacesOfOthers(t *testing.T) {
	m := storage.NewMemFS()
	p, err := OpenPlace("/data", onDisk(m))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Check(), p.Vacant("mine")); err != nil {
		t.Fatal(err)
	}
	for _, job := range []string{"mine", "theirs"} {
		writeOne(t, m, job)
	}
	if err := p.Vacant("mine"); !errors.Is(err, storage.ErrOccupied) || !strings.Contains(err.Error(), "checkpoint 1 of job mine") {
		t.Error(err)
	}
	if err := p.Clear("mine"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(p.Vacant("mine"), p.Clear("mine")); err != nil {
		t.Error(err)
	}
	if err := p.Vacant("theirs"); !errors.Is(err, storage.ErrOccupied) {
		t.Errorf("the checkpoints of another job are gone: %v", err)
	}
	if err := p.Clear("theirs"); err != nil {
		t.Error(err)
	}
	if names, err := m.ReadDir("/"); err != nil || len(names) != 0 {
		t.Errorf("left: %v %v", names, err)
	}
}

func writeOne(t *testing.T, m *storage.MemFS, job string) {
	t.Helper()
	s, err := storage.New(m, "/data", job, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Create(1, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(storage.Checkpoint{Number: 1, Files: []storage.FileInfo{info}}); err != nil {
		t.Fatal(err)
	}
}

// hanging is a network file system whose server has gone silent.
type hanging struct {
	*storage.MemFS
	ctx     context.Context
	written chan struct{}
}

func (h *hanging) WithContext(ctx context.Context) storage.FS {
	return &hanging{h.MemFS, ctx, h.written}
}

func (h *hanging) Create(path string) (storage.File, error) {
	f, err := h.MemFS.Create(path)
	return &hangingFile{f, h}, err
}

type hangingFile struct {
	storage.File
	fs *hanging
}

func (f *hangingFile) Write([]byte) (int, error) {
	close(f.fs.written)
	<-f.fs.ctx.Done()
	return 0, f.fs.ctx.Err()
}

// A worker that is about to be deployed anew does not wait for a server that does not answer.
func TestSettleGivesUpWhatHangs(t *testing.T) {
	h := &hanging{storage.NewMemFS(), context.Background(), make(chan struct{})}
	d := newDisk(&launch{Job: "job", Dir: "s3://bucket"}, func(storage.Address) (storage.FS, error) { return h, nil })
	done := make(chan error, 1)
	d.snapshot(task.SnapshotRequest{Checkpoint: 1, Meta: func() []byte { return make([]byte, 300<<10) }}, func(_ []byte, _ int64, err error) { done <- err })
	<-h.written
	d.settle()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
