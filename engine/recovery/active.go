package recovery

import "github.com/weir-bench/weir/engine/core"

// active runs a standby of each task on another worker. It consumes the same inputs in the primary's order, with its
// outputs held back, and takes over at once (Hwang et al. 2005, "active standby"; the order log is what makes it
// precise). A new standby is made in the background then. When the standby is gone too, the job rolls back.
func active() Strategy {
	return Strategy{
		Name: core.RecoveryActive, Standby: true, Eager: Precise, Transactional: Precise,
		Doc:   "a standby on another worker consumes the same inputs in the primary's order; it takes over at once",
		Price: "all work, state and input traffic twice",
		React: func(s Situation) Reaction {
			if s.Standby {
				return Promote
			}
			return Restart
		},
	}
}
