//go:build linux

package host

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/task"
)

// orphanVariable makes the test binary a harness that is going to be killed.
const orphanVariable = "WEIR_TEST_ORPHAN"

func TestMain(m *testing.M) {
	if IsWorker() {
		os.Exit(WorkerMain(nil))
	}
	if os.Getenv(orphanVariable) != "" {
		os.Exit(orphanMain())
	}
	os.Exit(m.Run())
}

// uniformFeed draws each record's key uniformly; record j of a split is due at j/rate.
type uniformFeed struct {
	keys   uint64
	perSec float64 // of a split; 0: all due at 0
}

func (f uniformFeed) key(split int, j uint64) uint64 {
	return (core.Mix64(j*4+uint64(split)+1) >> 32) * f.keys >> 32
}

func (f uniformFeed) Fill(dst *core.Columns, split, _ int, from uint64, n int) {
	for j := from; j < from+uint64(n); j++ {
		dst.Keys = append(dst.Keys, f.key(split, j))
		at := int64(0)
		if f.perSec > 0 {
			at = int64(float64(j) / f.perSec * 1e9)
		}
		dst.Times = append(dst.Times, at)
	}
}

// paced is the schedule of a uniformFeed that begins with the run.
func (f uniformFeed) paced(elapsed time.Duration, due []uint64) time.Duration {
	n := uint64(elapsed.Seconds()*f.perSec) + 1
	for s := range due {
		due[s] = n
	}
	return time.Duration(float64(n) / f.perSec * 1e9)
}

// counts checks the outputs of a keyed count. It is used on the event loop until the run is over.
type counts struct {
	last    map[uint64]int64
	sum     map[uint64]int64 // of all counts of the key
	outputs uint64
	repeats uint64 // an output that is not the next of its key
}

func newCounts() *counts { return &counts{last: map[uint64]int64{}, sum: map[uint64]int64{}} }

func (c *counts) collect(o task.Output) {
	for i, k := range o.Columns.Keys {
		v := o.Columns.Vals[i]
		if v != c.last[k]+1 {
			c.repeats++
		}
		c.last[k] = max(c.last[k], v)
		c.sum[k] += v
		c.outputs++
	}
}

// once says how many keys did not give each count from 1 to the last exactly once, by their sums.
func (c *counts) once() (wrong int) {
	for k, n := range c.last {
		if c.sum[k] != n*(n+1)/2 {
			wrong++
		}
	}
	return wrong
}

// check compares the final counts with the feed's.
func (c *counts) check(t *testing.T, f uniformFeed, bounds []uint64) {
	t.Helper()
	want := map[uint64]int64{}
	for s, n := range bounds {
		for j := range n {
			want[f.key(s, j)]++
		}
	}
	wrong := 0
	for k, n := range want {
		if c.last[k] != n {
			if wrong++; wrong <= 3 {
				t.Errorf("key %d was counted up to %d, want %d", k, c.last[k], n)
			}
		}
	}
	if wrong > 0 || len(c.last) != len(want) {
		t.Errorf("%d of %d keys are wrong, %d keys came", wrong, len(want), len(c.last))
	}
}

func countJob(name, recovery string, transactional bool) core.Job {
	return core.Job{ID: name, Seed: 1, Workers: 2, Lease: patience, Operators: []core.OperatorSpec{
		{Name: "in", Kind: "source", Parallelism: 2, Recovery: recovery},
		{Name: "count", Kind: "count", Inputs: []string{"in"}, Parallelism: 2, Groups: 128, ValueBytes: 8, Recovery: recovery},
		{Name: "out", Kind: "sink", Inputs: []string{"count"}, Parallelism: 2, Recovery: recovery, Transactional: transactional},
	}}
}

// run is a run under test, with its traces.
type run struct {
	*Harness
	t      *testing.T
	mu     sync.Mutex
	traces []coord.Trace
	seen   chan struct{} // a trace came
}

