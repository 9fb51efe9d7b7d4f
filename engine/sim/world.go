package sim

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/durable"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// Times of the simulated machines, in nanoseconds.
const (
	ms           = int64(1e6)
	tickNS       = 5 * ms
	latencyNS    = 100_000
	emitNS       = 1 * ms
	detectNS     = 2 * ms // until a broken connection is noticed
	spawnNS      = 20 * ms
	diskNS       = 3 * ms
	reconnectNS  = 5 * ms
	slowFrameNS  = 20 * ms
	maxStepCount = 4_000_000
)

// event is something that happens at a moment; seq makes the order total.
type event struct {
	atNS int64
	seq  uint64
	do   func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].atNS < h[j].atNS || h[i].atNS == h[j].atNS && h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}

// worker is a simulated worker process.
type worker struct {
	node     int
	w        *task.Worker
	alive    bool
	frozen   bool
	backlog  []func() // what waits for a frozen process
	runsAtNS int64    // when a run is scheduled, 0: none
	stepped  bool     // its machine may have changed since it was last watched
	spill    spillDisk
}

// link is one direction of a connection between two nodes.
type link struct {
	generation int // frames of an older one are lost …
	// … but those sent by graceNS still arrive, graceDelayNS late: a broken connection's data may be read after the
	// next connection is there.
	graceNS, graceDelayNS int64
	up                    bool
	blocked               bool // partitioned: it cannot come up
	lastNS                int64
}

// World runs one job.
type World struct {
	rng      *rand.Rand
	nowNS    int64
	seq      uint64
	steps    int
	events   eventHeap
	hash     uint64
	edge     *task.Edge
	coord    *coord.Coordinator
	workers  []*worker // by node id; 0 is nil
	links    map[[2]int]*link
	disk     *storage.MemFS
	store    *storage.Store
	external externalStore
	// openState makes state on disk; nil: there is no disk for it.
	openState func(*state.PagedSpec) (state.Paged, error)
	ce        coord.Effects
	we        task.Effects
	jitterNS  int64 // random part of a frame's delay
	emission  emission
	spilling  spillPlan
	// spillFailed says that a task failed because of the disk of its sender logs.
	spillFailed bool

	Traces []coord.Trace
	fatal  error
	watch  func() error // after each event; nil: none
}

func newWorld(seed uint64) *World {
	w := &World{rng: rand.New(rand.NewPCG(seed, 0x5eed)), hash: 14695981039346656037, links: map[[2]int]*link{}, workers: []*worker{nil},
		external: newExternalStore()}
	w.disk = storage.NewMemFS()
	if err := w.disk.MkdirAll("disk"); err != nil {
		panic(err)
	}
	store, err := storage.New(w.disk, "disk", "sim", storage.Options{})
	if err != nil {
		panic(err)
	}
	w.store = store
	w.jitterNS = []int64{50_000, 1 * ms, 5 * ms}[w.rng.IntN(3)]
	return w
}

// note mixes what happens into the trace hash.
func (w *World) note(vals ...uint64) {
	for _, v := range append(vals, uint64(w.nowNS)) {
		w.hash = core.Mix64(w.hash ^ v)
	}
}

func (w *World) at(ns int64, do func()) {
	w.seq++
	heap.Push(&w.events, event{max(ns, w.nowNS), w.seq, do})
}

func (w *World) after(ns int64, do func()) { w.at(w.nowNS+ns, do) }

// run lets events happen until done says so or the deadline passes.
func (w *World) run(deadlineNS int64, done func() bool) error {
	for len(w.events) > 0 && w.events[0].atNS <= deadlineNS {
		e := heap.Pop(&w.events).(event)
		w.nowNS = e.atNS
		e.do()
		if w.fatal != nil {
			return w.fatal
		}
		if w.watch != nil {
			if err := w.watch(); err != nil {
				return err
			}
		}
		if done() {
			return nil
		}
		if w.steps++; w.steps > maxStepCount {
			return fmt.Errorf("livelock: %d steps at %d ms", w.steps, w.nowNS/ms)
		}
	}
	w.nowNS = deadlineNS
	return nil
}

func (w *World) link(from, to int) *link {
	l := w.links[[2]int{from, to}]
	if l == nil {
		l = &link{up: true}
		w.links[[2]int{from, to}] = l
	}
	return l
}

