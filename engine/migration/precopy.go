package migration

import "github.com/weir-bench/weir/engine/core"

const (
	// maxCopies bounds how often changes are copied ahead: state that changes as fast as it is copied would never settle.
	maxCopies = 5
	// shrinks says that another copy is worth it when it is at most this share of the one before.
	shrinks = 0.7
	// smallDeltaBytes is small enough to hand over.
	smallDeltaBytes = 256 << 10
)

// preCopy copies the state ahead while the owner goes on with it, then what changed meanwhile, until little changes; only
// that last part travels while records wait (Clark et al., "Live migration of virtual machines", NSDI 2005).
func preCopy() Strategy {
	return Strategy{
		Name: "pre-copy", Sends: true,
		Doc:   "copy the state ahead, then what changed, then hand over with the last small part",
		Price: "copies some of the state more than once, and tracks changes meanwhile",
		New:   func(r Request) Machine { return &preCopyMachine{moves: r.Moves} },
	}
}

type preCopyMachine struct {
	moves  []core.Move
	copies int
	last   int64 // bytes of the copy before
}

func (m *preCopyMachine) Step(ev Event, bytes int64) []Action {
	switch ev {
	case Begin:
		return m.copy(0)
	case Copied:
		small := bytes <= smallDeltaBytes && m.copies > 1
		stuck := m.copies > 1 && float64(bytes) > shrinks*float64(m.last)
		if small || stuck || m.copies >= maxCopies {
			return []Action{{Do: Route, Moves: m.moves, Mode: core.MoveDelta}}
		}
		return m.copy(bytes)
	case RoundDone:
		return []Action{{Do: Finish}}
	}
	return nil
}

func (m *preCopyMachine) copy(bytes int64) []Action {
	m.copies++
	m.last = bytes
	return []Action{{Do: Copy, Moves: m.moves}}
}
