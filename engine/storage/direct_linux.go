package storage

import (
	"errors"
	"io"
	"os"
	"syscall"
	"unsafe"
)

const (
	// cachedBytes of each file go through the page cache, where a restore finds them; a file that is larger than that goes past
	// the cache from there on, or from its beginning if it is known to be. Through the cache, each byte is copied once more, into
	// pages that have to be found, filed, written back and, when the file is removed, freed, which takes half a second of
	// processor time a GB; and gigabytes of checkpoints would drive out of memory what others need.
	cachedBytes = 128 << 20
	// stagedBytes is how much is written past the cache at a time.
	stagedBytes = 1 << 20
	// blockBytes is what addresses, lengths and places of direct writes are multiples of: at least the logical block of any disk.
	blockBytes = 4096
)

// osFile is a file being written, the first part of it through the page cache and the rest, where the file system can do
// that, past it.
type osFile struct {
	file    *os.File // through the page cache
	cached  int64
	size    int64    // of what was given to Write
	direct  *os.File // the same file past the cache; nil: not yet, or never
	refused bool     // the file system cannot do it
	staged  []byte   // the last bytes, not written yet; its memory is aligned
}

func create(path string) (File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &osFile{file: f, cached: cachedBytes}, nil
}

// Expect implements Expecter.
func (f *osFile) Expect(bytes int64) {
	if bytes > f.cached {
		f.cached = min(f.cached, (f.size+blockBytes-1)&^(blockBytes-1))
	}
}

// Write implements File.
func (f *osFile) Write(p []byte) (n int, err error) {
	if f.size < f.cached || f.refused {
		part := p
		if !f.refused {
			part = p[:min(int64(len(p)), f.cached-f.size)]
		}
		n, err = f.file.Write(part)
		f.size += int64(n)
		if err != nil || n == len(p) {
			return n, err
		}
	}
	if f.direct == nil {
		if err := f.openDirect(); err != nil {
			return n, err
		}
		if f.refused {
			m, err := f.Write(p[n:])
			return n + m, err
		}
	}
	for n < len(p) {
		room := min(stagedBytes-len(f.staged), len(p)-n)
		f.staged = append(f.staged, p[n:n+room]...)
		n += room
		f.size += int64(room)
		if len(f.staged) < stagedBytes {
			break
		}
		if err := f.writeStaged(); err != nil {
			return n, err
		}
		if f.refused {
			m, err := f.Write(p[n:])
			return n + m, err
		}
	}
	return n, nil
}

// openDirect opens the file once more, past the cache.
func (f *osFile) openDirect() error {
	direct, err := os.OpenFile(f.file.Name(), os.O_WRONLY|syscall.O_DIRECT, 0)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		f.refused = true
		return nil
	}
	if err != nil {
		return err
	}
	f.direct = direct
	memory := make([]byte, stagedBytes+blockBytes)
	skip := int(-uintptr(unsafe.Pointer(&memory[0])) & (blockBytes - 1))
	f.staged = memory[skip : skip : skip+stagedBytes]
	return nil
}

// writeStaged writes what is staged, which is whole blocks; through the cache if the file system refuses it.
func (f *osFile) writeStaged() error {
	at := f.size - int64(len(f.staged))
	_, err := f.direct.WriteAt(f.staged, at)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		return f.refuse()
	}
	f.staged = f.staged[:0]
	return err
}

// refuse goes on through the cache.
func (f *osFile) refuse() error {
	f.refused = true
	err := f.writeRest()
	if err == nil {
		_, err = f.file.Seek(f.size, io.SeekStart)
	}
	return err
}

// writeRest writes what is staged through the cache: it may end within a block.
func (f *osFile) writeRest() error {
	if len(f.staged) == 0 {
		return nil
	}
	_, err := f.file.WriteAt(f.staged, f.size-int64(len(f.staged)))
	f.staged = f.staged[:0]
	return err
}

// Sync implements File. It covers what was written past the cache, whose place on the disk is only known to it.
func (f *osFile) Sync() error {
	if err := f.writeRest(); err != nil {
		return err
	}
	return f.file.Sync()
}

// Close implements File.
func (f *osFile) Close() error {
	err := f.writeRest()
	if f.direct != nil {
		if closeErr := f.direct.Close(); err == nil {
			err = closeErr
		}
	}
	if closeErr := f.file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Abort implements Aborter.
func (f *osFile) Abort() {
	f.staged = f.staged[:0]
	_ = f.Close() // it is not wanted
}
