package recovery

import (
	"slices"

	"github.com/weir-bench/weir/engine/core"
)

// The kinds of sinks.
const (
	SinkEager         = "eager"         // outputs are visible when they arrive
	SinkTransactional = "transactional" // outputs are visible when a checkpoint that covers them is complete
)

// Guarantee is what a strategy promises in a scope with a kind of sink when one worker is lost at a time. More losses at
// once than the strategy covers end in a rollback of the whole job (trace "fallback"), which promises what checkpoint does
// in scope global.
type Guarantee struct {
	Strategy, Scope, Sink string
	// Output is promised of outputs; State says whether the state holds the effect of every record exactly once.
	Output Promise
	State  bool
	Reason string
}

// Promises lists what may be promised. Code, oracles and documentation share it.
func Promises() []Guarantee {
	const (
		noCopy   = "what the lost task had, and what was under way to it, is nowhere else"
		repeated = "what was given since the checkpoint is given again"
		withheld = "what was given since the checkpoint was not visible yet"
		replayed = "the replay is in the lost task's order, so that its outputs have the numbers they had, and those that have arrived are dropped"
	)
	return []Guarantee{
		{core.RecoveryNone, "", SinkEager, Gap, false, noCopy},
		{core.RecoveryNone, "", SinkTransactional, Gap, false, noCopy},
		{core.RecoveryCheckpoint, core.ScopeGlobal, SinkEager, Rollback, true, repeated},
		{core.RecoveryCheckpoint, core.ScopeGlobal, SinkTransactional, Precise, true, withheld},
		{core.RecoveryCheckpoint, core.ScopeRegion, SinkEager, Rollback, true, repeated},
		{core.RecoveryCheckpoint, core.ScopeRegion, SinkTransactional, Precise, true, withheld},
		{core.RecoveryCheckpoint, core.ScopeTask, SinkEager, Precise, true, replayed},
		{core.RecoveryCheckpoint, core.ScopeTask, SinkTransactional, Precise, true, replayed},
		{core.RecoveryActive, "", SinkEager, Precise, true, replayed},
		{core.RecoveryActive, "", SinkTransactional, Precise, true, replayed},
		{core.RecoveryPassive, "", SinkEager, Precise, true, replayed},
		{core.RecoveryPassive, "", SinkTransactional, Precise, true, replayed},
		{core.RecoveryUpstream, "", SinkEager, Precise, true, replayed},
		{core.RecoveryUpstream, "", SinkTransactional, Precise, true, replayed},
	}
}

// Of returns what is promised of a task with the given protection to a kind of sink.
func Of(p core.Protection, sink string) Guarantee {
	for _, g := range Promises() {
		if g.Strategy == p.Strategy && g.Scope == p.Scope && g.Sink == sink {
			return g
		}
	}
	panic("recovery: no promise for " + p.Strategy + " " + p.Scope + " " + sink)
}

// Weakest returns what a job promises: of its tasks' guarantees with the sinks that their loss may reach, the weakest. With
// state in an external store it is Rollback: the job starts from the first record.
func Weakest(g *core.Graph) Guarantee {
	for i := range g.Job.Operators {
		if g.Job.Operators[i].Store != "" {
			return Guarantee{core.RecoveryNone, "", SinkEager, Rollback, true, "the whole job starts again, in an empty space of the store"}
		}
	}
	order := []Promise{Gap, Rollback, Precise}
	weakest := Guarantee{Output: Precise, State: true}
	for _, t := range g.Tasks {
		p := g.Protection(t.ID)
		near := g.Connected(t.ID)
		for _, c := range g.Channels {
			if c.Kind != core.ChanOut || p.Scope != core.ScopeGlobal && !near[c.From] {
				continue
			}
			sink := SinkEager
			if g.Job.Operators[g.Tasks[c.From].Operator].Transactional {
				sink = SinkTransactional
			}
			of := Of(p, sink)
			if weakest.Strategy == "" || slices.Index(order, of.Output) < slices.Index(order, weakest.Output) {
				of.State = of.State && weakest.State
				weakest = of
			}
			weakest.State = weakest.State && of.State
		}
	}
	return weakest
}
