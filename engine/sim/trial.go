package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/task"
)

// Config is one trial: a bounded run of source → forward → count → sink (or a variant of it) under faults.
type Config struct {
	Seed uint64
	// Recovery is the strategy of all operators; empty: drawn from the seed.
	Recovery string
	// Migration is the strategy of the migrations under way; empty: drawn; "none": no migrations.
	Migration string
	// Transactional is the kind of sink; nil: drawn.
	Transactional *bool
	// Faults is how many faults are injected; negative: drawn.
	Faults int
	// Kinds restricts the faults to these names; empty: all.
	Kinds []string
	// Records is the number of records in all; 0: drawn.
	Records uint64
	// Keys is the number of keys; 0: drawn, of few, so that each is worked on again and again.
	Keys uint64
	// Incremental and Unaligned are the kind of checkpoints; nil: drawn.
	Incremental, Unaligned *bool
	// FullEvery is core.Job's; 0: drawn.
	FullEvery int
	// Spill makes sender logs small and gives them a disk; nil: drawn, when Recovery is.
	Spill *spillPlan
	// Bugs are planted bugs.
	Bugs []string
}

// Result is what a trial gave.
type Result struct {
	Seed          uint64
	Hash          uint64
	Recovery      string
	Migration     string
	Transactional bool
	Faults        []string
	Migrations    int
	Promise       recovery.Promise
	Answers       Answers
	// Violation is empty when every promise was kept.
	Violation string
	// SimulatedNS is when the job ended, in simulated time.
	SimulatedNS int64
	Traces      []coord.Trace
}

// The bounds of a trial, in simulated time.
const (
	startNS    = 40 * ms // about when a job begins to run
	recordNS   = 100_000 // between two records of the feed
	deadlineNS = 30_000 * ms
)

type feed struct {
	keys uint64
	seed uint64
	// pipelines is how many pipelines read it, each its own records with its own keys; 0: one.
	pipelines uint64
}

func (f feed) Fill(dst *core.Columns, split, splits int, from uint64, n int) {
	for j := from; j < from+uint64(n); j++ {
		i := j*uint64(splits) + uint64(split)
		key := core.Mix64(i^f.seed)%f.keys + 1
		if f.pipelines > 1 {
			key += i % f.pipelines * f.keys
		}
		dst.Keys = append(dst.Keys, core.Mix64(key))
		dst.Times = append(dst.Times, int64(i)*recordNS)
	}
}

// plan is what a seed decides before anything happens.
type plan struct {
	job       core.Job
	splits    int
	records   uint64
	migration string
	recovery  string
	promise   recovery.Promise
	feed      feed
	faults    int
	kinds     []string
	spares    *int
	spill     spillPlan
}

// spanNS is how long the feed lasts: faults and migrations happen while it does, so that none comes after the end.
func (p *plan) spanNS() int64 { return int64(p.records) * recordNS }

func pick[T any](r *rand.Rand, s ...T) T { return s[r.IntN(len(s))] }

// goesWith says whether a migration strategy can be combined with a recovery strategy.
func goesWith(s migration.Strategy, recovery string) bool {
	if recovery == Mixed {
		recovery = core.RecoveryActive // some tasks have standbys
	}
	return s.GoesWith(recovery)
}

