package coord

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
)

func storeJob(change func(*core.Job)) core.Job {
	job := core.Job{ID: "j", Workers: 2, Operators: []core.OperatorSpec{
		{Name: "in", Kind: "source", Parallelism: 1},
		{Name: "count", Kind: "count", Inputs: []string{"in"}, Parallelism: 2, Groups: 8, ValueBytes: 8, Store: "redis://h"},
		{Name: "sum", Kind: "sum", Inputs: []string{"count"}, Parallelism: 2, Groups: 8, ValueBytes: 8, Recovery: "none"},
		{Name: "out", Kind: "sink", Inputs: []string{"sum"}, Parallelism: 1},
	}}
	change(&job)
	return job
}

// TestStoresAreChecked says that what does not go with an external store is refused before anything starts.
func TestStoresAreChecked(t *testing.T) {
	for _, c := range []struct {
		want   string // empty: accepted
		change func(*core.Job)
	}{
		{"", func(*core.Job) {}},
		{"recovery checkpoint does not go with the external store of operator count", func(j *core.Job) { j.Operators[0].Recovery = "checkpoint" }},
		{"recovery active does not go with", func(j *core.Job) { j.Operators[1].Recovery = "active" }},
		{"operator in: an external store for a source", func(j *core.Job) { j.Operators[0].Store = "redis://h" }},
		{"operator sum: an external store for a aggregate, which needs all keys", func(j *core.Job) { j.Operators[2].Kind, j.Operators[2].Store = "aggregate", "redis://h" }},
		{"a cache of -1 bytes", func(j *core.Job) { j.Operators[1].StoreCacheBytes = -1 }},
		{"want no checkpoints", func(j *core.Job) { j.Checkpoint = time.Second }},
	} {
		_, err := New(storeJob(c.change), nil, 0, func() int64 { return 0 })
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// TestStrategyFitsTheState says that a strategy is refused where the state is not what it can move.
func TestStrategyFitsTheState(t *testing.T) {
	c, err := New(storeJob(func(*core.Job) {}), nil, 0, func() int64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	kept, stored := &c.job.Operators[2], &c.job.Operators[1]
	for _, s := range migration.Strategies() {
		if err := c.fits(stored, s); (err == nil) != s.External {
			t.Errorf("%s on an operator with a store: %v", s.Name, err)
		}
		if err := c.fits(kept, s); (err == nil) != (!s.External && !s.NeedsCheckpoints) {
			t.Errorf("%s on an operator beside one with a store: %v", s.Name, err)
		}
	}
}
