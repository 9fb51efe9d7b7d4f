package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-bench/weir/chaos"
	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/stats"
	"github.com/weir-bench/weir/suites/progress"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/verify"
	"github.com/weir-bench/weir/workloads"
)

// trial is one repetition of one cell in worker processes. Its methods run on one goroutine; what is shared with the
// harness's event loop is said to be.
type trial struct {
	o    *Options
	plan spec.Trial
	cell *spec.Cell
	log  *events
	w    *workloads.Workload

	job    core.Job
	graph  *core.Graph
	expect []verify.Expectation
	blind  error         // why answers cannot be checked
	length time.Duration // of the measured phases, from the start of the feed

	h    *host.Harness
	feed *feed            // on the loop
	col  *collector       // on the loop until the harness is closed
	lag  *stats.Histogram // on the loop
	live *stats.Histogram

	mu      sync.Mutex
	traces  []coord.Trace // guarded by mu
	changed chan struct{} // a trace came
	started chan struct{} // closed when the job runs for the first time

	seen        observed
	injected    []injection // guarded by mu while faults may happen
	placed      placed      // on the loop
	faults      *faults     // guarded by mu until the feed has begun; nil: none
	proxy       *chaos.Proxy
	holders     holders // on the loop
	kept        kept    // on the loop until the harness is closed
	store       store
	giveUp      context.CancelCauseFunc // ends the trial, which goes on to its end
	memory      *memoryWatch
	migration   *moveRecord
	unfit       error  // why the suite cannot be run on, although it could be begun
	watch       *watch // nil: no detector
	skew        truth
	calibration *calibration // nil: none was asked for
	probe       *probe       // on the loop: the last one
	place       host.Place   // of checkpoints
	ownDir      bool         // the place is in the run directory

	p99, nextShown         time.Duration // what was shown last, and when to show again
	stoppedAt              time.Duration // when the harness was closed
	staySeries, moveSeries *stats.Series // of the keys that stayed and moved; nil without a migration
	sum                    *verify.Answers
}

// observed is what the trial's goroutine read off at its marks.
type observed struct {
	steadyTo      time.Duration // the steady phase is from the end of the warm-up to here
	before, after reading       // at the two ends of the steady phase
	haveSteady    bool
	effort        effort                            // at the beginning of the steady phase
	late          struct{ early, late loadReading } // in the second half of the phase after the event
	selfCPU       time.Duration
	emitted       []uint64
	ended         bool // every sink has ended: what has not come will never come
	drained       bool
	store         storeReading // at storeAt, the end of the measured phases
	storeAt       time.Duration
	haveStore     bool
	burst         burst
	interrupted   bool
	failure       error
	overdue       string // the deadline that was missed
	fenced        uint64
}

var errOverdue = errors.New("the trial's deadline has passed")

// run plays the trial. The repetition is complete as far as the trial got; an error means that trials cannot be run at
// all.
func (t *trial) run(ctx context.Context) (runlog.Repetition, error) {
	if err := t.open(); err != nil {
		return runlog.Repetition{}, err
	}
	defer t.removeCheckpoints()
	defer t.closeStore()
	ctx, cancel := context.WithTimeoutCause(ctx, t.limit(), errOverdue)
	defer cancel()
	ctx, t.giveUp = context.WithCancelCause(ctx)
	defer t.giveUp(nil)
	self, _ := selfCPU()
	if err := t.start(ctx); err != nil {
		return runlog.Repetition{}, errors.Join(err, t.closeFaults())
	}
	err := t.play(ctx)
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errOverdue):
		t.seen.overdue = fmt.Sprintf("not over after %v", t.limit().Round(time.Second))
	case errors.Is(context.Cause(ctx), errStore):
		t.seen.failure = t.storeFailure(context.Cause(ctx))
	case ctx.Err() != nil:
		t.seen.interrupted = true
	default:
		t.seen.failure = err
	}
	if err := t.finish(); err != nil {
		return runlog.Repetition{}, err
	}
	if now, ok := selfCPU(); ok {
		t.seen.selfCPU = now - self
	}
	t.endMemory()
	if t.col.moving != nil {
		stay, move := t.col.delays[staying].Series(), t.col.delays[moves].Series()
		t.staySeries, t.moveSeries = &stay, &move
	}
	rec := t.col.all()
	t.lateWithoutLimit(rec)
	if err := t.log.writer.WriteDelays(t.cell.Name, t.plan.Repetition+1, t.log.offset(), time.Second, rec); err != nil {
		return runlog.Repetition{}, err
	}
	if err := errors.Join(t.log.flush(), t.log.writer.Sync()); err != nil {
		return runlog.Repetition{}, err
	}
	return t.analyse(rec), nil
}

