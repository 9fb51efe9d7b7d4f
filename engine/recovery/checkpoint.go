package recovery

// checkpoint is rollback to asynchronous barrier snapshots (Carbone et al. 2015): after a failure all tasks are deployed
// again from the newest complete checkpoint and sources re-read the feed from there. State is exactly-once; an eager sink
// gives the outputs since the checkpoint again, a transactional one does not.
func checkpoint() Strategy {
	return Strategy{
		Name: "checkpoint", Checkpoints: true, Eager: Rollback, Transactional: Precise,
		Doc:   "asynchronous barrier snapshots; on failure all tasks roll back to the newest complete one",
		Price: "a snapshot each interval; everybody re-reads what came since",
		React: func(bool) Reaction { return Restart },
	}
}
