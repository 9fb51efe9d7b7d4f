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

// Place is where checkpoints are kept: files, and a folder in them. Several goroutines may use it if the files allow it.
type Place struct {
	fs      storage.FS
	address storage.Address
}

// OpenPlace opens a folder or URL, see storage.ParseAddress. It asks no server yet. open is nil for folders only.
func OpenPlace(text string, open storage.Opener) (Place, error) {
	if text == "" {
		return Place{}, errNoStore
	}
	a, err := storage.ParseAddress(text)
	if err != nil {
		return Place{}, fmt.Errorf("directory for checkpoints: %w", err)
	}
	if a.Local() { // workers may have another working directory
		if a.Dir, err = filepath.Abs(a.Dir); err != nil {
			return Place{}, fmt.Errorf("directory for checkpoints %s: %w", a, err)
		}
	}
	if open == nil {
		open = storage.OpenLocal
	}
	files, err := open(a)
	if err != nil {
		return Place{}, fmt.Errorf("directory for checkpoints: %w", err)
	}
	return Place{fs: files, address: a}, nil
}

// Join returns a folder of the place.
func (p Place) Join(name string) Place { return Place{fs: p.fs, address: p.address.Join(name)} }

// String returns the address, which opens the same place in another process.
func (p Place) String() string { return p.address.String() }

// within returns the place's files, whose operations end when ctx does if they can take long.
func (p Place) within(ctx context.Context) storage.FS {
	if i, ok := p.fs.(storage.Interruptible); ok {
		return i.WithContext(ctx)
	}
	return p.fs
}

// open returns a job's checkpoints for a short while.
func (p Place) open(job string) (s *storage.Store, files storage.FS, cancel context.CancelFunc, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	files = p.within(ctx)
	if s, err = storage.New(files, p.address.Dir, job, storage.Options{}); err != nil {
		cancel()
		return nil, nil, nil, err
	}
	return s, files, cancel, nil
}

// Check says early what the checkpoints of a job would otherwise fail with: that the place cannot be written, or is full.
// It leaves nothing but the folder.
func (p Place) Check() error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	if err := storage.Probe(p.within(ctx), p.address.Dir, fmt.Sprintf(".probe-%d", os.Getpid())); err != nil {
		return fmt.Errorf("directory for checkpoints %s: %w", p, err)
	}
	return nil
}

// Vacant returns an error that wraps storage.ErrOccupied if there are checkpoints of a job, or files that are none, which
// a new run of the job would meet. It changes nothing.
func (p Place) Vacant(job string) error {
	s, _, cancel, err := p.open(job)
	if err != nil {
		return err
	}
	defer cancel()
	if err := s.Vacant(); err != nil {
		return fmt.Errorf("directory for checkpoints %s: nothing in it was touched; give another one: %w", p, err)
	}
	return nil
}

// Clear removes a job's checkpoints, and the folder if nothing else is in it.
func (p Place) Clear(job string) error {
	s, files, cancel, err := p.open(job)
	if err != nil {
		return err
	}
	defer cancel()
	if err := s.Clear(); err != nil {
		return fmt.Errorf("remove the checkpoints of job %s from %s: %w", job, p, err)
	}
	_ = files.Remove(p.address.Dir) // unless something else is in it
	return nil
}
