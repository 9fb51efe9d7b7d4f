package task

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

// StoreSpace is the part of an external store that belongs to the tasks of one operator in one deployment. The epoch is
// part of it: a job that rolled back begins with empty state, and what a worker of before still writes is never read.
type StoreSpace struct {
	URL, Job, Operator string
	Epoch              uint32
	// ValueBytes is the size of every value.
	ValueBytes int
}

// ReadRequest asks the world for values of an operator's external state, where Groups[i] is the key group of Keys[i]. The
// world owns it until it answers with Worker.StateRead. A task has one at a time.
type ReadRequest struct {
	Task   int
	Epoch  uint32
	ID     uint64
	Space  *StoreSpace
	Groups []uint32
	Keys   []uint64
}

// WriteRequest asks the world to set values: Space.ValueBytes bytes a key, one after the other. The world owns it until it
// answers with Worker.StateWritten. The writes of one task must take place, and be answered, in their order.
type WriteRequest struct {
	Task   int
	Epoch  uint32
	ID     uint64
	Space  *StoreSpace
	Groups []uint32
	Keys   []uint64
	Values []byte
}

// MaxStateWrites is how many writes of a task are under way at most; it takes no input then.
const MaxStateWrites = 8

// defaultStoreCacheBytes is the bound of a task's cache unless its operator says otherwise.
const defaultStoreCacheBytes = 64 << 20

// stampBytes is what the cache keeps behind each value: the last write request with it, and whether it was used since it
// was last considered for eviction (lowest bit).
const stampBytes = 8

// external is the part of a task whose operator keeps its state in an external store.
//
// The task's heap is a write-through cache of the store. Before a run of records is worked on, the values that are not
// in the cache are read, all at once; until they are there, the task takes no input at all, so that no marker overtakes
// the records. Behind a run, the values of its keys are written, all at once. Outputs leave without waiting for that: when
// a worker is lost, the job starts from the beginning in an empty space of the store, so that outputs may come twice, but
// none is wrong (recovery none; nothing else is allowed, see coord). The end of the stream waits until all is written.
//
// What is evicted, by the clock algorithm (Corbató 1968), has been written; so a later read finds it. What is given away is
// handed over when it has been written; so the new owner's reads find it.
type external struct {
	space   StoreSpace
	cache   *state.Heap
	maximum int // entries
	entries int
	clock   []uint64 // keys in the cache, from hand on
	hand    int

	reading     uint64 // the read under way, 0: none
	lastRead    uint64
	asked       map[uint64]bool
	pinned      bool     // values were read that no run has used yet
	sent, acked uint64   // last write that was asked for, and that was answered
	byGroup     []uint64 // by group: its last write
	handing     []handover

	reads, writes uint64 // values
}

// handover is a key group on its way to another task: it gets word when write `after` is done.
type handover struct {
	version uint64
	to      *Out
	group   uint32
	after   uint64
	behind  []gate
}

// newExternal returns nil for an operator whose tasks keep its state.
func newExternal(t *Task) *external {
	if t.spec.Store == "" {
		return nil
	}
	value := max(t.spec.ValueBytes, 8)
	x := &external{cache: t.ctx.State, asked: map[uint64]bool{}, byGroup: make([]uint64, t.spec.Groups)}
	x.space = StoreSpace{URL: t.spec.Store, Job: t.w.graph.Job.ID, Operator: t.spec.Name, Epoch: t.Epoch, ValueBytes: value}
	if t.w.graph.Job.Bug("store-without-epoch") {
		x.space.Epoch = 0
	}
	bound := t.spec.StoreCacheBytes
	if bound == 0 {
		bound = defaultStoreCacheBytes
	}
	x.maximum = int(bound / int64(8+value))
	return x
}

// waits says that no input may be taken now.
func (x *external) waits() bool { return x.reading > 0 || x.sent-x.acked >= MaxStateWrites }

// settled says that all is written.
func (x *external) settled() bool { return x.sent == x.acked }

// ready says whether the cache has the state for all records of cols that need not wait for their key group. If not, what
// is missing is asked for.
func (x *external) ready(t *Task, cols *core.Columns) bool {
	if t.w.graph.Job.Bug("skip-store-read") {
		return true
	}
	var r ReadRequest
	for _, key := range cols.Keys {
		g := core.KeyGroup(key, t.spec.Groups)
		if t.moves.hold[g] > 0 {
			continue // its owner may still be writing
		}
		if _, there := x.cache.Get(g, key); !there && !x.asked[key] {
			x.asked[key] = true
			r.Groups, r.Keys = append(r.Groups, g), append(r.Keys, key)
		}
	}
	if len(r.Keys) == 0 {
		return true
	}
	clear(x.asked)
	x.lastRead++
	x.reading = x.lastRead
	x.reads += uint64(len(r.Keys))
	r.Task, r.Epoch, r.ID, r.Space = t.info.ID, t.Epoch, x.reading, &x.space
	t.w.e.Reads = append(t.w.e.Reads, r)
	return false
}

