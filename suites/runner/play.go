package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/reports/runlog"
)

// step is something that happens at a time of the trial's axis.
type step struct {
	at time.Duration
	do func(ctx context.Context) error
}

// play goes through the phases.
func (t *trial) play(ctx context.Context) error {
	t.phase("warm-up")
	if err := t.startFaults(); err != nil {
		return err
	}
	for _, s := range t.steps() {
		if err := t.until(ctx, s.at); err != nil {
			return err
		}
		if err := s.do(ctx); err != nil {
			return err
		}
	}
	t.phase("drain")
	if err := t.drain(ctx, t.feed.scheduled()); err != nil {
		return err
	}
	if t.cell.Timing.Capacity > 0 && t.seen.drained {
		if err := t.saturate(ctx); err != nil {
			return err
		}
	}
	return t.end(ctx)
}

// readAhead is how long before the end of the steady phase its costs are read.
const readAhead = 30 * time.Millisecond

// steps lists what happens up to the end of the measured phases, in order.
func (t *trial) steps() []step {
	c := t.cell
	origin := c.Timing.Warmup
	steadyTo := c.Timing.Steady
	var out []step
	if m := c.Migration; m != nil && !isControl(m) {
		at := c.EventTime(m.At)
		if m.Trigger == "time" {
			steadyTo = min(steadyTo, at)
		}
		if t.calibrates() {
			out = append(out, step{time.Duration(float64(origin) * probeFrom), t.calibrate})
		}
		if m.Trigger == "time" {
			out = append(out, step{origin + at, t.migrate})
		}
		out = append(out, step{t.length - c.Timing.After/2, t.readEarly}, step{t.length, t.readLate})
		if m.Back != nil {
			out = append(out, step{origin + at + *m.Back, t.moveBack})
		}
	}
	for i := range c.Faults {
		if f := &c.Faults[i]; f.On == nil {
			steadyTo = min(steadyTo, c.EventTime(f.At))
		}
	}
	if t.watch != nil { // the level before is that before the keys change
		for _, o := range t.w.Truth(t.length) {
			if o.Begin > origin {
				steadyTo = min(steadyTo, o.Begin-origin)
			}
		}
	}
	t.seen.steadyTo = origin + steadyTo
	// The workers are read a moment before the event, when all of them are still there.
	marks := []step{{origin, t.beginSteady}, {origin + max(0, steadyTo-readAhead), t.endSteady}}
	out = append(marks, out...)
	slices.SortStableFunc(out, func(a, b step) int { return int(a.at - b.at) })
	return append(out, step{t.length, func(context.Context) error { t.stopFaults(); t.readStore(); return nil }})
}

func (t *trial) beginSteady(context.Context) error {
	t.phase("steady")
	t.seen.before = t.read()
	var err error
	t.seen.effort, err = t.effort()
	return err
}

// readEarly and readLate read the load at the ends of a window behind the move.
func (t *trial) readEarly(context.Context) (err error) {
	t.seen.late.early, err = t.readLoads(operatorIndex(&t.job, t.cell.Migration.Operator))
	return err
}

func (t *trial) readLate(context.Context) (err error) {
	t.seen.late.late, err = t.readLoads(operatorIndex(&t.job, t.cell.Migration.Operator))
	return err
}

func (t *trial) endSteady(context.Context) error {
	t.seen.after = t.read()
	t.seen.haveSteady = true
	if len(t.cell.Faults) > 0 || t.cell.Migration != nil {
		t.phase("event")
	} else {
		t.phase("after")
	}
	return nil
}

