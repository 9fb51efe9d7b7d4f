package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-bench/weir/chaos"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/sim"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/verify"
)

// simulatedSeeds is how many simulated trials make one repetition: each draws another small job, other times and other
// places for the cell's faults and moves.
const simulatedSeeds = 40

// notPerformance is why a simulated trial has no figures.
const notPerformance = "simulated time is not a performance result"

// simulate plays a cell in the simulator for its verdict: the cell's strategies and kinds of faults, on small jobs.
func simulate(ctx context.Context, o *Options, p spec.Trial) (runlog.Repetition, error) {
	c := &o.Suite.Cells[p.Cell]
	rep := runlog.Repetition{Repetition: p.Repetition + 1, Trial: p.Index + 1, Verdict: runlog.Valid, Metrics: map[string]runlog.Metric{}}
	for _, name := range []string{"steady_p50_ms", "steady_p99_ms"} {
		rep.Metrics[name] = runlog.Missing("ms", notPerformance)
	}
	cfg := simConfig(c)
	var sum verify.Answers
	hits, moves := 0, 0
	for i := range simulatedSeeds {
		if ctx.Err() != nil {
			return rep, context.Cause(ctx)
		}
		cfg.Seed = core.Mix64(p.Seed + uint64(i))
		r := sim.Run(cfg)
		hits += len(r.Faults)
		moves += r.Migrations
		a := r.Answers
		sum = sum.Plus(verify.Answers{Expected: a.Expected, Answered: a.Expected - a.Lost, Lost: a.Lost, Duplicated: a.Duplicated, Wrong: a.Wrong, Reordered: a.Reordered})
		if r.Violation != "" && rep.Verdict == runlog.Valid {
			rep.Verdict, rep.VerdictReason = runlog.Invalid, fmt.Sprintf("simulated trial of seed %d: %s", cfg.Seed, r.Violation)
		}
	}
	n := func(v uint64) *int64 { return runlog.N(int64(v)) }
	rep.Answers = runlog.Answers{Expected: n(sum.Expected), Answered: n(sum.Answered), Lost: n(sum.Lost), Duplicated: n(sum.Duplicated), Wrong: n(sum.Wrong),
		Reordered: n(sum.Reordered), Reason: "simulated: records are not scheduled by the suite's workload"}
	rep.Metrics["simulated_trials"] = runlog.Value(simulatedSeeds, "trials")
	rep.Metrics["simulated_faults"] = runlog.Value(float64(hits), "faults")
	rep.Metrics["simulated_migrations"] = runlog.Value(float64(moves), "migrations")
	if rep.Verdict == runlog.Valid && len(c.Faults) > 0 && hits == 0 {
		rep.Verdict, rep.VerdictReason = runlog.Unknown, "no fault happened before the simulated jobs ended"
	}
	return rep, nil
}

// simConfig maps a cell to what the simulator draws from.
func simConfig(c *spec.Cell) sim.Config {
	cfg := sim.Config{Recovery: "none", Migration: controlMigration, Faults: len(c.Faults)}
	transactional := false
	for _, op := range c.Job.Operators {
		transactional = transactional || op.Sink == "transactional"
		if s := c.Recovery.StrategyOf(op.Name, 0); s != "" && s != "none" {
			cfg.Recovery = s
		}
	}
	cfg.Transactional = &transactional
	if c.Migration != nil {
		cfg.Migration = c.Migration.Strategy
	}
	for _, f := range c.Faults {
		kinds := map[chaos.Kind]string{chaos.Kill: "crash", chaos.Freeze: "freeze", chaos.Slow: "freeze", chaos.Cut: "partition", chaos.Stall: "partition"}
		cfg.Kinds = append(cfg.Kinds, kinds[chaos.Kind(f.Kind)])
	}
	if _, err := recovery.Lookup(cfg.Recovery); err != nil {
		panic(err) // validated long before
	}
	return cfg
}

// simulatedTrial is the counterpart of a trial in processes.
func (r *run) simulatedTrial(ctx context.Context, p spec.Trial) (runlog.Repetition, error) {
	cell := r.o.Suite.Cells[p.Cell].Name
	note := func(kind string) error {
		return r.w.Event(runlog.Event{Wall: time.Now().UTC(), Trial: p.Index + 1, Cell: cell, Repetition: p.Repetition + 1, Kind: kind, Phase: "simulation"})
	}
	if err := note(runlog.TrialStarted); err != nil {
		return runlog.Repetition{}, err
	}
	r.o.Progress.Update(status(r.o, p, "simulation", 0))
	rep, err := simulate(ctx, r.o, p)
	if err != nil {
		return rep, err
	}
	return rep, note(runlog.TrialEnded)
}
