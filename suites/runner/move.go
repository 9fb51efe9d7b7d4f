package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/migration/planner"
	"github.com/weir-bench/weir/engine/model"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// controlMigration is the name of the control: a cell in which nothing moves.
const controlMigration = "none"

func isControl(m *spec.Migration) bool { return m.Strategy == controlMigration }

// moveRecord is a migration that was asked for.
type moveRecord struct {
	strategy migration.Strategy
	request  migration.Request
	planned  time.Duration // how long planning took
	verdict  string        // of the planner, if one was asked
	refused  string        // why the migration did not begin
	askedAt  time.Duration
}

// groupLoad is the load and state of a key group, as the meters have it.
type groupLoad struct {
	operator int
	group    uint32
	records  uint64
	bytes    int64
}

// groupLoads copies the newest meters. It runs on the event loop.
func groupLoads(c *coord.Coordinator, job *core.Job) []groupLoad {
	var out []groupLoad
	for id, m := range c.Meters() {
		op := c.Graph().Tasks[id].Operator
		for i, g := range m.Groups {
			out = append(out, groupLoad{op, g, m.Loads[i], m.StateBytes[i]})
		}
	}
	return out
}

// meters are an operator's key groups over a window of time.
type meters struct {
	load  []float64 // records in the window
	bytes []int64
	route []int32
}

// window subtracts what the meters showed at its beginning. A group that the meters have not shown has no load.
func (t *trial) window(op int, before, after []groupLoad, route []int32) meters {
	n := int(t.job.Operators[op].Groups)
	m := meters{load: make([]float64, n), bytes: make([]int64, n), route: route}
	for _, l := range after {
		if l.operator == op {
			m.load[l.group], m.bytes[l.group] = float64(l.records), l.bytes
		}
	}
	for _, l := range before {
		if l.operator == op && float64(l.records) <= m.load[l.group] {
			m.load[l.group] -= float64(l.records)
		}
	}
	return m
}

// migrate plans from the load since the steady phase began, and moves.
func (t *trial) migrate(ctx context.Context) error {
	spec := t.cell.Migration
	strategy, err := migration.Lookup(spec.Strategy)
	if err != nil {
		return err
	}
	rec := &moveRecord{strategy: strategy, askedAt: t.now()}
	t.migration = rec
	op := operatorIndex(&t.job, spec.Operator)
	var now []groupLoad
	var route []int32
	if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		now = groupLoads(c, &t.job)
		route = slices.Clone(c.Routes(op).Task)
	}); err != nil {
		return t.over()
	}
	began := time.Now()
	m := t.window(op, t.seen.before.loads, now, route)
	moves, verdict, err := t.choose(op, m)
	if err != nil {
		return fmt.Errorf("plan the migration of cell %s: %w", t.cell.Name, err)
	}
	rec.planned, rec.verdict = time.Since(began), verdict
	rec.request = migration.Request{Operator: op, Moves: moves, Rounds: 1}
	if strategy.UsesRounds && len(moves) > 0 {
		rec.request.Rounds = t.rounds(op, m, moves)
	}
	t.log.emit(runlog.Event{Kind: "migration_planned", Detail: t.planDetail(rec, m)}, int64(t.now()))
	if len(moves) == 0 {
		rec.refused = "nothing to move: " + verdict
		return nil
	}
	return t.ask(ctx, rec, true)
}

// ask hands the migration to the coordinator, again while something else is under way.
func (t *trial) ask(ctx context.Context, rec *moveRecord, classify bool) error {
	set := newGroupSet(t.job.Operators[rec.request.Operator].Groups)
	for _, mv := range rec.request.Moves {
		set.in[mv.Group] = true
	}
	for deadline := t.now() + 2*time.Second; ; {
		var err error
		if doErr := t.h.Do(func(c *coord.Coordinator, e *coord.Effects) {
			if err = c.Migrate(rec.request, rec.strategy, e); err != nil {
				return
			}
			for _, o := range t.col.oracles {
				o.HandOver(set.has)
			}
			if classify && t.col.query == nil { // the keys of a query's outputs are others than those of its state
				t.col.moving = set
			}
		}); doErr != nil {
			return t.over()
		}
		if !errors.Is(err, coord.ErrBusy) || t.now() > deadline {
			if err != nil {
				rec.refused = err.Error()
				t.log.emit(runlog.Event{Kind: runlog.Warning, Detail: map[string]any{"why": "the migration did not begin: " + err.Error()}}, int64(t.now()))
			}
			return nil
		}
		if err := t.until(ctx, t.now()+5*time.Millisecond); err != nil {
			return err
		}
	}
}

