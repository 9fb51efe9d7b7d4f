package recovery

import "github.com/weir-bench/weir/engine/core"

// upstream copies nothing: senders keep what a task was sent until all effects of it are in safe hands, and a fresh task
// replays it in the order of the lost one (Hwang et al. 2005, "upstream backup"). It suits operators that keep nothing, or
// windows that close; what a window needs is held until it has closed and its result has arrived.
func upstream() Strategy {
	return Strategy{
		Name: core.RecoveryUpstream, Eager: Precise, Transactional: Precise,
		Doc:   "nothing is copied; senders keep what was sent until its effects are in safe hands, and a fresh task replays it",
		Price: "logs as long as the longest open window",
		React: func(s Situation) Reaction {
			if s.Moving || s.Moved {
				return Restart
			}
			return Replay
		},
	}
}
