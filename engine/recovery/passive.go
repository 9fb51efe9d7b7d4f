package recovery

import "github.com/weir-bench/weir/engine/core"

// passive ships what has changed of each task's state to a standby on another worker, every so often (Hwang et al. 2005,
// "passive standby"). The standby does no work: it holds the state of the last ship, and senders hold what came since. When
// it takes over, it replays that in the primary's order.
func passive() Strategy {
	return Strategy{
		Name: core.RecoveryPassive, Standby: true, Eager: Precise, Transactional: Precise,
		Doc:   "what has changed of the state is shipped to a standby's memory every so often; it takes over and replays what came since",
		Price: "the state twice, its changes on the network, and logs that reach back to the last ship",
		React: func(s Situation) Reaction {
			if s.Standby && !s.Moving {
				return Promote
			}
			return Restart
		},
	}
}
