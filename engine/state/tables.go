package state

import (
	"errors"
	"io"
)

// ErrMixed says that no set of files holds just what a snapshot is of; it can be read in chunks all the same.
var ErrMixed = errors.New("a table holds what was written before the cut and behind it")

// Tabled is state on disk that a checkpoint can hold as the immutable files that it consists of, so that those which an
// earlier checkpoint has already need not be written again. It is an optional interface of Paged.
type Tabled interface {
	// CutTables is Cut, but the snapshot is a TableSnapshot: making the files is left to whoever reads it.
	CutTables(groups []uint32) Snapshot
	// Attach makes what Tables gave the state, which must be empty and new. What the files hold of groups that are not
	// wanted, or that the snapshot was not of, is dropped.
	Attach(form []byte, fetch FetchTable, want []bool) error
	// Import installs the wanted groups of what Tables gave.
	Import(form []byte, fetch FetchTable, want []bool) error
}

// TableSnapshot is a snapshot as a set of files.
type TableSnapshot interface {
	Snapshot
	// Tables waits until files hold all of the snapshot, and returns them and the description that belongs to them. The files
	// stay until the snapshot is released. An error matches ErrMixed when there is no such set of files. One goroutine calls it,
	// not the owner.
	Tables() (form []byte, files []Table, err error)
	// Write calls put for the files one after the other, and remembers what it returns as what is known of the file. No other
	// snapshot of the same state is written meanwhile.
	Write(files []Table, put func(Table) (kept any, err error)) error
}

// Table is an immutable file of state on disk.
type Table struct {
	Number uint64 // among the files of its store, in the order in which they were made
	Bytes  int64
	// Path is where it is on this machine, "" if it is not among its files; Open reads it either way.
	Path string
	Open func() (io.ReadCloser, error)
	// Kept is what was said of the file when it was last written to a checkpoint, or came from one; nil: it never was.
	Kept any
}

// FetchTable brings back a file: to path on this machine unless that is "", else to what create makes. It returns what is to
// be known of the file, as Table.Kept.
type FetchTable func(number uint64, path string, create func() (io.WriteCloser, error)) (kept any, err error)
