package migration

import "github.com/weir-bench/weir/engine/core"

// externalise moves no state: it is in an external store, of which tasks hold a cache. The giving task writes what is not
// written yet, then tells the getting task that the key groups are its own; that one begins with a cold cache.
func externalise() Strategy {
	return Strategy{
		Name: "externalise", External: true,
		Doc:   "state is in an external store; moving is a route change, a last write and a cold cache at the target",
		Price: "slower records all the time, as they wait for reads of what is not in the cache",
		// With checkpoints or standbys, see coord: they do not hold what is in the store.
		OnlyWith: "none",
		Because:  "checkpoints and standbys do not hold what is in the store",
		New:      func(r Request) Machine { return &oneRound{moves: r.Moves, mode: core.MoveStore} },
	}
}
