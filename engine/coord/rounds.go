package coord

import (
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// tally is what the tasks report of a migration's rounds. It lasts beyond the migration: records that waited for the last
// state are worked on after it.
type tally struct {
	open      map[[2]uint64]bool // round and task that have not reported
	suspended []time.Duration    // by task
	concerned []bool             // by task
	over      bool
	pausedNS  int64 // when the sources were paused and the savepoint was complete, of a migration that restarts the job
	savedNS   int64
}

func (c *Coordinator) newTally() *tally {
	n := len(c.graph.Tasks)
	return &tally{open: map[[2]uint64]bool{}, suspended: make([]time.Duration, n), concerned: make([]bool, n)}
}

// expect says that a task will report of a round.
func (t *tally) expect(version uint64, task int) {
	t.open[[2]uint64{version, uint64(task)}], t.concerned[task] = true, true
}

// roundReport takes what a task reports of its part in a round.
func (c *Coordinator) roundReport(m *core.Msg) {
	if c.tally == nil || m.Round == nil || !c.tally.open[[2]uint64{m.ID, uint64(m.Task)}] {
		return // of a migration that was rolled back
	}
	delete(c.tally.open, [2]uint64{m.ID, uint64(m.Task)})
	c.tally.suspended[m.Task] += m.Round.Suspended
	c.trace(TraceRoundTask, Trace{Task: m.Task, ID: m.ID, Bytes: m.Bytes, Count: m.Records, Round: m.Round})
	c.tellSuspended(false)
}

// tellSuspended tells for how long each task was suspended, when the migration is over and all have reported, or at once.
func (c *Coordinator) tellSuspended(now bool) {
	t := c.tally
	if t == nil || !now && (!t.over || len(t.open) > 0) {
		return
	}
	c.tally = nil
	for id, concerned := range t.concerned {
		if concerned {
			c.trace(TraceSuspended, Trace{Task: id, Round: &core.RoundReport{Suspended: t.suspended[id]}})
		}
	}
}

// unreported says that a task's old place will not report any more.
func (c *Coordinator) unreported(task int) {
	if c.tally == nil {
		return
	}
	for key := range c.tally.open { // deletes only: the order does not matter
		if int(key[1]) == task {
			delete(c.tally.open, key)
		}
	}
	c.tellSuspended(false)
}

// restarted accounts for a migration that stopped the whole job: its tasks were suspended from the pause of the sources on;
// they waited for the savepoint, and then for the restore.
func (c *Coordinator) restarted(moves []core.Move) {
	t, now := c.tally, c.Clock()
	if t == nil || t.pausedNS == 0 {
		return
	}
	ids := c.graph.OpTasks[c.move.request.Operator]
	moved := make([]bool, len(c.graph.Tasks))
	for _, mv := range moves {
		moved[ids[mv.From]], moved[ids[mv.To]] = true, true
	}
	for id := range c.graph.Tasks {
		t.concerned[id], t.suspended[id] = true, time.Duration(now-t.pausedNS)
		if moved[id] {
			c.trace(TraceRoundTask, Trace{Task: id, ID: c.routes[c.move.request.Operator].Version, Round: &core.RoundReport{
				Freeze: time.Duration(t.savedNS - t.pausedNS), Install: time.Duration(now - t.savedNS), Suspended: t.suspended[id]}})
		}
	}
}