// moveBack moves everything back.
func (t *trial) moveBack(ctx context.Context) error {
	if t.migration == nil || t.migration.refused != "" {
		return nil
	}
	back := &moveRecord{strategy: t.migration.strategy, request: t.migration.request}
	back.request.Moves = nil
	for _, m := range t.migration.request.Moves {
		back.request.Moves = append(back.request.Moves, core.Move{Group: m.Group, From: m.To, To: m.From})
	}
	return t.ask(ctx, back, false)
}

// choose decides what moves where.
func (t *trial) choose(op int, m meters) (moves []core.Move, verdict string, err error) {
	s := t.cell.Migration
	tasks := t.job.Operators[op].Parallelism
	if s.Groups == "plan" {
		p, err := planner.ByName(s.Planner)
		if err != nil {
			return nil, "", err
		}
		plan, err := p.Plan(planner.Input{Tasks: tasks, Load: m.load, StateBytes: m.bytes, Route: m.route, Theta: s.Theta, Targets: t.targets(op)})
		if err != nil {
			return nil, "", err
		}
		for _, mv := range plan.Moves {
			moves = append(moves, core.Move{Group: uint32(mv.Group), From: int(mv.From), To: int(mv.To)})
		}
		verdict = fmt.Sprintf("%s; %d bytes, at least %d", plan.Verdict(), plan.MovedBytes, plan.LowerBoundBytes)
		return hottestFirst(moves, m), verdict, nil
	}
	from, to := t.endpoints(op, m)
	groups := (&core.Routes{Task: m.route}).Owned(from)
	t.order(groups, m)
	n := s.Count
	if n == 0 {
		n = int(s.Share*float64(len(groups)) + 0.5)
	}
	for _, g := range groups[:min(n, len(groups))] {
		moves = append(moves, core.Move{Group: g, From: from, To: to})
	}
	return hottestFirst(moves, m), fmt.Sprintf("%s groups of task %d", s.Groups, from), nil
}

// hottestFirst orders moves so that the groups that load the most move first.
func hottestFirst(moves []core.Move, m meters) []core.Move {
	slices.SortStableFunc(moves, func(a, b core.Move) int { return falling(m.load[a.Group], m.load[b.Group]) })
	return moves
}

