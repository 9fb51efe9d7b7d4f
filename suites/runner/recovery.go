package runner

import (
	"slices"
	"strings"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/suites/spec"
)

// recordBytes is what a record takes in a batch without its payload: key, time, value, and the payload's offset.
const recordBytes = 8 + 8 + 8 + 4

// withRecovery gives a job what the cell says about fault tolerance: the strategy of every task, what its checkpoints are
// like, and the bounds of logs and restarts.
func withRecovery(job *core.Job, c *spec.Cell) {
	job.Ship, job.MaxRestarts, job.LogBytes = c.Recovery.Every, c.Recovery.MaxRestarts, int(c.Recovery.LogBytes)
	job.SpillBytes = int64(c.Recovery.Spill.Bytes)
	job.Unaligned, job.InFlightBytes = c.Checkpoint.Mode == "unaligned", int(c.Checkpoint.InFlight)
	job.Incremental, job.FullEvery = c.Checkpoint.Incremental, c.Checkpoint.FullEvery
	for i := range job.Operators {
		op := &job.Operators[i]
		strategies := make([]string, op.Parallelism)
		for t := range strategies {
			strategies[t] = c.Recovery.StrategyOf(op.Name, t)
		}
		op.Recovery = strategies[0]
		if slices.ContainsFunc(strategies, func(s string) bool { return s != op.Recovery }) {
			op.TaskRecovery = strategies
		}
		if slices.Contains(strategies, core.RecoveryCheckpoint) {
			op.Scope = c.ScopeOf(op.Name)
		}
		if k := slices.IndexFunc(c.Job.Operators, func(o spec.Operator) bool { return o.Name == op.Name }); k >= 0 {
			for _, w := range c.Job.Operators[k].StandbyPlacement {
				op.StandbyPlace = append(op.StandbyPlace, w-1)
			}
		}
	}
}

// problemOf turns an error of the engine into a problem of a suite: what comes behind "; want" is what would be right.
func problemOf(err error) spec.Problem {
	text := err.Error()
	if i := strings.LastIndex(text, "; want "); i >= 0 {
		return spec.Problem{Problem: text[:i], Fix: "use " + text[i+len("; want "):]}
	}
	return spec.Problem{Problem: text, Fix: "use another strategy"}
}
