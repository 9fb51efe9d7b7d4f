package pebble

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"

	"github.com/weir-bench/weir/engine/state"
)

// errClosed says why a cut never becomes a set of tables; state.ErrMixed is the other reason.
var errClosed = errors.New("the state was closed")

// files knows which tables a store consists of, and keeps those that a cut needs. It is the file system that Pebble works
// on, as a table that Pebble removes may have to stay, and hears of what Pebble does, in the order in which it happens: it is
// called with Pebble's own lock held, and so never calls Pebble.
type files struct {
	vfs.FS

	mu      sync.Mutex
	changed *sync.Cond
	live    map[uint64]table
	held    map[uint64]int    // by number: how many cuts need it …
	removed map[uint64]string // … and its path, if Pebble has removed it
	kept    map[uint64]any    // what is known of the copies in checkpoints
	cuts    []*tableCut       // that wait for their tables, oldest first
	err     error             // nothing becomes of them

	memTable  atomic.Int64 // bytes that surely fit into a memory table
	measuring sync.Mutex   // held while Pebble is asked for it, as it must not be closed meanwhile

	writing sync.Mutex // one cut is written at a time, or a table would be written twice
}

// table is a table as its store describes it.
type table struct {
	number, bytes     uint64
	level             int
	smallest, largest []byte // internal keys
	oldest, newest    uint64 // sequence numbers
}

// tableCut is a moment of a store: everything up to its last write, number seq.
type tableCut struct {
	seq     uint64
	rotated bool // what is written from now on goes to another memory table …
	begun   bool // … and the one before is being written to disk, by itself or with older ones
	done    bool
	err     error
	tables  []table
}

func newFiles(fs vfs.FS) *files {
	f := &files{FS: fs, live: map[uint64]table{}, held: map[uint64]int{}, removed: map[uint64]string{}, kept: map[uint64]any{}}
	f.changed = sync.NewCond(&f.mu)
	return f
}

func describe(level int, t *pebble.TableInfo) table {
	key := func(k pebble.InternalKey) []byte {
		b := make([]byte, k.Size())
		k.Encode(b)
		return b
	}
	return table{number: uint64(t.FileNum), bytes: t.Size, level: level, smallest: key(t.Smallest), largest: key(t.Largest),
		oldest: t.SmallestSeqNum, newest: t.LargestSeqNum}
}

// flushBegin hears that the memory tables that are full are being written, all of them.
func (f *files) flushBegin(pebble.FlushInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.cuts {
		c.begun = c.begun || c.rotated
	}
	f.changed.Broadcast()
}

// flushEnd hears of new tables. A flush never takes sequence numbers away, so the newest of them says up to which write
// the tables reach.
func (f *files) flushEnd(info pebble.FlushInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest := uint64(0)
	for i := range info.Output {
		t := describe(0, &info.Output[i])
		f.live[t.number] = t
		newest = max(newest, t.newest)
	}
	for len(f.cuts) > 0 && f.cuts[0].seq <= newest {
		c := f.cuts[0]
		f.cuts = f.cuts[1:]
		if c.seq < newest {
			c.fail(state.ErrMixed)
			continue
		}
		c.done, c.begun = true, true
		for _, number := range slices.Sorted(maps.Keys(f.live)) {
			c.tables = append(c.tables, f.live[number])
			f.held[number]++
		}
	}
	f.changed.Broadcast()
}

// compactionEnd hears of tables that replace others.
func (f *files) compactionEnd(info pebble.CompactionInfo) {
	if info.Err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, level := range info.Input {
		for _, t := range level.Tables {
			delete(f.live, uint64(t.FileNum))
		}
	}
	for i := range info.Output.Tables {
		t := describe(info.Output.Level, &info.Output.Tables[i])
		f.live[t.number] = t
	}
}

// fail gives up the cuts that wait, and all that come: what Pebble does in the background fails.
func (f *files) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	for _, c := range f.cuts {
		c.fail(f.err)
	}
	f.cuts = nil
	f.changed.Broadcast()
}

func (c *tableCut) fail(err error) {
	c.err, c.done, c.begun = fmt.Errorf("tables of a cut: %w", err), true, true
}

// add lets a cut wait for its tables.
func (f *files) add(c *tableCut) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cuts = append(f.cuts, c); f.err != nil {
		c.fail(f.err)
		f.cuts = nil
	}
}

// set changes a cut.
func (f *files) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// await waits until ok.
func (f *files) await(ok func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !ok() {
		f.changed.Wait()
	}
}

// measure asks how large memory tables are. They never become smaller, and the newest is the largest. It may wait for the
// disk.
func (f *files) measure(db *pebble.DB) {
	f.measuring.Lock()
	defer f.measuring.Unlock()
	f.mu.Lock()
	over := f.err != nil
	f.mu.Unlock()
	if !over {
		m := db.Metrics().MemTable
		f.memTable.Store(int64(m.Size) / max(m.Count, 1))
	}
}

// settled says that no cut has its writes in a memory table that newer ones could be written to disk with.
func (f *files) settled() bool { return len(f.cuts) == 0 || f.cuts[len(f.cuts)-1].begun }

// release gives up a cut, with the tables that only it needs.
func (f *files) release(c *tableCut) {
	f.mu.Lock()
	f.cuts = slices.DeleteFunc(f.cuts, func(o *tableCut) bool { return o == c })
	var gone []string
	for _, t := range c.tables {
		if f.held[t.number]--; f.held[t.number] > 0 {
			continue
		}
		delete(f.held, t.number)
		if path, ok := f.removed[t.number]; ok {
			delete(f.removed, t.number)
			delete(f.kept, t.number)
			gone = append(gone, path)
		}
	}
	c.tables = nil
	f.mu.Unlock()
	for _, path := range gone {
		_ = f.FS.Remove(path) // the folder is a scratch folder, which goes as a whole
	}
}

// Remove implements vfs.FS: a table that a cut needs stays until it is released.
func (f *files) Remove(path string) error {
	if number, ok := tableNumber(f.PathBase(path)); ok {
		f.mu.Lock()
		if f.held[number] > 0 {
			f.removed[number] = path
			f.mu.Unlock()
			return nil
		}
		delete(f.kept, number)
		f.mu.Unlock()
	}
	return f.FS.Remove(path)
}

func tableFile(number uint64) string { return fmt.Sprintf("%06d.sst", number) }

func tableNumber(file string) (uint64, bool) {
	digits, ok := strings.CutSuffix(file, ".sst")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}
