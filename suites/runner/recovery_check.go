package runner

import (
	"fmt"
	"os"
	"slices"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/suites/spec"
)

// checkRecovery has the form of spec.Known.CheckRecovery: the engine says whether the strategies go together, those of
// recovery with each other and with the migration.
func checkRecovery(c *spec.Cell) []spec.Problem {
	job := buildJob(c, 1)
	g, err := core.BuildGraph(job, operator.Info)
	if err != nil {
		return []spec.Problem{problemOf(err)}
	}
	if err := recovery.Check(g, operator.Horizon); err != nil {
		return []spec.Problem{problemOf(err)}
	}
	return slices.Concat(checkMove(c, g), checkEvents(c), checkSpillDir(c.Recovery.Spill.Dir))
}

// checkEvents says which faults wait for what the cell never does.
func checkEvents(c *spec.Cell) (out []spec.Problem) {
	moves := c.Migration != nil && c.Migration.Strategy != controlMigration
	saves := c.Checkpoint.Interval.Auto || c.Checkpoint.Interval.D > 0
	if moves {
		s, err := migration.Lookup(c.Migration.Strategy)
		saves = saves || err == nil && s.NeedsCheckpoints
	}
	for i, f := range c.Faults {
		p := spec.Problem{Field: fmt.Sprintf("faults[%d].on", i)}
		switch {
		case f.On == nil:
			continue
		case !moves && slices.Contains([]string{"round", "migration-began", coord.TraceMigration, coord.TraceRound, coord.TraceRoundDone, coord.TraceMigrated}, f.On.Event):
			p.Problem, p.Fix = fmt.Sprintf("%s never happens, as the cell has no migration", f.On.Event), "add 'migration: {strategy: NAME}'"
		case !saves && slices.Contains([]string{"barrier-injected", "snapshot-taken", "snapshot-acknowledged", coord.TraceCheckpoint, coord.TraceSnapshot, coord.TraceComplete, coord.TraceAborted}, f.On.Event):
			p.Problem, p.Fix = fmt.Sprintf("%s never happens, as the cell has no checkpoints", f.On.Event), "set checkpoint.interval, such as 1s"
		default:
			continue
		}
		out = append(out, p)
	}
	return out
}

// checkMove says whether the cell's migration can move what it is to move.
func checkMove(c *spec.Cell, g *core.Graph) []spec.Problem {
	if c.Migration == nil || c.Migration.Strategy == controlMigration {
		return nil
	}
	s, err := migration.Lookup(c.Migration.Strategy)
	op := operatorIndex(&g.Job, c.Migration.Operator)
	if err != nil || op < 0 || (g.Job.Operators[op].Store != "") != s.External {
		return nil // which is said elsewhere
	}
	if err := coord.Fits(g, op, s); err != nil {
		p := problemOf(err)
		p.Field = "migration.strategy"
		for t := range g.Job.Operators[op].Parallelism {
			if s.GoesWith(c.Recovery.StrategyOf(c.Migration.Operator, t)) {
				continue
			}
			if i := c.Recovery.OverrideOf(c.Migration.Operator, t); i >= 0 {
				p.Field = fmt.Sprintf("recovery.overrides[%d].strategy", i)
			}
			break
		}
		return []spec.Problem{p}
	}
	return nil
}

// checkSpillDir says what is wrong with a folder for what sender logs spill.
func checkSpillDir(dir string) []spec.Problem {
	const field = "recovery.spill.dir"
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return []spec.Problem{{Field: field, Problem: fmt.Sprintf("cannot be used: %v", err), Fix: "make the folder, or remove it for one in the run directory"}}
	case !info.IsDir():
		return []spec.Problem{{Field: field, Problem: dir + " is not a folder", Fix: "write a folder, or remove it for one in the run directory"}}
	}
	return nil
}
