package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/bloom"
	"github.com/cockroachdb/pebble/sstable"
	"github.com/cockroachdb/pebble/vfs"

	"github.com/weir-bench/weir/engine/state"
)

// defaultMemoryBytes is the budget unless a spec says otherwise; minMemoryBytes the least that Pebble works with.
const (
	defaultMemoryBytes = 64 << 20
	minMemoryBytes     = 256 << 10
)

// Store is keyed state on disk. It implements state.Paged.
type Store struct {
	db     *pebble.DB
	spec   state.PagedSpec
	dir    string
	files  *files
	local  bool // its files are on this machine
	format state.ChunkFormat
	heap   *state.Heap // one of the two
	blob   *state.Blob
	head   uint64
	heads  bool

	groups []group
	epoch  uint32 // of writes being made now; a cut has the epoch before
	live   []*snapshot
	marks  []uint32
	dead   []deadKey // markers in the store, in the order in which they were made
	err    error

	written  uint64 // number of the last write
	filled   int    // bytes written since the memory table was made, at most
	steadily int    // flushes of a steady store
	run      run
	cached   int64 // bytes in the cache
	maxCache int64
	hand     int // of the clock
}

// group is what is known of a key group without reading it.
type group struct {
	n      int
	bytes  int64
	cached int64  // bytes of it in the cache
	reset  uint32 // marks older than this need the whole group
	whole  bool   // all of it is in the cache
	used   bool   // since the clock's hand passed
}

type deadKey struct {
	group uint32
	key   uint64
	epoch uint32
}

// keyBytes and stampBytes are the sizes of a key of the store, its group and itself, in big-endian order, and of what comes
// before a value: twice the epoch of its write, plus one when it says that the key is deleted.
const (
	keyBytes   = 12
	stampBytes = 4
)

// Open makes an empty store in dir of fs, which must be empty or not there.
func Open(fs vfs.FS, dir string, spec *state.PagedSpec) (*Store, error) {
	s := &Store{spec: *spec, dir: dir, files: newFiles(fs), groups: make([]group, spec.Groups), epoch: 1, head: spec.Head, heads: spec.Blob && spec.HasHead}
	s.spec.MemoryBytes = budgetOf(spec)
	s.maxCache = s.spec.MemoryBytes / 4
	if err := s.open(true); err != nil {
		return nil, err
	}
	s.format = state.ChunkFormat{Groups: spec.Groups, ValueBytes: spec.ValueBytes, Fixed: !spec.Blob}
	if spec.Blob {
		s.blob, s.format.ValueBytes = state.NewBlob(spec.Groups), 0
	} else {
		s.heap = state.NewHeap(spec.Groups, spec.ValueBytes)
	}
	for i := range s.groups {
		s.groups[i].whole = true // there is nothing in it
	}
	return s, nil
}

// OpenDir is Open on the machine's own files.
func OpenDir(dir string, spec *state.PagedSpec) (*Store, error) {
	s, err := Open(vfs.Default, dir, spec)
	if s != nil {
		s.local = true
	}
	return s, err
}

// budgetOf returns the bytes of memory that a store may take.
func budgetOf(spec *state.PagedSpec) int64 {
	if spec.MemoryBytes == 0 {
		return defaultMemoryBytes
	}
	return max(spec.MemoryBytes, minMemoryBytes)
}

// Memory tables are small, and there are up to four of them: a cut begins a new one, and must not wait for the one before to
// be on disk.
const memTables = 4

