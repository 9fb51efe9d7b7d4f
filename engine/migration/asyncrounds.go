package migration

import "github.com/weir-bench/weir/engine/core"

// asyncRounds moves the groups in N rounds while everything runs: in each round only the records of the groups in
// flight wait, at the target, for their state. An external controller (this machine) begins a round when the one before
// is complete (Hoffmann et al., "Megaphone", VLDB 2019, calls it batched migration).
func asyncRounds() Strategy {
	return Strategy{
		Name: "async-rounds", Sends: true, UsesRounds: true,
		Doc:   "move the key groups in N rounds under an external controller; only records of groups in flight wait, at the target",
		Price: "longer in total: each round pays its synchronisation",
		New:   func(r Request) Machine { return &roundsMachine{rounds: split(r.Moves, r.Rounds)} },
	}
}

// allAtOnce is asyncRounds with N = 1: the control that shows what the rounds are for.
func allAtOnce() Strategy {
	return Strategy{
		Name: "all-at-once", Sends: true,
		Doc:   "one round: all key groups in flight together while the rest runs",
		Price: "the records of all moving groups wait for all of their state",
		New:   func(r Request) Machine { return &roundsMachine{rounds: split(r.Moves, 1)} },
	}
}

// split deals moves to n rounds of nearly equal length, in order.
func split(moves []core.Move, n int) [][]core.Move {
	n = max(1, min(n, len(moves)))
	rounds := make([][]core.Move, 0, n)
	for i := 0; i < n; i++ {
		from, to := i*len(moves)/n, (i+1)*len(moves)/n
		if to > from {
			rounds = append(rounds, moves[from:to])
		}
	}
	return rounds
}

type roundsMachine struct{ rounds [][]core.Move }

func (m *roundsMachine) Step(ev Event, _ int64) []Action {
	if ev != Begin && ev != RoundDone {
		return nil
	}
	if len(m.rounds) == 0 {
		return []Action{{Do: Finish}}
	}
	next := m.rounds[0]
	m.rounds = m.rounds[1:]
	return []Action{{Do: Route, Moves: next}}
}
