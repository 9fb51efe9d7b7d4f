package runner

import (
	"slices"
	"testing"

	"github.com/weir-bench/weir/chaos"
	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/suites/spec"
)

// A fault that waits for a phase happens in that phase of that checkpoint, for its own target, and not before.
func TestPhases(t *testing.T) {
	s, _ := parse(t, tiny)
	tr := &trial{job: buildJob(&s.Cells[0], 1)}
	var err error
	if tr.graph, err = core.BuildGraph(tr.job, operator.Info); err != nil {
		t.Fatal(err)
	}
	count1 := tr.graph.OpTasks[1][1]
	traces := []coord.Trace{
		{Kind: coord.TraceCheckpoint, ID: 2},
		{Kind: coord.TraceSnapshot, ID: 2, Task: count1},
		{Kind: coord.TraceCheckpoint, ID: 3},
		{Kind: coord.TraceCut, ID: 3, Task: count1 - 1},
		{Kind: coord.TraceCut, ID: 3, Task: count1},
		{Kind: coord.TraceSnapshot, ID: 3, Task: count1 - 1},
		{Kind: coord.TraceSnapshot, ID: 3, Task: count1},
		{Kind: coord.TraceMigration},
		{Kind: coord.TraceRound, ID: 7},
		{Kind: coord.TraceRound, ID: 8},
		{Kind: coord.TraceDetected},
		{Kind: coord.TraceRestartEnd},
		{Kind: coord.TraceRestored},
		{Kind: coord.TraceRestored, Node: 4, Task: 1},
		{Kind: coord.TraceReplaying, Node: 4, Task: 1},
		{Kind: coord.TraceStarted, Detail: "region"},
	}
	worker := func(task int) int { return map[int]int{count1: 1}[task] }
	count := spec.Target{Kind: spec.TargetTask, Operator: "count", Task: 1}
	one, two := spec.Target{Kind: spec.TargetWorker, Worker: 1}, spec.Target{Kind: spec.TargetWorker, Worker: 2}
	link := spec.Target{Kind: spec.TargetLink, Worker: 1, Peer: 2}
	for _, c := range []struct {
		on     spec.Trigger
		target spec.Target
		at     int // index of the trace; -1: never
	}{
		{spec.Trigger{Event: "barrier-injected", N: 3}, count, 2},
		{spec.Trigger{Event: "barrier-injected", N: 4}, count, -1},
		{spec.Trigger{Event: "snapshot-taken", N: 3}, count, 4},
		{spec.Trigger{Event: "snapshot-taken", N: 3}, link, 3},
		{spec.Trigger{Event: "snapshot-taken", N: 2}, count, -1},
		{spec.Trigger{Event: "snapshot-acknowledged", N: 3}, count, 6},
		{spec.Trigger{Event: "snapshot-acknowledged", N: 2}, one, 1},
		{spec.Trigger{Event: "snapshot-acknowledged", N: 3}, one, 6},
		{spec.Trigger{Event: "snapshot-acknowledged", N: 3}, two, -1},
		{spec.Trigger{Event: "snapshot-acknowledged", N: 3}, link, 5},
		{spec.Trigger{Event: "migration-began", N: 1}, one, 7},
		{spec.Trigger{Event: "round", N: 2}, one, 9},
		{spec.Trigger{Event: "restoring", N: 1}, one, 11},
		{spec.Trigger{Event: "replaying", N: 1}, one, 12},
		{spec.Trigger{Event: "replaying", N: 2}, one, 14},
		{spec.Trigger{Event: "replaying", N: 3}, one, 15},
		{spec.Trigger{Event: coord.TraceCheckpoint, N: 2}, one, 2},
	} {
		m, err := chaos.NewMachine(&chaos.Schedule{Rules: []chaos.Rule{{Fault: chaos.Fault{Kind: chaos.Kill, Target: chaos.OnNode(1)}, Probability: 1, Trigger: trigger(&c.on, c.target)}}})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(traces, func(x coord.Trace) bool {
			var done []chaos.Action
			for _, e := range tr.chaosEvents(x, worker) {
				done = m.Step(0, e, done)
			}
			return len(done) > 0
		})
		if at != c.at {
			t.Errorf("%+v of %v happens at trace %d, want %d", c.on, c.target, at, c.at)
		}
	}
	for _, p := range phases() {
		if !slices.Contains(Known().Triggers, p.name) {
			t.Errorf("%s is not offered", p.name)
		}
	}
}