// limit is the longest time that the trial may take.
func (t *trial) limit() time.Duration { return t.cell.Duration() + t.cell.Timing.Drain + t.patience() }

// startLimit is how long workers may take to start.
const startLimit = 15 * time.Second

// open prepares everything that needs no process.
func (t *trial) open() error {
	c := t.cell
	var err error
	if t.w, err = workloads.Open(t.o.workload(c, t.plan.Seed)); err != nil {
		return fmt.Errorf("open the workload of cell %s: %w", c.Name, err)
	}
	t.job = buildJob(c, t.plan.Seed)
	if t.graph, err = core.BuildGraph(t.job, operator.Info); err != nil {
		return fmt.Errorf("cell %s: %w", c.Name, err)
	}
	if c.Job.Query == nil {
		t.expect, t.blind = verify.Expect(&t.job)
	}
	t.length = c.Timing.Warmup + c.LastEvent() + c.Timing.After
	t.feed = newFeed(t.w, sourceTasks(&t.job), c.Workload.CatchUp, t.length)
	t.feed.profile = profileOf(t.w, c)
	t.col = newCollector(t.expect, t.graph, int(min(t.w.Keys(), t.feed.scheduled())), c.Timing.Interval, t.length)
	t.col.query = newQuery(c.Job.Query)
	t.lag, t.live = stats.NewHistogram(), stats.NewHistogram()
	if t.watch, err = t.newWatch(); err != nil {
		return err
	}
	t.changed, t.started = make(chan struct{}, 1), make(chan struct{})
	return errors.Join(t.openPlace(), t.openProxy())
}

