package sim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

// sessionJob makes state that comes and goes: a session is deleted when it is over. If it came back, it would be over
// once more.
func sessionJob(seed uint64) JobConfig {
	op := func(name, kind string, par int, inputs ...string) core.OperatorSpec {
		return core.OperatorSpec{Name: name, Kind: kind, Parallelism: par, Inputs: inputs}
	}
	in, session := op("in", "source", 2), op("session", "session", 2, "in")
	in.Params = map[string]string{"time": "due", "step": "1ms"}
	session.Groups, session.Params = 12, map[string]string{"time": "due", "gap": "3ms", "function": "count"}
	return JobConfig{Seed: seed, Feed: feed{keys: 90, seed: seed}, Records: 2500, Transactional: true, Recovery: "checkpoint",
		Job: core.Job{Workers: 2, Incremental: true, Unaligned: seed%2 == 0, Operators: []core.OperatorSpec{in, session, op("out", "sink", 1, "session")}}}
}

// rows runs a job and returns its output, sorted.
func rows(t *testing.T, c JobConfig) string {
	t.Helper()
	res, err := RunJob(c)
	if err != nil {
		t.Fatalf("seed %d: %v", c.Seed, err)
	}
	slices.SortFunc(res.Rows, func(a, b JobRow) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Payload, b.Payload), cmp.Compare(a.Val, b.Val))
	})
	return fmt.Sprint(res.Rows)
}

// TestDeletedKeysStayDeleted restores sessions from chains of checkpoints after crashes; it must catch a restore that does
// not delete again what was deleted.
func TestDeletedKeysStayDeleted(t *testing.T) {
	caught := false
	for seed := uint64(1); seed <= 12; seed++ {
		c := sessionJob(seed)
		want := rows(t, c)
		c.Faults, c.Kinds = 3, []string{"crash"}
		if got := rows(t, c); got != want {
			t.Errorf("seed %d: crashes change the output:\n%s\nwant\n%s", seed, got, want)
		}
		c.Job.Bugs = []string{"deleted-keys-resurrect"}
		caught = caught || rows(t, c) != want
	}
	if !caught {
		t.Error("deleted keys that come back change nothing")
	}
}