// StateRead takes the answer to r: the values of its keys, one after the other, zeros for those that the store does not
// have; or why it could not be read. The worker has to run then.
func (w *Worker) StateRead(r *ReadRequest, values []byte, err error, e *Effects) {
	w.e = e
	t := w.task(r.Task, r.Epoch)
	if t == nil || t.ext == nil || t.ext.reading != r.ID {
		return // of an earlier deployment
	}
	x := t.ext
	if err == nil && len(values) != len(r.Keys)*x.space.ValueBytes {
		err = fmt.Errorf("%d bytes for %d values of %d bytes", len(values), len(r.Keys), x.space.ValueBytes)
	}
	if err != nil {
		t.fail(fmt.Errorf("external state of %s: %w", t.spec.Name, err))
		return
	}
	x.reading, x.pinned = 0, true
	for i, key := range r.Keys {
		v, fresh := x.cache.Ref(r.Groups[i], key)
		if !fresh {
			panic("task: state was read that is in the cache")
		}
		copy(v, values[i*x.space.ValueBytes:(i+1)*x.space.ValueBytes])
		v[x.space.ValueBytes] = 1 // used, as it is about to be
		x.clock = append(x.clock, key)
		x.entries++
	}
}

// wrote is called behind a run of records: their values are written.
func (x *external) wrote(t *Task, cols *core.Columns) {
	size := x.space.ValueBytes
	x.sent++
	r := WriteRequest{Task: t.info.ID, Epoch: t.Epoch, ID: x.sent, Space: &x.space}
	for _, key := range cols.Keys {
		g := core.KeyGroup(key, t.spec.Groups)
		v, _ := x.cache.Ref(g, key)
		if stamp := binary.LittleEndian.Uint64(v[size:]); stamp>>1 == x.sent {
			continue // it has another record in this run
		}
		binary.LittleEndian.PutUint64(v[size:], x.sent<<1|1)
		r.Groups, r.Keys, r.Values = append(r.Groups, g), append(r.Keys, key), append(r.Values, v[:size]...)
		x.byGroup[g] = x.sent
	}
	x.pinned = false
	x.writes += uint64(len(r.Keys))
	t.w.e.Writes = append(t.w.e.Writes, r)
	x.evict(t)
}

// evict brings the cache back to its bound, as far as what is in it has been written. What was just read stays until a
// run has used it, or a small cache would have to read it again.
func (x *external) evict(t *Task) {
	if x.pinned {
		return
	}
	size, unwritten := x.space.ValueBytes, t.w.graph.Job.Bug("evict-unwritten")
	for looks := 2 * (len(x.clock) - x.hand); x.entries > x.maximum && looks > 0; looks-- {
		key := x.clock[x.hand]
		x.hand++
		g := core.KeyGroup(key, t.spec.Groups)
		v, there := x.cache.Get(g, key)
		if !there {
			continue
		}
		stamp := binary.LittleEndian.Uint64(v[size:])
		if !unwritten && (stamp>>1 > x.acked || stamp&1 == 1) {
			if stamp>>1 <= x.acked {
				v, _ = x.cache.Ref(g, key)
				binary.LittleEndian.PutUint64(v[size:], stamp&^1)
			}
			x.clock = append(x.clock, key)
			continue
		}
		x.cache.Delete(g, key)
		x.entries--
	}
	if x.hand > len(x.clock)/2 {
		x.clock = append(x.clock[:0], x.clock[x.hand:]...)
		x.hand = 0
	}
}

// StateWritten says that r was carried out, or why not.
func (w *Worker) StateWritten(r *WriteRequest, err error, e *Effects) {
	w.e = e
	t := w.task(r.Task, r.Epoch)
	if t == nil || t.ext == nil || t.failed {
		return
	}
	x := t.ext
	if err != nil {
		t.fail(fmt.Errorf("external state of %s: %w", t.spec.Name, err))
		return
	}
	if r.ID != x.acked+1 {
		panic(fmt.Sprintf("task: write %d of task %d was answered behind write %d", r.ID, r.Task, x.acked))
	}
	x.acked = r.ID
	x.evict(t)
	x.handOver(t)
	t.end()
}

// give forgets key groups that go to another task. It gets word of each when what was written of it is in the store.
func (x *external) give(version uint64, to *Out, groups []uint32, behind []gate) {
	for _, g := range groups {
		x.handing = append(x.handing, handover{version, to, g, x.byGroup[g], behind})
		x.entries -= x.cache.Len(g)
	}
}

// gave is called when the groups were dropped from the cache.
func (x *external) gave(t *Task) {
	x.clock = slices.DeleteFunc(x.clock[x.hand:], func(key uint64) bool { return !t.moves.owns[core.KeyGroup(key, t.spec.Groups)] })
	x.hand = 0
	x.handOver(t)
}

// handOver tells the new owners of key groups that they may read.
func (x *external) handOver(t *Task) {
	if len(x.handing) == 0 {
		return
	}
	early := t.w.graph.Job.Bug("hand-over-before-written")
	x.handing = slices.DeleteFunc(x.handing, func(h handover) bool {
		if h.after > x.acked && !early {
			return false
		}
		t.moves.sending = append(t.moves.sending, &transfer{version: h.version, to: h.to, yours: []uint32{h.group}, behind: h.behind})
		return true
	})
	for _, r := range slices.Clone(t.moves.rounds) {
		t.moves.finish(t, r)
	}
}

// handsOver says whether a round still has key groups to hand over.
func (x *external) handsOver(version uint64) bool {
	return slices.ContainsFunc(x.handing, func(h handover) bool { return h.version == version })
}
