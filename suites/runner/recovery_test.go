//go:build linux

package runner

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// checkpointed are the ways in which checkpoints are taken, each with a worker that is killed.
const checkpointed = `
checkpoint: {interval: 80ms, fullEvery: 4}
cells:
  - {name: unaligned, recovery: checkpoint, checkpoint: {mode: unaligned}, faults: [{kind: kill, target: task count/0, on: checkpoint-complete 3}]}
  - {name: incremental, recovery: checkpoint, checkpoint: {incremental: true}, faults: [{kind: kill, target: task count/0, on: checkpoint-complete 3}]}
  - name: on-disk
    recovery: checkpoint
    checkpoint: {incremental: true}
    job: {operators: [{name: count, state: {backend: pebble, cache: 64KiB}}]}
    faults: [{kind: kill, target: task count/0, on: checkpoint-complete 3}]
  - name: both
    recovery: checkpoint
    checkpoint: {mode: unaligned, incremental: true}
    job: {operators: [{name: out, sink: transactional}]}
    faults: [{kind: kill, target: task count/0, on: checkpoint-complete 3}]
`

// playCells plays the cells of a text on the tiny job, and returns each one's first repetition.
func playCells(t *testing.T, cells string) map[string]runlog.Repetition {
	t.Helper()
	return playText(t, tiny[:strings.Index(tiny, "cells:")]+cells[1:])
}

func playText(t *testing.T, text string) map[string]runlog.Repetition {
	t.Helper()
	s, plan := parse(t, text)
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(text), Args: []string{"bench"}, OutDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	orphanless(t)
	reps := map[string]runlog.Repetition{}
	for _, c := range checkSchema(t, out.Dir).Cells {
		reps[c.Name] = c.Repetitions[0]
		t.Logf("%s: %s %s", c.Name, reps[c.Name].Verdict, reps[c.Name].VerdictReason)
	}
	return reps
}

func TestKindsOfCheckpoints(t *testing.T) {
	for name, rep := range playCells(t, checkpointed) {
		a := rep.Answers
		if rep.Verdict == runlog.Invalid || a.Lost == nil || *a.Lost != 0 || *a.Wrong != 0 || *a.Answered != *a.Expected {
			t.Errorf("%s: %s %s %+v", name, rep.Verdict, rep.VerdictReason, a)
		}
		for _, metric := range []string{"detection_ms", "restore_ms", "replay_ms", "checkpoint_ms"} {
			if m := rep.Metrics[metric]; m.Value == nil {
				t.Errorf("%s: %s is missing: %s", name, metric, m.Reason)
			}
		}
	}
}

// Everything that a cell says about fault tolerance reaches the engine.
func TestRecoveryOfTheJob(t *testing.T) {
	s, _ := parse(t, tiny, "objectives=[]", "job.operators.count.standbyPlacement=[1, 2]",
		"checkpoint={interval: 250ms, inFlight: 8MiB, incremental: true, fullEvery: 7, scope: task, retain: 3, timeout: 4s}",
		"cells=[{name: a, recovery: {strategy: checkpoint, every: 200ms, logBytes: 5MiB, maxRestarts: 9, overrides: [{operator: count, task: 1, strategy: active}, {operator: out, strategy: active}]}}]")
	job := buildJob(&s.Cells[0], 1)
	if job.Checkpoint.Milliseconds() != 250 || job.Unaligned || job.InFlightBytes != 8<<20 || !job.Incremental || job.FullEvery != 7 || job.Retain != 3 || job.CheckpointTimeout.Seconds() != 4 {
		t.Errorf("checkpoints: %+v", job)
	}
	if job.Ship.Milliseconds() != 200 || job.LogBytes != 5<<20 || job.MaxRestarts != 9 {
		t.Errorf("bounds: %+v", job)
	}
	in, count, out := job.Operators[0], job.Operators[1], job.Operators[2]
	if in.Recovery != "checkpoint" || in.Scope != core.ScopeTask || in.TaskRecovery != nil || in.StandbyPlace != nil {
		t.Errorf("in: %+v", in)
	}
	if count.Recovery != "checkpoint" || len(count.TaskRecovery) != 2 || count.TaskRecovery[1] != "active" || count.Scope != core.ScopeTask || len(count.StandbyPlace) != 2 || count.StandbyPlace[1] != 1 {
		t.Errorf("count: %+v", count)
	}
	if out.Recovery != "active" || out.Scope != "" {
		t.Errorf("out: %+v", out)
	}
	var quiet *spec.Cell
	if s, _ = parse(t, tiny); s != nil {
		quiet = &s.Cells[4]
	}
	if job := buildJob(quiet, 1); job.Unaligned || job.Incremental || job.Operators[0].Scope != "" {
		t.Errorf("a job without any of it: %+v", job)
	}
	s, _ = parse(t, tiny, "objectives=[]", "checkpoint={interval: 250ms, mode: unaligned}", "cells=[{name: a, recovery: checkpoint}]")
	if job := buildJob(&s.Cells[0], 1); !job.Unaligned {
		t.Errorf("mode unaligned does not reach the job: %+v", job)
	}
}
