package pebble

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/record"
	"github.com/cockroachdb/pebble/vfs/atomicfs"

	"github.com/weir-bench/weir/engine/state"
)

// manifestMarker is the name under which Pebble notes which MANIFEST is the one.
const manifestMarker = "manifest"

// Attach implements state.Tabled. Pebble is closed, its folder gets the tables and a MANIFEST that names them, and it is
// opened again.
func (s *Store) Attach(form []byte, fetch state.FetchTable, want []bool) error {
	f, err := parseForm(form, s.format.Groups)
	if err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	if s.epoch != 1 || s.written != 0 {
		panic("pebble: tables are attached to state that is in use")
	}
	if err := s.db.Close(); err != nil {
		return s.fail(err)
	}
	err = s.bring(f, fetch)
	if err == nil {
		err = s.open(false)
	}
	if err != nil { // nobody goes on with it, but whoever closes it needs something to close
		return s.fail(errors.Join(err, s.files.RemoveAll(s.dir), s.open(true)))
	}
	s.epoch, s.dead, s.written = f.epoch+1, f.dead, f.seq
	for i := range f.groups {
		x := &f.groups[i]
		s.groups[x.group] = group{n: int(x.n), bytes: int64(x.bytes)}
		if !x.owned || !want[x.group] {
			s.Drop(x.group)
		} else if s.heads {
			s.cacheHead(x.group)
		}
	}
	return s.err
}

// bring puts tables, and the MANIFEST that names them, into the store's folder.
func (s *Store) bring(f *formOf, fetch state.FetchTable) error {
	for _, t := range f.tables {
		path := s.files.PathJoin(s.dir, tableFile(t.number))
		local := path
		if !s.local {
			local = ""
		}
		kept, err := fetch(t.number, local, func() (io.WriteCloser, error) { return s.files.FS.Create(path) })
		if err != nil {
			return err
		}
		s.files.set(func() { s.files.live[t.number], s.files.kept[t.number] = t, kept })
	}
	last := f.tables[0].number
	for _, t := range f.tables {
		last = max(last, t.number)
	}
	name := fmt.Sprintf("MANIFEST-%06d", last+1)
	if err := s.writeManifest(s.files.PathJoin(s.dir, name), appendEdit(nil, f)); err != nil {
		return err
	}
	marker, _, err := atomicfs.LocateMarker(s.files, s.dir, manifestMarker)
	if err != nil {
		return err
	}
	return errors.Join(marker.Move(name), marker.Close())
}

func (s *Store) writeManifest(path string, edit []byte) error {
	file, err := s.files.Create(path)
	if err != nil {
		return err
	}
	w := record.NewWriter(file)
	_, err = w.WriteRecord(edit)
	return errors.Join(err, w.Close(), file.Close())
}

// Import implements state.Tabled: the tables become another store for a while, from which the groups are read.
func (s *Store) Import(form []byte, fetch state.FetchTable, want []bool) (err error) {
	if s.err != nil {
		return s.err
	}
	spec := s.spec
	spec.MemoryBytes = minMemoryBytes
	dir := s.dir + ".import"
	from, err := Open(s.files.FS, dir, &spec)
	if err != nil {
		return err
	}
	from.local = s.local
	defer func() { err = errors.Join(err, from.Close(), s.files.RemoveAll(dir)) }()
	if err := from.Attach(form, fetch, want); err != nil {
		return err
	}
	var groups []uint32
	for g := range from.groups {
		if from.groups[g].n > 0 {
			groups = append(groups, uint32(g))
		}
	}
	snap := from.cut(groups, 0, true)
	defer snap.Release()
	var buf []byte
	for {
		chunk, g, _, done := snap.Next(buf, importBytes)
		if done {
			return snap.Err()
		}
		if err := s.Install(g, chunk); err != nil {
			return err
		}
		buf = chunk[:0]
	}
}

// importBytes is how much of a key group is installed at once.
const importBytes = 256 << 10
