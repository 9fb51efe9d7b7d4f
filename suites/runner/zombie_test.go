//go:build linux

package runner

import (
	"strings"
	"testing"

	"github.com/weir-bench/weir/reports/runlog"
)

// zombies: worker 2 stands still for three times the lease and is replaced; then it wakes and goes on with what it had. The
// feed is of 10,000 records a trial.
const zombies = `
workload: {kind: uniform, keys: 500, rate: 5000/s}
timing: {warmup: 200ms, steady: 300ms, after: 900ms, hold: 100ms, interval: 20ms, band: 20, drain: 5s}
detection: {heartbeat: 20ms, lease: 200ms}
job: {spares: 1}
cells:
  - {name: active, recovery: active, faults: [{kind: freeze, target: worker 2, for: 600ms}]}
  - {name: passive, recovery: {strategy: passive, every: 100ms}, faults: [{kind: freeze, target: worker 2, for: 600ms}]}
  - name: checkpoint
    recovery: checkpoint
    checkpoint: {interval: 100ms}
    job: {operators: [{name: out, sink: transactional}]}
    faults: [{kind: freeze, target: worker 2, for: 600ms}]
`

// TestZombie wakes a worker that was replaced: each record is answered once, what the woken worker sends is refused and
// counted, and none of it is in the delays.
func TestZombie(t *testing.T) {
	job := tiny[strings.Index(tiny, "job:"):strings.Index(tiny, "workload:")]
	job = strings.Replace(job, "workers: 2", "workers: 2\n  spares: 1", 1)
	head := tiny[:strings.Index(tiny, "job:")] + job
	body := strings.Replace(zombies[1:], "job: {spares: 1}\n", "", 1)
	for name, rep := range playText(t, head+body) {
		a := rep.Answers
		if rep.Verdict == runlog.Invalid || a.Lost == nil || *a.Lost != 0 || *a.Wrong != 0 || *a.Duplicated != 0 || *a.Answered != *a.Expected || *a.Expected < 8000 {
			t.Errorf("%s: %s %s: %d of %d answered", name, rep.Verdict, rep.VerdictReason, *a.Answered, *a.Expected)
		}
		if m := rep.Metrics["fenced_frames"]; m.Value == nil || *m.Value < 1 {
			t.Errorf("%s: the woken worker sent nothing that was refused: %+v", name, m)
		} else {
			t.Logf("%s: fenced: %g", name, *m.Value)
		}
		if d := rep.Delay; d.Samples+d.OffAxis != *a.Answered || d.Negative+d.Unanswered != 0 {
			t.Errorf("%s: %+v delays of %d answers", name, d, *a.Answered)
		}
	}
}