// open opens Pebble in the store's folder, which is made if it is not to be there yet.
func (s *Store) open(empty bool) error {
	budget := s.spec.MemoryBytes
	cache := pebble.NewCache(budget / 2)
	defer cache.Unref()
	opts := &pebble.Options{
		FS: s.files, Cache: cache, DisableWAL: true, ErrorIfExists: empty, ErrorIfNotExists: !empty, Logger: silent{},
		MemTableSize: uint64(budget / 4 / memTables), MemTableStopWritesThreshold: memTables,
		MaxConcurrentCompactions: func() int { return 1 },
		FormatMajorVersion:       pebble.FormatSSTableValueBlocks,
		BlockPropertyCollectors:  []func() pebble.BlockPropertyCollector{newEpochs},
		EventListener: &pebble.EventListener{FlushBegin: s.files.flushBegin, FlushEnd: s.files.flushEnd,
			CompactionEnd: s.files.compactionEnd, BackgroundError: s.files.fail},
	}
	if s.spec.Steady {
		opts.DisableAutomaticCompactions, opts.L0StopWritesThreshold = true, 1<<20
		opts.MemTableSize = max(opts.MemTableSize, steadyBytes)
	}
	for range 7 { // levels; the folder is a scratch folder, in which time counts more than room
		opts.Levels = append(opts.Levels, pebble.LevelOptions{FilterPolicy: bloom.FilterPolicy(10), Compression: pebble.NoCompression})
	}
	var err error
	if s.db, err = pebble.Open(s.dir, opts); err != nil {
		return fmt.Errorf("state of %s, task %d, on disk in %s: %w", s.spec.Operator, s.spec.Task, s.dir, err)
	}
	s.files.memTable.Store(int64(min(opts.MemTableSize, firstMemTableBytes)))
	s.filled = 0
	return nil
}

// silent drops what Pebble tells of its compactions; errors come back from its calls.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic("pebble: " + fmt.Sprintf(format, args...)) // it must not go on, it says
}

// Memory implements state.Paged.
func (s *Store) Memory() (*state.Heap, *state.Blob) { return s.heap, s.blob }

// fail keeps the first error.
func (s *Store) fail(err error) error {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("state on disk: %w", err)
	}
	return s.err
}

func appendKey(dst []byte, group uint32, key uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(dst, group), key)
}

func bounds(group uint32) (lower, upper []byte) {
	return binary.BigEndian.AppendUint32(nil, group), binary.BigEndian.AppendUint32(nil, group+1)
}

func stampOf(val []byte) (epoch uint32, deleted bool) {
	stamp := binary.LittleEndian.Uint32(val)
	return stamp >> 1, stamp&1 == 1
}

// get calls use with the value of a key, valid during the call, and reports whether there is one.
func (s *Store) get(group uint32, key uint64, use func(val []byte)) (bool, error) {
	var buf [keyBytes]byte
	val, closer, err := s.db.Get(appendKey(buf[:0], group, key))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, deleted := stampOf(val)
	if !deleted {
		use(val[stampBytes:])
	}
	return !deleted, closer.Close()
}

// put adds a value to a batch.
func (s *Store) put(b *pebble.Batch, group uint32, key uint64, val []byte) error {
	op := b.SetDeferred(keyBytes, stampBytes+len(val))
	appendKey(op.Key[:0], group, key)
	binary.LittleEndian.PutUint32(op.Value, s.epoch<<1)
	copy(op.Value[stampBytes:], val)
	return op.Finish()
}

// remove adds a deletion to a batch.
func (s *Store) remove(b *pebble.Batch, group uint32, key uint64) error {
	if !s.tracking() || s.groups[group].reset == s.epoch {
		op := b.DeleteDeferred(keyBytes)
		appendKey(op.Key[:0], group, key)
		return op.Finish()
	}
	op := b.SetDeferred(keyBytes, stampBytes)
	appendKey(op.Key[:0], group, key)
	binary.LittleEndian.PutUint32(op.Value, s.epoch<<1|1)
	s.dead = append(s.dead, deadKey{group, key, s.epoch})
	return op.Finish()
}

// tracking says that somebody may ask for what changed.
func (s *Store) tracking() bool { return len(s.live)+len(s.marks) > 0 }

// Len returns the number of keys in the group.
func (s *Store) Len(group uint32) int { return s.groups[group].n }

// Bytes implements state.Keyed.
func (s *Store) Bytes(group uint32) int64 { return s.groups[group].bytes }

// Drop implements state.Keyed.
func (s *Store) Drop(group uint32) {
	g := &s.groups[group]
	if g.n > 0 || s.tracking() {
		s.batch(func(b *pebble.Batch) {
			lower, upper := bounds(group)
			_ = s.fail(b.DeleteRange(lower, upper, nil)) // looked at below
		})
		if s.err != nil {
			return
		}
	}
	s.uncache(group, false)
	*g = group0(g.reset)
	if s.tracking() {
		g.reset = s.epoch
	}
}

