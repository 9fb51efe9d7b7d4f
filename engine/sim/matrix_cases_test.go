package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/task"
)

// roundRobin is a feed in which each key comes in turn, at a steady pace.
type roundRobin struct {
	keys    uint64
	everyNS int64
}

func (f roundRobin) Fill(dst *core.Columns, split, splits int, from uint64, n int) {
	for j := from; j < from+uint64(n); j++ {
		i := j*uint64(splits) + uint64(split)
		dst.Keys = append(dst.Keys, core.Mix64(i%f.keys+1))
		dst.Times = append(dst.Times, int64(i)*f.everyNS)
	}
}

// caseRun is a count over a round-robin feed that is migrated under way.
type caseRun struct {
	stage
	worst time.Duration // delay of an answer
	got   map[uint64]uint64
}

// newCase sets up a job of so many tasks, one a worker.
func newCase(t *testing.T, m migration.Strategy, f roundRobin, records int64, tasks int) *caseRun {
	t.Helper()
	rec := "none"
	if !m.External {
		rec = "checkpoint"
	}
	c := &caseRun{got: map[uint64]uint64{}}
	c.stage = stage{&cell{Cell: Cell{Seed: 4, Operator: "count", Migration: m.Name, Recovery: rec}, external: m.External, strat: m,
		w: newWorld(4), feed: f, records: records, everyNS: f.everyNS}, t}
	strat, err := c.recovery()
	if err != nil {
		t.Fatal(err)
	}
	job := c.job(strat)
	job.Workers = tasks
	job.Lease = 5 * time.Second // a slow worker is no lost one
	if job.Checkpoint > 0 {
		job.Checkpoint = max(job.Checkpoint, time.Duration(10*f.everyNS))
	}
	for i := range job.Operators {
		job.Operators[i].Place = nil
	}
	job.Operators[cellOp].Parallelism, job.Operators[cellOp].Groups = tasks, 32
	if err := c.start(job); err != nil {
		t.Fatal(err)
	}
	c.before = slices.Clone(c.w.coord.Routes(cellOp).Task)
	collect := c.w.edge.Collect
	c.w.edge.Collect = func(o task.Output) {
		for i, k := range o.Columns.Keys {
			c.got[k] = max(c.got[k], uint64(o.Columns.Vals[i]))
			c.worst = max(c.worst, time.Duration(c.w.nowNS-startNS-o.Columns.Times[i]))
		}
		collect(o)
	}
	return c
}

// answers says whether each key has come to n, by all counts from 1 on, once each and in order.
func (c *caseRun) answers(keys uint64, n int64, promise recovery.Promise) {
	c.t.Helper()
	want := map[row]int{}
	for k := uint64(1); k <= keys; k++ {
		for v := int64(1); v <= n; v++ {
			want[row{key: core.Mix64(k), at: v}] = 1
		}
		if got := c.got[core.Mix64(k)]; got != uint64(n) {
			c.t.Errorf("key %d came to %d, want %d", k, got, n)
		}
	}
	if err := c.rows.judge(want, promise); err != nil {
		c.t.Error(err)
	}
}

// onto moves what the tasks from n on own to the first n ones, or spreads it over n.
func onto(table []int32, n int) (moves []core.Move) {
	for g, owner := range table {
		if to := g % n; int(owner) != to && (int(owner) >= n || n == 3) {
			moves = append(moves, core.Move{Group: uint32(g), From: int(owner), To: to})
		}
	}
	return moves
}

// TestScaleInAndOut: a count of 40 keys, 100 records each, on 4 tasks; at 25, 50 and 75 % of the feed, all key groups go to
// two tasks, to one, and then to three. Every key comes to exactly 100: what a task gets is added to what it has (FLINK-4731).
func TestScaleInAndOut(t *testing.T) {
	t.Parallel()
	for _, m := range migration.Strategies() {
		t.Run(m.Name, func(t *testing.T) {
			const records = 4000
			c := newCase(t, m, roundRobin{40, 120_000}, records, 4)
			for i, tasks := range []int{2, 1, 3} {
				at := startNS + int64(i+1)*records/4*c.everyNS
				c.wait("its turn", func() bool { return c.w.nowNS >= at && c.w.coord.Running() })
				c.move(onto(c.w.coord.Routes(cellOp).Task, tasks))
				for _, owner := range c.w.coord.Routes(cellOp).Task {
					if int(owner) >= tasks {
						t.Fatalf("task %d owns key groups, want %d tasks to own all", owner, tasks)
					}
				}
			}
			if c.w.edge.Ended() {
				t.Fatal("the feed ended before the last move")
			}
			c.wait("the end", c.w.edge.Ended)
			c.answers(40, 100, recovery.Precise)
		})
	}
}

// slowLoad begins a migration of half of the keys after half of a feed of 9 records a second. Its state takes 2 s: the link
// between the two workers is down, or where state does not come by it, the worker that gets it stands still.
func slowLoad(t *testing.T, m migration.Strategy) (*caseRun, []core.Move) {
	t.Helper()
	c := newCase(t, m, roundRobin{10, int64(time.Second) / 9}, 200, 2)
	at := startNS + 100*c.everyNS
	c.wait("its turn", func() bool { return c.w.nowNS >= at && c.w.coord.Running() })
	moves := allOf(c.w.coord.Routes(cellOp).Task, slotSource, slotTarget)
	if err := c.migrate(moves); err != nil {
		t.Fatal(err)
	}
	if source, target := c.w.coord.NodeOfSlot(slotSource), c.w.coord.NodeOfSlot(slotTarget); m.NeedsCheckpoints {
		c.w.freeze(target, 2000*ms) // its state comes from the disk
	} else {
		c.w.partition(source, target, 2000*ms)
	}
	return c, moves
}

// TestSlowLoad: what comes while state loads waits and is not lost, and not longer than the load takes.
func TestSlowLoad(t *testing.T) {
	t.Parallel()
	for _, m := range migration.Strategies() {
		t.Run(m.Name, func(t *testing.T) {
			c, moves := slowLoad(t, m)
			c.wait("the end of the migration", func() bool { return !c.w.coord.Migrating() && c.w.coord.Running() })
			if took := c.w.nowNS - startNS - 100*c.everyNS; took < 1800*ms {
				t.Errorf("the migration took %v, want about 2s", time.Duration(took))
			}
			c.wait("the end", c.w.edge.Ended)
			c.answers(10, 20, recovery.Precise)
			if err := c.tableIs(apply(c.before, moves)); err != nil {
				t.Error(err)
			}
			if c.worst < 500*time.Millisecond || c.worst > 3*time.Second {
				t.Errorf("the longest delay is %v, want about 2s", c.worst)
			}
		})
	}
}

// TestFailedLoad: the getting worker dies while state loads. The old owner keeps the key groups.
func TestFailedLoad(t *testing.T) {
	t.Parallel()
	for _, m := range migration.Strategies() {
		t.Run(m.Name, func(t *testing.T) {
			c, _ := slowLoad(t, m)
			half := c.w.nowNS + 1000*ms
			c.wait("the middle", func() bool { return c.w.nowNS >= half })
			if !c.w.coord.Migrating() {
				t.Fatal("the migration is over already")
			}
			c.w.crash(c.w.coord.NodeOfSlot(slotTarget))
			c.wait("the end", c.w.edge.Ended)
			if !c.w.traced(coord.TraceMigrationLost) {
				t.Error("the migration was not rolled back")
			}
			if err := c.tableIs(c.before); err != nil {
				t.Error(err)
			}
			c.answers(10, 20, recovery.Rollback)
		})
	}
}
