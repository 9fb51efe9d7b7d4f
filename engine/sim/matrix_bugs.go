package sim

// MatrixCheck is a named part of the crash matrix. Each bug planted in migrations that faults of trials do not find names the
// one that must.
type MatrixCheck struct {
	Name, Doc string
	// Part is what it runs.
	Part MatrixOptions
}

// MatrixChecks lists the named parts of the matrix.
func MatrixChecks() []MatrixCheck {
	return []MatrixCheck{
		{"one-owner", "rounds under broken links: each key group has one owner, and nobody else anything of it",
			MatrixOptions{First: 1, Seeds: 2, Migration: "async-rounds", Recovery: "none", Operator: "count", Victims: []string{"link", "source-pause"}}},
		{"never-half", "a crash at any step: the migration is rolled back whole or completed, and can be done again",
			MatrixOptions{First: 1, Seeds: 3, Migration: "async-rounds", Recovery: "checkpoint", Operator: "count", Victims: []string{"source", "target", "third"}}},
		{"take-over-in-a-round", "standbys take over at any step of a round, which goes on",
			MatrixOptions{First: 1, Seeds: 4, Migration: "async-rounds", Recovery: "active", Operator: "count", Victims: []string{"source", "target"}}},
		{"one-at-a-time", "a second migration is refused at any step of a first one",
			MatrixOptions{First: 1, Seeds: 1, Recovery: "none", Operator: "count", Victims: []string{"second-migration"}}},
		{"level-before-switch", "a task that works alongside takes over when it is level",
			MatrixOptions{First: 1, Seeds: 3, Migration: "replicate-input", Recovery: "none", Victims: []string{"link", "target-controller"}}},
		{"order-of-what-waited", "records that waited come before those that came later",
			MatrixOptions{First: 1, Seeds: 3, Migration: "all-at-once", Recovery: "none", Operator: "count", Victims: []string{"link", "source-pause"}}},
		{"windows-move", "open windows move with what closes them",
			MatrixOptions{First: 1, Seeds: 2, Migration: "all-at-once", Recovery: "none", Operator: "windows", Victims: []string{"link"}}},
		{"checkpoints-between-rounds", "a checkpoint holds all key groups",
			MatrixOptions{First: 3, Seeds: 4, Migration: "async-rounds", Recovery: "checkpoint", Operator: "count", Victims: []string{"third", "source"}}},
	}
}

// MatrixBugs lists the bugs planted in migrations that the matrix must find.
func MatrixBugs() []Bug {
	return []Bug{
		{"giver-keeps-groups", "one-owner", "the giving task goes on owning what it has given away"},
		{"giver-keeps-state", "one-owner", "the giving task keeps the state of what it has given away"},
		{"rollback-keeps-routes", "never-half", "a failure in the middle of a migration leaves the new route table"},
		{"any-word-closes-a-round", "take-over-in-a-round", "the word of an earlier round closes the one under way"},
		{"word-dies-with-primary", "take-over-in-a-round", "a round whose primary died before it said that it is done never ends"},
		{"done-ahead-of-order", "take-over-in-a-round", "the word of a finished round arrives ahead of the order that led to it"},
		{"standby-skips-chunks", "take-over-in-a-round", "a standby does not get the state that its primary gets"},
		{"two-at-once", "one-at-a-time", "a second migration begins while one is under way"},
		{"switch-before-level", "level-before-switch", "the task that works alongside takes over before its copy is whole"},
		{"input-overtakes-held", "order-of-what-waited", "records that come later overtake those that waited for their state"},
		{"timers-stay", "windows-move", "windows move without what says when they close"},
		{"checkpoint-in-a-round", "checkpoints-between-rounds", "a checkpoint begins while state is on its way and belongs to nobody"},
	}
}

// Run runs the check with planted bugs. It returns the first cell that breaks a promise with what is wrong, or how many kept
// theirs.
func (m MatrixCheck) Run(bugs ...string) (found *Cell, violation string, kept int, err error) {
	o := m.Part
	o.Bugs = bugs
	err = Matrix(o, func(c Cell, r *CellResult) bool {
		if r.Violation != "" {
			found, violation = &c, r.Violation
			return false
		}
		kept++
		return true
	})
	return found, violation, kept, err
}