func start(t *testing.T, cfg Config) *run {
	t.Helper()
	r := &run{t: t, seen: make(chan struct{}, 1)}
	cfg.NoSync = true
	cfg.OnTrace = func(tr coord.Trace) {
		r.mu.Lock()
		r.traces = append(r.traces, tr)
		r.mu.Unlock()
		select {
		case r.seen <- struct{}{}:
		default:
		}
	}
	h, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Harness = h
	t.Cleanup(func() {
		_ = r.Close() // a test that cares has looked at Err
		if t.Failed() {
			for _, tr := range r.traces {
				t.Logf("%8.3f ms %+v", float64(tr.AtNS)/1e6, tr)
			}
		}
	})
	return r
}

func (r *run) count(kind string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, t := range r.traces {
		if t.Kind == kind {
			n++
		}
	}
	return n
}

const patience = 10 * time.Second

// await waits until n traces of a kind have come.
func (r *run) await(kind string, n int) {
	r.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for r.count(kind) < n {
		select {
		case <-r.seen:
		case <-r.Done():
			if r.count(kind) < n {
				r.t.Fatalf("the run is over (%v) with %d traces of %q, want %d", r.Err(), r.count(kind), kind, n)
			}
		case <-timer.C:
			r.t.Fatalf("%d traces of %q after %v, want %d", r.count(kind), kind, patience, n)
		}
	}
}

func (r *run) finish() {
	r.t.Helper()
	select {
	case <-r.Done():
	case <-time.After(patience):
		_ = r.Do(func(c *coord.Coordinator, _ *coord.Effects) {
			r.t.Logf("running %v settled %v epoch %d meters %+v", c.Running(), c.Settled(), c.Epoch(), c.Meters())
		})
		r.t.Fatalf("the run is not over after %v", patience)
	}
	if err := r.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// finishNow ends the feed where it is and returns what was sent, by split.
func (r *run) finishNow() (bounds []uint64, total uint64) {
	r.t.Helper()
	bounds, err := r.EndFeed()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range bounds {
		total += n
	}
	r.finish()
	return bounds, total
}

func TestBoundedCount(t *testing.T) {
	feed, bounds := uniformFeed{keys: 1000}, []uint64{100_000, 100_000}
	c := newCounts()
	r := start(t, Config{Job: countJob("bounded", "", false), Feed: feed, Bounds: bounds, Collect: c.collect})
	r.finish()
	c.check(t, feed, bounds)
	if c.outputs != 200_000 || c.repeats != 0 {
		t.Errorf("%d outputs, %d out of turn; want 200000 and none", c.outputs, c.repeats)
	}
}

func TestKillRollsBack(t *testing.T) {
	feed := uniformFeed{keys: 1000, perSec: 150_000}
	for _, transactional := range []bool{false, true} {
		c := newCounts()
		job := countJob("kill", "checkpoint", transactional)
		job.Checkpoint = 100 * time.Millisecond
		r := start(t, Config{Job: job, Feed: feed, Due: feed.paced, Collect: c.collect, Dir: t.TempDir(), Spares: 1})
		r.await(coord.TraceComplete, 2)
		if err := r.Kill(r.node(1)); err != nil {
			t.Fatal(err)
		}
		r.await(coord.TraceReplayed, 1)
		bounds, total := r.finishNow()
		c.check(t, feed, bounds)
		if transactional && (c.outputs != total || c.repeats != 0) {
			t.Errorf("transactional: %d outputs, %d out of turn; want %d and none", c.outputs, c.repeats, total)
		}
	}
}

func (r *run) node(slot int) (node int) {
	r.t.Helper()
	if err := r.Do(func(c *coord.Coordinator, _ *coord.Effects) { node = c.NodeOfSlot(slot) }); err != nil {
		r.t.Fatal(err)
	}
	return node
}

func TestKillPromotes(t *testing.T) {
	feed := uniformFeed{keys: 1000, perSec: 150_000}
	c := newCounts()
	r := start(t, Config{Job: countJob("active", "active", false), Feed: feed, Due: feed.paced, Collect: c.collect})
	r.await(coord.TraceStarted, 1)
	r.awaitOutputs(c, 20_000)
	if err := r.Kill(r.node(1)); err != nil {
		t.Fatal(err)
	}
	r.await(coord.TracePromoted, 1)
	bounds, total := r.finishNow()
	c.check(t, feed, bounds)
	if c.outputs != total || c.repeats != 0 {
		t.Errorf("%d outputs, %d out of turn; want %d and none", c.outputs, c.repeats, total)
	}
}

// awaitOutputs waits until n outputs came.
func (r *run) awaitOutputs(c *counts, n uint64) {
	r.t.Helper()
	deadline := time.Now().Add(patience)
	for seen := uint64(0); seen < n; {
		if time.Now().After(deadline) {
			r.t.Fatalf("%d outputs after %v, want %d", seen, patience, n)
		}
		if err := r.Do(func(*coord.Coordinator, *coord.Effects) { seen = c.outputs }); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestFreezeAndThaw(t *testing.T) {
	feed := uniformFeed{keys: 1000, perSec: 100_000}
	c := newCounts()
	job := countJob("freeze", "checkpoint", true)
	job.Checkpoint, job.Heartbeat, job.Lease = 100*time.Millisecond, 20*time.Millisecond, 400*time.Millisecond
	r := start(t, Config{Job: job, Feed: feed, Due: feed.paced, Collect: c.collect, Dir: t.TempDir(), Spares: 1})
	r.await(coord.TraceComplete, 1)
	node := r.node(0)
	if err := r.Freeze(node); err != nil {
		t.Fatal(err)
	}
	r.await(coord.TraceDetected, 1)
	r.await(coord.TraceReplayed, 1)
	if r.Pid(node) == 0 {
		t.Fatal("the frozen worker was ended instead of being left a zombie")
	}
	if err := r.Thaw(node); err != nil {
		t.Fatal(err)
	}
	bounds, total := r.finishNow()
	c.check(t, feed, bounds)
	if c.outputs != total || c.repeats != 0 {
		t.Errorf("%d outputs, %d out of turn; want %d and none", c.outputs, c.repeats, total)
	}
}

// TestZombieEnds shows that a woken zombie ends by itself.
func TestZombieEnds(t *testing.T) {
	feed := uniformFeed{keys: 1000, perSec: 50_000}
	c := newCounts()
	job := countJob("zombie", "checkpoint", false)
	job.Checkpoint, job.Heartbeat, job.Lease = 100*time.Millisecond, 20*time.Millisecond, 400*time.Millisecond
	r := start(t, Config{Job: job, Feed: feed, Due: feed.paced, Collect: c.collect, Dir: t.TempDir(), Spares: 1})
	r.await(coord.TraceStarted, 1)
	node := r.node(0)
	if err := r.Freeze(node); err != nil {
		t.Fatal(err)
	}
	r.await(coord.TraceDetected, 1)
	if err := r.Thaw(node); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); r.Pid(node) != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the woken zombie goes on")
		}
	}
}

