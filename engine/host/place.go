package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-bench/weir/engine/storage"
)

// errNoStore says that the run has nowhere to put checkpoints.
var errNoStore = errors.New("no directory for checkpoints was given")

// probeTimeout bounds how long an object store may take to answer before a run.
const probeTimeout = 20 * time.Second

// place is where the checkpoints of a run are: files, and a folder in them. address is what others open it by.
type place struct {
	fs      storage.FS
	dir     string
	address string
}

// openPlace opens a folder or URL. open is nil for folders only.
func openPlace(text string, open storage.Opener) (place, error) {
	if text == "" {
		return place{}, errNoStore
	}
	a, err := storage.ParseAddress(text)
	if err != nil {
		return place{}, fmt.Errorf("directory for checkpoints: %w", err)
	}
	if a.Local() { // workers may have another working directory
		if a.Dir, err = filepath.Abs(a.Dir); err != nil {
			return place{}, fmt.Errorf("directory for checkpoints %s: %w", a, err)
		}
	}
	if open == nil {
		open = storage.OpenLocal
	}
	files, err := open(a)
	if err != nil {
		return place{}, fmt.Errorf("directory for checkpoints: %w", err)
	}
	return place{fs: files, dir: a.Dir, address: a.String()}, nil
}

// within returns the place's files, whose operations end when ctx does if they can take long.
func (p place) within(ctx context.Context) storage.FS { return within(ctx, p.fs) }

func within(ctx context.Context, files storage.FS) storage.FS {
	if i, ok := files.(storage.Interruptible); ok {
		return i.WithContext(ctx)
	}
	return files
}

// check says early what a checkpoint would otherwise fail with: a place that cannot be written, is full, or holds
// checkpoints or files of others, which this run's would meet. It leaves everything as it was.
func (p place) check(job string) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	files := p.within(ctx)
	store, err := storage.New(files, p.dir, job, storage.Options{})
	if err != nil {
		return err
	}
	if err := storage.Probe(files, p.dir, fmt.Sprintf(".probe-%d", os.Getpid())); err != nil {
		return fmt.Errorf("directory for checkpoints %s: %w", p.address, err)
	}
	if err := store.Vacant(); err != nil {
		return fmt.Errorf("directory for checkpoints %s: it is not empty, and nothing in it was touched; give another one: %w", p.address, err)
	}
	return nil
}

// CheckStorage says what is wrong with a folder or URL for the checkpoints of a job, before a run has to. open is as in
// Config.
func CheckStorage(dir, job string, open storage.Opener) error {
	p, err := openPlace(dir, open)
	if err != nil {
		return err
	}
	return p.check(job)
}

// ClearStorage removes a job's checkpoints from a folder or URL, and the folder if nothing else is in it.
func ClearStorage(dir, job string, open storage.Opener) error {
	p, err := openPlace(dir, open)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	files := p.within(ctx)
	store, err := storage.New(files, p.dir, job, storage.Options{})
	if err != nil {
		return err
	}
	if err := store.Clear(); err != nil {
		return fmt.Errorf("remove the checkpoints of job %s from %s: %w", job, p.address, err)
	}
	_ = files.Remove(p.dir) // unless something else is in it
	return nil
}