// send carries a frame: in order within a link, lost when the link breaks on the way.
func (w *World) send(from, to int, frame []byte) {
	l := w.link(from, to)
	if !l.up {
		return
	}
	delay := latencyNS + w.rng.Int64N(w.jitterNS)
	if w.rng.IntN(2000) == 0 {
		delay += w.rng.Int64N(slowFrameNS)
	}
	l.lastNS = max(l.lastNS+1, w.nowNS+delay)
	generation, sentNS := l.generation, w.nowNS
	w.at(l.lastNS, func() {
		if l.generation == generation {
			w.note(uint64(from), uint64(to), core.HashBytes(frame))
			w.arrive(from, to, frame)
		} else if l.generation == generation+1 && sentNS <= l.graceNS {
			w.after(l.graceDelayNS, func() { w.arrive(from, to, frame) })
		}
	})
}

func (w *World) arrive(from, to int, frame []byte) {
	if to == task.Harness {
		w.harnessFrame(from, frame)
		return
	}
	k := w.workers[to]
	w.on(k, func() { w.workerFrame(k, frame) })
}

// on lets a worker process do something, later if it is frozen, never if it is dead.
func (w *World) on(k *worker, do func()) {
	if !k.alive {
		return
	}
	if k.frozen {
		k.backlog = append(k.backlog, do)
		return
	}
	do()
}

func (w *World) decode(p *core.Pool, frame []byte) *core.Batch {
	b := p.Get()
	if err := core.DecodeFrame(b, frame); err != nil {
		panic(err) // the simulated network does not corrupt frames; fuzzing does
	}
	b.ArrivedNS = w.nowNS
	return b
}

func decodeMsg(b *core.Batch) *core.Msg {
	var m core.Msg
	if err := json.Unmarshal(b.Ext, &m); err != nil {
		panic(err)
	}
	return &m
}

func encodeMsg(m *core.Msg) []byte {
	body, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return core.AppendFrame(nil, &core.Batch{Kind: core.KindMessage, Columns: core.Columns{Ext: body}})
}

func (w *World) workerFrame(k *worker, frame []byte) {
	b := w.decode(k.w.Pool(), frame)
	w.we.Reset()
	if b.Kind == core.KindMessage {
		k.w.Message(decodeMsg(b), &w.we)
	} else {
		k.w.Frame(b, &w.we)
	}
	b.Release()
	w.perform(k)
	w.wake(k, 0)
}

// wake schedules a run of a worker.
func (w *World) wake(k *worker, delayNS int64) {
	at := w.nowNS + delayNS
	if k.runsAtNS > 0 && k.runsAtNS <= at {
		return
	}
	k.runsAtNS = max(at, 1)
	w.at(at, func() {
		if k.runsAtNS != max(at, 1) {
			return
		}
		k.runsAtNS = 0
		w.on(k, func() { w.runWorker(k) })
	})
}

func (w *World) runWorker(k *worker) {
	w.we.Reset()
	k.w.Run(&w.we)
	w.perform(k)
}

// perform carries out a worker's effects.
func (w *World) perform(k *worker) {
	e := &w.we
	k.stepped = true
	for _, s := range e.Sends {
		frame := core.AppendFrame(nil, s.B)
		s.B.Release()
		w.send(k.node, s.Node, frame)
	}
	for i := range e.Msgs {
		w.send(k.node, task.Harness, encodeMsg(&e.Msgs[i]))
	}
	for _, s := range e.Snapshots {
		w.snapshot(k, s)
	}
	for _, l := range e.Loads {
		w.load(k, l)
	}
	for _, r := range e.Reads {
		w.readState(k, r)
	}
	for _, r := range e.Writes {
		w.writeState(k, r)
	}
	for _, r := range e.Segments {
		w.segment(k, r)
	}
	busy, more, wake := e.BusyNS, e.More, e.WakeNS
	if more || busy > 0 {
		w.wake(k, max(busy, 1000))
	}
	if wake > 0 {
		w.wake(k, max(wake-w.nowNS, 1000))
	}
}

func (w *World) snapshot(k *worker, s task.SnapshotRequest) {
	w.after(diskNS+w.rng.Int64N(diskNS), func() {
		w.on(k, func() {
			file, bytes, err := durable.WriteSnapshot(w.store, &s)
			w.we.Reset()
			k.w.SnapshotDone(s.Task, s.Epoch, s.Checkpoint, file, bytes, err, &w.we)
			w.perform(k)
		})
	})
}

