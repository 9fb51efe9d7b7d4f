package pebble

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/weir-bench/weir/engine/state"
)

// keeper is storage for tables: what was written once is not written again.
type keeper struct {
	tables map[string][]byte
	wrote  int
}

// set is a snapshot in storage.
type set struct {
	form  []byte
	names map[uint64]string
	want  [testGroups]uint64 // fingerprints
	bytes [testGroups]int64
}

func (k *keeper) write(t *testing.T, snap state.TableSnapshot) (s set) {
	t.Helper()
	form, files, err := snap.Tables()
	must(t, err)
	s.form, s.names = form, map[uint64]string{}
	must(t, snap.Write(files, func(f state.Table) (any, error) {
		name, known := f.Kept.(string)
		if !known {
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			defer r.Close()
			b, err := io.ReadAll(r)
			if err != nil || int64(len(b)) != f.Bytes {
				return nil, fmt.Errorf("table %d has %d bytes, not %d: %w", f.Number, len(b), f.Bytes, err)
			}
			name = fmt.Sprint("table ", len(k.tables))
			k.tables[name] = b
			k.wrote++
		}
		s.names[f.Number] = name
		return name, nil
	}))
	return s
}

func (k *keeper) fetch(s set) state.FetchTable {
	return func(number uint64, _ string, create func() (io.WriteCloser, error)) (any, error) {
		w, err := create()
		if err != nil {
			return nil, err
		}
		name := s.names[number]
		_, err = w.Write(bytes.Clone(k.tables[name])) // vfs may change what it was given
		if err != nil {
			return nil, err
		}
		return name, w.Close()
	}
}

func prints(m memory) (p [testGroups]uint64, n [testGroups]int64) {
	for _, g := range every() {
		p[g], n[g] = m.Fingerprint(g), m.Bytes(g)
	}
	return p, n
}

// holds compares a store with what was there at a cut.
func (s *set) holds(t *testing.T, disk *Store, want []bool) {
	t.Helper()
	for _, g := range every() {
		got, err := disk.Fingerprint(g)
		must(t, err)
		print, size := s.want[g], s.bytes[g]
		if !want[g] {
			print, size = 0, 0
		}
		if got != print || disk.Bytes(g) != size {
			t.Fatalf("group %d has fingerprint %x and %d bytes, want %x and %d", g, got, disk.Bytes(g), print, size)
		}
	}
}

// TestTables writes cuts as tables, while the state goes on, and makes state of them: the whole, and parts of it beside what
// is there already.
func TestTables(t *testing.T) {
	first, n := *seedFlag, uint64(1)
	if first == 0 {
		first, n = 1, 12
	}
	for seed := first; seed < first+n; seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { tables(t, seed) }) {
			t.Fatalf("repeat: go test ./engine/state/pebble -run TestTables -seed=%d", seed)
		}
	}
}

func tables(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	blob := seed%2 == 0
	p := newPair(t, rng, blob, 40)
	k := &keeper{tables: map[string][]byte{}}
	type pending struct {
		snap state.TableSnapshot
		set  set
	}
	var sets []set
	var open []pending
	finish := func() {
		x := open[0]
		open = open[1:]
		s := k.write(t, x.snap)
		s.want, s.bytes = x.set.want, x.set.bytes
		sets = append(sets, s)
		x.snap.Release()
	}
	for range 40 {
		for range rng.IntN(60) {
			p.step(t, rng)
		}
		x := pending{snap: p.disk.CutTables(every()).(state.TableSnapshot)}
		x.set.want, x.set.bytes = prints(p.mem)
		open = append(open, x)
		for len(open) > rng.IntN(3) {
			finish()
		}
	}
	for len(open) > 0 {
		finish()
	}
	if total := 0; true {
		for _, s := range sets {
			total += len(s.names)
		}
		if k.wrote >= total {
			t.Errorf("%d tables were written for %d places in checkpoints", k.wrote, total)
		}
	}
	p.same(t, "behind the cuts")
	restore(t, rng, p, k, &sets[rng.IntN(len(sets))])
	restore(t, rng, p, k, &sets[len(sets)-1])
}

