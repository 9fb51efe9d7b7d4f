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
		{"operator count: recovery checkpoint does not go with", func(j *core.Job) { j.Operators[1].TaskRecovery = []string{"", "checkpoint"} }},
		{"operator in: recovery upstream does not go with", func(j *core.Job) { j.Operators[0].Recovery = "upstream" }},
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
	const stored, kept = 1, 2
	for _, s := range migration.Strategies() {
		if err := Fits(c.graph, stored, s); (err == nil) != s.External {
			t.Errorf("%s on an operator with a store: %v", s.Name, err)
		}
		if err := Fits(c.graph, kept, s); (err == nil) != (!s.External && !s.NeedsCheckpoints) {
			t.Errorf("%s on an operator beside one with a store: %v", s.Name, err)
		}
	}
}

// TestStrategyFitsTheRecovery says that one task with a recovery that a strategy cannot be combined with is enough for a
// refusal, wherever the recovery was named, and that the tasks of other operators do not matter.
func TestStrategyFitsTheRecovery(t *testing.T) {
	for _, c := range []struct {
		migration, recovery string
		tasks               []string // of the operator that is moved
		beside              string   // of the operators beside it
		want                string   // empty: accepted
	}{
		{"on-demand", "passive", nil, "active", ""},
		{"on-demand", "active", []string{"passive", "checkpoint"}, "active", ""},
		{"on-demand", "active", nil, "active", "on-demand cannot move operator count, whose task count[0] is protected by active: the order of the chunks"},
		{"on-demand", "passive", []string{"", "active"}, "passive", "whose task count[1] is protected by active"},
		{"replicate-input", "checkpoint", []string{"active", ""}, "checkpoint", "replicate-input cannot move operator count, whose task count[0] is protected by active"},
		{"async-rounds", "checkpoint", []string{"active", ""}, "checkpoint", ""},
	} {
		job := storeJob(func(j *core.Job) {
			for i := range j.Operators {
				j.Operators[i].Recovery = c.beside
			}
			j.Operators[1].Store, j.Operators[1].Recovery, j.Operators[1].TaskRecovery = "", c.recovery, c.tasks
			j.Checkpoint = time.Second
		})
		co, err := New(job, nil, 0, func() int64 { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		s, err := migration.Lookup(c.migration)
		if err != nil {
			t.Fatal(err)
		}
		err = Fits(co.graph, 1, s)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s over %s %v: got %v, want %q", c.migration, c.recovery, c.tasks, err, c.want)
		}
	}
}
