package coord

import (
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// tallied makes a coordinator in the middle of a migration in which tasks 1 and 2 take part in rounds 1 and 2.
func tallied(t *testing.T, now *int64) *Coordinator {
	t.Helper()
	c, err := New(storeJob(func(j *core.Job) { j.Operators[1].Store = "" }), nil, 0, func() int64 { return *now })
	if err != nil {
		t.Fatal(err)
	}
	c.e = &Effects{}
	c.tally = c.newTally()
	for version := uint64(1); version <= 2; version++ {
		c.tally.expect(version, 1)
		c.tally.expect(version, 2)
	}
	return c
}

func (c *Coordinator) reports(version uint64, task int, suspended time.Duration) {
	c.roundReport(&core.Msg{Type: core.MsgRound, ID: version, Task: task, Bytes: 10, Records: 3, Round: &core.RoundReport{Suspended: suspended}})
}

// told returns how long each task was suspended, as far as it was told, and how many reports of rounds were passed on.
func told(t *testing.T, c *Coordinator) (suspended map[int]time.Duration, rounds int) {
	t.Helper()
	suspended = map[int]time.Duration{}
	for _, tr := range c.e.Traces {
		switch tr.Kind {
		case TraceSuspended:
			if _, twice := suspended[tr.Task]; twice {
				t.Errorf("the suspension of task %d is told twice", tr.Task)
			}
			suspended[tr.Task] = tr.Round.Suspended
		case TraceRoundTask:
			if rounds++; tr.Bytes != 10 || tr.Count != 3 {
				t.Errorf("report %+v lost its bytes or its records", tr)
			}
		}
	}
	return suspended, rounds
}

// TestSuspensionsAddUp says that a task's suspension is the sum over the rounds, that the last words come after the end of the
// migration, and that a word counts once.
func TestSuspensionsAddUp(t *testing.T) {
	now := int64(0)
	c := tallied(t, &now)
	const ms = time.Millisecond
	c.reports(1, 1, 5*ms)
	c.reports(1, 1, 5*ms) // said again
	c.reports(7, 1, 5*ms) // of a migration that was rolled back
	c.reports(1, 2, 0)
	c.reports(2, 1, 7*ms)
	c.tally.over = true
	c.tellSuspended(false)
	if s, _ := told(t, c); len(s) != 0 {
		t.Fatalf("%v is told before task 2 has reported", s)
	}
	c.reports(2, 2, 4*ms)
	c.reports(2, 2, 4*ms)
	if s, rounds := told(t, c); len(s) != 2 || s[1] != 12*ms || s[2] != 4*ms || rounds != 4 {
		t.Errorf("%v in %d reports, want 12 and 4 ms in 4", s, rounds)
	}
}

// TestSuspensionOfALostTask says that nobody waits for the word of a place that is gone.
func TestSuspensionOfALostTask(t *testing.T) {
	now := int64(0)
	c := tallied(t, &now)
	c.reports(1, 1, 5*time.Millisecond)
	c.reports(2, 1, 0)
	c.tally.over = true
	c.unreported(2)
	if s, rounds := told(t, c); len(s) != 2 || s[1] != 5*time.Millisecond || s[2] != 0 || rounds != 2 {
		t.Errorf("%v in %d reports, want 5 and 0 ms in 2", s, rounds)
	}
}

// TestSuspensionOfTheWholeJob says that a migration that restarts the job suspends all tasks from the pause on, and that its
// freeze and its install make up that time.
func TestSuspensionOfTheWholeJob(t *testing.T) {
	now := int64(100)
	c := tallied(t, &now)
	c.tally = c.newTally()
	c.tally.pausedNS, c.tally.savedNS = 20, 50
	c.move = &moving{}
	c.move.request.Operator = 1
	c.restarted([]core.Move{{Group: 0, From: 0, To: 1}})
	c.tally.over = true
	c.tellSuspended(false)
	suspended, rounds := map[int]time.Duration{}, 0
	for _, tr := range c.e.Traces {
		if tr.Kind == TraceSuspended {
			suspended[tr.Task] = tr.Round.Suspended
		} else if r := tr.Round; tr.Kind == TraceRoundTask {
			if rounds++; r.Freeze != 30 || r.Install != 50 || r.Freeze+r.Install != r.Suspended {
				t.Errorf("task %d: %+v, want a freeze of 30 and an install of 50 ns", tr.Task, r)
			}
		}
	}
	if len(suspended) != len(c.graph.Tasks) || rounds != 2 {
		t.Errorf("%d of %d tasks are suspended, %d have a report", len(suspended), len(c.graph.Tasks), rounds)
	}
	for task, d := range suspended {
		if d != 80 {
			t.Errorf("task %d was suspended for %d ns, want 80", task, d)
		}
	}
}