// start starts the workers and waits until the job runs and the feed has begun.
func (t *trial) start(ctx context.Context) error {
	t.phase("start")
	if err := t.startStore(); err != nil {
		return err
	}
	h, err := host.Start(host.Config{
		Job: t.job, Feed: t.feed, Due: t.feed.due, Collect: t.col.collect, Spares: t.cell.Job.Spares, Dir: t.place.String(), Storage: t.o.Storage, StateDir: t.log.writer.Dir(), SpillDir: t.cell.Recovery.Spill.Dir,
		Address: t.address, Command: t.o.Command, Env: t.o.Env, OnTrace: t.onTrace, OnTick: t.onTick, OnLag: t.onLag,
		Routes: idleRoutes(t.cell), MemoryBytes: workerMemory(t.cell),
	})
	if err != nil {
		return fmt.Errorf("start the workers of cell %s: %w", t.cell.Name, err)
	}
	t.h = h
	limit := time.NewTimer(t.patience())
	defer limit.Stop()
	select {
	case <-t.started:
		return nil
	case <-h.Done():
		err = h.Err()
	case <-limit.C:
		err = fmt.Errorf("not all are there after %v", t.patience())
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return errors.Join(fmt.Errorf("start the workers of cell %s: %w", t.cell.Name, err), ignore(h.Close(), h.Err()))
}

// ignore returns err unless it is the one that is known.
func ignore(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// onTrace runs on the event loop.
func (t *trial) onTrace(tr coord.Trace) {
	if tr.Kind == coord.TraceStarted && !t.feed.started {
		t.feed.begin(t.h0(tr))
		t.col.originNS = t.feed.originNS
		t.log.begin(t.feed.originNS)
		close(t.started)
	}
	if (tr.Kind == coord.TracePromoted || tr.Kind == coord.TraceRestored && tr.Node > 0) && t.col.first.armed && t.col.first.promotedNS == 0 {
		t.col.first.promotedNS = tr.AtNS
	}
	if tr.Kind == coord.TraceMigrated {
		t.col.handOverEnds(tr.AtNS)
	}
	if tr.Kind == coord.TraceDetected {
		t.stateLost(tr.Node)
	}
	if t.probe != nil && t.probe.take(tr) {
		return
	}
	t.log.trace(t.graph, tr)
	t.tellFaults(tr)
	t.watchStore(tr)
	t.mu.Lock()
	t.traces = append(t.traces, tr)
	t.mu.Unlock()
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// h0 is when the feed begins: a moment after the job runs, so that the first records are not late.
func (t *trial) h0(tr coord.Trace) int64 { return tr.AtNS + int64(5*time.Millisecond) }

// onLag runs on the event loop. Only the steady phase is judged: afterwards the machine is busy with what failed.
func (t *trial) onLag(lagNS int64, n int) {
	if at := t.feed.lookedAt; at >= t.cell.Timing.Warmup && at < t.cell.Timing.Warmup+t.cell.Timing.Steady {
		t.lag.Record(time.Duration(max(lagNS, 0)), int64(n))
	}
}

// now is the time on the trial's axis.
func (t *trial) now() time.Duration { return t.h.Now() - time.Duration(t.feed.originNS) }

// showEvery is how often the display is told the newest delay.
const showEvery = 400 * time.Millisecond

// until waits for a time on the trial's axis; meanwhile the detector looks at the load, and what it finds is acted on. It errors when the job ends before or ctx does.
func (t *trial) until(ctx context.Context, at time.Duration) error {
	for {
		left := at - t.now()
		if left <= 0 {
			return nil
		}
		wait := min(left, showEvery)
		if t.watch != nil {
			if err := t.lookAround(ctx); err != nil {
				return err
			}
			wait = min(wait, max(t.watch.nextLook-t.now(), time.Millisecond))
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.h.Done():
			timer.Stop()
			return t.over()
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		if now := t.now(); at > now && now >= t.nextShown {
			t.nextShown = now + showEvery
			t.show()
		}
	}
}

// over is the error of a job that ended before its time.
func (t *trial) over() error {
	if err := t.h.Err(); err != nil {
		return fmt.Errorf("the job failed: %w", err)
	}
	return errors.New("the job ended before its time")
}

// phase notes the beginning of a phase.
func (t *trial) phase(name string) {
	t.log.enter(name)
	t.log.emit(runlog.Event{Kind: runlog.PhaseStarted, Phase: name}, t.axis())
	t.o.Progress.Update(t.status(t.p99))
}

// axis is now on the trial's axis; 0 before there is one.
func (t *trial) axis() int64 {
	if t.h == nil || !isClosed(t.started) {
		return 0
	}
	return int64(t.now())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (t *trial) status(p99 time.Duration) progress.Event {
	return status(t.o, t.plan, t.log.current(), p99)
}

func status(o *Options, p spec.Trial, phase string, p99 time.Duration) progress.Event {
	return progress.Event{Suite: o.Suite.Name, Trial: p.Index + 1, Trials: len(o.Plan), Cell: p.Name,
		Repetition: p.Repetition + 1, Phase: phase, P99: p99}
}

// show tells the display the p99 of the newest whole interval.
func (t *trial) show() {
	p99 := t.p99
	err := t.h.Do(func(*coord.Coordinator, *coord.Effects) {
		rec := t.col.delays[staying]
		if i := rec.Intervals() - 2; i >= 0 {
			t.live.Reset()
			rec.AddTo(t.live, i)
			if v, ok := t.live.MeasuredPercentile(99); ok {
				p99 = v
			}
		}
	})
	if err == nil {
		t.p99 = p99
		t.o.Progress.Update(t.status(p99))
	}
}
