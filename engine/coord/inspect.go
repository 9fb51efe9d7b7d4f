package coord

// Step says where a migration under way stands, for worlds that stop it at each step.
type Step struct {
	Round, Copies int
	// Waiting counts the tasks that have not said that the round or the copy is done.
	Waiting int
	// Copying says that a copy is waited for, Redeploying that all tasks start anew, Deferred that a pending checkpoint
	// is waited for first.
	Copying, Redeploying, Deferred bool
	// Phase is that of the job, Ready how many workers have deployed it.
	Phase, Ready int
	// Savepoint says that a checkpoint is under way for the migration, Durable how many tasks' parts of it are written.
	Savepoint bool
	Durable   int
}

// MoveStep returns where the migration under way stands; ok is false when there is none.
func (c *Coordinator) MoveStep() (s Step, ok bool) {
	m := c.move
	if m == nil {
		return s, false
	}
	s = Step{Round: m.round, Copies: int(m.copies), Waiting: len(m.waiting), Copying: m.copying, Redeploying: m.redeploying,
		Deferred: m.wants != nil || m.wantSave, Phase: int(c.phase), Ready: len(c.ready)}
	if p := c.checkpoints.pending; p != nil && p.savepoint {
		s.Savepoint, s.Durable = true, len(p.acked)
	}
	return s, true
}
