package migration

// stopRestart is what engines without live migration do: stop the sources, write a checkpoint of everything, stop all
// tasks, start them with the new routes from the checkpoint. Everybody waits for everything (Flink: stop with
// savepoint, then resume).
func stopRestart() Strategy {
	return Strategy{
		Name: "stop-restart", NeedsCheckpoints: true,
		Doc:   "stop sources, barrier, snapshot all, redeploy with the new routes, restore, go on",
		Price: "a pause for everybody, as long as writing and reading the whole state",
		New:   func(r Request) Machine { return &stopRestartMachine{r} },
	}
}

type stopRestartMachine struct{ r Request }

func (m *stopRestartMachine) Step(ev Event, _ int64) []Action {
	switch ev {
	case Begin:
		return []Action{{Do: Pause}, {Do: Checkpoint}}
	case Savepoint:
		return []Action{{Do: Redeploy, Moves: m.r.Moves}}
	case Redeployed:
		return []Action{{Do: Finish}}
	}
	return nil
}
