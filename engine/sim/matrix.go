package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/task"
)

// Cell is one field of the crash matrix: one migration, stopped at one step of its protocol by one fault.
type Cell struct {
	Seed uint64
	// Operator is "count" or "windows"; with windows, open ones move, and what closes them.
	Operator  string
	Migration string
	// Recovery is the strategy of all operators, with its scope behind a colon, Transactional the kind of the sink.
	Recovery      string
	Transactional bool
	// Victim is what the fault hits, see Victims; empty: there is no fault. Step is when: the number of steps of the
	// protocol before it, 0: as soon as the migration has begun.
	Victim string
	Step   int
	Bugs   []string
}

// CellResult is what a cell gave.
type CellResult struct {
	// Steps names the steps of the migration's protocol up to its end or its roll-back, in order.
	Steps []string
	// Struck is the step at which the fault came, empty when the migration was over before.
	Struck string
	// Completed and RolledBack say how the migration ended.
	Completed, RolledBack bool
	// Violation is empty when every promise was kept.
	Violation string
	Traces    []coord.Trace
}

// Victims are what a fault of the matrix hits: the worker that gives or gets key groups, or another one; the first two at
// once, or the first one and then its successor, as soon as there is one; the link of one to the coordinator, or between the
// two; a freeze beyond the lease or below it; and what is no fault, a second migration.
func Victims() []string {
	return []string{"source", "target", "third", victimBoth, victimAgain, "source-controller", "target-controller", "source-zombie", "target-zombie", "source-pause", "link", "second-migration"}
}

// The victims of which there are two.
const (
	victimBoth  = "source-and-target"
	victimAgain = "source-again"
)

// The workers of a cell's job by slot, and its keyed operator.
const (
	slotSource = 0
	slotTarget = 1
	slotThird  = 2
	cellOp     = 1
)

// cell is a cell's run.
type cell struct {
	Cell
	external bool // its state is in an external store
	w        *World
	rows     rowLog
	strat    migration.Strategy
	promise  recovery.Promise
	before   []int32 // the route table
	ref      *Reference
	moves    []core.Move
	steps    stepper
	feed     task.FeedSource
	records  int64 // of both splits
	logBytes int   // of the job; 0: the default
	everyNS  int64 // between two records
	due      int64 // records that may be emitted; the feed's end comes behind them
	calmNS   int64 // when the fault is over, and all that comes of it has been noticed
	again    int   // the node whose successor is to crash; 0: none
	broken   error // what a fault found at once
	res      CellResult
}

// RunCell runs one cell. A migration that the fault rolled back is done again; one that completed is undone: both when all
// records have been worked on, and without a fault.
//
// ref is what a run without a migration gives, see Refer.
func RunCell(c Cell, ref *Reference) CellResult {
	strat, err := migration.Lookup(c.Migration)
	if err != nil {
		return CellResult{Violation: err.Error()}
	}
	r, err := newCell(c, strat.External)
	r.strat = strat
	if r.ref = ref; err == nil {
		err = r.run()
	}
	if err != nil {
		r.res.Violation = err.Error()
	}
	r.res.Traces = r.w.Traces
	return r.res
}

// cellRecords is the length of the feed: 48 ms, the migration begins after a quarter.
const cellRecords = 480

func newCell(c Cell, external bool) (*cell, error) {
	r := &cell{Cell: c, external: external, logBytes: int(c.Seed % 5 / 4 << 12), w: newWorld(c.Seed), feed: cellFeed{feed{keys: 70, seed: c.Seed}}, records: cellRecords, everyNS: recordNS}
	rec, err := r.recovery()
	if err != nil {
		return r, err
	}
	return r, r.start(r.job(rec))
}

// recovery looks up what the cell's recovery promises.
func (c *cell) recovery() (recovery.Strategy, error) {
	name, scope, _ := strings.Cut(c.Recovery, ":")
	rec, err := recovery.Lookup(name)
	if err != nil {
		return rec, err
	}
	p, sink := core.Protection{Strategy: name, Scope: scope}, recovery.SinkEager
	if p.Strategy == core.RecoveryCheckpoint {
		p.Scope = cmp.Or(scope, core.ScopeGlobal)
	}
	if c.Transactional {
		sink = recovery.SinkTransactional
	}
	c.promise = recovery.Of(p, sink).Output
	return rec, nil
}

// start sets up the world of a job; nothing has happened in it yet.
func (c *cell) start(job core.Job) (err error) {
	clock := func() int64 { return c.w.nowNS }
	c.due, c.rows.windows, c.rows.everyNS = c.records+2, c.Operator == "windows", c.everyNS
	c.w.edge = task.NewEdge(clock, c.feed, c.rows.collect)
	for s := range 2 {
		c.w.edge.Bound(s, uint64(c.records/2))
	}
	if c.w.coord, err = coord.New(job, c.w.edge, 0, clock); err != nil {
		return err
	}
	watch := newWatcher(c.w)
	c.steps = stepper{w: c.w, watch: watch}
	c.w.watch = func() error {
		if err := watch.check(); err != nil {
			return err
		}
		c.onStep()
		c.strikeAgain()
		return c.broken
	}
	c.w.harness(c.w.coord.Begin)
	c.emitLoop()
	c.w.tickLoop()
	return nil
}