func TestMigrate(t *testing.T) {
	feed := uniformFeed{keys: 20_000, perSec: 200_000}
	c := newCounts()
	job := countJob("migrate", "checkpoint", false)
	job.Checkpoint = 200 * time.Millisecond
	r := start(t, Config{Job: job, Feed: feed, Due: feed.paced, Collect: c.collect, Dir: t.TempDir()})
	r.awaitOutputs(c, 50_000)
	for i, name := range []string{"async-rounds", "stop-restart"} {
		r.migrate(name, i)
		r.await(coord.TraceMigrated, i+1)
	}
	bounds, total := r.finishNow()
	c.check(t, feed, bounds)
	// The last outputs of a key's old owner and the first of its new one come by different ways, in any order.
	if wrong := c.once(); c.outputs != total || wrong > 0 {
		t.Errorf("%d outputs, %d keys without each count once; want %d and none", c.outputs, wrong, total)
	}
}

// migrate moves ten key groups from one task of the count to the other.
func (r *run) migrate(name string, from int) {
	r.t.Helper()
	s, err := migration.Lookup(name)
	if err != nil {
		r.t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for err = coord.ErrBusy; errors.Is(err, coord.ErrBusy) && time.Now().Before(deadline); {
		if doErr := r.Do(func(c *coord.Coordinator, e *coord.Effects) {
			q := migration.Request{Operator: 1, Rounds: 3}
			for _, g := range c.Routes(1).Owned(from)[:10] {
				q.Moves = append(q.Moves, core.Move{Group: g, From: from, To: 1 - from})
			}
			err = c.Migrate(q, s, e)
		}); doErr != nil {
			r.t.Fatal(doErr)
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
}