func falling(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// order sorts groups into the order in which they are chosen.
func (t *trial) order(groups []uint32, m meters) {
	switch t.cell.Migration.Groups {
	case "hottest":
		slices.SortStableFunc(groups, func(a, b uint32) int { return falling(m.load[a], m.load[b]) })
	case "coldest":
		slices.SortStableFunc(groups, func(a, b uint32) int { return falling(m.load[b], m.load[a]) })
	case "random":
		r := rand.New(rand.NewPCG(t.plan.Seed, 0x6d6f7665))
		r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	}
}

// workerOf returns the worker, from 1, of each task of an operator.
func (t *trial) workerOf(op int) []int {
	var out []int
	for _, id := range t.graph.OpTasks[op] {
		out = append(out, t.graph.Tasks[id].Slot+1)
	}
	return out
}

// targets says which tasks may receive groups; nil: all.
func (t *trial) targets(op int) []bool {
	to := t.cell.Migration.To
	if to == 0 {
		return nil
	}
	var out []bool
	for _, w := range t.workerOf(op) {
		out = append(out, w == to)
	}
	return out
}

// endpoints returns the task that gives groups away and the one that receives them: the most and the least loaded of
// the workers that the suite names, or of the most and least loaded worker.
func (t *trial) endpoints(op int, m meters) (from, to int) {
	tasks, workers := t.job.Operators[op].Parallelism, t.workerOf(op)
	load, byWorker := make([]float64, tasks), make([]float64, t.job.Workers+1)
	for g, d := range m.route {
		load[d] += m.load[g]
		byWorker[workers[d]] += m.load[g]
	}
	pick := func(worker int, other int, better func(a, b float64) bool) int {
		best := -1
		for d := range tasks {
			if d == other || worker != 0 && workers[d] != worker {
				continue
			}
			if best < 0 || better(load[d], load[best]) || load[d] == load[best] && better(byWorker[workers[d]], byWorker[workers[best]]) {
				best = d
			}
		}
		return best
	}
	from = pick(t.cell.Migration.From, -1, func(a, b float64) bool { return a > b })
	from = max(from, 0)
	to = pick(t.cell.Migration.To, from, func(a, b float64) bool { return a < b })
	return from, max(to, 0)
}

// The cost model's constants for state in memory that moves over the loopback interface, used while nothing better is
// known: what a round costs beside the transfer, and the bandwidth of packing, sending and installing together.
const (
	roundCost      = 2 * time.Millisecond
	roundBandwidth = 250e6
	// spikeWeight is how much a second of waiting counts against a second of duration.
	spikeWeight = 100
)

// rounds returns the number of rounds: the suite's, or the cost model's choice.
func (t *trial) rounds(op int, m meters, moves []core.Move) int {
	s := t.cell.Migration
	if !s.Rounds.Auto {
		return min(s.Rounds.N, len(moves))
	}
	cost, err := t.cost(op, m, moves).RoundsMovingWait(spikeWeight, 1)
	if err != nil {
		return 1 // parameters out of the model's range, such as a task at capacity: then every round only delays the end
	}
	return cost.Rounds
}

// cost is the model of a move.
func (t *trial) cost(op int, m meters, moves []core.Move) model.Migration {
	seconds := (t.now() - t.seen.before.at).Seconds()
	total, moving := 0.0, 0.0
	byTask := make([]float64, t.job.Operators[op].Parallelism)
	for g, l := range m.load {
		total += l
		byTask[m.route[g]] += l
	}
	c := model.Migration{BandwidthBytesPerSecond: roundBandwidth, SyncCost: roundCost, Groups: len(moves), ArrivalPerSecond: total / seconds}
	for _, mv := range moves {
		moving += m.load[mv.Group]
		c.StateBytes += m.bytes[mv.Group]
		c.LargestGroupBytes = max(c.LargestGroupBytes, m.bytes[mv.Group])
	}
	if total > 0 {
		c.MovingShare = min(1, moving/total)
	}
	c.Utilisation = slices.Max(byTask) / seconds * t.job.Operators[op].Service.Mean.Seconds()
	return c
}

// planDetail is what the event of a planned migration says.
func (t *trial) planDetail(rec *moveRecord, m meters) map[string]any {
	op := rec.request.Operator
	loads := make([]float64, t.job.Operators[op].Parallelism)
	total := 0.0
	for g, d := range m.route {
		loads[d] += m.load[g]
		total += m.load[g]
	}
	var bytes int64
	moved := 0.0
	for _, mv := range rec.request.Moves {
		bytes += m.bytes[mv.Group]
		moved += m.load[mv.Group]
	}
	share := func(x float64) float64 {
		if total == 0 {
			return 0
		}
		return float64(int(x/total*1e4)) / 1e4
	}
	before := make([]float64, len(loads))
	for d := range loads {
		before[d] = share(loads[d])
	}
	d := map[string]any{"groups": len(rec.request.Moves), "bytes": bytes, "load_share": share(moved), "task_shares": before,
		"rounds": rec.request.Rounds, "plan": rec.verdict, "plan_ms": runlog.MS(rec.planned)}
	if rec.strategy.UsesRounds && len(rec.request.Moves) > 0 {
		if p, err := t.cost(op, m, rec.request.Moves).Predict(rec.request.Rounds); err == nil {
			d["predicted_peak_ms"], d["predicted_ms"] = runlog.MS(p.Peak), runlog.MS(p.Duration)
		}
	}
	return d
}
