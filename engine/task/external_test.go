package task

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

// storeBench is a count whose state is in a store that the test plays.
type storeBench struct {
	*bench
	t      *testing.T
	store  map[uint64]uint64
	writes []WriteRequest // not carried out yet
	reads  int            // values
}

func newStoreBench(t *testing.T, cacheEntries int64) *storeBench {
	b := newBench(t, func(j *core.Job) {
		j.Operators[2].Store, j.Operators[2].StoreCacheBytes = "redis://h", 16*cacheEntries
	})
	b.e.Reset()
	return &storeBench{bench: b, t: t, store: map[uint64]uint64{}}
}

func (b *storeBench) task() *Task { return b.w.tasks[countTask] }

// send sends a run of records with the given keys on source s's channel.
func (b *storeBench) send(s int, keys ...uint64) {
	m := b.w.pool.Get()
	m.Kind, m.Channel, m.Epoch, m.First, m.Count, m.ArrivedNS = core.KindRecords, b.ch[s], 1, b.next[s], len(keys), b.now
	m.Keys = append(m.Keys, keys...)
	for range keys {
		m.Times = append(m.Times, b.now)
	}
	b.next[s] += uint64(len(keys))
	b.w.Frame(m, &b.e)
	m.Release()
}

// run lets the worker run and returns what it wants to read.
func (b *storeBench) run() (read []ReadRequest) {
	b.w.Run(&b.e)
	read = slices.Clone(b.e.Reads)
	b.writes = append(b.writes, b.e.Writes...)
	b.e.Reset()
	return read
}

func (b *storeBench) answer(r ReadRequest) {
	var values []byte
	for _, k := range r.Keys {
		values = binary.LittleEndian.AppendUint64(values, b.store[k])
	}
	b.reads += len(r.Keys)
	b.w.StateRead(&r, values, nil, &b.e)
}

// written carries out the first n writes.
func (b *storeBench) written(n int) {
	for _, r := range b.writes[:n] {
		for i, k := range r.Keys {
			b.store[k] = binary.LittleEndian.Uint64(r.Values[8*i:])
		}
		b.w.StateWritten(&r, nil, &b.e)
	}
	b.writes = b.writes[n:]
}

// settle runs until nothing is left to do.
func (b *storeBench) settle() {
	b.t.Helper()
	for range 1000 {
		reads := b.run()
		for _, r := range reads {
			b.answer(r)
		}
		if len(reads)+len(b.writes) == 0 {
			return
		}
		b.written(len(b.writes))
	}
	b.t.Fatal("no end of reads and writes")
}

// TestExternalReadsBeforeARun says that what a run needs is read at once and once, and that nothing overtakes it.
func TestExternalReadsBeforeARun(t *testing.T) {
	b := newStoreBench(t, 100)
	b.store[5] = 40
	b.send(0, 7, 5, 7, 5, 9)
	b.control(0, core.Control{Type: core.CtlEnd})
	b.send(1, 1)
	reads := b.run()
	if len(reads) != 1 || !slices.Equal(reads[0].Keys, []uint64{7, 5, 9}) || len(b.writes) != 0 {
		t.Fatalf("reads %+v and writes %+v, want one read of 7, 5, 9", reads, b.writes)
	}
	if more := b.run(); len(more) != 0 || b.task().consumed != 0 {
		t.Fatalf("while the read was under way, %d inputs were taken and %d reads asked for", b.task().consumed, len(more))
	}
	b.answer(reads[0])
	reads = b.run()
	if len(b.writes) != 1 || !slices.Equal(b.writes[0].Keys, []uint64{7, 5, 9}) || binary.LittleEndian.Uint64(b.writes[0].Values[8:]) != 42 {
		t.Fatalf("writes %+v, want one of 7, 5, 9 with 42 for 5", b.writes)
	}
	if len(reads) != 1 || !slices.Equal(reads[0].Keys, []uint64{1}) {
		t.Fatalf("reads %+v, want the other source's key", reads)
	}
}

// TestExternalWritesAreBounded says that a task takes no input while MaxStateWrites writes are under way.
func TestExternalWritesAreBounded(t *testing.T) {
	b := newStoreBench(t, 100)
	b.send(0, 7)
	for _, r := range b.run() {
		b.answer(r)
	}
	for range 3 * MaxStateWrites {
		b.send(0, 7)
		b.run()
	}
	if len(b.writes) != MaxStateWrites || b.task().consumed != MaxStateWrites {
		t.Fatalf("%d writes under way after %d inputs, want %d", len(b.writes), b.task().consumed, MaxStateWrites)
	}
	b.written(1)
	b.run()
	if len(b.writes) != MaxStateWrites {
		t.Errorf("%d writes under way after one was done, want %d", len(b.writes), MaxStateWrites)
	}
	b.settle()
	if b.store[7] != 3*MaxStateWrites+1 {
		t.Errorf("%d in the store, want %d", b.store[7], 3*MaxStateWrites+1)
	}
}

