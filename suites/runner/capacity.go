package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/reports/stats"
	"github.com/weir-bench/weir/suites/progress"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/verify"
	"github.com/weir-bench/weir/workloads"
)

// CapacityOptions are the set-up whose capacity, or whose delay at a rate, is measured.
type CapacityOptions struct {
	Workers, Parallelism int
	Keys                 int64
	Duration             time.Duration
	// Checkpoint is the time between checkpoints; 0: none.
	Checkpoint time.Duration
	// Alternate takes a checkpoint in every other of the periods of length Checkpoint, and tells the rates with and without
	// one apart: the same processes, the same memory. Duration holds as many pairs of periods as fit.
	Alternate bool
	// Recovery is the fault-tolerance strategy of all tasks, empty: checkpoint where there are some, else none; Scope how
	// much rolls back to a checkpoint.
	Recovery, Scope string
	// Preload is how many of the keys, from 0 on, have state from the start.
	Preload int64
	// Rate in records/s; 0: as fast as it goes.
	Rate     float64
	Seed     uint64
	Progress *progress.Progress
	// Command and Env start a worker, as in host.Config.
	Command []string
	Env     []string
}

// CapacityResult is what was measured.
type CapacityResult struct {
	// RecordsPerS is the rate of answers over Elapsed.
	RecordsPerS float64
	Elapsed     time.Duration
	// Answers are those of the whole run, warm-up included.
	Answers verify.Answers
	// WorkerCPU and HarnessCPU are processor time over Elapsed.
	WorkerCPU, HarnessCPU time.Duration
	// Delays and Lag are those of the measured time; nil when there was no rate.
	Delays, Lag *stats.Histogram
	// Checkpoints is how many were complete, CheckpointMedian how long they took.
	Checkpoints      int
	CheckpointMedian time.Duration
	// Snapshots is how many snapshots tasks took, CutMax the longest synchronous part of one.
	Snapshots int
	CutMax    time.Duration
	// Turns are pairs of periods, with a checkpoint and without; see CapacityOptions.Alternate.
	Turns []CapacityTurn
}

const capacityLease = 10 * time.Second

// capacityWarmup goes by before anything is measured.
const capacityWarmup = time.Second

// Capacity runs a keyed count of uniform keys. Every output comes back to this process and is checked.
func Capacity(ctx context.Context, o CapacityOptions) (CapacityResult, error) {
	m := &capacityRun{o: o, started: make(chan struct{}), begun: make(chan struct{}, 1)}
	if err := m.open(); err != nil {
		return CapacityResult{}, err
	}
	defer m.close()
	if err := m.measure(ctx); err != nil {
		return CapacityResult{}, fmt.Errorf("measure the capacity: %w", err)
	}
	return m.res, nil
}

type capacityRun struct {
	o       CapacityOptions
	begun   chan struct{} // a checkpoint has begun
	w       *workloads.Workload
	job     core.Job
	h       *host.Harness
	feed    *feed
	col     *collector
	lag     *stats.Histogram
	took    []float64 // of complete checkpoints, ns; on the loop
	failed  string    // what failed; on the loop
	started chan struct{}
	dir     string
	res     CapacityResult
}

func (m *capacityRun) open() (err error) {
	o := &m.o
	rate := o.Rate
	if rate == 0 {
		rate = 10e6 // only the distance of intended times, which nobody waits for
	}
	m.w, err = workloads.Open(workloads.Spec{Kind: workloads.KindUniform, Keys: o.Keys, Scramble: o.Preload == 0, Rate: rate, Seed: o.Seed})
	if err != nil {
		return err
	}
	recovery := o.Recovery
	if recovery == "" {
		recovery = core.RecoveryNone
	}
	if o.Checkpoint > 0 {
		if o.Recovery == "" {
			recovery = core.RecoveryCheckpoint
		}
		if m.dir, err = os.MkdirTemp("", "weir-capacity-"); err != nil {
			return fmt.Errorf("make the folder for checkpoints: %w", err)
		}
	}
	// Nothing is to fail here, and a worker on a saturated machine may be silent for a while.
	interval := o.Checkpoint
	if o.Alternate {
		interval *= 2
	}
	m.job = core.Job{ID: "capacity", Seed: o.Seed, Workers: o.Workers, Checkpoint: interval, Lease: capacityLease, Operators: []core.OperatorSpec{
		{Name: "keys", Kind: "source", Parallelism: o.Workers, Recovery: recovery},
		{Name: "count", Kind: "count", Params: preloaded(o.Preload), Inputs: []string{"keys"}, Parallelism: o.Parallelism, Groups: uint32(max(1024, o.Parallelism)), ValueBytes: 8, Recovery: recovery},
		{Name: "results", Kind: "sink", Inputs: []string{"count"}, Parallelism: o.Parallelism, Recovery: recovery},
	}}
	for i := range m.job.Operators {
		m.job.Operators[i].Scope = o.Scope
	}
	graph, err := core.BuildGraph(m.job, operator.Info)
	if err != nil {
		return err
	}
	expect, err := verify.Expect(&m.job)
	if err != nil {
		return err
	}
	length := capacityWarmup + o.Duration
	m.feed = newFeed(m.w, o.Workers, spec.CatchUp{}, length)
	m.col = newCollector(expect, graph, int(o.Keys), 100*time.Millisecond, length)
	m.lag = stats.NewHistogram()
	if o.Rate == 0 {
		m.feed.mode, m.col.endNS = saturating, 0 // no delay means anything
	}
	m.h, err = host.Start(host.Config{Job: m.job, Feed: m.feed, Due: m.feed.due, Collect: m.col.collect, Dir: m.dir,
		Command: o.Command, Env: o.Env, OnTrace: m.onTrace, OnLag: m.onLag})
	return err
}

