package core

import "fmt"

// The names of the fault-tolerance strategies that the machines treat differently. What each does and promises is
// described in engine/recovery.
const (
	RecoveryNone       = "none"
	RecoveryActive     = "active"
	RecoveryPassive    = "passive"
	RecoveryUpstream   = "upstream"
	RecoveryCheckpoint = "checkpoint"
)

// The scopes of a rollback to a checkpoint: the whole job, the tasks that are connected with the lost ones, or the lost
// tasks alone.
const (
	ScopeGlobal = "global"
	ScopeRegion = "region"
	ScopeTask   = "task"
)

// Protection is the fault tolerance of one task.
type Protection struct {
	Strategy string
	// Scope is empty unless the strategy rolls back to checkpoints.
	Scope string
}

// Ordered says that the order of the task's inputs is logged: it replays exactly.
func (p Protection) Ordered() bool {
	return p.Strategy == RecoveryActive || p.Strategy == RecoveryPassive || p.Strategy == RecoveryUpstream || p.Scope == ScopeTask
}

// Standby says that a second copy of the task is kept on another worker.
func (p Protection) Standby() bool {
	return p.Strategy == RecoveryActive || p.Strategy == RecoveryPassive
}

// protection returns the fault tolerance of an operator's i-th task.
func (op *OperatorSpec) protection(i int) Protection {
	p := Protection{Strategy: op.Recovery}
	if i < len(op.TaskRecovery) && op.TaskRecovery[i] != "" {
		p.Strategy = op.TaskRecovery[i]
	}
	switch p.Strategy {
	case "":
		p.Strategy = RecoveryNone
	case RecoveryCheckpoint:
		if p.Scope = op.Scope; p.Scope == "" {
			p.Scope = ScopeGlobal
		}
	}
	return p
}

func (op *OperatorSpec) checkProtection() error {
	switch op.Scope {
	case "", ScopeGlobal, ScopeRegion, ScopeTask:
	default:
		return fmt.Errorf("operator %s: scope %q, want %s, %s or %s", op.Name, op.Scope, ScopeGlobal, ScopeRegion, ScopeTask)
	}
	if n := len(op.TaskRecovery); n > 0 && n != op.Parallelism {
		return fmt.Errorf("operator %s: recovery of %d tasks is given, want %d", op.Name, n, op.Parallelism)
	}
	return nil
}

// Protection returns the fault tolerance of a task.
func (g *Graph) Protection(task int) Protection {
	t := &g.Tasks[task]
	return g.Job.Operators[t.Operator].protection(t.Index)
}

// Connected returns, by task id, whether the task is connected with task by data channels, whichever way they run.
func (g *Graph) Connected(task int) []bool {
	in := make([]bool, len(g.Tasks))
	in[task] = true
	for grown := true; grown; {
		grown = false
		for _, c := range g.Channels {
			if (c.Kind == ChanData || c.Kind == ChanPeer) && in[c.From] != in[c.To] {
				in[c.From], in[c.To], grown = true, true, true
			}
		}
	}
	return in
}
