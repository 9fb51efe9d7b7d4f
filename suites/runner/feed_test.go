package runner

import (
	"context"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/verify"
	"github.com/weir-bench/weir/workloads"
)

// TestCatchUp lets a feed of 1,000 records/s stand still from 100 to 300 ms, and looks at what each policy offers when it
// looks again, how fast it goes on, and what is left out.
func TestCatchUp(t *testing.T) {
	for _, c := range []struct {
		policy        spec.CatchUp
		least, most   uint64 // offered at once after the stall
		skipped       uint64
		offeredAtLast uint64
	}{
		{spec.CatchUp{}, 200, 200, 0, 1000},
		{spec.CatchUp{Policy: "limit", Factor: 2}, 1, 40, 0, 1000},
		{spec.CatchUp{Policy: "skip", After: 50 * time.Millisecond}, 50, 51, 149, 851},
	} {
		w, err := workloads.Open(workloads.Spec{Kind: "uniform", Keys: 10, Rate: 1000, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		f := newFeed(w, 1, c.policy, time.Second)
		f.begin(0)
		due := make([]uint64, 1)
		for at := time.Duration(0); at <= 100*time.Millisecond; at += time.Millisecond {
			f.due(at, due)
		}
		before := due[0]
		f.due(300*time.Millisecond, due)
		if n := due[0] - before; n < c.least || n > c.most {
			t.Errorf("%q: %d records at once after the stall, want %d to %d", c.policy.Policy, n, c.least, c.most)
		}
		for at := 301 * time.Millisecond; at <= 2*time.Second; at += time.Millisecond {
			f.due(at, due)
		}
		if got := f.allSkipped(); got < c.skipped || got > c.skipped+1 {
			t.Errorf("%q: %d records left out, want %d", c.policy.Policy, got, c.skipped)
		}
		if due[0]+f.allSkipped() != 1000 || f.scheduled() != due[0] || due[0] > c.offeredAtLast {
			t.Errorf("%q: %d offered and %d left out of 1000", c.policy.Policy, due[0], f.allSkipped())
		}
		golden := verify.Golden(f.splits, due)
		var cols core.Columns
		f.Fill(&cols, 0, 1, 0, int(due[0]))
		if golden.Total() != due[0] || uint64(cols.Len()) != due[0] {
			t.Errorf("%q: golden answers of %d records, %d sent, want %d", c.policy.Policy, golden.Total(), cols.Len(), due[0])
		}
	}
}

// TestProfiles gives each key a state size and a service time of its own, in worker processes: answers are right, the
// state that moves has about the sizes asked for, and the tasks were busy for the times asked for.
func TestProfiles(t *testing.T) {
	text := `
name: profiles
seed: 3
repeat: 1
job:
  workers: 2
  operators:
    - {name: in, kind: source, placement: [1]}
    - {name: count, kind: count, inputs: [in], parallelism: 2, placement: [2, 1], keyGroups: 64, service: {mode: timed, mean: 1us}}
    - {name: out, kind: sink, inputs: [count], placement: [1]}
workload:
  kind: zipf
  keys: 500
  exponent: 0.5
  rate: 5000/s
  state: {kind: uniform, min: 1000, max: 3000}
  service: {kind: constant, mean: 100000}
  catchUp: {policy: skip, after: 10s}
timing: {warmup: 100ms, steady: 300ms, after: 300ms, hold: 100ms, interval: 20ms, band: 5, drain: 3s}
cells:
  - {name: all, migration: {strategy: async-rounds, groups: hottest, share: 1, rounds: 4}}
`
	s, plan := parse(t, text[1:])
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(text), Args: []string{"bench"}, OutDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	rep := checkSchema(t, out.Dir).Cells[0].Repetitions[0]
	if a := rep.Answers; rep.Verdict == runlog.Invalid || a.Lost == nil || *a.Lost+*a.Wrong != 0 || a.Skipped == nil || *a.Skipped != 0 {
		t.Errorf("%s %s %+v", rep.Verdict, rep.VerdictReason, a)
	}
	if m := rep.Metrics["moved_bytes"]; m.Value == nil || *m.Value < 250*1500 || *m.Value > 500*3100 {
		t.Errorf("moved %+v bytes, want those of 250 or more keys of 2,000 bytes", m)
	}
	if m := rep.Metrics["steady_p50_ms"]; m.Value == nil || *m.Value < 0.1 {
		t.Errorf("half of the records took %+v ms; the service time alone is 0.1 ms", m)
	}
}