// drain waits until n records of the workload were answered, for at most the suite's time. That they were not is no
// error.
func (t *trial) drain(ctx context.Context, n uint64) error {
	times := uint64(0)
	if t.col.query != nil {
		times = 1 // of records: how many answers there will be is not known before all are there
	}
	for _, e := range t.expect {
		times += e.Times
	}
	deadline := t.now() + t.cell.Timing.Drain
	for !t.seen.drained && t.now() < deadline {
		var answered uint64
		if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) { answered = t.worked(c) }); err != nil {
			return t.over()
		}
		if t.blind != nil || answered >= n*times {
			t.seen.drained = true
			return nil
		}
		if err := t.until(ctx, t.now()+2*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// worked returns how much the job has worked off: answers, or of a query, whose outputs do not tell, the records that it
// took. It runs on the event loop.
func (t *trial) worked(c *coord.Coordinator) (n uint64) {
	if t.col.query == nil {
		return t.col.answered()
	}
	for s := range t.feed.splits {
		n += c.Edge.Emitted(s)
	}
	return n
}

// burst is what a saturating phase gave.
type burst struct {
	done    bool
	answers uint64
	took    time.Duration
}

// saturate sends as fast as the job takes it. The first quarter fills the queues and does not count.
func (t *trial) saturate(ctx context.Context) error {
	t.phase("capacity")
	d := t.cell.Timing.Capacity
	begin := t.now()
	if err := t.h.Do(func(*coord.Coordinator, *coord.Effects) { t.feed.mode = saturating }); err != nil {
		return t.over()
	}
	var from, to uint64
	var fromAt, toAt time.Duration
	mark := func(n *uint64, at *time.Duration) error {
		err := t.h.Do(func(*coord.Coordinator, *coord.Effects) { *n, *at = t.col.answered(), t.now() })
		if err != nil {
			return t.over()
		}
		return nil
	}
	if err := t.until(ctx, begin+d/4); err != nil {
		return err
	}
	if err := mark(&from, &fromAt); err != nil {
		return err
	}
	if err := t.until(ctx, begin+d); err != nil {
		return err
	}
	if err := mark(&to, &toAt); err != nil {
		return err
	}
	t.seen.burst = burst{done: true, answers: to - from, took: toAt - fromAt}
	return nil
}

// end closes the feed and waits until every sink has ended, for at most the suite's time.
func (t *trial) end(ctx context.Context) error {
	t.phase("end")
	var emitted uint64
	err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		t.feed.mode = saturating // so that the end, which comes behind the last record, is due
		for s := range t.feed.splits {
			n := c.Edge.Emitted(s)
			emitted += n
			if n > 0 { // a feed of no records has no end
				c.Edge.Bound(s, n)
			}
			t.seen.emitted = append(t.seen.emitted, n)
		}
	})
	if err != nil {
		return t.over()
	}
	if emitted == 0 {
		return fmt.Errorf("no record was sent in %v", t.length)
	}
	limit := time.NewTimer(t.cell.Timing.Drain)
	defer limit.Stop()
	select {
	case <-t.h.Done():
		if err := t.h.Err(); err != nil {
			return fmt.Errorf("the job failed: %w", err)
		}
		t.seen.ended = true
	case <-limit.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// finish closes the harness; from here on what was the event loop's belongs to the trial.
func (t *trial) finish() error {
	t.stopFaults()
	if len(t.seen.emitted) == 0 {
		// The job failed, or somebody was in a hurry: what was sent so far is what is expected.
		_ = t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) { // closed: nothing was sent
			for s := range t.feed.splits {
				n := c.Edge.Emitted(s)
				t.seen.emitted = append(t.seen.emitted, n)
				c.Edge.Bound(s, max(n, 1)) // nothing more is sent
			}
		})
	}
	_ = t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) { // closed: nothing to count
		f, _ := c.Edge.Fenced()
		t.seen.fenced = f
		for _, m := range c.Meters() {
			t.seen.fenced += m.Fenced
		}
	})
	t.stoppedAt = t.now()
	if err := t.h.Close(); err != nil && t.seen.failure == nil && !t.seen.interrupted && t.seen.overdue == "" {
		t.seen.failure = err
	}
	t.log.emit(runlog.Event{Kind: runlog.TrialEnded}, int64(t.stoppedAt))
	return t.closeFaults() // only now: closing a proxy breaks the connections through it
}

// reading is what the workers had used, and done, at one moment.
type reading struct {
	at       time.Duration
	cpu      time.Duration
	rss      int64
	answered uint64
	loads    []groupLoad
	store    storeReading
	ok       bool
	why      string // not ok
	// network and disk are bytes sent and written.
	network, disk int64
	carriedOK     bool
}

// metricsPatience is how long a worker may take to tell what it carried: the next phase has to begin in time.
const metricsPatience = 200 * time.Millisecond

// read asks the workers that have tasks.
func (t *trial) read() reading {
	r := reading{ok: true, carriedOK: true}
	var nodes []int
	err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		r.at, r.answered, r.store = t.now(), t.worked(c), t.storeMeters(c)
		for s := range t.job.Workers {
			nodes = append(nodes, c.NodeOfSlot(s))
		}
		r.loads = groupLoads(c, &t.job)
		t.lookAtPlaces(c)
	})
	if err != nil {
		return reading{why: err.Error()}
	}
	t.storeUsage(&r.store)
	for _, n := range nodes {
		u, err := t.h.Usage(n)
		if err != nil {
			r.ok, r.why = false, err.Error()
			continue
		}
		r.cpu += u.UserCPU + u.SystemCPU
		r.rss += u.RSSBytes
		var m host.WorkerMetrics
		if r.carriedOK {
			m, err = t.h.WorkerMetrics(n, metricsPatience)
			r.carriedOK = err == nil
		}
		r.network += m.Wire.SentBytes
		r.disk += m.Disk.WrittenBytes
	}
	return r
}
