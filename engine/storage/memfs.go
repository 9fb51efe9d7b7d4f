package storage

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Op is an operation of MemFS that can be made to fail.
type Op string

// The operations.
const (
	OpMkdir   Op = "mkdir"
	OpCreate  Op = "create"
	OpWrite   Op = "write"
	OpSync    Op = "sync"
	OpOpen    Op = "open"
	OpStat    Op = "stat"
	OpReadDir Op = "readdir"
	OpRename  Op = "rename"
	OpRemove  Op = "remove"
	OpSyncDir Op = "syncdir"
	OpLink    Op = "link"
)

// DiskFault makes operations on paths that contain Path fail with Err
// (syscall.EIO, ENOSPC, EACCES …), after letting Skip of them pass.
type DiskFault struct {
	Op   Op
	Path string
	Skip int
	Err  error
}

// MemFS is an FS in memory with the faults of a real disk: Crash loses or tears
// what was not synced, space runs out, operations fail. The same calls and the same
// random source give the same outcome. One goroutine uses it.
type MemFS struct {
	root       *node
	space      int64 // bytes left; negative is unlimited
	faults     []DiskFault
	generation int // of crashes: files opened before the last one are dead
	changes    int64
}

// node is a file or a directory.
type node struct {
	dir bool

	data     []byte
	synced   int   // bytes of data that survive a crash
	modified int64 // in changes of the file system's files

	entries map[string]*node
	durable map[string]*node // what survives a crash for sure
	pending []entryChange    // since then, in order
}

// entryChange sets a name to a node, or removes it (nil); a rename removes one name
// and sets another at once.
type entryChange struct {
	name    string
	node    *node
	removed string
}

// NewMemFS returns an empty file system without faults or limits.
func NewMemFS() *MemFS { return &MemFS{root: newDir(), space: -1} }

func newDir() *node {
	return &node{dir: true, entries: map[string]*node{}, durable: map[string]*node{}}
}

// LimitSpace lets writes take n bytes more; then they write what fits and fail with
// ENOSPC. A negative n lifts the limit. Removed files do not give space back.
func (m *MemFS) LimitSpace(n int64) { m.space = n }

// Inject adds a fault; Heal removes all faults and the space limit.
func (m *MemFS) Inject(f DiskFault) { m.faults = append(m.faults, f) }

// Heal removes all faults and the space limit.
func (m *MemFS) Heal() { m.faults, m.space = nil, -1 }

// Damage replaces the durable content of a file by change of it. It reports
// whether the file exists.
func (m *MemFS) Damage(name string, change func([]byte) []byte) bool {
	n := m.find(name)
	if n == nil || n.dir {
		return false
	}
	m.touch(n)
	n.data = change(slices.Clone(n.data))
	n.synced = len(n.data)
	return true
}

func (m *MemFS) touch(n *node) {
	m.changes++
	n.modified = m.changes
}

// Crash loses power. Of each directory's changes since its last SyncDir a random
// number, in order, survive. Of each file's bytes since its last Sync a random number
// survive; the rest is gone or, one time in four, reads as zeros.
func (m *MemFS) Crash(rng *rand.Rand) {
	m.generation++
	m.root.crash(rng)
}

func (n *node) crash(rng *rand.Rand) {
	if !n.dir {
		cut := n.synced + rng.IntN(len(n.data)-n.synced+1)
		if rng.IntN(4) == 0 {
			clear(n.data[cut:])
		} else {
			n.data = n.data[:cut]
		}
		n.synced = len(n.data)
		return
	}
	n.entries = maps.Clone(n.durable)
	for _, change := range n.pending[:rng.IntN(len(n.pending)+1)] {
		change.apply(n.entries)
	}
	n.durable, n.pending = maps.Clone(n.entries), nil
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		n.entries[name].crash(rng)
	}
}

func (c entryChange) apply(entries map[string]*node) {
	if c.removed != "" {
		delete(entries, c.removed)
	}
	if c.node != nil {
		entries[c.name] = c.node
	}
}

