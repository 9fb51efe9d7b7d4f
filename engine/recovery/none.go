package recovery

// none protects nothing: a failure starts the job again from the beginning of the feed. It is the control of runs
// without faults.
func none() Strategy {
	return Strategy{
		Name: "none", Eager: Rollback, Transactional: Rollback,
		Doc:   "nothing is kept; after a failure the job starts again from the first record",
		Price: "all work is done again",
		React: func(bool) Reaction { return Restart },
	}
}
