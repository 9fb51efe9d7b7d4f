package pebble

import (
	"io"

	"github.com/cockroachdb/pebble"

	"github.com/weir-bench/weir/engine/state"
)

const (
	// firstMemTableBytes is the size of Pebble's first memory tables; later ones are no smaller.
	firstMemTableBytes = 256 << 10
	// entryBytes is what an entry takes in a memory table besides its key and value, at most, and reservedBytes what Pebble
	// wants to be free for it.
	entryBytes    = 128
	reservedBytes = 512
	// steadyBytes is the size of a steady store's memory tables, and steadyCompact after how many flushes it compacts.
	steadyBytes   = 1 << 20
	steadyCompact = 8
)

// markGroup is the group of the key that is written at a cut.
const markGroup = ^uint32(0)

// tableSnapshot is a state.TableSnapshot: the moment of a snapshot, as tables.
type tableSnapshot struct {
	*snapshot
	cut    *tableCut
	groups []groupSize
	dead   []deadKey
}

// CutTables implements state.Tabled. It ends the memory table, so that no table will hold what was written before the cut
// together with what is written behind it; that the memory table becomes a table is waited for in Tables. The snapshot makes
// compactions leave what they rewrite meanwhile as it was.
func (s *Store) CutTables(groups []uint32) state.Snapshot {
	s.files.await(s.files.settled) // the cut before, as in commit
	snap := &tableSnapshot{snapshot: s.cut(groups, 0, true), cut: &tableCut{}}
	owned := make([]bool, len(s.groups))
	for _, g := range groups {
		owned[g] = true
	}
	for g := range s.groups {
		if x := &s.groups[g]; x.n > 0 {
			snap.groups = append(snap.groups, groupSize{uint32(g), owned[g], uint64(x.n), uint64(x.bytes)})
		}
	}
	snap.dead = append(snap.dead, s.dead...)
	s.batch(func(b *pebble.Batch) { // a write of the cut's own, which tells its tables from older ones
		_ = s.fail(s.put(b, markGroup, 0, nil)) // the next call returns it
	})
	snap.cut.seq = s.written
	s.files.add(snap.cut)
	if s.err == nil {
		_ = s.fail(s.rotate(snap.cut)) // the next call returns it
	}
	if s.err != nil {
		s.files.fail(s.err)
	}
	return snap
}

// rotate begins a new memory table.
func (s *Store) rotate(c *tableCut) error {
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	s.files.set(func() { c.rotated = true })
	s.filled = 0
	if s.spec.Steady {
		<-flushed
		return s.compactSteadily()
	}
	return nil
}

// commit writes a batch. While the memory table of a cut waits to be written to disk, the next one must not become full: both
// would be written as one.
func (s *Store) commit(b *pebble.Batch) error {
	cost := b.Len() + int(b.Count())*entryBytes
	if s.filled+b.Len()+int(b.Count())*reservedBytes > int(s.files.memTable.Load())/2 {
		if s.spec.Steady {
			if err := s.flushSteadily(); err != nil {
				return err
			}
			s.filled = 0
		} else {
			s.files.await(s.files.settled)
		}
	}
	s.filled += cost
	if err := b.Commit(pebble.NoSync); err != nil {
		return err
	}
	s.written = b.SeqNum() + uint64(b.Count()) - 1
	return nil
}

// flushSteadily writes the memory table to disk.
func (s *Store) flushSteadily() error {
	if err := s.db.Flush(); err != nil {
		return err
	}
	return s.compactSteadily()
}

// compactSteadily does what a store does by itself in the background unless it is steady.
func (s *Store) compactSteadily() error {
	if s.steadily++; s.steadily%steadyCompact != 0 {
		return nil
	}
	return s.db.Compact([]byte{0}, []byte{0xff, 0xff, 0xff, 0xff, 0xff}, false)
}

// Tables implements state.TableSnapshot.
func (snap *tableSnapshot) Tables() (form []byte, list []state.Table, err error) {
	f, c := snap.s.files, snap.cut
	f.await(func() bool { return c.done })
	f.measure(snap.s.db)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.err != nil {
		return nil, nil, c.err
	}
	for _, t := range c.tables {
		path := f.PathJoin(snap.s.dir, tableFile(t.number))
		x := state.Table{Number: t.number, Bytes: int64(t.bytes), Open: func() (io.ReadCloser, error) { return f.FS.Open(path) }}
		if snap.s.local {
			x.Path = path
		}
		list = append(list, x)
	}
	return appendForm(nil, &formOf{epoch: snap.epoch, seq: c.seq, groups: snap.groups, dead: snap.dead, tables: c.tables}), list, nil
}

// Write implements state.TableSnapshot.
func (snap *tableSnapshot) Write(list []state.Table, put func(state.Table) (any, error)) error {
	f := snap.s.files
	f.writing.Lock()
	defer f.writing.Unlock()
	for _, t := range list {
		f.set(func() { t.Kept = f.kept[t.Number] })
		kept, err := put(t)
		if err != nil {
			return err
		}
		f.set(func() {
			if _, live := f.live[t.Number]; live || f.held[t.Number] > 0 {
				f.kept[t.Number] = kept
			}
		})
	}
	return nil
}

// Release implements state.Snapshot.
func (snap *tableSnapshot) Release() {
	snap.s.files.release(snap.cut)
	snap.snapshot.Release()
}