func (n *node) change(c entryChange) {
	c.apply(n.entries)
	n.pending = append(n.pending, c)
}

// fault returns the error that an injected fault gives the operation.
func (m *MemFS) fault(op Op, name string) error {
	for i := range m.faults {
		f := &m.faults[i]
		if f.Op != op || !strings.Contains(name, f.Path) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		return &fs.PathError{Op: string(op), Path: name, Err: f.Err}
	}
	return nil
}

func (m *MemFS) find(name string) *node {
	n := m.root
	for part := range strings.SplitSeq(strings.Trim(path.Clean("/"+name), "/"), "/") {
		if part == "" {
			continue
		}
		if n = n.entries[part]; n == nil {
			return nil
		}
	}
	return n
}

// parent returns the directory that name is in.
func (m *MemFS) parent(op Op, name string) (*node, string, error) {
	name = path.Clean("/" + name)
	dir := m.find(path.Dir(name))
	if dir == nil {
		return nil, "", &fs.PathError{Op: string(op), Path: name, Err: syscall.ENOENT}
	}
	if !dir.dir {
		return nil, "", &fs.PathError{Op: string(op), Path: name, Err: syscall.ENOTDIR}
	}
	return dir, path.Base(name), nil
}

// MkdirAll implements FS.
func (m *MemFS) MkdirAll(name string) error {
	if err := m.fault(OpMkdir, name); err != nil {
		return err
	}
	n := m.root
	for part := range strings.SplitSeq(strings.Trim(path.Clean("/"+name), "/"), "/") {
		if part == "" {
			continue
		}
		next := n.entries[part]
		if next == nil {
			next = newDir()
			n.change(entryChange{name: part, node: next})
		}
		if !next.dir {
			return &fs.PathError{Op: string(OpMkdir), Path: name, Err: syscall.ENOTDIR}
		}
		n = next
	}
	return nil
}

// Create implements FS.
func (m *MemFS) Create(name string) (File, error) {
	if err := m.fault(OpCreate, name); err != nil {
		return nil, err
	}
	dir, base, err := m.parent(OpCreate, name)
	if err != nil {
		return nil, err
	}
	if old := dir.entries[base]; old != nil && old.dir {
		return nil, &fs.PathError{Op: string(OpCreate), Path: name, Err: syscall.EISDIR}
	}
	n := &node{}
	m.touch(n)
	dir.change(entryChange{name: base, node: n})
	return &memFile{m: m, n: n, name: name, generation: m.generation}, nil
}

// Open implements FS.
func (m *MemFS) Open(name string) (io.ReadCloser, error) {
	if err := m.fault(OpOpen, name); err != nil {
		return nil, err
	}
	n := m.find(name)
	if n == nil {
		return nil, &fs.PathError{Op: string(OpOpen), Path: name, Err: syscall.ENOENT}
	}
	if n.dir {
		return nil, &fs.PathError{Op: string(OpOpen), Path: name, Err: syscall.EISDIR}
	}
	return io.NopCloser(bytes.NewReader(n.data)), nil
}

// Stat implements FS. The clock is the number of changes to files so far.
func (m *MemFS) Stat(name string) (Stamp, error) {
	if err := m.fault(OpStat, name); err != nil {
		return Stamp{}, err
	}
	n := m.find(name)
	if n == nil {
		return Stamp{}, &fs.PathError{Op: string(OpStat), Path: name, Err: syscall.ENOENT}
	}
	return Stamp{int64(len(n.data)), n.modified}, nil
}

// ReadDir implements FS.
func (m *MemFS) ReadDir(name string) ([]string, error) {
	if err := m.fault(OpReadDir, name); err != nil {
		return nil, err
	}
	n := m.find(name)
	if n == nil {
		return nil, &fs.PathError{Op: string(OpReadDir), Path: name, Err: syscall.ENOENT}
	}
	if !n.dir {
		return nil, &fs.PathError{Op: string(OpReadDir), Path: name, Err: syscall.ENOTDIR}
	}
	return slices.Sorted(maps.Keys(n.entries)), nil
}

