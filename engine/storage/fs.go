package storage

import (
	"io"
	"os"
	"path/filepath"
)

// FS is the part of a file system that checkpoints need. Errors name the path, and
// wrap the errors of io/fs and syscall (fs.ErrNotExist, ENOSPC …).
type FS interface {
	// MkdirAll makes a directory and its parents; it is no error if it exists.
	MkdirAll(path string) error
	// Create makes or truncates a file for writing.
	Create(path string) (File, error)
	// Open opens a file for reading.
	Open(path string) (io.ReadCloser, error)
	// Stat tells a file's stamp.
	Stat(path string) (Stamp, error)
	// ReadDir returns the names in a directory, sorted.
	ReadDir(path string) ([]string, error)
	// Rename moves a file within a directory, replacing a file of that name, at
	// once for every observer.
	Rename(from, to string) error
	// Remove deletes a file or an empty directory.
	Remove(path string) error
	// SyncDir makes creations, renames and removals in a directory durable.
	SyncDir(path string) error
}

// Stamp is what tells that a file is as it was, short of reading it: its size, and when it was last written to, in
// nanoseconds of the file system's own clock.
type Stamp struct {
	Bytes      int64 `json:"bytes"`
	ModifiedNS int64 `json:"modified_ns"`
}

// File is a file being written. Sync makes its content durable.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// Expecter is an optional interface of a File: Expect says how large the file will be, more or less, which may change how it is
// written and nothing else.
type Expecter interface {
	Expect(bytes int64)
}

// OS is the file system of the operating system.
type OS struct{}

// MkdirAll implements FS.
func (OS) MkdirAll(path string) error { return os.MkdirAll(path, 0o755) }

// Create implements FS.
func (OS) Create(path string) (File, error) { return create(path) }

// Open implements FS.
func (OS) Open(path string) (io.ReadCloser, error) { return os.Open(path) }

// Stat implements FS.
func (OS) Stat(path string) (Stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}, err
	}
	return Stamp{info.Size(), info.ModTime().UnixNano()}, nil
}

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(path string) error { return os.Remove(path) }

// ReadDir implements FS.
func (OS) ReadDir(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Link implements Linker.
func (OS) Link(from, to string) error { return os.Link(from, to) }

// SyncFile implements Linker.
func (OS) SyncFile(name string) error { return syncByName(name) }

// SyncDir implements FS.
func (OS) SyncDir(path string) error { return syncByName(filepath.Clean(path)) }

// syncByName makes durable what a file or a directory holds.
func syncByName(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
