package runner

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-bench/weir/reports/runlog"
)

// middle are failures at the worst moments of the protocols: a worker dies while a checkpoint is on its way to the disk,
// and while a round of a migration is under way.
const middle = `
cells:
  - name: in-checkpoint
    labels: {strategy: checkpoint}
    recovery: checkpoint
    checkpoint: {interval: 100ms}
    job: {operators: [{name: out, sink: transactional}]}
    faults: [{kind: kill, target: task count/0, on: checkpoint-begin 3}]
  - name: in-round
    labels: {strategy: async-rounds}
    recovery: checkpoint
    checkpoint: {interval: 100ms}
    migration: {strategy: async-rounds, groups: hottest, share: 0.9, rounds: 20}
    faults: [{kind: kill, target: task count/0, on: round-begin 2}]
  - name: in-round-active
    labels: {strategy: async-rounds}
    recovery: active
    migration: {strategy: async-rounds, groups: hottest, share: 0.9, rounds: 20}
    faults: [{kind: kill, target: task count/0, on: round-begin 2}]
`

// TestKilledInTheMiddle kills real worker processes at those moments. Every record is answered, and no answer is wrong.
func TestKilledInTheMiddle(t *testing.T) {
	text := tiny[:strings.Index(tiny, "cells:")] + middle[1:]
	s, plan := parse(t, text)
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(text), Args: []string{"bench"}, OutDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	orphanless(t)
	for _, c := range checkSchema(t, out.Dir).Cells {
		rep := c.Repetitions[0]
		t.Logf("%s: %s %s", c.Name, rep.Verdict, rep.VerdictReason)
		a := rep.Answers
		if rep.Verdict == runlog.Invalid || a.Lost == nil || *a.Lost != 0 || *a.Wrong != 0 || *a.Answered != *a.Expected {
			t.Errorf("%s: %s %s %+v", c.Name, rep.Verdict, rep.VerdictReason, a)
		}
		if m := rep.Metrics["detection_ms"]; m.Value == nil {
			t.Errorf("%s: no worker was lost: %s", c.Name, m.Reason)
		}
	}
}