// Rename implements FS, within one directory.
func (m *MemFS) Rename(from, to string) error {
	if err := m.fault(OpRename, from); err != nil {
		return err
	}
	dir, base, err := m.parent(OpRename, from)
	if err != nil {
		return err
	}
	if path.Dir(path.Clean("/"+from)) != path.Dir(path.Clean("/"+to)) {
		return &fs.PathError{Op: string(OpRename), Path: to, Err: syscall.EXDEV}
	}
	n := dir.entries[base]
	if n == nil {
		return &fs.PathError{Op: string(OpRename), Path: from, Err: syscall.ENOENT}
	}
	dir.change(entryChange{name: path.Base(to), node: n, removed: base})
	return nil
}

// Remove implements FS.
func (m *MemFS) Remove(name string) error {
	if err := m.fault(OpRemove, name); err != nil {
		return err
	}
	dir, base, err := m.parent(OpRemove, name)
	if err != nil {
		return err
	}
	n := dir.entries[base]
	if n == nil {
		return &fs.PathError{Op: string(OpRemove), Path: name, Err: syscall.ENOENT}
	}
	if len(n.entries) > 0 {
		return &fs.PathError{Op: string(OpRemove), Path: name, Err: syscall.ENOTEMPTY}
	}
	dir.change(entryChange{removed: base})
	return nil
}

// Link implements Linker.
func (m *MemFS) Link(from, to string) error {
	if err := m.fault(OpLink, to); err != nil {
		return err
	}
	n := m.find(from)
	if n == nil || n.dir {
		return &fs.PathError{Op: string(OpLink), Path: from, Err: syscall.ENOENT}
	}
	dir, base, err := m.parent(OpLink, to)
	if err != nil {
		return err
	}
	if dir.entries[base] != nil {
		return &fs.PathError{Op: string(OpLink), Path: to, Err: syscall.EEXIST}
	}
	dir.change(entryChange{name: base, node: n})
	return nil
}

// SyncFile implements Linker.
func (m *MemFS) SyncFile(name string) error {
	if err := m.fault(OpSync, name); err != nil {
		return err
	}
	n := m.find(name)
	if n == nil || n.dir {
		return &fs.PathError{Op: string(OpSync), Path: name, Err: syscall.ENOENT}
	}
	n.synced = len(n.data)
	return nil
}

// SyncDir implements FS.
func (m *MemFS) SyncDir(name string) error {
	if err := m.fault(OpSyncDir, name); err != nil {
		return err
	}
	n := m.find(name)
	if n == nil || !n.dir {
		return &fs.PathError{Op: string(OpSyncDir), Path: name, Err: syscall.ENOENT}
	}
	n.durable, n.pending = maps.Clone(n.entries), nil
	return nil
}

// memFile is a file of MemFS open for writing.
type memFile struct {
	m          *MemFS
	n          *node
	name       string
	generation int
	closed     bool
}

func (f *memFile) check(op Op) error {
	if f.closed || f.generation != f.m.generation {
		return &fs.PathError{Op: string(op), Path: f.name, Err: fs.ErrClosed}
	}
	return f.m.fault(op, f.name)
}

func (f *memFile) Write(b []byte) (int, error) {
	if err := f.check(OpWrite); err != nil {
		return 0, err
	}
	fit := len(b)
	if f.m.space >= 0 {
		fit = int(min(int64(fit), f.m.space))
		f.m.space -= int64(fit)
	}
	f.m.touch(f.n)
	f.n.data = append(f.n.data, b[:fit]...)
	if fit < len(b) {
		return fit, &fs.PathError{Op: string(OpWrite), Path: f.name, Err: syscall.ENOSPC}
	}
	return fit, nil
}

func (f *memFile) Sync() error {
	if err := f.check(OpSync); err != nil {
		return err
	}
	f.n.synced = len(f.n.data)
	return nil
}

func (f *memFile) Close() error {
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	return nil
}