func newPlan(c Config) plan {
	r := rand.New(rand.NewPCG(c.Seed, 1))
	p := plan{splits: 1 + r.IntN(2), records: 500 + r.Uint64N(1500), faults: r.IntN(4), kinds: c.Kinds}
	strategy := c.Recovery
	if strategy == "" {
		strategy = pick(r, recoveries()...)
	}
	if s, err := migration.Lookup(c.Migration); err == nil && c.Recovery == "" && !goesWith(s, strategy) {
		strategy = cmp.Or(s.OnlyWith, "checkpoint")
	}
	base, _, _ := strings.Cut(strategy, ":")
	transactional := r.IntN(2) == 0 && strategy != "none"
	if c.Transactional != nil {
		transactional = *c.Transactional
	}
	p.migration = c.Migration
	if p.migration == "" {
		p.migration = pick(r, "none", "async-rounds", "stop-restart", "all-at-once", "pause-move", "on-demand", "pre-copy", "replicate-input", "externalise")
		if s, err := migration.Lookup(p.migration); err == nil && !goesWith(s, base) {
			p.migration = "async-rounds"
		}
	}
	if c.Faults >= 0 {
		p.faults = c.Faults
	}
	if c.Records > 0 {
		p.records = c.Records
	}
	p.feed = feed{keys: cmp.Or(c.Keys, 5+r.Uint64N(60)), seed: c.Seed}
	workers := 2 + r.IntN(2)
	groups := uint32(8 + r.IntN(24))
	job := core.Job{ID: "sim", Seed: c.Seed, Workers: workers, Bugs: c.Bugs,
		Heartbeat: 20 * time.Millisecond, Lease: 100 * time.Millisecond,
		WindowRecords: pick(r, 64, 512, 4096), ChunkBytes: pick(r, 64, 512, 4096)}
	if base == core.RecoveryCheckpoint || transactional || r.IntN(2) == 0 && strategy != "none" {
		job.Checkpoint = pick(r, 30*time.Millisecond, 80*time.Millisecond)
		job.CheckpointTimeout = 300 * time.Millisecond
	}
	op := func(name, kind string, par int, inputs ...string) core.OperatorSpec {
		return core.OperatorSpec{Name: name, Kind: kind, Parallelism: par, Inputs: inputs}
	}
	if strategy == "checkpoint:region" {
		p.splits, p.feed.pipelines = 1, 2
	}
	count := op("count", "count", 2+r.IntN(2), "map")
	count.Groups, count.ValueBytes = groups, pick(r, 8, 24)
	if r.IntN(3) == 0 {
		count.Service = core.Service{Mode: core.ServiceTimed, Distribution: pick(r, "constant", "exponential", "lognormal"), Mean: 50 * time.Microsecond, Sigma: 1}
	}
	if s, err := migration.Lookup(p.migration); err == nil && s.External {
		count.Store, count.StoreCacheBytes = simStore, pick[int64](r, 0, 1, 200, 600)
		job.Checkpoint = 0
	}
	// One sink that reads all counts sees whether a moved key's answers keep their order.
	sink := op("out", "sink", pick(r, 1, count.Parallelism), "count")
	sink.Transactional = transactional
	job.Operators = []core.OperatorSpec{op("in", "source", p.splits), op("map", "forward", 1+r.IntN(2), "in"), count, sink}
	drawCheckpoints(&job, c)
	if p.feed.pipelines > 1 {
		twoPipelines(&job)
		p.splits = 2
	}
	job.Ship = pick(r, 20*time.Millisecond, 60*time.Millisecond)
	protect(&job, strategy, r)
	fitting(&job)
	p.job, p.recovery = job, strategy
	drawSpill(&p, c)
	p.promise = weakest(job, operator.Info).Output
	return p
}

// drawCheckpoints decides the kind of checkpoints. It has a stream of its own, so that the rest of a seed stays as it was.
func drawCheckpoints(job *core.Job, c Config) {
	r := rand.New(rand.NewPCG(c.Seed, 2))
	job.Incremental, job.FullEvery = r.IntN(2) == 0, pick(r, 2, 4, 10)
	job.Unaligned, job.InFlightBytes = r.IntN(3) == 0, pick(r, 0, 0, 8<<10)
	if c.Incremental != nil {
		job.Incremental = *c.Incremental
	}
	if c.FullEvery > 0 {
		job.FullEvery = c.FullEvery
	}
	if c.Unaligned != nil {
		job.Unaligned = *c.Unaligned
	}
}