// emitLoop emits the feed from startNS on, up to the bound that due sets.
func (c *cell) emitLoop() {
	c.w.harness(func(e *coord.Effects) {
		if n := c.w.edge.Splits(); n > 0 {
			due := make([]uint64, n)
			for s := range due {
				due[s] = uint64(min(max(c.w.nowNS-startNS, 0)/c.everyNS, c.due)) / uint64(n)
			}
			c.w.edge.Emit(due, 1<<20, &e.Edge)
		}
	})
	c.w.after(max(emitNS, c.everyNS/8), c.emitLoop)
}

// cellFeed is a feed with values.
type cellFeed struct{ feed }

func (f cellFeed) Fill(dst *core.Columns, split, splits int, from uint64, n int) {
	before := dst.Len()
	f.feed.Fill(dst, split, splits, from, n)
	for _, k := range dst.Keys[before:] {
		dst.Vals = append(dst.Vals, int64(k%100))
	}
}

// job is two sources, three tasks with keyed state and one sink, which sees whether a moved key's answers keep their order.
func (c *cell) job(rec recovery.Strategy) core.Job {
	name, scope, _ := strings.Cut(c.Recovery, ":")
	op := func(operator, kind string, place []int, inputs ...string) core.OperatorSpec {
		return core.OperatorSpec{Name: operator, Kind: kind, Parallelism: len(place), Place: place, Inputs: inputs, Recovery: name, Scope: scope}
	}
	k := int(c.Seed)
	in := op("in", "source", []int{k % 3, (k + 1) % 3})
	keyed := op("keyed", "count", []int{slotSource, slotTarget, slotThird}, "in")
	keyed.Groups, keyed.ValueBytes = 12, 8+16*(k%2)
	if c.Operator == "windows" {
		in.Params = map[string]string{"time": "due", "step": "1ms"}
		keyed.Kind, keyed.ValueBytes = "tumbling", 0
		keyed.Params = map[string]string{"time": "due", "size": "25ms", "function": "sum"}
	}
	job := core.Job{ID: "sim", Seed: c.Seed, Workers: 3, Bugs: c.Bugs, Heartbeat: 20 * time.Millisecond, Lease: 100 * time.Millisecond,
		LogBytes: c.logBytes, Ship: 15 * time.Millisecond, WindowRecords: []int{64, 512}[k/2%2], ChunkBytes: []int{64, 256}[k/4%2]}
	switch {
	case c.external:
		keyed.Store, keyed.StoreCacheBytes = simStore, 300
	case rec.Checkpoints || c.Transactional || c.Migration == "stop-restart":
		job.Checkpoint, job.CheckpointTimeout = 15*time.Millisecond, 200*time.Millisecond
		job.Incremental, job.Unaligned = k%4 >= 2, k%4%2 == 1 && scope != core.ScopeTask
	}
	out := op("out", "sink", []int{(k + 2) % 3}, "keyed")
	out.Transactional = c.Transactional
	job.Operators = []core.OperatorSpec{in, keyed, out}
	return job
}

// run is the story of a cell.
func (c *cell) run() error {
	if c.Migration != "" {
		if err := c.begin(); err != nil {
			return err
		}
	}
	if err := c.until("the end of the feed", c.w.edge.Ended); err != nil {
		return err
	}
	rows := c.rows.seen
	c.rows.seen = maps.Clone(rows) // the job is over: what a failure found later makes it say again does not count
	if err := c.until("rest after the end", c.settled); err != nil {
		return err
	}
	c.rows.seen = rows
	if c.Migration == "" {
		return nil
	}
	if err := c.verdict(); err != nil {
		return err
	}
	c.Victim = ""
	back := c.moves
	if c.res.Completed {
		back = inverse(c.moves)
	}
	if err := c.migrate(back); err != nil {
		return fmt.Errorf("liveness: another migration is refused: %w", err)
	}
	if err := c.until("the end of another migration", c.settled); err != nil {
		return err
	}
	want := c.before
	if !c.res.Completed {
		want = apply(c.before, c.moves)
	}
	return c.state(want)
}

