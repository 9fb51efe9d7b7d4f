package core

import "fmt"

// StandbySlot returns the worker slot on which a task's standby begins: the one that its operator names, else the next
// one. A job of one worker has no place for standbys, and gets the primary's.
func (g *Graph) StandbySlot(task int) int {
	t := &g.Tasks[task]
	if places := g.Job.Operators[t.Operator].StandbyPlace; len(places) > 0 {
		return places[t.Index]
	}
	return (t.Slot + 1) % g.Job.Workers
}

// checkStandbys checks where the standbys of the operator's tasks begin; workers is the number of slots.
func (op *OperatorSpec) checkStandbys(workers int) error {
	if len(op.StandbyPlace) == 0 {
		return nil
	}
	if len(op.StandbyPlace) != op.Parallelism {
		return fmt.Errorf("operator %s: %d places of standbys for %d tasks", op.Name, len(op.StandbyPlace), op.Parallelism)
	}
	for i, p := range op.StandbyPlace {
		if p < 0 || p >= workers {
			return fmt.Errorf("operator %s: place %d of a standby, want 0 to %d", op.Name, p, workers-1)
		}
		primary := i % workers
		if len(op.Place) > 0 {
			primary = op.Place[i]
		}
		if p == primary {
			return fmt.Errorf("operator %s: the standby of task %d is on the worker of its primary (place %d), with which it would be lost; want another", op.Name, i, p)
		}
	}
	return nil
}
