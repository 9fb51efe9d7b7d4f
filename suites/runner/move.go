package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/migration/planner"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// controlMigration is the name of the control: a cell in which nothing moves.
const controlMigration = "none"

func isControl(m *spec.Migration) bool { return m.Strategy == controlMigration }

// traceMoved ends a migration.
const traceMoved = coord.TraceMigrated

// MigrationPlanned is the kind of the run-log event that holds what a move was planned from, and how.
const MigrationPlanned = "migration_planned"

// moveRecord is a migration that was asked for.
type moveRecord struct {
	strategy    migration.Strategy
	request     migration.Request
	triggeredAt time.Duration // by its time, or by the alarm; planning comes behind
	meters      meters
	input       planner.Input
	plan        *planner.Plan // of a planner, if one was asked
	planned     time.Duration // how long planning took
	verdict     string        // of the plan
	split       *split        // of a strategy with rounds
	refused     string        // why the migration did not begin
}

// migrate plans from the load since the steady phase began, and moves.
func (t *trial) migrate(ctx context.Context) error {
	t.watchMemory()
	op := operatorIndex(&t.job, t.cell.Migration.Operator)
	at := t.now()
	now, err := t.readLoads(op)
	if err != nil {
		return err
	}
	done, err := t.effort()
	if err != nil {
		return err
	}
	m := t.window(op, t.seen.before.loads, now.loads, now.at-t.seen.before.at, now.route)
	return t.adjust(ctx, at, m, t.seen.effort, done)
}

// adjust is the pipeline behind the trigger: plan, split, move.
func (t *trial) adjust(ctx context.Context, at time.Duration, m meters, from, to effort) error {
	s := t.cell.Migration
	strategy, err := migration.Lookup(s.Strategy)
	if err != nil {
		return err
	}
	rec := &moveRecord{strategy: strategy, triggeredAt: at, meters: m}
	t.migration = rec
	op := operatorIndex(&t.job, s.Operator)
	began := time.Now()
	moves, err := t.choose(op, rec)
	if err != nil {
		return fmt.Errorf("plan the migration of cell %s: %w", t.cell.Name, err)
	}
	rec.planned = time.Since(began)
	rec.request = migration.Request{Operator: op, Moves: moves, Rounds: 1, BandwidthBytesPerSecond: int64(t.cell.Migration.Bandwidth)}
	if strategy.UsesRounds && len(moves) > 0 {
		concerned := make([]bool, t.job.Operators[op].Parallelism)
		for _, mv := range moves {
			concerned[mv.From], concerned[mv.To] = true, true
		}
		err = t.divide(rec, t.busiest(op, from, to, func(i int) bool { return concerned[i] }).busy)
	}
	t.log.emit(runlog.Event{Kind: MigrationPlanned, Detail: t.planDetail(rec)}, int64(t.now()))
	switch {
	case err != nil:
		if rec.refused = err.Error(); errors.Is(err, spec.ErrInvalid) {
			t.unfit = err
		}
		return err
	case len(moves) == 0:
		rec.refused = "nothing to move: " + rec.verdict
		return nil
	}
	set := newGroupSet(t.job.Operators[op].Groups)
	for _, mv := range moves {
		set.in[mv.Group] = true
	}
	return t.ask(ctx, rec, func() {
		if t.col.query == nil { // the keys of a query's outputs are others than those of its state
			t.col.moving = set
		}
	})
}

// errNotCalibrated is why rounds cannot be chosen.
var errNotCalibrated = errors.New("the cost model could not be calibrated")

// divide decides on the rounds: those of the suite, or of the cost model. The model's own choice is worked out in either
// case, to be shown beside what the suite asked for.
func (t *trial) divide(rec *moveRecord, busy float64) error {
	of, m, moves := t.cell.Migration, rec.meters, rec.request.Moves
	s := &split{utilisation: busy}
	rec.split = s
	n := of.Rounds.N
	if of.Rounds.All {
		n = len(moves)
	}
	if t.calibration.ok() {
		s.model, s.first, s.stall = t.cost(m, moves, busy), t.calibration.first, t.calibration.stall
		s.how = fmt.Sprintf("%d rounds moved out and back in the warm-up", len(t.calibration.points))
		if t.calibration.rough {
			s.how += ", of too little state to tell the cost of a round from that of its state"
		}
		if err := s.choose(of, m, moves); err != nil {
			s.why = err.Error()
			if of.Rounds.Auto {
				return fmt.Errorf("%s: cell %s: %w: %w", t.o.Suite.File, t.cell.Name, spec.ErrInvalid, err)
			}
		}
	} else {
		s.why = "the rounds were not timed in this trial"
		if t.calibration != nil {
			s.why = t.calibration.why
		}
		if of.Rounds.Auto {
			return fmt.Errorf("%w: %s; lengthen timing.warmup, or write a number of rounds", errNotCalibrated, s.why)
		}
	}
	if of.Rounds.Auto {
		n = s.recommended
	}
	n = max(1, min(n, len(moves)))
	rec.request.Rounds, rec.request.Moves = n, slices.Concat(dealt(moves, m, n)...)
	if s.model.Groups > 0 {
		s.rounds = s.predict(m, roundsOf(rec.strategy, rec.request))
		s.nameLarge(m, moves, n)
	}
	return nil
}

