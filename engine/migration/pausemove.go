package migration

import "github.com/weir-bench/weir/engine/core"

// pauseMove stops only the two tasks concerned while all moving groups travel at once (as in Flux, Shah et al., ICDE
// 2003, where a partition pair is paused while state moves).
func pauseMove() Strategy {
	return Strategy{
		Name: "pause-move", Sends: true,
		Doc:   "the giving and the getting tasks stop; all moving groups travel at once",
		Price: "a pause for the two tasks, as long as moving all of the state",
		New:   func(r Request) Machine { return &oneRound{moves: r.Moves, mode: core.MovePause} },
	}
}

// oneRound is the machine of strategies that need a single round.
type oneRound struct {
	moves []core.Move
	mode  core.MoveMode
}

func (m *oneRound) Step(ev Event, _ int64) []Action {
	switch ev {
	case Begin:
		return []Action{{Do: Route, Moves: m.moves, Mode: m.mode}}
	case RoundDone:
		return []Action{{Do: Finish}}
	}
	return nil
}
