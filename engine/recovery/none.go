package recovery

import "github.com/weir-bench/weir/engine/core"

// none protects nothing: a lost task begins again, empty, with what is sent to it from then on (gap recovery: Hwang et al.
// 2005). The others go on; what was under way to the lost task, and its state, are lost. In the middle of a migration, or
// with state in an external store, the job starts from the first record instead, since nobody knows whose state is whole.
func none() Strategy {
	return Strategy{
		Name: core.RecoveryNone, Eager: Gap, Transactional: Gap,
		Doc:   "nothing is kept; a lost task begins empty, with what is sent to it from then on",
		Price: "the lost tasks' state, and what was under way to them",
		React: func(s Situation) Reaction {
			if s.Moving || s.Stores {
				return Restart
			}
			return Reopen
		},
	}
}
