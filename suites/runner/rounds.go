package runner

import (
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/reports/runlog"
)

// roundDetail adds what a task reports of a round to the detail of an event.
func roundDetail(g *core.Graph, tr coord.Trace, d map[string]any) {
	r := tr.Round
	if r == nil {
		return
	}
	d["task"], d["suspended_ms"] = taskName(g, tr.Task), runlog.MS(r.Suspended)
	if tr.Kind == coord.TraceRoundTask {
		d["freeze_ms"], d["transfer_ms"] = runlog.MS(r.Freeze), runlog.MS(r.Transfer)
		d["install_ms"], d["drain_ms"] = runlog.MS(r.Install), runlog.MS(r.Drain)
	}
}

// moveTraces are the traces of one migration: from its beginning until the next one's. The tasks' last words come after its
// end.
type moveTraces struct {
	begin, end coord.Trace
	ended      bool
	tasks      []coord.Trace // TraceRoundTask
	suspended  []coord.Trace
}

// moveTraces returns the migrations from a time of the axis on, in their order.
func (t *trial) moveTraces(from time.Duration) (out []moveTraces) {
	for _, tr := range t.traces {
		if tr.Kind == coord.TraceMigration && t.onAxis(tr) >= from {
			out = append(out, moveTraces{begin: tr})
		}
		if len(out) == 0 {
			continue
		}
		m := &out[len(out)-1]
		switch tr.Kind {
		case coord.TraceMigrated:
			m.end, m.ended = tr, true
		case coord.TraceRoundTask:
			m.tasks = append(m.tasks, tr)
		case coord.TraceSuspended:
			m.suspended = append(m.suspended, tr)
		}
	}
	return out
}

// roundMetrics are about the rounds of the migration that is measured, and the way back.
func (t *trial) roundMetrics(m map[string]runlog.Metric) {
	if t.migration == nil {
		return
	}
	all := t.moveTraces(t.migration.triggeredAt)
	if len(all) == 0 {
		return
	}
	if back := t.cell.Migration.Back; back != nil {
		m["migration_back_ms"] = runlog.Missing("ms", "the way back did not end within the trial")
		if len(all) > 1 && all[1].ended {
			m["migration_back_ms"] = runlog.Value(runlog.MS(time.Duration(all[1].end.AtNS-all[1].begin.AtNS)), "ms")
		}
	}
	mv := &all[0]
	if !mv.ended {
		return
	}
	var most core.RoundReport // of any task and round
	for _, tr := range mv.tasks {
		r := tr.Round
		most.Freeze, most.Transfer = max(most.Freeze, r.Freeze), max(most.Transfer, r.Transfer)
		most.Install, most.Drain = max(most.Install, r.Install), max(most.Drain, r.Drain)
		most.LastByteNS = max(most.LastByteNS, r.LastByteNS)
	}
	if len(mv.tasks) > 0 {
		m["round_freeze_ms"], m["round_transfer_ms"] = runlog.Value(runlog.MS(most.Freeze), "ms"), runlog.Value(runlog.MS(most.Transfer), "ms")
		m["round_install_ms"], m["round_drain_ms"] = runlog.Value(runlog.MS(most.Install), "ms"), runlog.Value(runlog.MS(most.Drain), "ms")
	}
	if most.LastByteNS > 0 { // more exact than the coordinator's word
		m["last_byte_ms"] = runlog.Value(runlog.MS(time.Duration(most.LastByteNS-t.feed.originNS)-t.migration.triggeredAt), "ms")
	}
	if len(mv.suspended) == 0 {
		m["suspension_ms"] = runlog.Missing("ms", "not all tasks have told how long they were suspended")
		return
	}
	longest := time.Duration(0)
	for _, tr := range mv.suspended {
		longest = max(longest, tr.Round.Suspended)
	}
	m["suspension_ms"] = runlog.Value(runlog.MS(longest), "ms")
}
