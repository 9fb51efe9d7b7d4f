package host

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/weir-bench/weir/engine/durable"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// errGivenUp says that a snapshot is not wanted any more.
var errGivenUp = errors.New("the task was deployed anew")

// disk writes and reads a worker's state files on goroutines of its own.
type disk struct {
	job     string
	place   func() (Place, error)
	options storage.Options
	reading sync.WaitGroup  // goroutines that read a snapshot of the worker's state
	wanted  context.Context // of those goroutines
	stop    context.CancelFunc
	loads   chan struct{} // bounds how many files are read at once
	written atomic.Int64
	read    atomic.Int64
}

func newDisk(l *launch, open storage.Opener) *disk {
	d := &disk{job: l.Job, options: storage.Options{NoSync: l.NoSync, Readers: 2}, loads: make(chan struct{}, 2)}
	d.place = sync.OnceValues(func() (Place, error) { return OpenPlace(l.Dir, open) })
	d.wanted, d.stop = context.WithCancel(context.Background())
	return d
}

// store returns the checkpoints through f.
func (d *disk) store(f *watchedFS) (*storage.Store, error) {
	p, err := d.place()
	if err != nil {
		return nil, err
	}
	f.FS = p.within(f.wanted)
	return storage.New(f, p.address.Dir, d.job, d.options)
}

// snapshot makes r durable and calls done on another goroutine.
func (d *disk) snapshot(r task.SnapshotRequest, done func(file []byte, bytes int64, err error)) {
	d.reading.Add(1)
	fsys := &watchedFS{d: d, wanted: d.wanted}
	go func() {
		s, err := d.store(fsys)
		if err != nil {
			fsys.once.Do(d.reading.Done)
			done(nil, 0, err)
			return
		}
		file, bytes, err := durable.WriteSnapshot(s, &r)
		fsys.once.Do(d.reading.Done)
		done(file, bytes, err)
	}()
}

// settle waits until nobody reads the worker's state: it is about to be thrown away. Files under way are given up.
func (d *disk) settle() {
	d.stop()
	d.reading.Wait()
	d.wanted, d.stop = context.WithCancel(context.Background())
}

// load installs what r wants and calls done on another goroutine.
func (d *disk) load(r task.LoadRequest, done func(task.LoadRequest, error)) {
	go func() {
		d.loads <- struct{}{}
		defer func() { <-d.loads }()
		if r.Preload > 0 {
			r.Fill()
			done(r, nil)
			return
		}
		s, err := d.store(&watchedFS{d: d, wanted: context.Background()})
		if err == nil {
			err = durable.LoadState(s, &r)
		}
		done(r, err)
	}()
}

// watchedFS is the file system for one state file and the tables that come before it: it counts bytes, gives up when they are not wanted any more, and
// notices when the snapshot has been read. The state it was read from may be let go then; a slow disk need not be
// waited for.
type watchedFS struct {
	storage.FS
	d      *disk
	wanted context.Context
	once   sync.Once
}

// ObjectStore implements storage.Objects.
func (f *watchedFS) ObjectStore() bool {
	o, ok := f.FS.(storage.Objects)
	return ok && o.ObjectStore()
}

// Link implements storage.Linker.
func (f *watchedFS) Link(from, to string) error {
	if f.wanted.Err() != nil {
		return errGivenUp
	}
	if l, ok := f.FS.(storage.Linker); ok {
		return l.Link(from, to)
	}
	return errors.ErrUnsupported
}

// SyncFile implements storage.Linker.
func (f *watchedFS) SyncFile(name string) error {
	if l, ok := f.FS.(storage.Linker); ok {
		return l.SyncFile(name)
	}
	return errors.ErrUnsupported
}

type watchedFile struct {
	storage.File
	fs   *watchedFS
	last bool // the snapshot has been read when it has been written
}

func (f *watchedFile) read() {
	if f.last {
		f.fs.once.Do(f.fs.d.reading.Done)
	}
}

func (f *watchedFS) Create(path string) (storage.File, error) {
	file, err := f.FS.Create(path)
	if err != nil {
		return nil, err
	}
	return &watchedFile{file, f, !storage.IsTable(path)}, nil
}

func (f *watchedFile) Write(p []byte) (int, error) {
	if f.fs.wanted.Err() != nil {
		return 0, errGivenUp
	}
	n, err := f.File.Write(p)
	f.fs.d.written.Add(int64(n))
	return n, err
}

// Sync comes behind the last write, and so does Close.
func (f *watchedFile) Sync() error {
	f.read()
	return f.File.Sync()
}

func (f *watchedFile) Close() error {
	f.read()
	return f.File.Close()
}

// Expect implements storage.Expecter.
func (f *watchedFile) Expect(bytes int64) {
	if x, ok := f.File.(storage.Expecter); ok {
		x.Expect(bytes)
	}
}

// Abort implements storage.Aborter.
func (f *watchedFile) Abort() {
	f.read()
	if a, ok := f.File.(storage.Aborter); ok {
		a.Abort()
		return
	}
	_ = f.File.Close() // it is not wanted
}

type countedReader struct {
	io.ReadCloser
	d *disk
}

func (f *watchedFS) Open(path string) (io.ReadCloser, error) {
	r, err := f.FS.Open(path)
	if err != nil {
		return nil, err
	}
	return &countedReader{r, f.d}, nil
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.d.read.Add(int64(n))
	return n, err
}
