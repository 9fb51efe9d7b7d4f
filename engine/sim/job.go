package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/task"
)

// JobConfig is one run of any job over a bounded feed, with faults and migrations under way.
type JobConfig struct {
	// Job is what to run; Recovery and Checkpoint of it are set by the run.
	Job  core.Job
	Feed task.FeedSource
	// Records is the number of records of the feed in all; they are due at 10,000 a second of simulated time.
	Records uint64
	Seed    uint64
	// Recovery is the strategy of all operators, with its scope behind a colon, Transactional the kind of all sinks.
	Recovery      string
	Transactional bool
	// Faults is how many faults are injected, of the named Kinds (none named: all), while records come.
	Faults int
	Kinds  []string
	// Migrations is how many are begun while records come, each of a random part of the key groups of a random keyed
	// operator, with the named strategy.
	Migrations int
	Migration  string
	// OpenState makes state of operators whose backend is on disk.
	OpenState func(*state.PagedSpec) (state.Paged, error)
}

// JobRow is an output record.
type JobRow struct {
	Key      uint64
	Due, Val int64 // intended time and value
	Payload  string
}

// JobResult is what a run gave.
type JobResult struct {
	Rows []JobRow
	// Late is how many records came too late, as the tasks' meters say after the end.
	Late uint64
	// Promise is what may be expected of Rows, after what happened.
	Promise recovery.Promise
	Faults  []string
	// Migrated counts the completed migrations, Held the records that waited for their state.
	Migrated int
	Held     uint64
	Traces   []coord.Trace
}

// RunJob runs a job to its end. An error says that it did not come to one, or cannot be run.
func RunJob(c JobConfig) (JobResult, error) {
	if err := operator.Check(&c.Job); err != nil {
		return JobResult{}, err
	}
	w, splits, err := c.prepare()
	if err != nil {
		return JobResult{}, err
	}
	res := JobResult{Promise: weakest(c.Job, operator.Info).Output}
	clock := func() int64 { return w.nowNS }
	w.edge = task.NewEdge(clock, c.Feed, func(o task.Output) {
		for i, k := range o.Columns.Keys {
			r := JobRow{Key: k, Due: o.Columns.Times[i], Payload: string(o.Columns.Payload(i))}
			if len(o.Columns.Vals) > 0 {
				r.Val = o.Columns.Vals[i]
			}
			res.Rows = append(res.Rows, r)
		}
	})
	for s := range splits {
		w.edge.Bound(s, (c.Records+uint64(splits-1-s))/uint64(splits))
	}
	if w.coord, err = coord.New(c.Job, w.edge, w.rng.IntN(2), clock); err != nil {
		return JobResult{}, err
	}
	w.watch = newWatcher(w).check
	w.harness(w.coord.Begin)
	w.emitLoop()
	w.tickLoop()
	c.planEvents(w, &res)
	if err := w.run(deadlineNS, w.edge.Ended); err != nil {
		return res, err
	}
	if !w.edge.Ended() {
		return res, fmt.Errorf("not finished after %v of simulated time; %s", time.Duration(deadlineNS), w.stuck())
	}
	res.Traces = w.Traces
	c.afterwards(w, &res)
	return res, nil
}

// prepare fills in the job's strategy and makes its world.
func (c *JobConfig) prepare() (w *World, splits int, err error) {
	name, scope, _ := strings.Cut(c.Recovery, ":")
	strat, err := recovery.Lookup(name)
	if err != nil {
		return nil, 0, err
	}
	w = newWorld(c.Seed)
	w.openState = c.OpenState
	c.Job.ID, c.Job.Seed = "sim", c.Seed
	c.Job.Operators = slices.Clone(c.Job.Operators)
	c.Job.Heartbeat, c.Job.Lease = 20*time.Millisecond, 100*time.Millisecond
	c.Job.WindowRecords, c.Job.ChunkBytes = []int{64, 512, 4096}[w.rng.IntN(3)], []int{64, 512, 4096}[w.rng.IntN(3)]
	if strat.Checkpoints || c.Transactional {
		c.Job.Checkpoint, c.Job.CheckpointTimeout = 50*time.Millisecond, 300*time.Millisecond
	}
	for i := range c.Job.Operators {
		op := &c.Job.Operators[i]
		op.Recovery, op.Scope = name, scope
		switch k, _ := operator.Lookup(op.Kind); {
		case k.Source:
			splits = op.Parallelism
		case k.Sink:
			op.Transactional = c.Transactional
		}
	}
	return w, splits, nil
}

// planEvents schedules faults and migrations.
func (c *JobConfig) planEvents(w *World, res *JobResult) {
	span := int64(c.Records) * 100_000
	kinds := c.Kinds
	if len(kinds) == 0 {
		kinds = faultKinds()
	}
	for range c.Faults {
		kind := kinds[w.rng.IntN(len(kinds))]
		w.at(60*ms+w.rng.Int64N(span), func() {
			res.Faults = append(res.Faults, fmt.Sprintf("%s@%dms", kind, w.nowNS/ms))
			w.fault(kind)
		})
	}
	w.at(60*ms+span, w.disk.Heal)
	for range c.Migrations {
		w.at(60*ms+w.rng.Int64N(span), func() { w.harness(func(e *coord.Effects) { c.migrate(w, e) }) })
	}
}

// migrate begins a migration; none is begun when another one or a recovery is under way.
func (c *JobConfig) migrate(w *World, e *coord.Effects) {
	strat, err := migration.Lookup(c.Migration)
	if err != nil {
		panic(err)
	}
	var keyed []int
	for i, op := range c.Job.Operators {
		if op.Groups > 0 && op.Parallelism > 1 {
			keyed = append(keyed, i)
		}
	}
	if len(keyed) == 0 {
		return
	}
	op := keyed[w.rng.IntN(len(keyed))]
	var moves []core.Move
	for g, from := range w.coord.Routes(op).Task {
		if to := w.rng.IntN(c.Job.Operators[op].Parallelism); to != int(from) && w.rng.IntN(2) == 0 {
			moves = append(moves, core.Move{Group: uint32(g), From: int(from), To: to})
		}
	}
	if len(moves) > 0 {
		// Refused while another one is under way: the trial then has one migration less.
		_ = w.coord.Migrate(migration.Request{Operator: op, Moves: moves, Rounds: 1 + w.rng.IntN(len(moves))}, strat, e)
	}
}

// afterwards learns what the traces and the last meters say.
func (c *JobConfig) afterwards(w *World, res *JobResult) {
	damaged := slices.ContainsFunc(res.Faults, func(f string) bool { return strings.HasPrefix(f, "damage@") })
	if len(res.Faults) > 1 && !c.Transactional && w.traced(coord.TraceFallback) || damaged && w.traced(coord.TraceCommitLost) {
		res.Promise = recovery.Rollback // the job says so
	}
	for _, t := range res.Traces {
		if t.Kind == coord.TraceMigrated {
			res.Migrated++
			res.Held += t.Count
		}
	}
	rows := res.Rows
	settled := func(untilNS int64) func() bool { return func() bool { return w.edge.Ended() && w.nowNS >= untilNS } }
	for again := true; again; { // a worker found lost after the end makes the job run to its end once more
		epoch := w.coord.Epoch()
		if err := w.run(w.nowNS+deadlineNS, settled(w.nowNS+600*ms)); err != nil {
			return
		}
		again = epoch != w.coord.Epoch()
	}
	for _, m := range w.coord.Meters() {
		res.Late += m.Late
	}
	res.Rows = rows // the job was over
}