// ask hands the migration to the coordinator, again while something else is under way. begun runs on the event loop as
// soon as it has begun.
func (t *trial) ask(ctx context.Context, rec *moveRecord, begun func()) error {
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
			begun()
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
	return t.ask(ctx, back, func() {})
}

// loadReading is the load of an operator's groups at one moment.
type loadReading struct {
	at    time.Duration
	loads []groupLoad
	route []int32
}

func (t *trial) readLoads(op int) (r loadReading, err error) {
	if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		r = loadReading{t.now(), groupLoads(c, &t.job), slices.Clone(c.Routes(op).Task)}
	}); err != nil {
		return r, t.over()
	}
	return r, nil
}

// planDetail is what the event of a planned migration says: enough to plan and to divide it again.
func (t *trial) planDetail(rec *moveRecord) map[string]any {
	m, moves := rec.meters, rec.request.Moves
	tasks := t.job.Operators[rec.request.Operator].Parallelism
	load := byTask(m.load, m.route, tasks)
	total, moved := 0.0, 0.0
	for _, l := range load {
		total += l
	}
	for _, mv := range moves {
		moved += m.load[mv.Group]
	}
	share := func(x float64) float64 {
		if total == 0 {
			return 0
		}
		return round4(x / total)
	}
	shares := make([]float64, tasks)
	for d := range load {
		shares[d] = share(load[d])
	}
	bytes := sizeOf(m, moves)
	d := map[string]any{"groups": len(moves), "bytes": bytes, "load_share": share(moved), "task_shares": shares,
		"rounds": rec.request.Rounds, "plan": rec.verdict, "plan_ms": runlog.MS(rec.planned), "input": inputDetail(rec.input)}
	result := map[string]any{"planner": t.cell.Migration.Groups, "verdict": rec.verdict, "moves": len(moves), "moved_bytes": bytes,
		"planning_ms": runlog.MS(rec.planned)}
	if p := rec.plan; p != nil {
		result["planner"], result["lower_bound_bytes"], result["theta"] = p.Planner, p.LowerBoundBytes, round4(p.Theta)
		result["reachable_theta"], result["table_entries"] = round4(p.ReachableTheta), p.TableSize
		if p.GapKnown {
			result["gap"] = round4(p.Gap)
		}
		if len(p.Oversize) > 0 {
			result["oversize_groups"] = p.Oversize
		}
	}
	d["result"] = result
	if s := rec.split; s != nil {
		t.splitDetail(s, d)
	}
	return d
}

func round4(x float64) float64 { return math.Round(x*1e4) / 1e4 }

func inputDetail(in planner.Input) map[string]any {
	load := make([]float64, len(in.Load))
	for g, l := range in.Load {
		load[g] = round4(l)
	}
	d := map[string]any{"tasks": in.Tasks, "theta": in.Theta, "load": load, "state_bytes": in.StateBytes, "route": in.Route}
	if in.Targets != nil {
		d["targets"] = in.Targets
	}
	return d
}

// splitDetail adds the cost model, its choice, and what it expects.
func (t *trial) splitDetail(s *split, d map[string]any) {
	if s.why != "" {
		d["model_why"] = s.why
	}
	if s.model.Groups == 0 {
		return
	}
	c := s.model
	d["model"] = map[string]any{"state_bytes": c.StateBytes, "bandwidth_bytes_per_second": c.BandwidthBytesPerSecond,
		"sync_cost_ms": runlog.MS(c.SyncCost), "groups": c.Groups, "largest_group_bytes": c.LargestGroupBytes, "utilisation": round4(c.Utilisation),
		"measured_utilisation": round4(s.utilisation), "arrival_per_second": round4(c.ArrivalPerSecond), "moving_share": round4(c.MovingShare), "calibrated": s.how,
		"jitter_ms": runlog.MS(c.Jitter), "first_round_extra_ms": runlog.MS(s.first), "stall_ms": runlog.MS(s.stall),
		"stream_bandwidth_bytes_per_second": c.StreamBandwidthBytesPerSecond, "stream_sync_cost_ms": runlog.MS(c.StreamSyncCost)}
	if s.recommended > 0 {
		d["rounds_recommended"], d["rounds_ideal"] = s.recommended, round4(s.ideal)
	}
	if len(s.rounds) > 0 {
		d["predicted_peak_ms"], d["predicted_ms"] = runlog.MS(s.wait()), runlog.MS(duration(s.rounds))
	}
	if n := len(s.tooLarge); n > 0 {
		d["groups_too_large"], d["groups_too_large_count"] = s.tooLarge[:min(n, 20)], n
	}
}