// restore makes state of a cut, goes on with it, and cuts that again.
func restore(t *testing.T, rng *rand.Rand, p *pair, k *keeper, s *set) {
	t.Helper()
	all, some := make([]bool, testGroups), make([]bool, testGroups)
	for g := range all {
		all[g], some[g] = true, rng.IntN(2) == 0
	}
	q := newPair(t, rng, p.blob, 40)
	must(t, q.disk.Attach(s.form, k.fetch(*s), all))
	s.holds(t, q.disk, all)
	sameFiles(t, q.disk)
	part := newPair(t, rng, p.blob, 40)
	must(t, part.disk.Attach(s.form, k.fetch(*s), some))
	s.holds(t, part.disk, some)
	rest := make([]bool, testGroups)
	for g := range rest {
		rest[g] = !some[g]
	}
	must(t, part.disk.Import(s.form, k.fetch(*s), rest))
	s.holds(t, part.disk, all)

	// Both go on alike, also with what changed since a mark.
	snap := q.disk.Cut(every())
	for {
		chunk, g, _, done := snap.Next(nil, 1<<20)
		if done {
			break
		}
		must(t, q.mem.Install(g, chunk))
	}
	snap.Release()
	for range 30 {
		q.step(t, rng)
	}
	again := q.disk.CutTables(every()).(state.TableSnapshot)
	want, sizes := prints(q.mem)
	next := k.write(t, again)
	next.want, next.bytes = want, sizes
	again.Release()
	q.same(t, "restored and gone on")
	third := newPair(t, rng, p.blob, 40)
	must(t, third.disk.Attach(next.form, k.fetch(next), all))
	next.holds(t, third.disk, all)
}

// sameFiles compares what was heard of the store's tables with what it says when nothing happens.
func sameFiles(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.db.Flush())
	for range 1000 {
		levels, err := s.db.SSTables()
		must(t, err)
		var want []uint64
		for _, level := range levels {
			for _, x := range level {
				want = append(want, uint64(x.FileNum))
			}
		}
		slices.Sort(want)
		s.files.mu.Lock()
		got := slices.Sorted(maps.Keys(s.files.live))
		s.files.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
		must(t, s.db.Flush())
	}
	t.Error("it was not heard of all tables")
}

// TestSteadyTables: the same calls give the same tables.
func TestSteadyTables(t *testing.T) {
	run := func() (k keeper, forms [][]byte) {
		rng := rand.New(rand.NewPCG(7, 7))
		spec := state.PagedSpec{Groups: testGroups, Blob: true, Head: ^uint64(0), HasHead: true, Steady: true, MemoryBytes: 1}
		s, err := Open(vfs.NewMem(), "state", &spec)
		must(t, err)
		p := &pair{blob: true, disk: s, mem: state.NewBlob(testGroups)}
		k.tables = map[string][]byte{}
		var last set
		for range 20 {
			for range 40 {
				p.step(t, rng)
			}
			snap := p.disk.CutTables(every()).(state.TableSnapshot)
			last = k.write(t, snap)
			forms = append(forms, last.form)
			snap.Release()
		}
		must(t, s.Close())
		restoredSteady(t, &spec, &k, last)
		return k, forms
	}
	a, formsA := run()
	b, formsB := run()
	if len(a.tables) < 20 || a.wrote != b.wrote || !slices.EqualFunc(formsA, formsB, bytes.Equal) || !maps.EqualFunc(a.tables, b.tables, bytes.Equal) {
		t.Errorf("%d tables and %d tables, or others", len(a.tables), len(b.tables))
	}
}

// restoredSteady wants that state which was restored and not changed is kept already, except for the table of the cut's own
// write.
func restoredSteady(t *testing.T, spec *state.PagedSpec, k *keeper, from set) {
	t.Helper()
	s, err := Open(vfs.NewMem(), "state", spec)
	must(t, err)
	all := []bool{true, true, true, true, true, true}
	must(t, s.Attach(from.form, k.fetch(from), all))
	snap := s.CutTables(every()).(state.TableSnapshot)
	before := k.wrote
	next := k.write(t, snap)
	if wrote := k.wrote - before; wrote != 1 || len(next.names) != len(from.names)+1 {
		t.Errorf("restored from %d tables, then %d of %d were written anew", len(from.names), wrote, len(next.names))
	}
	snap.Release()
	must(t, s.Close())
}

// FuzzForm: no description panics, and one that is accepted is written as it was read.
func FuzzForm(f *testing.F) {
	f.Add(appendForm(nil, &formOf{epoch: 3, seq: 900, groups: []groupSize{{1, true, 2, 32}, {4, false, 1, 16}}, dead: []deadKey{{1, 7, 2}},
		tables: []table{{number: 4, bytes: 1000, level: 6, smallest: make([]byte, 20), largest: make([]byte, 20), oldest: 3, newest: 900}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		form, err := parseForm(b, testGroups)
		if err != nil {
			return
		}
		again, err := parseForm(appendForm(nil, form), testGroups)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(form) {
			t.Fatalf("%v is read back as %v, %v", form, again, err)
		}
	})
}
