package sim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
)

// windowJob sums by windows, with the given protection of all operators.
func windowJob(seed uint64, recovery string) JobConfig {
	op := func(name, kind string, par int, inputs ...string) core.OperatorSpec {
		return core.OperatorSpec{Name: name, Kind: kind, Parallelism: par, Inputs: inputs}
	}
	in, windows := op("in", "source", 2), op("windows", []string{"tumbling", "sliding"}[seed%2], 2, "in")
	in.Params = map[string]string{"time": "due", "step": "1ms"}
	windows.Groups, windows.Params = 12, map[string]string{"time": "due", "size": "20ms", "function": "count"}
	if windows.Kind == "sliding" {
		windows.Params["slide"] = "5ms"
	}
	return JobConfig{Seed: seed, Feed: feed{keys: 40, seed: seed}, Records: 2500, Recovery: recovery,
		Job: core.Job{Workers: 3, Ship: 30 * time.Millisecond, Operators: []core.OperatorSpec{in, windows, op("out", "sink", 1, "windows")}}}
}

// windowRows runs a job and returns its output, sorted, and whether lost tasks were replaced alone.
func windowRows(t *testing.T, c JobConfig) (rows string, alone bool) {
	t.Helper()
	res, err := RunJob(c)
	if err != nil {
		return err.Error(), false
	}
	slices.SortFunc(res.Rows, func(a, b JobRow) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Payload, b.Payload), cmp.Compare(a.Val, b.Val))
	})
	whole := slices.ContainsFunc(res.Traces, func(tr coord.Trace) bool { return tr.Kind == coord.TraceFallback })
	lost := slices.ContainsFunc(res.Traces, func(tr coord.Trace) bool {
		return tr.Kind == coord.TraceTakenOver || tr.Kind == coord.TracePromoted
	})
	return fmt.Sprint(res.Late, res.Rows), lost && !whole
}

// TestWindowsComeBack loses a worker of a job that works by windows, which is protected without checkpoints or by ones in
// scope task: the output and the count of late records are those of a run without a fault.
func TestWindowsComeBack(t *testing.T) {
	for _, recovery := range []string{core.RecoveryUpstream, core.RecoveryPassive, core.RecoveryActive, "checkpoint:task"} {
		alone := 0
		for seed := uint64(1); seed <= 6; seed++ {
			c := windowJob(seed, recovery)
			want, _ := windowRows(t, c)
			c.Faults, c.Kinds = 1, []string{"crash"}
			got, ok := windowRows(t, c)
			if got != want {
				t.Errorf("%s, seed %d: a crash changes the output", recovery, seed)
			}
			if ok {
				alone++
			}
		}
		if alone < 2 {
			t.Errorf("%s: lost tasks were replaced alone in %d of 6 runs", recovery, alone)
		}
	}
}

// TestBasesThatAreNotWhole says that a base from which something is missing shows in the output.
func TestBasesThatAreNotWhole(t *testing.T) {
	for _, b := range []struct {
		bug, recovery string
		known         uint64 // the first seed to try
	}{{"forgets-open-window", core.RecoveryUpstream, 13}, {"base-without-flow", core.RecoveryPassive, 5}} {
		caught := false
		for seed := b.known; seed < b.known+80 && !caught; seed++ {
			c := windowJob(seed, b.recovery)
			want, _ := windowRows(t, c)
			c.Faults, c.Kinds, c.Job.Bugs = 1, []string{"crash"}, []string{b.bug}
			got, _ := windowRows(t, c)
			if caught = got != want; caught {
				t.Logf("%s shows at seed %d", b.bug, seed)
			}
		}
		if !caught {
			t.Errorf("bug %s changes nothing", b.bug)
		}
	}
}
