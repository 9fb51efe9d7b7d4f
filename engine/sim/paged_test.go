package sim

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/state/pebble"
)

// onDisk puts a job's keyed state on simulated disks.
func onDisk(c JobConfig) JobConfig {
	c.Job.Operators = append([]core.OperatorSpec(nil), c.Job.Operators...)
	c.Job.Operators[1].Backend, c.Job.Operators[1].StoreCacheBytes = core.BackendPebble, 1
	c.OpenState = func(spec *state.PagedSpec) (state.Paged, error) {
		spec.Steady = true
		return pebble.Open(vfs.NewMem(), "state", spec)
	}
	return c
}

// countJob has more state than its memory has room for.
func countJob(seed uint64) JobConfig {
	c := sessionJob(seed)
	count := core.OperatorSpec{Name: "count", Kind: "count", Parallelism: 2, Groups: 40, ValueBytes: 1200, Inputs: []string{"in"}}
	c.Job.Operators[0].Params = nil
	c.Job.Operators[1], c.Job.Operators[2].Inputs = count, []string{"count"}
	c.Feed = sameDue{feed{keys: 900, seed: seed}}
	return c
}

// sameDue is a feed whose records are due at once: which of a key's records gets which count depends on the order in
// which they come, and must not show.
type sameDue struct{ feed }

func (f sameDue) Fill(dst *core.Columns, split, splits int, from uint64, n int) {
	f.feed.Fill(dst, split, splits, from, n)
	for i := range n {
		dst.Times[len(dst.Times)-1-i] = 0
	}
}

// TestStateOnDisk says that it makes no difference where the state is: through crashes, migrations and chains of
// checkpoints.
func TestStateOnDisk(t *testing.T) {
	for name, job := range map[string]func(uint64) JobConfig{"session": sessionJob, "count": countJob} {
		for seed := uint64(1); seed <= 4; seed++ {
			c := job(seed)
			want := rows(t, c)
			c = onDisk(c)
			c.Faults, c.Kinds = int(seed%3), []string{"crash"}
			c.Migrations, c.Migration = 2, []string{"async-rounds", "pre-copy", "stop-restart", "on-demand"}[seed%4]
			if name == "session" && c.Migration == "pre-copy" {
				c.Migration = "all-at-once"
			}
			if got := rows(t, c); got != want {
				t.Errorf("%s, seed %d: state on disk changes the output", name, seed)
			}
		}
	}
}

// TestTables keeps state in checkpoints as tables, through crashes, damage and full disks, and the same run gives the same
// traces. It must catch a retention that removes tables which a kept checkpoint names.
func TestTables(t *testing.T) {
	caught := false
	for seed := uint64(1); seed <= 6; seed++ {
		c := countJob(seed)
		want := rows(t, c)
		c = onDisk(c)
		c.Job.Incremental = true
		c.Faults, c.Kinds = 3, []string{"crash", "disk-full", "crash"}
		c.Migrations, c.Migration = int(seed%2), "stop-restart"
		if got := rows(t, c); got != want {
			t.Errorf("seed %d: checkpoints by tables change the output", seed)
		}
		a, errA := RunJob(c)
		b, errB := RunJob(c)
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: the same run differs: %v, %v", seed, errA, errB)
		}
		c.Job.Bugs = []string{"retain-forgets-tables"}
		res, err := RunJob(c)
		caught = caught || err != nil || fmt.Sprint(res.Rows) != fmt.Sprint(a.Rows)
	}
	if !caught {
		t.Error("tables that a kept checkpoint names are removed, and nothing shows it")
	}
}
