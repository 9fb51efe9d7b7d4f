package recovery

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
)

// Promise is what a strategy promises of outputs and state.
type Promise string

// The promises, from the weakest to the strongest (after Hwang et al., "High-availability algorithms for distributed
// stream processing", ICDE 2005).
const (
	Gap      Promise = "gap"      // outputs and state may be lost, confined to the outage
	Rollback Promise = "rollback" // nothing is lost and no answer is wrong; outputs may come twice
	Precise  Promise = "precise"  // as if nothing had happened
)

// Reaction is what the coordinator does about a lost task.
type Reaction string

// The reactions.
const (
	Restart Reaction = "restart" // roll the whole job back to the newest complete checkpoint
	Promote Reaction = "promote" // the standby becomes the primary
	Replay  Reaction = "replay"  // a new copy replays from the task's base
	Region  Reaction = "region"  // roll the tasks that are connected with it back to the newest complete checkpoint
	Reopen  Reaction = "reopen"  // a new copy begins empty with what comes next
)

// Situation is what a reaction depends on.
type Situation struct {
	// Scope is that of the task's protection.
	Scope string
	// Standby says that the task has a standby with a base.
	Standby bool
	// Moving says that a migration is under way; Moved that one was since the task's base.
	Moving, Moved bool
	// Stores says that the job keeps state in an external store.
	Stores bool
}

// Strategy describes a fault-tolerance strategy.
type Strategy struct {
	Name string
	// Doc is the mechanism, Price what it costs.
	Doc, Price string
	// Standby says that each task has a second copy on another worker.
	Standby bool
	// Checkpoints says that the strategy needs periodic checkpoints.
	Checkpoints bool
	// Eager and Transactional are what may be promised with each kind of sink, in the widest scope. See Promises.
	Eager, Transactional Promise
	// React decides what to do when a task's node is lost.
	React func(Situation) Reaction
}

// Strategies lists the fault-tolerance strategies.
func Strategies() []Strategy {
	return []Strategy{none(), checkpoint(), active(), passive(), upstream()}
}

// Lookup returns the strategy with the given name; the empty name is none.
func Lookup(name string) (Strategy, error) {
	if name == "" {
		name = core.RecoveryNone
	}
	var names []string
	for _, s := range Strategies() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Strategy{}, fmt.Errorf("unknown recovery strategy %q; there are %v", name, names)
}