// Run runs one trial.
func Run(c Config) Result {
	p := newPlan(c)
	w, oracle := newTrial(c.Seed, p)
	res := Result{Seed: c.Seed, Recovery: p.recovery, Migration: p.migration,
		Transactional: p.job.Operators[3].Transactional, Promise: p.promise}
	w.planFaults(p, &res)
	w.planMigrations(p, &res)
	err := w.run(deadlineNS, w.edge.Ended)
	res.Hash, res.SimulatedNS, res.Traces = w.hash, w.nowNS, w.Traces
	res.Answers = oracle.answers()
	if p.promise == recovery.Gap && !w.traced(coord.TraceDetected) && !w.traced(coord.TraceFallback) {
		res.Promise = recovery.Precise
		oracle.nothingLost()
		res.Answers = oracle.answers()
	}
	if res.Promise == recovery.Gap {
		oracle.outages = w.outages(350 * ms)
		if !slices.ContainsFunc(res.Faults, func(f string) bool { return !strings.HasPrefix(f, "crash@") }) && p.migration != "stop-restart" { // which keeps records waiting
			oracle.outages = w.outages(60 * ms)
			if p.job.Operators[2].Service.Mode == core.ServiceTimed { // what came at the start may still be waiting to be served
				oracle.outages = w.outages(120 * ms)
			}
		}
		oracle.emission, oracle.again = &w.emission, w.traced(coord.TraceFallback)
	}
	covered := len(res.Faults) == 1 && !w.spillFailed && (res.Migrations == 0 || p.recovery == core.RecoveryActive)
	if !covered && !res.Transactional && p.promise == recovery.Precise && w.traced(coord.TraceFallback) {
		res.Promise = recovery.Rollback // more failed at once than the standbys cover: the job says so and rolls back
	}
	if slices.ContainsFunc(res.Faults, func(f string) bool { return strings.HasPrefix(f, "damage@") }) && w.traced(coord.TraceCommitLost) {
		res.Promise = recovery.Rollback // what a lost checkpoint had committed comes again; the job says so
	}
	res.Violation = oracle.judge(res.Promise)
	switch {
	case errors.As(err, &errInvariant{}):
		res.Violation = "safety: " + err.Error()
	case err != nil:
		res.Violation = "liveness: " + err.Error()
	case !w.edge.Ended():
		res.Violation = fmt.Sprintf("liveness: not finished after %v of simulated time; %s", time.Duration(deadlineNS), w.stuck())
	}
	return res
}

// newTrial sets up the world of a plan; nothing has happened in it yet.
func newTrial(seed uint64, p plan) (*World, *oracle) {
	w := newWorld(seed)
	w.spilling = p.spill
	oracle := newOracle(p)
	clock := func() int64 { return w.nowNS }
	w.edge = task.NewEdge(clock, p.feed, oracle.collect)
	for s := 0; s < p.splits; s++ {
		w.edge.Bound(s, (p.records+uint64(p.splits-1-s))/uint64(p.splits))
	}
	spares := w.rng.IntN(2)
	if p.spares != nil {
		spares = *p.spares
	}
	var err error
	if w.coord, err = coord.New(p.job, w.edge, spares, clock); err != nil {
		panic(err)
	}
	w.watch = newWatcher(w).check
	w.harness(w.coord.Begin)
	w.emitLoop()
	w.tickLoop()
	return w, oracle
}

// traced says whether something happened.
func (w *World) traced(kind string) bool {
	for _, t := range w.Traces {
		if t.Kind == kind {
			return true
		}
	}
	return false
}

// stuck describes where a job that does not finish stands.
func (w *World) stuck() string {
	s := fmt.Sprintf("running %v, migrating %v, epoch %d", w.coord.Running(), w.coord.Migrating(), w.coord.Epoch())
	for _, m := range w.coord.Meters() {
		s += fmt.Sprintf("; %s consumed %d queued %d", w.coord.Graph().TaskName(m.Task), m.Consumed, m.Queued)
	}
	return s
}

