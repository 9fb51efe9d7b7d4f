package runner

import (
	"strings"
	"testing"

	"github.com/weir-bench/weir/suites/spec"
)

const moving = `name: moving
job:
  workers: 3
  slots: 8
  operators:
    - {name: in, kind: source}
    - {name: count, kind: count, inputs: [in], parallelism: 2, keyGroups: 64}
    - {name: out, kind: sink, inputs: [count]}
workload: {kind: uniform, keys: 1000, rate: 5000/s}
checkpoint: {interval: 1s}
cells:
  - name: a
    migration: {strategy: on-demand, share: 0.5}
    recovery:
      strategy: passive
      overrides:
        - {operator: in, strategy: active}
        - {operator: count, task: 1, strategy: passive}
`

// TestMovesGoWithTheRecovery says that a suite is refused when a task of the operator that is moved has a recovery with
// which the migration cannot keep its promise, wherever that recovery is named; the message shows where.
func TestMovesGoWithTheRecovery(t *testing.T) {
	const why = "is protected by active: the order of the chunks depends on when fetches arrive, which a standby cannot repeat; use another recovery for it, or another migration strategy"
	for _, c := range []struct {
		name     string
		old, new string
		want     string // empty: accepted
	}{
		{"standbys elsewhere", "", "", ""},
		{"the cell's", "strategy: passive\n      overrides:\n        - {operator: in, strategy: active}\n        - {operator: count, task: 1, strategy: passive}", "strategy: active",
			"t.yaml:13:27: cells.a.migration.strategy: on-demand cannot move operator count, whose task count[0] " + why},
		{"an operator's", "operator: in,", "operator: count,",
			"t.yaml:17:39: cells.a.recovery.overrides[0].strategy: on-demand cannot move operator count, whose task count[0] " + why},
		{"a task's", "task: 1, strategy: passive", "task: 1, strategy: active",
			"t.yaml:18:48: cells.a.recovery.overrides[1].strategy: on-demand cannot move operator count, whose task count[1] " + why},
		{"a task's, and another migration", "on-demand, share: 0.5}\n    recovery:\n      strategy: passive", "async-rounds, share: 0.5}\n    recovery:\n      strategy: active", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := spec.Parse("t.yaml", []byte(strings.Replace(moving, c.old, c.new, 1)), spec.Options{Known: Known()})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || err.Error() != c.want):
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestMovesGoWithTheOperator says that a suite is refused when the operator that is moved goes by event time and the
// migration cannot do that.
func TestMovesGoWithTheOperator(t *testing.T) {
	const text = `name: timed
job: {workers: 2, query: {name: ysb}}
workload: {kind: ysb, rate: 5000/s}
cells: [{name: a, migration: {strategy: replicate-input, share: 0.5}}]
`
	_, err := spec.Parse("t.yaml", []byte(text), spec.Options{Known: Known()})
	const want = "t.yaml:4:41: cells.a.migration.strategy: replicate-input cannot move operator "
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "does not go by event time; use another migration strategy") {
		t.Errorf("got %v, want %s…", err, want)
	}
}

// TestFaultsWaitForWhatHappens says that a fault which waits for a migration or a checkpoint in a cell that has none is
// refused, since its trial could never be judged.
func TestFaultsWaitForWhatHappens(t *testing.T) {
	const head = `name: waits
job: {workers: 2, operators: [{name: in, kind: source}, {name: n, kind: count, inputs: [in], parallelism: 2}, {name: out, kind: sink, inputs: [n]}]}
workload: {kind: uniform, keys: 1000, rate: 5000/s}
`
	for _, c := range []struct{ cell, want string }{
		{"{name: a, recovery: active, migration: {strategy: async-rounds}, faults: [{kind: kill, target: worker 2, on: round 2}]}", ""},
		{"{name: a, recovery: checkpoint, checkpoint: {interval: 1s}, faults: [{kind: kill, target: worker 2, on: barrier-injected 3}]}", ""},
		{"{name: a, recovery: active, migration: {strategy: stop-restart}, faults: [{kind: kill, target: worker 2, on: snapshot-taken 1}]}", ""},
		{"{name: a, recovery: active, faults: [{kind: kill, target: worker 1}, {kind: kill, target: worker 2, on: round 2}]}",
			"t.yaml:4:113: cells.a.faults[1].on: round never happens, as the cell has no migration; add 'migration: {strategy: NAME}'"},
		{"{name: a, recovery: active, migration: {strategy: none}, faults: [{kind: kill, target: worker 2, on: migration-end 1}]}",
			"t.yaml:4:110: cells.a.faults[0].on: migration-end never happens, as the cell has no migration; add 'migration: {strategy: NAME}'"},
		{"{name: a, recovery: active, migration: {strategy: pre-copy}, faults: [{kind: kill, target: worker 2, on: snapshot-taken 1}]}",
			"t.yaml:4:114: cells.a.faults[0].on: snapshot-taken never happens, as the cell has no checkpoints; set checkpoint.interval, such as 1s"},
	} {
		_, err := spec.Parse("t.yaml", []byte(head+"cells: ["+c.cell+"]\n"), spec.Options{Known: Known()})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.cell, err)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
