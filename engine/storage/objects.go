package storage

import "context"

// Objects is an optional interface of an FS that is an object store: a file appears under its name when it is closed,
// whole and durable, or not at all. There is no temporary name and no renaming then, as an object would have to be
// copied for it. Such an FS has no directories either: one is there while something is in it.
type Objects interface {
	// ObjectStore says whether this FS is one; an FS around another one passes on its answer.
	ObjectStore() bool
}

// Aborter is an optional interface of a File: Abort gives it up, so that nothing appears under its name. It takes the
// place of Close.
type Aborter interface {
	Abort()
}

// Interruptible is an optional interface of an FS whose operations may take long, such as one behind a network.
type Interruptible interface {
	// WithContext returns the same files; what is done through it ends when ctx does.
	WithContext(ctx context.Context) FS
}

// isObjects says whether an FS is an object store.
func isObjects(fsys FS) bool {
	o, ok := fsys.(Objects)
	return ok && o.ObjectStore()
}

// giveUp closes a file that is not wanted.
func giveUp(f File) {
	if a, ok := f.(Aborter); ok {
		a.Abort()
		return
	}
	_ = f.Close() // it is removed, or never read
}