func (w *World) emitLoop() {
	w.harness(func(e *coord.Effects) {
		if w.edge.Splits() == 0 {
			return
		}
		due := make([]uint64, w.edge.Splits())
		for s := range due {
			// About 10,000 records a second in all, from the start of the run on.
			due[s] = uint64(w.nowNS/recordNS) / uint64(len(due))
		}
		w.edge.Emit(due, 1<<20, &e.Edge)
		for s := range due {
			w.emission.note(s, w.edge.Emitted(s), w.nowNS)
		}
	})
	w.after(emitNS, w.emitLoop)
}

func (w *World) tickLoop() {
	w.harness(w.coord.Tick)
	w.after(tickNS, w.tickLoop)
}

// faultKinds are the faults that a trial draws from.
func faultKinds() []string {
	return []string{"crash", "crash", "freeze", "partition", "cut-off", "disk-full", "damage", "blip"}
}

func (w *World) planFaults(p plan, res *Result) {
	kinds := faultKinds()
	if len(p.kinds) > 0 {
		kinds = p.kinds
	}
	for i := 0; i < p.faults; i++ {
		kind := kinds[w.rng.IntN(len(kinds))]
		at := startNS + w.rng.Int64N(p.spanNS())
		w.at(at, func() {
			res.Faults = append(res.Faults, fmt.Sprintf("%s@%dms", kind, w.nowNS/ms))
			w.fault(kind)
		})
	}
	w.at(startNS+p.spanNS()+50*ms, w.disk.Heal)
}

func (w *World) fault(kind string) {
	node := w.coord.NodeOfSlot(w.rng.IntN(w.coord.Graph().Job.Workers))
	other := w.coord.NodeOfSlot(w.rng.IntN(w.coord.Graph().Job.Workers))
	if node <= 0 || w.workers[node] == nil {
		return
	}
	switch kind {
	case "crash":
		w.crash(node)
	case "freeze":
		w.freeze(node, 20*ms+w.rng.Int64N(300*ms))
	case "wake": // about when it is found lost
		w.freeze(node, 80*ms+w.rng.Int64N(50*ms))
	case "partition":
		if other > 0 && other != node {
			w.partition(node, other, 10*ms+w.rng.Int64N(200*ms))
		}
	case "cut-off":
		w.partition(node, task.Harness, 10*ms+w.rng.Int64N(200*ms))
	case "blip":
		if other > 0 && other != node {
			w.breakLink(node, other)
		}
	case "disk-full":
		w.fillDisk(w.rng.Int64N(2000), w.rng.Int64N(200*ms))
	case "disk-hiccup": // a checkpoint is given up, the next one is not
		w.fillDisk(w.rng.Int64N(600), 10*ms+w.rng.Int64N(40*ms))
	case "damage":
		w.damageNewest()
	}
}

func (w *World) planMigrations(p plan, res *Result) {
	if p.migration == "none" {
		return
	}
	strat, err := migration.Lookup(p.migration)
	if err != nil {
		panic(err)
	}
	for i := 0; i < 1+w.rng.IntN(3); i++ {
		w.at(startNS+w.rng.Int64N(p.spanNS()), func() {
			w.harness(func(e *coord.Effects) {
				if w.migrate(strat, e) {
					res.Migrations++
				}
			})
		})
	}
}

// migrate moves a random part of the count's key groups.
func (w *World) migrate(s migration.Strategy, e *coord.Effects) bool {
	const op = 2
	routes := w.coord.Routes(op)
	tasks := w.coord.Graph().Job.Operators[op].Parallelism
	var moves []core.Move
	for g, from := range routes.Task {
		if to := w.rng.IntN(tasks); to != int(from) && w.rng.IntN(2) == 0 {
			moves = append(moves, core.Move{Group: uint32(g), From: int(from), To: to})
		}
	}
	if len(moves) == 0 {
		return false
	}
	r := migration.Request{Operator: op, Moves: moves, Rounds: 1 + w.rng.IntN(len(moves))}
	return w.coord.Migrate(r, s, e) == nil
}
