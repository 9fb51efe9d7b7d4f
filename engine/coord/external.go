package coord

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/operator"
)

// checkStores says why a job cannot keep state in external stores as it asks for.
//
// Such state is in no checkpoint and a standby would write it a second time. So nothing but recovery none goes with it: a
// failure starts the job from the first record, in an empty space of the store.
func checkStores(g *core.Graph) error {
	job := &g.Job
	op := external(job)
	if op == nil {
		return nil
	}
	for i := range job.Operators {
		o := &job.Operators[i]
		for _, id := range g.OpTasks[i] {
			if p := g.Protection(id); p.Strategy != core.RecoveryNone {
				return fmt.Errorf("operator %s: recovery %s does not go with the external store of operator %s, as checkpoints and standbys do not hold what is in the store; want none for all operators and tasks", o.Name, p.Strategy, op.Name)
			}
		}
		if o.Store == "" {
			continue
		}
		k, _ := operator.Lookup(o.Kind)
		switch {
		case !k.Keyed:
			return fmt.Errorf("operator %s: an external store for a %s, which has no keyed state", o.Name, o.Kind)
		case k.Blob:
			return fmt.Errorf("operator %s: an external store for a %s, which needs all keys of a key group at once; want an operator whose records need their own key only, such as count", o.Name, o.Kind)
		case o.StoreCacheBytes < 0:
			return fmt.Errorf("operator %s: a cache of %d bytes, want 0 (the default) or more", o.Name, o.StoreCacheBytes)
		}
	}
	if job.Checkpoint > 0 {
		return fmt.Errorf("operator %s: its state is in an external store, which checkpoints do not hold; want no checkpoints", op.Name)
	}
	return nil
}

// external returns the first operator whose state is in an external store, or nil.
func external(job *core.Job) *core.OperatorSpec {
	for i := range job.Operators {
		if job.Operators[i].Store != "" {
			return &job.Operators[i]
		}
	}
	return nil
}

// fitsStore says why a strategy cannot move an operator's key groups from where its state is.
func fitsStore(job *core.Job, op *core.OperatorSpec, s migration.Strategy) error {
	switch {
	case s.External && op.Store == "":
		return fmt.Errorf("%s cannot move operator %s: its state is in its tasks; it needs an external store", s.Name, op.Name)
	case !s.External && op.Store != "":
		return fmt.Errorf("%s cannot move operator %s: its state is in an external store and not in its tasks; use externalise", s.Name, op.Name)
	}
	if x := external(job); x != nil && s.NeedsCheckpoints {
		return fmt.Errorf("%s cannot move operator %s: it needs checkpoints, and the state of operator %s is in an external store, which they do not hold", s.Name, op.Name, x.Name)
	}
	return nil
}
