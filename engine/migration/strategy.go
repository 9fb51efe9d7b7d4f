package migration

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
)

// Request is a migration that was asked for.
type Request struct {
	// Operator is the index of the operator whose key groups move; Moves what moves where.
	Operator int
	Moves    []core.Move
	// Rounds is N: into how many rounds the moves are split (1 to the number of moves).
	Rounds int
	// BandwidthBytesPerSecond bounds the state that one giving task sends; 0: no limit. State that travels in a checkpoint
	// or stays in an external store is not sent.
	BandwidthBytesPerSecond int64
}

// Event is what the coordinator tells a strategy.
type Event string

// The events.
const (
	Begin      Event = "begin"       // the first event
	RoundDone  Event = "round-done"  // every task of the last Route has given and installed its groups
	Savepoint  Event = "savepoint"   // the last Checkpoint is durable
	Redeployed Event = "redeployed"  // all tasks run again after Redeploy
	Copied     Event = "copied"      // the last Copy has been sent whole
	Interrupt  Event = "interrupted" // a failure rolled the job back; the migration is over
)

// Do is a mechanism of the coordinator.
type Do string

// The mechanisms.
const (
	Pause      Do = "pause"      // sources hold records back
	Checkpoint Do = "checkpoint" // a checkpoint of the whole job; answered by Savepoint
	Redeploy   Do = "redeploy"   // stop all tasks and start them from the last checkpoint with Moves applied; answered by Redeployed
	Route      Do = "route"      // one round: route change with Moves in Mode; answered by RoundDone
	Copy       Do = "copy"       // givers send (changes of) the state of Moves ahead; answered by Copied
	Finish     Do = "finish"     // the migration is complete
)

// Action is what a strategy wants done.
type Action struct {
	Do    Do
	Moves []core.Move
	Mode  core.MoveMode
}

// Machine is one migration under way. It is a pure machine: Step(event, bytes) → actions, in order. bytes is the size of
// what the answered action moved.
type Machine interface {
	Step(ev Event, bytes int64) []Action
}

// Strategy describes a migration strategy.
type Strategy struct {
	Name string
	// Doc is the mechanism, Price what it costs.
	Doc, Price string
	// NotWith names a recovery strategy that this one cannot be combined with, and why.
	NotWith, Because string
	// OnlyWith names the one recovery strategy that this one can be combined with, for the reason in Because; empty: any.
	OnlyWith string
	// External says that the operator's state must be in an external store; the other strategies need it in the tasks.
	External bool
	// Plain says that the operator must have one input and must not go by event time.
	Plain bool
	// NeedsCheckpoints says that the job must be able to write checkpoints.
	NeedsCheckpoints bool
	// Sends says that giving tasks send the state, so that Request.BandwidthBytesPerSecond matters.
	Sends bool
	// UsesRounds says that Request.Rounds matters.
	UsesRounds bool
	New        func(r Request) Machine
}

// GoesWith says whether the strategy can move key groups of tasks that have a recovery strategy; Because says why not.
func (s Strategy) GoesWith(recovery string) bool {
	return (s.NotWith == "" || s.NotWith != recovery) && (s.OnlyWith == "" || s.OnlyWith == recovery)
}

// Strategies lists the migration strategies.
func Strategies() []Strategy {
	return []Strategy{stopRestart(), pauseMove(), allAtOnce(), asyncRounds(), onDemand(), preCopy(), replicateInput(), externalise()}
}

// Lookup returns the strategy with the given name.
func Lookup(name string) (Strategy, error) {
	var names []string
	for _, s := range Strategies() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Strategy{}, fmt.Errorf("unknown migration strategy %q; there are %v", name, names)
}
