//go:build linux

package runner

import (
	"testing"

	"github.com/weir-bench/weir/reports/runlog"
)

// moments are faults in the middle of the protocols of recovery: after a snapshot and before its word, in the middle of
// restoring and of replaying, in a round of a migration, the same worker again, and two at once.
const moments = `
checkpoint: {interval: 100ms}
cells:
  - {name: barrier, recovery: checkpoint, checkpoint: {mode: unaligned}, faults: [{kind: kill, target: task count/0, on: barrier-injected 3}]}
  - {name: snapshot, recovery: checkpoint, checkpoint: {scope: task}, faults: [{kind: kill, target: task count/0, on: snapshot-taken 3}]}
  - name: again
    recovery: checkpoint
    job: {operators: [{name: out, sink: transactional}]}
    faults: [{kind: kill, target: worker 2}, {kind: kill, target: worker 2, on: restoring}]
  - name: replaying
    recovery: checkpoint
    checkpoint: {scope: task}
    faults: [{kind: kill, target: worker 2}, {kind: kill, target: worker 2, on: replaying}]
  - {name: round, recovery: active, checkpoint: {interval: 0s}, migration: {strategy: async-rounds, rounds: 4}, faults: [{kind: kill, target: worker 2, on: round 2}]}
  - name: both
    recovery: {strategy: checkpoint, overrides: [{operator: count, task: 1, strategy: active}]}
    checkpoint: {scope: task}
    faults: [{kind: kill, target: worker 2}, {kind: kill, target: worker 1}]
  - {name: cut, recovery: passive, checkpoint: {interval: 0s}, faults: [{kind: cut, target: link 1-2, for: 100ms}, {kind: kill, target: worker 2, at: 350ms}]}
  - {name: slow, recovery: active, checkpoint: {interval: 0s}, faults: [{kind: slow, target: worker 2, factor: 5, for: 100ms}, {kind: kill, target: worker 2, at: 350ms}]}
`

// Whatever the moment, every record is answered, no answer is wrong, and each fault has happened.
func TestFaultsInThePhasesOfRecovery(t *testing.T) {
	for name, rep := range playCells(t, moments) {
		a := rep.Answers
		if rep.Verdict == runlog.Invalid || a.Lost == nil || *a.Lost != 0 || *a.Wrong != 0 || *a.Answered != *a.Expected {
			t.Errorf("%s: %s %s %+v", name, rep.Verdict, rep.VerdictReason, a)
		}
		if m := rep.Metrics["detection_ms"]; m.Value == nil {
			t.Errorf("%s: nothing was detected: %s", name, m.Reason)
		}
		t.Logf("%s: promised %s, observed %s, recovery %v", name, rep.Promised, rep.Observed, rep.Metrics["recovery_ms"])
	}
}