// begin starts the migration a quarter into the feed.
func (c *cell) begin() error {
	at := startNS + cellRecords/4*recordNS + int64(c.Seed%5)*3*ms
	if err := c.until("the start", func() bool { return c.w.nowNS >= at && c.w.coord.Running() }); err != nil {
		return err
	}
	c.before = slices.Clone(c.w.coord.Routes(cellOp).Task)
	for g, owner := range c.before {
		swapped := c.Seed%2 == 1 && owner == slotTarget && g%2 == 0
		switch {
		case owner == slotSource && g != 0:
			c.moves = append(c.moves, core.Move{Group: uint32(g), From: slotSource, To: slotTarget})
		case swapped:
			c.moves = append(c.moves, core.Move{Group: uint32(g), From: slotTarget, To: slotSource})
		}
	}
	c.steps.watch.look()
	c.steps.was = c.steps.look()
	c.steps.on = true
	if err := c.migrate(c.moves); err != nil {
		return err
	}
	c.onStep()
	return nil
}

func (c *cell) migrate(moves []core.Move) (err error) {
	c.w.harness(func(e *coord.Effects) {
		err = c.w.coord.Migrate(migration.Request{Operator: cellOp, Moves: moves, Rounds: 2}, c.strat, e)
	})
	return err
}

func (c *cell) until(what string, done func() bool) error {
	err := c.w.run(c.w.nowNS+deadlineNS, done)
	switch {
	case errors.As(err, &errInvariant{}):
		return fmt.Errorf("safety: %w", err)
	case err != nil:
		return fmt.Errorf("liveness: %w", err)
	case !done():
		return fmt.Errorf("liveness: %s did not come within %v of simulated time; %s", what, time.Duration(deadlineNS), c.w.stuck())
	}
	return nil
}

// settled says whether all has been worked on and nothing is under way. A task may be found lost after the end, which makes
// the job run to its end once more.
func (c *cell) settled() bool {
	return c.w.edge.Ended() && c.quiet() && c.steps.watch.idle()
}

// quiet says whether nothing is under way.
func (c *cell) quiet() bool {
	if !c.w.coord.Settled() || c.w.nowNS < c.calmNS || c.again != 0 {
		return false
	}
	for slot := range 3 {
		node := c.w.coord.NodeOfSlot(slot)
		if node < 0 {
			continue // its standbys have taken over
		}
		if k := c.w.workers[node]; !k.alive || k.frozen {
			return false
		}
	}
	return c.steps.watch.there()
}

// onStep counts the steps of the protocol and strikes at the right one.
func (c *cell) onStep() {
	if !c.steps.on {
		return
	}
	name, more := c.steps.next()
	if name != "" {
		c.res.Steps = append(c.res.Steps, name)
	}
	if len(c.res.Steps) > c.Step && c.Victim != "" && c.res.Struck == "" {
		c.res.Struck = c.res.Steps[c.Step]
		c.strike()
	}
	c.steps.on = more
}

// strike injects the fault.
func (c *cell) strike() {
	c.calmNS = c.w.nowNS + 300*ms
	source, target := c.w.coord.NodeOfSlot(slotSource), c.w.coord.NodeOfSlot(slotTarget)
	switch c.Victim {
	case "source":
		c.w.crash(source)
	case "target":
		c.w.crash(target)
	case "third":
		c.w.crash(c.w.coord.NodeOfSlot(slotThird))
	case victimBoth:
		c.w.crash(source)
		c.w.crash(target)
	case victimAgain:
		c.w.crash(source)
		c.again = source
	case "source-controller":
		c.w.partition(source, task.Harness, 30*ms)
	case "target-controller":
		c.w.partition(target, task.Harness, 30*ms)
	case "source-zombie":
		c.w.freeze(source, 180*ms)
	case "target-zombie":
		c.w.freeze(target, 180*ms)
	case "source-pause":
		c.w.freeze(source, 40*ms)
	case "link":
		c.w.partition(source, target, 15*ms)
	case "second-migration":
		c.second()
	default:
		panic("sim: no victim " + c.Victim)
	}
}

// strikeAgain crashes the successor of a crashed worker as soon as there is one.
func (c *cell) strikeAgain() {
	node := c.w.coord.NodeOfSlot(slotSource)
	if c.again == 0 || node < 0 || node == c.again || !c.w.workers[node].alive {
		return
	}
	c.again, c.calmNS = 0, c.w.nowNS+300*ms
	c.w.crash(node)
}

// second asks for another migration while one is under way.
func (c *cell) second() {
	c.calmNS = 0
	if !c.w.coord.Migrating() {
		return
	}
	err := c.migrate([]core.Move{{Group: uint32(len(c.before) - 1), From: slotThird, To: slotSource}})
	if !errors.Is(err, coord.ErrBusy) {
		c.broken = errInvariant{fmt.Sprintf("a second migration at once is not refused as busy: %v", err)}
	}
}

func inverse(moves []core.Move) []core.Move {
	back := make([]core.Move, len(moves))
	for i, m := range moves {
		back[i] = core.Move{Group: m.Group, From: m.To, To: m.From}
	}
	return back
}

func apply(table []int32, moves []core.Move) []int32 {
	table = slices.Clone(table)
	for _, m := range moves {
		table[m.Group] = int32(m.To)
	}
	return table
}
