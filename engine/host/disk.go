package host

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/weir-bench/weir/engine/durable"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// errNoStore says that the run has nowhere to put checkpoints.
var errNoStore = errors.New("no directory for checkpoints was given")

// errGivenUp says that a snapshot is not wanted any more.
var errGivenUp = errors.New("the task was deployed anew")

// disk writes and reads a worker's state files on goroutines of its own.
type disk struct {
	dir, job string
	options  storage.Options
	reading  sync.WaitGroup // goroutines that read a snapshot of the worker's state
	stop     *atomic.Bool   // of those goroutines
	loads    chan struct{}  // bounds how many files are read at once
	written  atomic.Int64
	read     atomic.Int64
}

func newDisk(l *launch) *disk {
	return &disk{dir: l.Dir, job: l.Job, options: storage.Options{NoSync: l.NoSync}, stop: new(atomic.Bool), loads: make(chan struct{}, 2)}
}

func (d *disk) store(fsys storage.FS) (*storage.Store, error) {
	if d.dir == "" {
		return nil, errNoStore
	}
	return storage.New(fsys, d.dir, d.job, d.options)
}

// snapshot makes r durable and calls done on another goroutine.
func (d *disk) snapshot(r task.SnapshotRequest, done func(file []byte, bytes int64, err error)) {
	d.reading.Add(1)
	fsys := &watchedFS{d: d, stop: d.stop}
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
	d.stop.Store(true)
	d.reading.Wait()
	d.stop = new(atomic.Bool)
}

// load installs what r wants and calls done on another goroutine.
func (d *disk) load(r task.LoadRequest, done func(error)) {
	go func() {
		d.loads <- struct{}{}
		defer func() { <-d.loads }()
		if r.Preload > 0 {
			r.Fill()
			done(nil)
			return
		}
		s, err := d.store(&watchedFS{d: d, stop: new(atomic.Bool)})
		if err == nil {
			err = durable.LoadState(s, &r)
		}
		done(err)
	}()
}

// watchedFS is the operating system's file system for one state file: it counts bytes, gives up when told to, and
// notices when the snapshot has been read. The state it was read from may be let go then; a slow disk need not be
// waited for.
type watchedFS struct {
	storage.OS
	d    *disk
	stop *atomic.Bool
	once sync.Once
}

type watchedFile struct {
	storage.File
	fs *watchedFS
}

func (f *watchedFS) Create(path string) (storage.File, error) {
	file, err := f.OS.Create(path)
	if err != nil {
		return nil, err
	}
	return &watchedFile{file, f}, nil
}

func (f *watchedFile) Write(p []byte) (int, error) {
	if f.fs.stop.Load() {
		return 0, errGivenUp
	}
	n, err := f.File.Write(p)
	f.fs.d.written.Add(int64(n))
	return n, err
}

// Sync comes behind the last write, and so does Close.
func (f *watchedFile) Sync() error {
	f.fs.once.Do(f.fs.d.reading.Done)
	return f.File.Sync()
}

func (f *watchedFile) Close() error {
	f.fs.once.Do(f.fs.d.reading.Done)
	return f.File.Close()
}

type countedReader struct {
	io.ReadCloser
	d *disk
}

func (f *watchedFS) Open(path string) (io.ReadCloser, error) {
	r, err := f.OS.Open(path)
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
