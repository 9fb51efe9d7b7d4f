package migration

import "github.com/weir-bench/weir/engine/core"

// onDemand changes the routes at once; the groups come hottest first, and one that a record needs comes next.
func onDemand() Strategy {
	return Strategy{
		Name: "on-demand", Sends: true,
		Doc:   "routes change at once; key groups follow in hot-first order, and one that a record needs now comes first",
		Price: "a record of a cold group waits for its fetch",
		// Which group is under way when a fetch comes depends on the network, so a standby would send other chunks under
		// the same numbers.
		NotWith: "active",
		Because: "the order of the chunks depends on when fetches arrive, which a standby cannot repeat",
		New:     func(r Request) Machine { return &oneRound{moves: r.Moves, mode: core.MoveDemand} },
	}
}