func (w *World) load(k *worker, l task.LoadRequest) {
	w.after(diskNS+w.rng.Int64N(diskNS), func() {
		w.on(k, func() {
			var err error
			if l.Preload > 0 {
				l.Fill()
			} else {
				if w.coord.Graph().Job.Bug("deleted-keys-resurrect") && l.Into != nil {
					l.Into = undead{l.Into}
				}
				err = durable.LoadState(w.store, &l)
			}
			w.we.Reset()
			k.w.Loaded(&l, err, &w.we)
			w.perform(k)
			w.wake(k, 0)
		})
	})
}

func (w *World) harnessFrame(from int, frame []byte) {
	b := w.decode(w.edge.Pool(), frame)
	w.ce.Reset()
	if b.Kind == core.KindMessage {
		w.coord.Message(decodeMsg(b), &w.ce)
	} else {
		w.edge.Frame(b, &w.ce.Edge)
		w.edge.Drain(&w.ce.Edge)
	}
	b.Release()
	w.performHarness()
}

// performHarness carries out the coordinator's effects.
func (w *World) performHarness() {
	e := &w.ce
	sends, msgs := e.Edge.Sends, e.Msgs
	for _, s := range sends {
		frame := core.AppendFrame(nil, s.B)
		s.B.Release()
		w.send(task.Harness, s.Node, frame)
	}
	for i := range msgs {
		w.send(task.Harness, msgs[i].Node, encodeMsg(&msgs[i].Msg))
	}
	for _, t := range e.Traces {
		w.note(core.HashBytes([]byte(t.Kind)), t.ID, uint64(t.Task))
		w.Traces = append(w.Traces, t)
	}
	for _, node := range e.Spawns {
		w.spawn(node)
	}
	for _, c := range e.Complete {
		w.after(diskNS, func() {
			err := durable.Complete(w.store, &c)
			if err == nil {
				if retainErr := w.retain(&c); retainErr != nil && !errors.Is(retainErr, storage.ErrNoUsableCheckpoint) {
					w.Traces = append(w.Traces, coord.Trace{Kind: "retain-failed", AtNS: w.nowNS, Detail: retainErr.Error()})
				}
			}
			w.harness(func(e *coord.Effects) { w.coord.CheckpointDurable(c.Checkpoint, err, e) })
		})
	}
	if e.Choose {
		w.after(diskNS, func() {
			id, meta, skipped, err := durable.Choose(w.store)
			w.harness(func(e *coord.Effects) { w.coord.Chosen(id, meta, skipped, err, e) })
		})
	}
	if e.Fatal != nil {
		w.fatal = e.Fatal
	}
}

// retain removes what is beyond the retention.
func (w *World) retain(c *coord.Complete) error {
	if w.coord.Graph().Job.Bug("retain-forgets-tables") {
		return w.retainWrongly(c)
	}
	if !w.coord.Graph().Job.Bug("retain-forgets-links") {
		return durable.Retain(w.store, c.Retain)
	}
	for n := c.Checkpoint; n > uint64(c.Retain); n-- {
		if err := w.store.Remove(n - uint64(c.Retain)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// retainWrongly is a planted bug: tables go when the checkpoint that they were written for is not the newest any more.
func (w *World) retainWrongly(c *coord.Complete) error {
	if err := durable.Retain(w.store, c.Retain); err != nil {
		return err
	}
	names, err := w.store.TableNames()
	for name := range names {
		digits, _, _ := strings.Cut(name, "-")
		if n, _ := strconv.ParseUint(digits, 10, 64); n < c.Checkpoint && err == nil {
			err = w.disk.Remove("disk/job-sim/tables/" + name)
		}
	}
	return err
}

// harness lets the coordinator do something.
func (w *World) harness(do func(e *coord.Effects)) {
	w.ce.Reset()
	do(&w.ce)
	w.performHarness()
}

func (w *World) spawn(node int) {
	k := &worker{node: node, alive: true, spill: newSpillDisk()}
	k.w = task.NewWorker(node, func() int64 { return w.nowNS })
	k.w.OpenState = w.openState
	for len(w.workers) <= node {
		w.workers = append(w.workers, nil)
	}
	w.workers[node] = k
	w.after(spawnNS+w.rng.Int64N(spawnNS), func() {
		w.on(k, func() {
			m := k.w.Hello(fmt.Sprint(node))
			w.send(node, task.Harness, encodeMsg(&m))
			w.tickWorker(k)
		})
	})
}

func (w *World) tickWorker(k *worker) {
	if !k.alive {
		return
	}
	w.on(k, func() {
		w.we.Reset()
		k.w.Tick(&w.we)
		w.perform(k)
		w.wake(k, 0)
	})
	w.after(20*ms, func() { w.tickWorker(k) })
}