// onTrace and onLag run on the event loop.
func (m *capacityRun) onTrace(t coord.Trace) {
	switch {
	case t.Kind == coord.TraceStarted && !m.feed.started:
		m.feed.begin(t.AtNS + int64(5*time.Millisecond))
		m.col.originNS = m.feed.originNS
		close(m.started)
	case t.Kind == coord.TraceDetected && m.failed == "":
		m.failed = fmt.Sprintf("worker %d failed: %s", t.Node, t.Detail)
	case t.Kind == coord.TraceCheckpoint:
		select {
		case m.begun <- struct{}{}:
		default: // nobody waits
		}
	case t.Kind == coord.TraceSnapshot:
		m.res.Snapshots++
		m.res.CutMax = max(m.res.CutMax, time.Duration(t.Count))
	case t.Kind == coord.TraceComplete:
		m.took = append(m.took, float64(t.Count))
	}
}

func (m *capacityRun) onLag(lagNS int64, n int) {
	if m.o.Rate > 0 && m.feed.lookedAt > capacityWarmup {
		m.lag.Record(time.Duration(max(lagNS, 0)), int64(n))
	}
}

func (m *capacityRun) now() time.Duration { return m.h.Now() - time.Duration(m.feed.originNS) }

func (m *capacityRun) close() {
	if m.h != nil {
		_ = m.h.Close() // its error was told by whoever waited for the job
	}
	if m.dir != "" {
		_ = os.RemoveAll(m.dir) // in the system's folder for temporary files
	}
}

// wait waits for a time of the axis, or for the job.
func (m *capacityRun) wait(ctx context.Context, phase string, at time.Duration) error {
	m.o.Progress.Update(progress.Event{Suite: "capacity", Trial: 1, Trials: 1, Cell: "count", Repetition: 1, Phase: phase})
	timer := time.NewTimer(at - m.now())
	defer timer.Stop()
	return until(ctx, m.h, timer.C)
}

// until waits for something to come while the job runs.
func until[T any](ctx context.Context, h *host.Harness, come <-chan T) error {
	select {
	case <-come:
		return nil
	case <-h.Done():
		return orErr(h.Err(), "the job ended before its time")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func orErr(err error, text string) error {
	if err != nil {
		return err
	}
	return errors.New(text)
}

func (m *capacityRun) measure(ctx context.Context) error {
	patience := startLimit + time.Duration(float64(m.o.Preload)/preloadPerS*float64(time.Second))
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-m.started:
	case <-m.h.Done():
		return orErr(m.h.Err(), "the job ended before it ran")
	case <-limit.C:
		return fmt.Errorf("not all workers are there after %v", patience)
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.o.Alternate {
		if err := m.alternate(ctx); err != nil {
			return err
		}
		return m.finish(ctx)
	}
	if err := m.wait(ctx, "warm-up", capacityWarmup); err != nil {
		return err
	}
	before, err := m.mark()
	if err != nil {
		return err
	}
	if err := m.wait(ctx, "measure", capacityWarmup+m.o.Duration); err != nil {
		return err
	}
	after, err := m.mark()
	if err != nil {
		return err
	}
	m.res.Elapsed = after.at - before.at
	m.res.RecordsPerS = float64(after.answered-before.answered) / m.res.Elapsed.Seconds()
	m.res.WorkerCPU, m.res.HarnessCPU = after.workers-before.workers, after.harness-before.harness
	return m.finish(ctx)
}

type capacityMark struct {
	at               time.Duration
	answered         uint64
	workers, harness time.Duration
}

func (m *capacityRun) mark() (c capacityMark, err error) {
	if err := m.h.Do(func(*coord.Coordinator, *coord.Effects) { c.at, c.answered = m.now(), m.col.answered() }); err != nil {
		return c, err
	}
	for n := 1; n <= m.o.Workers; n++ {
		u, err := m.h.Usage(n)
		if err != nil {
			return c, err
		}
		c.workers += u.UserCPU + u.SystemCPU
	}
	c.harness, _ = selfCPU()
	return c, nil
}

// finish ends the feed, waits for the last outputs, and checks all of them.
func (m *capacityRun) finish(ctx context.Context) error {
	var emitted []uint64
	if err := m.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		m.feed.mode = saturating
		for s := range m.feed.splits {
			n := c.Edge.Emitted(s)
			emitted = append(emitted, n)
			c.Edge.Bound(s, max(n, 1))
		}
	}); err != nil {
		return err
	}
	select {
	case <-m.h.Done():
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(10 * time.Second):
		return errors.New("the last outputs did not come within 10s")
	}
	if err := m.h.Close(); err != nil {
		return err
	}
	if m.failed != "" {
		return errors.New(m.failed)
	}
	m.o.Progress.Update(progress.Event{Suite: "capacity", Trial: 1, Trials: 1, Cell: "count", Repetition: 1, Phase: "check"})
	m.res.Answers = m.col.oracles[0].Answers(verify.Golden(m.feed.splits, emitted), 1)
	if m.o.Rate > 0 {
		m.res.Delays, m.res.Lag = m.col.all().Between(capacityWarmup, capacityWarmup+m.o.Duration), m.lag
	}
	m.res.Checkpoints = len(m.took)
	if n := len(m.took); n > 0 {
		slices.Sort(m.took)
		m.res.CheckpointMedian = time.Duration(m.took[n/2])
	}
	return nil
}
