package recovery

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
)

// Check refuses jobs that could not keep their promises, with the reason. horizon says why the state of an operator's tasks
// cannot be made again from a bounded part of its input; nil when it can.
func Check(g *core.Graph, horizon func(*core.OperatorSpec) error) error {
	job := &g.Job
	if job.Lease <= job.Heartbeat {
		return fmt.Errorf("lease %v, heartbeat %v: a worker is silent that long between two reports; want a longer lease", job.Lease, job.Heartbeat)
	}
	if job.LogBytes < core.MinLogBytes {
		return fmt.Errorf("a log of %d bytes is too small to hold one batch; want at least %d", job.LogBytes, core.MinLogBytes)
	}
	if err := checkSpill(g); err != nil {
		return err
	}
	for i := range job.Operators {
		op := &job.Operators[i]
		for _, name := range append([]string{op.Recovery}, op.TaskRecovery...) {
			if _, err := Lookup(name); err != nil {
				return fmt.Errorf("operator %s: %w", op.Name, err)
			}
		}
		if op.Scope != "" && !uses(g, i, core.RecoveryCheckpoint) {
			return fmt.Errorf("operator %s: scope %s says how much rolls back to a checkpoint, and none of its tasks has recovery %s", op.Name, op.Scope, core.RecoveryCheckpoint)
		}
		if err := checkOperator(g, i, horizon); err != nil {
			return fmt.Errorf("operator %s: %w", op.Name, err)
		}
	}
	return checkMix(g)
}

// checkSpill refuses room on disk that is too small, or that nobody would use.
func checkSpill(g *core.Graph) error {
	job := &g.Job
	switch {
	case job.SpillBytes == 0:
		return nil
	case job.SpillBytes < core.MinLogBytes:
		return fmt.Errorf("%d bytes on disk for a sender log are too small to hold one batch; want at least %d", job.SpillBytes, core.MinLogBytes)
	}
	for _, t := range g.Tasks {
		if g.Protection(t.ID).Ordered() {
			return nil
		}
	}
	return fmt.Errorf("sender logs have room on disk, but none keeps anything that its reader has consumed, as no task replays alone; want recovery %s, %s, %s or %s with scope %s, or no room on disk",
		core.RecoveryUpstream, core.RecoveryPassive, core.RecoveryActive, core.RecoveryCheckpoint, core.ScopeTask)
}

// uses says whether a task of the operator has the strategy.
func uses(g *core.Graph, op int, strategy string) bool {
	for _, id := range g.OpTasks[op] {
		if g.Protection(id).Strategy == strategy {
			return true
		}
	}
	return false
}

func checkOperator(g *core.Graph, i int, horizon func(*core.OperatorSpec) error) error {
	job, op := &g.Job, &g.Job.Operators[i]
	if op.Scope == core.ScopeTask && job.Checkpoint == 0 {
		return fmt.Errorf("scope %s without checkpoints: sender logs are kept until a checkpoint covers them; want a checkpoint interval", op.Scope)
	}
	if op.Scope == core.ScopeTask && job.Unaligned {
		return fmt.Errorf("scope %s with unaligned barriers: what was in flight between two tasks that are lost together is in the checkpoint of neither's inputs; want aligned ones, or scope %s", op.Scope, core.ScopeGlobal)
	}
	for _, s := range Strategies() {
		if s.Standby && job.Workers < 2 && uses(g, i, s.Name) {
			return fmt.Errorf("recovery %s with %d worker: a standby on its primary's worker would be lost with it; want at least 2 workers", s.Name, job.Workers)
		}
	}
	if uses(g, i, core.RecoveryUpstream) {
		if op.Backend == core.BackendPebble {
			return fmt.Errorf("recovery %s with backend %s: all open windows are looked through again and again, which on disk would take too long; want backend %s", core.RecoveryUpstream, op.Backend, core.BackendHeap)
		}
		if err := horizon(op); err != nil {
			return fmt.Errorf("recovery %s: %w; want %s, %s or %s", core.RecoveryUpstream, err, core.RecoveryCheckpoint, core.RecoveryPassive, core.RecoveryActive)
		}
	}
	return nil
}

// checkMix refuses protections that do not go together in one job.
func checkMix(g *core.Graph) error {
	for _, c := range g.Channels {
		if c.Kind != core.ChanData {
			continue
		}
		from, to := g.Protection(c.From), g.Protection(c.To)
		if from.Strategy == core.RecoveryNone && to.Ordered() {
			return fmt.Errorf("task %s with recovery %s sends to %s, which would have to replay what is lost with it; want another recovery for the first, or %s for both",
				g.TaskName(c.From), core.RecoveryNone, g.TaskName(c.To), core.RecoveryNone)
		}
	}
	for _, t := range g.Tasks {
		p := g.Protection(t.ID)
		if p.Scope != core.ScopeRegion && p.Scope != core.ScopeTask {
			continue
		}
		for other, near := range g.Connected(t.ID) {
			if !near {
				continue
			}
			q := g.Protection(other)
			if p.Scope == core.ScopeRegion && q != p {
				return fmt.Errorf("task %s rolls back in scope %s, but %s, which is connected with it, has recovery %s %s: it would not roll back with it; want the same for all that is connected",
					g.TaskName(t.ID), p.Scope, g.TaskName(other), q.Strategy, q.Scope)
			}
			if p.Scope == core.ScopeTask && (q.Strategy == core.RecoveryPassive || q.Strategy == core.RecoveryUpstream) {
				return fmt.Errorf("task %s rolls back to checkpoints in scope %s, and %s, which is connected with it, has bases of its own (recovery %s): two tasks that are lost together would not fit to each other; want %s for one of them",
					g.TaskName(t.ID), p.Scope, g.TaskName(other), q.Strategy, core.RecoveryActive)
			}
		}
	}
	return nil
}
