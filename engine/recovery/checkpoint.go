package recovery

import "github.com/weir-bench/weir/engine/core"

// checkpoint is rollback to asynchronous barrier snapshots (Carbone et al. 2015). Scope global deploys all tasks again from
// the newest complete checkpoint and sources re-read the feed from there; scope region does that with the tasks that are
// connected with the lost ones. State is exactly-once; an eager sink gives the outputs since the checkpoint again, a
// transactional one does not. Scope task brings the lost tasks alone back to where they stood at the checkpoint, and they
// replay in the order they had (compare Silvestre et al., "Clonos", SIGMOD 2021), so that no output comes twice.
func checkpoint() Strategy {
	return Strategy{
		Name: core.RecoveryCheckpoint, Checkpoints: true, Eager: Rollback, Transactional: Precise,
		Doc:   "asynchronous barrier snapshots; on failure all tasks, those connected with the lost ones, or these alone go back to the newest complete one",
		Price: "a snapshot each interval; everybody re-reads what came since, or order logs and sender logs that reach back to it",
		React: func(s Situation) Reaction {
			switch {
			case s.Scope == core.ScopeRegion && !s.Moving && !s.Moved:
				return Region
			case s.Scope == core.ScopeTask && !s.Moving && !s.Moved:
				return Replay
			}
			return Restart
		},
	}
}
