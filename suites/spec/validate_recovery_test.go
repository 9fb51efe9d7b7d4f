package spec

import (
	"strings"
	"testing"
)

// parseProtected parses the good suite with a cell of the given recovery and faults left out.
func parseProtected(t *testing.T, recovery string, sets ...string) (*Suite, error) {
	t.Helper()
	k := testKnown()
	k.BatchRecords, k.RecordBytes = 1024, 32
	k.Recoveries = append(k.Recoveries, RecoveryInfo{Name: "passive", Standby: true}, RecoveryInfo{Name: "upstream"})
	k.CheckRecovery = func(c *Cell) []Problem {
		if c.Recovery.StrategyOf("count", 1) == "upstream" {
			return []Problem{{Problem: "the state of count goes back for ever", Fix: "use checkpoint"}}
		}
		return nil
	}
	k.CheckStorage = func(dir string) []Problem {
		if strings.HasPrefix(dir, "ftp:") {
			return []Problem{{Problem: "of an unknown kind", Fix: "write a folder"}}
		}
		return nil
	}
	sets = append([]string{"objectives=[]", "cells=[{name: a, recovery: " + recovery + "}]"}, sets...)
	return Parse("t.yaml", []byte(good), Options{Known: k, Sets: sets})
}

func TestRecoveries(t *testing.T) {
	for _, c := range []struct {
		name, recovery string
		sets           []string
		want           []string // none: accepted
	}{
		{"one for all", "passive", nil, nil},
		{"mixed by operator", "{strategy: checkpoint, overrides: [{operator: count, strategy: active}]}", nil, nil},
		{"mixed by task", "{strategy: checkpoint, overrides: [{operator: count, task: 1, strategy: passive}]}", nil, nil},
		{"scope of an operator", "{strategy: checkpoint, overrides: [{operator: count, strategy: checkpoint, scope: task}]}", nil, nil},
		{"standbys placed", "active", []string{"job.operators.count.standbyPlacement=[2, 1]"}, nil},
		{"just enough slots", "active", []string{"job.slots=4"}, nil},
		{"just enough log", "{strategy: active, logBytes: 32KiB}", nil, nil},

		{"unknown operator", "{strategy: none, overrides: [{operator: cuont, strategy: active}]}", nil, []string{"overrides[0].operator", "did you mean count?"}},
		{"unknown task", "{strategy: none, overrides: [{operator: count, task: 2, strategy: active}]}", nil, []string{"overrides[0].task", "count has no task 2", "0 to 1"}},
		{"unknown strategy of a task", "{strategy: none, overrides: [{operator: count, task: 1, strategy: activ}]}", nil, []string{"overrides[0].strategy", "did you mean active?"}},
		{"two of one", "{strategy: none, overrides: [{operator: count, strategy: active}, {operator: count, strategy: checkpoint}]}", nil, []string{"overrides[1]", "a second override for count"}},
		{"scope of a task", "{strategy: none, overrides: [{operator: count, task: 0, strategy: checkpoint, scope: task}]}", nil, []string{"overrides[0].scope", "of a whole operator"}},
		{"scope of a standby", "{strategy: none, overrides: [{operator: count, strategy: active, scope: task}]}", nil, []string{"overrides[0].scope: has no effect", "active does not roll back"}},
		{"unknown scope", "checkpoint", []string{"checkpoint.scope=job"}, []string{"checkpoint.scope", "global, region, task"}},
		{"checkpoints of one task", "{strategy: none, overrides: [{operator: count, task: 0, strategy: checkpoint}]}", []string{"checkpoint.interval=0s"}, []string{"overrides[0].strategy", "there are none"}},
		{"standby on one worker", "{strategy: none, overrides: [{operator: count, strategy: passive}]}", []string{"job.workers=1"}, []string{"overrides[0].strategy", "there is one worker only"}},
		{"standby with its primary", "active", []string{"job.operators.count.standbyPlacement=[2, 2]"}, []string{"standbyPlacement[1]: worker 2 has task 1 itself", "lost with it"}},
		{"standby with its placed primary", "active", []string{"job.operators.count.placement=[1, 1]", "job.operators.count.standbyPlacement=[1, 2]"}, []string{"standbyPlacement[0]: worker 1 has task 0"}},
		{"standby nowhere", "active", []string{"job.operators.count.standbyPlacement=[2, 3]"}, []string{"standbyPlacement[1]: there is no worker 3", "1 to 2"}},
		{"standbys of some tasks", "active", []string{"job.operators.count.standbyPlacement=[2]"}, []string{"names 1 workers for the standbys of 2 tasks"}},
		{"more standbys than slots", "active", []string{"job.slots=3"}, []string{"job.slots: 4 tasks and 4 standbys do not fit on 2 workers of 3 slots", "at least 4"}},
		{"more standbys on a worker than slots", "active", []string{"job.workers=3", "job.slots=3"}, []string{"job.slots: 4 tasks and standbys come to worker 2", "standbyPlacement"}},
		{"fewer standbys than needed", "{strategy: active, standbys: 3}", nil, []string{"recovery.standbys: is 3, but 4 tasks need one"}},
		{"lease too short", "active", []string{"detection={heartbeat: 50ms, lease: 50ms}"}, []string{"detection.lease", "not longer than the heartbeat", "150ms"}},
		{"no time between deltas", "{strategy: passive, every: 0s}", nil, []string{"recovery.every: is 0s", "500ms"}},
		{"log below a batch", "{strategy: active, logBytes: 31KiB}", nil, []string{"recovery.logBytes: is 31KiB, and one batch takes up to 32KiB", "at least 32KiB"}},
		{"log below a batch with payload", "{strategy: active, logBytes: 64KiB}", []string{"workload.payload={kind: uniform, min: 1, max: 992}"}, []string{"takes up to 1MiB", "at least 1MiB"}},
		{"room on disk", "{strategy: active, spill: {bytes: 32KiB, dir: /tmp}}", nil, nil},
		{"room on disk below a batch", "{strategy: active, spill: {bytes: 31KiB}}", nil, []string{"recovery.spill.bytes: is 31KiB, and one batch takes up to 32KiB", "at least 32KiB, or 0B"}},
		{"a folder for nothing", "{strategy: active, spill: {dir: /tmp}}", nil, []string{"recovery.spill.dir: has no effect", "set recovery.spill.bytes"}},
		{"unaligned below a batch", "checkpoint", []string{"checkpoint.inFlight=1KiB"}, []string{"checkpoint.inFlight: is 1KiB", "unaligned checkpoint", "at least 32KiB"}},
		{"no restart", "{strategy: active, maxRestarts: 0}", nil, []string{"maxRestarts: is 0", "1 to 1000000"}},
		{"what the engine refuses", "{strategy: checkpoint, overrides: [{operator: count, task: 1, strategy: upstream}]}", nil, []string{"cells.a.recovery.strategy: the state of count goes back for ever; use checkpoint"}},
		{"storage", "checkpoint", []string{"checkpoint.dir=ftp://x"}, []string{"checkpoint.dir: of an unknown kind; write a folder"}},
		{"empty storage", "checkpoint", []string{"checkpoint.dir=''"}, []string{"checkpoint.dir: is empty"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseProtected(t, c.recovery, c.sets...)
			if len(c.want) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantErr(t, err, c.want...)
		})
	}
}

func TestStrategyAndScopeOfATask(t *testing.T) {
	s, err := parseProtected(t, "{strategy: checkpoint, overrides: [{operator: count, strategy: checkpoint, scope: task}, {operator: count, task: 1, strategy: active}, {operator: sink, strategy: passive}]}",
		"checkpoint.scope=region")
	if err != nil {
		t.Fatal(err)
	}
	c := &s.Cells[0]
	for _, w := range []struct {
		operator, strategy, scope string
		task                      int
	}{{"source", "checkpoint", "region", 0}, {"count", "checkpoint", "task", 0}, {"count", "active", "task", 1}, {"sink", "passive", "region", 0}} {
		if got := c.Recovery.StrategyOf(w.operator, w.task); got != w.strategy {
			t.Errorf("%s/%d: %s, want %s", w.operator, w.task, got, w.strategy)
		}
		if got := c.ScopeOf(w.operator); got != w.scope {
			t.Errorf("%s: scope %s, want %s", w.operator, got, w.scope)
		}
	}
}