// group0 is an empty group.
func group0(reset uint32) group { return group{reset: reset, whole: true} }

// Install implements state.Keyed. Errors of a bad chunk wrap state.ErrChunk and leave the store unchanged.
func (s *Store) Install(group uint32, chunk []byte) error {
	v, err := s.format.Parse(group, chunk)
	if err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	if v.Replace {
		s.Drop(group)
	}
	s.uncache(group, false)
	g := &s.groups[group]
	fresh := g.n == 0
	s.batch(func(b *pebble.Batch) { // by itself: what is deleted may be among the entries again
		v.Deleted(func(key uint64) {
			if !s.run.seen.add(group, key) {
				return // deleted twice
			}
			old, err := s.length(group, key)
			if err == nil && old >= 0 {
				g.account(old, -1)
				err = s.remove(b, group, key)
			}
			_ = s.fail(err) // it is returned below
		})
	})
	s.run.seen.clear()
	s.batch(func(b *pebble.Batch) {
		v.Entries(func(key uint64, val []byte) {
			old := -1
			if !fresh {
				var err error
				old, err = s.length(group, key)
				_ = s.fail(err) // it is returned below
			}
			g.account(old, len(val))
			_ = s.fail(s.put(b, group, key, val))
		})
	})
	g.whole = g.n == 0
	if s.err == nil && s.heads {
		s.cacheHead(group)
	}
	return s.err
}

// batch writes what fill puts into a batch.
func (s *Store) batch(fill func(b *pebble.Batch)) {
	b := s.db.NewBatch()
	fill(b)
	if s.err == nil && b.Count() > 0 {
		_ = s.fail(s.commit(b))
	}
	_ = s.fail(b.Close()) // the caller returns it
}

// length returns the size of a key's value in bytes, -1 when there is none.
func (s *Store) length(group uint32, key uint64) (n int, err error) {
	n = -1
	_, err = s.get(group, key, func(val []byte) { n = len(val) })
	return n, err
}

// account keeps the group's size: a value had old bytes and has now; -1 is none.
func (g *group) account(old, now int) {
	if old >= 0 {
		g.n--
		g.bytes -= int64(8 + old)
	}
	if now >= 0 {
		g.n++
		g.bytes += int64(8 + now)
	}
}

// Fingerprint returns the hash over the group's (key, value) pairs, as that of a Heap or Blob with the same content.
func (s *Store) Fingerprint(group uint32) (uint64, error) {
	snap := s.Cut([]uint32{group}).(*snapshot)
	defer snap.Release()
	sum := snap.Fingerprint(group)
	return sum, s.fail(snap.Err())
}

// Close implements state.Paged.
func (s *Store) Close() error {
	for _, snap := range slices.Clone(s.live) {
		snap.Release()
	}
	s.files.fail(errClosed)
	s.files.measuring.Lock()
	defer s.files.measuring.Unlock()
	err := s.db.Close()
	if s.err != nil {
		return s.err
	}
	return err
}

// epochs collects the epochs of a block's values.
type epochs struct{ low, high uint64 }

const epochsName = "epochs"

func newEpochs() pebble.BlockPropertyCollector {
	return sstable.NewBlockIntervalCollector(epochsName, &epochs{}, nil)
}

// Add implements sstable.DataBlockIntervalCollector. A deletion has no epoch: what it uncovers where its block is skipped
// is older than the mark, and is left out for that.
func (e *epochs) Add(key sstable.InternalKey, val []byte) error {
	if key.Kind() != sstable.InternalKeyKindSet && key.Kind() != sstable.InternalKeyKindSetWithDelete || len(val) < stampBytes {
		return nil
	}
	at, _ := stampOf(val)
	if e.high == 0 || uint64(at) < e.low {
		e.low = uint64(at)
	}
	e.high = max(e.high, uint64(at)+1)
	return nil
}

// FinishDataBlock implements sstable.DataBlockIntervalCollector.
func (e *epochs) FinishDataBlock() (lower, upper uint64, err error) {
	lower, upper = e.low, e.high
	*e = epochs{}
	return lower, upper, nil
}