// TestExternalCacheIsBounded says that the cache keeps its bound and what is used, and that what left it is not lost.
func TestExternalCacheIsBounded(t *testing.T) {
	const bound, rounds = 10, 500
	b := newStoreBench(t, bound)
	for i := range uint64(rounds) {
		b.send(int(i%2), 1, 1000+i%50)
		b.settle()
		if n := b.task().ext.entries; n > bound {
			t.Fatalf("%d entries after %d runs, want at most %d", n, i, bound)
		}
	}
	total := 0
	for g := range uint32(4) {
		total += b.task().ctx.State.Len(g)
	}
	if x := b.task().ext; total != x.entries || len(x.clock)-x.hand != total || len(x.clock) > 4*bound {
		t.Errorf("%d entries counted as %d, %d of %d in the clock", total, x.entries, len(x.clock)-x.hand, len(x.clock))
	}
	if b.store[1] != rounds || b.store[1007] != rounds/50 {
		t.Errorf("%d and %d in the store, want %d and %d", b.store[1], b.store[1007], rounds, rounds/50)
	}
	if b.reads != rounds+1 { // each of the others is gone when it comes again; 1 never is
		t.Errorf("%d values read, want %d: the key of every run stays", b.reads, rounds+1)
	}
}

// TestExternalReadsOnce says that without a cache, too, a run's values are read once: a write that is acknowledged between
// the read and the run does not make room at their cost.
func TestExternalReadsOnce(t *testing.T) {
	b := newStoreBench(t, 1)
	for k := range uint64(MaxStateWrites) {
		b.send(0, 10+k)
		for _, r := range b.run() {
			b.answer(r)
		}
		b.run()
	}
	b.send(0, 3, 4, 5)
	b.written(1) // one input may be taken again
	reads := b.run()
	if len(reads) != 1 || !slices.Equal(reads[0].Keys, []uint64{3, 4, 5}) {
		t.Fatalf("reads %+v, want one of 3, 4, 5", reads)
	}
	b.answer(reads[0])
	b.written(len(b.writes))
	if again := b.run(); len(again) != 0 || len(b.writes) != 1 || !slices.Equal(b.writes[0].Keys, []uint64{3, 4, 5}) {
		t.Errorf("reads %+v again, writes %+v, want the run's", again, b.writes)
	}
	b.settle()
	if n := b.task().ext.entries; n > 1 {
		t.Errorf("%d values in a cache for one", n)
	}
}

// TestExternalEndWaitsForWrites says that the end of the stream comes behind the last write.
func TestExternalEndWaitsForWrites(t *testing.T) {
	b := newStoreBench(t, 100)
	b.send(0, 7)
	b.control(0, core.Control{Type: core.CtlEnd})
	b.control(1, core.Control{Type: core.CtlEnd})
	for _, r := range b.run() {
		b.answer(r)
	}
	b.run()
	if !b.task().ending || len(b.writes) != 1 {
		t.Fatalf("ending %v with %d writes under way, want true and 1", b.task().ending, len(b.writes))
	}
	b.written(1)
	if b.task().ending {
		t.Error("the end did not pass behind the last write")
	}
}

// TestExternalErrors says that a task fails with the words of its store, and takes no answers of an earlier deployment.
func TestExternalErrors(t *testing.T) {
	full := errors.New("the store is full")
	b := newStoreBench(t, 100)
	b.send(0, 7)
	r := b.run()[0]
	old := r
	old.Epoch--
	b.w.StateRead(&old, nil, full, &b.e)
	if len(b.e.Msgs) != 0 {
		t.Fatalf("an answer to an earlier deployment: %+v", b.e.Msgs)
	}
	b.w.StateRead(&r, nil, full, &b.e)
	if len(b.e.Msgs) != 1 || b.e.Msgs[0].Type != core.MsgTaskFailed || !strings.Contains(b.e.Msgs[0].Err, "external state of count: the store is full") {
		t.Errorf("a read that failed: %+v", b.e.Msgs)
	}

	b = newStoreBench(t, 100)
	b.send(0, 7)
	b.answer(b.run()[0])
	b.run()
	b.w.StateWritten(&b.writes[0], full, &b.e)
	if len(b.e.Msgs) != 1 || !strings.Contains(b.e.Msgs[0].Err, "the store is full") {
		t.Errorf("a write that failed: %+v", b.e.Msgs)
	}
}
