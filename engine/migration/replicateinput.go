package migration

import "github.com/weir-bench/weir/engine/core"

// replicateInput lets the getting task work alongside: it gets a snapshot and, behind it, a copy of the live input of the
// moving groups, with its outputs held back; it takes over when it is level (as in ChronoStream, Wu and Tan, ICDE 2015).
// The copy of the input goes by way of the giver, in the order in which the giver works on it: copied at the senders, two
// tasks with several inputs would see two orders, and state and outputs would not fit together.
func replicateInput() Strategy {
	return Strategy{
		Name: "replicate-input", Sends: true,
		Doc:   "the target gets a snapshot and a copy of the live input of the moving groups, works alongside with its outputs held back, and takes over when level",
		Price: "the input and the work of the moving groups twice while it lasts",
		Plain: true,
		// When a chunk goes out between two mirrored records depends on the network.
		NotWith: "active",
		Because: "the order of chunks and mirrored records depends on the network, which a standby cannot repeat",
		New:     func(r Request) Machine { return &replicateMachine{r.Moves} },
	}
}

type replicateMachine struct{ moves []core.Move }

func (m *replicateMachine) Step(ev Event, _ int64) []Action {
	switch ev {
	case Begin:
		return []Action{{Do: Copy, Moves: m.moves, Mode: core.MoveReplica}}
	case Copied:
		return []Action{{Do: Route, Moves: m.moves, Mode: core.MoveReplica}}
	case RoundDone:
		return []Action{{Do: Finish}}
	}
	return nil
}
