package runner

import (
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/stats"
)

// recovered is how far a recovery came, each part as the time at which it ended on the trial's axis.
type recovered struct {
	detected, restarted, restored, replayed         time.Duration
	isDetected, isRestarted, isRestored, isReplayed bool
}

// follow reads the recovery from a fault off the traces. Tasks may be brought back in different ways, and more may fail
// meanwhile; a part ends with the last task that gets through it.
func (t *trial) follow(fault time.Duration) (r recovered) {
	replaying := map[int]bool{} // tasks that repeat the order of a lost one
	whole := false              // a rollback of several tasks reads its inputs again
	over := false               // all that was lost has a successor
	for i, tr := range t.traces {
		at := t.onAxis(tr)
		if at < fault || !r.isDetected && tr.Kind != coord.TraceDetected {
			continue
		}
		switch tr.Kind {
		case coord.TraceDetected:
			if !r.isDetected {
				r.detected, r.isDetected = at, true
			}
		case coord.TraceRestartEnd:
			if !r.isRestarted {
				r.restarted, r.isRestarted = at, true
			}
		case coord.TraceRestored, coord.TracePromoted:
			r.restored, r.isRestored = at, true
			switch {
			case tr.Kind == coord.TraceRestored && tr.Node == 0: // the whole job
				clear(replaying)
				whole, over = true, true
			case tr.Kind == coord.TracePromoted && !awaitsCopies(t.traces[i+1:]):
				over = true
			}
		case coord.TraceStarted:
			whole = whole || tr.Detail == regionStarted
		case coord.TraceReplaying:
			replaying[tr.Task] = true
		case coord.TraceReplayed:
			r.replayed = at
			if delete(replaying, tr.Task); tr.Task < 0 {
				whole = false
			}
		case coord.TraceTakenOver:
			r.replayed, over = max(r.replayed, at), true
		}
		if over && !whole && len(replaying) == 0 && r.isRestored {
			r.isReplayed = true
			return r
		}
	}
	return r
}

// awaitsCopies says whether a take-over goes on after standbys were promoted: other tasks were lost with theirs.
func awaitsCopies(traces []coord.Trace) bool {
	for _, tr := range traces {
		switch tr.Kind {
		case coord.TraceTakenOver:
			return true
		case coord.TraceDetected:
			return false
		}
	}
	return false
}

// regionStarted is the detail of the trace of a region that begins again.
const regionStarted = "region"

// recoveryMetrics splits the recovery from the first fault: each part ends with a trace of the coordinator, the last one
// when the delay is back in its band. The parts sum to recovery_ms.
func (t *trial) recoveryMetrics(spike stats.Spike, m map[string]runlog.Metric) {
	if len(t.injected) == 0 {
		return
	}
	fault := t.injected[0]
	t.firstOutputMetric(fault, m)
	m["fenced_frames"] = runlog.Value(float64(t.seen.fenced), "frames")
	t.protectionMetrics(fault.at, m)
	r := t.follow(fault.at)
	at, ended := fault.at, r.isReplayed
	part := func(name string, end time.Duration, found bool, reason string) {
		if !found {
			if !r.isDetected {
				reason = "no failure was detected"
			}
			m[name] = runlog.Missing("ms", reason)
			return
		}
		m[name] = runlog.Value(runlog.MS(max(0, end-at)), "ms")
		at = max(at, end)
	}
	part("detection_ms", r.detected, r.isDetected, "")
	part("restart_ms", r.restarted, r.isRestarted, "the tasks did not get a new place within the trial")
	part("restore_ms", r.restored, r.isRestored, "the tasks were not restored within the trial")
	part("replay_ms", r.replayed, r.isReplayed, "the replay did not end within the trial")
	gone := at - fault.at
	switch {
	case !spike.HasBaseline || !ended && spike.Settled && r.isDetected:
		reason := orElse(spike.Reason, "a part of the recovery did not end within the trial")
		m["recovery_ms"], m["catchup_ms"] = runlog.Missing("ms", reason), runlog.Missing("ms", reason)
	case !spike.Settled:
		reason := orElse(spike.Reason, "not recovered within the trial")
		m["recovery_ms"] = runlog.AtLeast(runlog.MS(spike.Observed), "ms", reason)
		m["catchup_ms"] = runlog.Missing("ms", reason)
	default:
		m["recovery_ms"] = runlog.Value(runlog.MS(max(gone, spike.Length)), "ms")
		m["catchup_ms"] = runlog.Value(runlog.MS(max(0, spike.Length-gone)), "ms")
	}
}

func (t *trial) firstOutputMetric(fault injection, m map[string]runlog.Metric) {
	f := t.col.first
	switch {
	case t.col.query != nil:
		m["first_output_ms"] = runlog.Missing("ms", "the keys of a query's outputs are others than those of its state")
	case f.failed == nil:
		m["first_output_ms"] = runlog.Missing("ms", "no key had its state on the worker that failed")
	case f.atNS == 0:
		m["first_output_ms"] = runlog.Missing("ms", "no output of the failed keys came from a successor")
	default:
		m["first_output_ms"] = runlog.Value(runlog.MS(time.Duration(f.atNS-t.col.originNS)-fault.at), "ms")
	}
}

// protectionMetrics give the time from a fault on in which a task that should have a standby had none that could take over.
func (t *trial) protectionMetrics(fault time.Duration, m map[string]runlog.Metric) {
	guarded := false
	for id := range t.graph.Tasks {
		guarded = guarded || t.graph.Protection(id).Standby()
	}
	if !guarded {
		return
	}
	bare := map[int]bool{}
	var since, total time.Duration
	for _, tr := range t.traces {
		at := t.onAxis(tr)
		switch {
		case at < fault:
		case tr.Kind == coord.TraceUnprotected:
			if len(bare) == 0 {
				since = at
			}
			bare[tr.Task] = true
		case tr.Kind == coord.TraceProtected && bare[tr.Task]:
			if delete(bare, tr.Task); len(bare) == 0 {
				total += at - since
			}
		case tr.Kind == coord.TraceRestored && tr.Node == 0 && len(bare) > 0: // all is deployed anew, standbys too
			clear(bare)
			total += at - since
		}
	}
	if len(bare) > 0 {
		m["unprotected_ms"] = runlog.AtLeast(runlog.MS(total+max(0, t.length-since)), "ms", "not every task had a standby again within the trial")
		return
	}
	m["unprotected_ms"] = runlog.Value(runlog.MS(total), "ms")
}

// kept is the most that was kept for recoveries at one time, in bytes; it is used on the event loop.
type kept struct {
	nextNS               int64
	sent, order, standby int64
	disk                 int64    // sender logs on disk
	spilled              uint64   // bytes that were ever written there
	lastSpilled          []uint64 // by task, as its worker said last
}

// keptEvery is the time between two looks at what is kept.
const keptEvery = 20 * time.Millisecond

// look reads the meters, which workers send with each heartbeat.
func (k *kept) look(c *coord.Coordinator, nowNS int64) {
	if nowNS < k.nextNS {
		return
	}
	k.nextNS = nowNS + int64(keptEvery)
	var sent, order, disk int64
	meters := c.Meters()
	if k.lastSpilled == nil {
		k.lastSpilled = make([]uint64, len(meters))
	}
	for i, m := range meters {
		sent, order, disk = sent+int64(m.LogBytes), order+int64(m.OrderBytes), disk+m.SpilledBytes
		if m.Spilled < k.lastSpilled[i] {
			k.lastSpilled[i] = 0 // of a new copy of the task
		}
		k.spilled += m.Spilled - k.lastSpilled[i]
		k.lastSpilled[i] = m.Spilled
	}
	k.sent, k.order, k.standby = max(k.sent, sent), max(k.order, order), max(k.standby, c.StandbyBytes())
	k.disk = max(k.disk, disk)
}

// onTick runs on the event loop.
func (t *trial) onTick(c *coord.Coordinator, _ *coord.Effects) {
	if len(t.cell.Faults) > 0 {
		t.holders.look(c, t.job.Workers)
	}
	if isClosed(t.started) {
		t.kept.look(c, c.Clock())
	}
}

// keptMetrics are the prices of recoveries in memory.
func (t *trial) keptMetrics(m map[string]runlog.Metric) {
	ordered, standby := false, false
	for id := range t.graph.Tasks {
		p := t.graph.Protection(id)
		ordered, standby = ordered || p.Ordered(), standby || p.Standby()
	}
	m["sender_log_bytes"] = runlog.Value(float64(t.kept.sent), "bytes")
	if ordered {
		m["order_log_bytes"] = runlog.Value(float64(t.kept.order), "bytes")
	}
	if standby {
		m["standby_bytes"] = runlog.Value(float64(t.kept.standby), "bytes")
	}
	if t.job.SpillBytes > 0 {
		m["spilled_bytes"] = runlog.Value(float64(t.kept.spilled), "bytes")
		m["spill_peak_bytes"] = runlog.Value(float64(t.kept.disk), "bytes")
	}
	if n := t.count(coord.TraceLogBound); n > 0 {
		m["log_bounds"] = runlog.Value(float64(n), "times")
	}
}

// count returns how often something was traced.
func (t *trial) count(kind string) (n int) {
	for _, tr := range t.traces {
		if tr.Kind == kind {
			n++
		}
	}
	return n
}

// checkpointMetrics are about the complete checkpoints of the whole trial.
func (t *trial) checkpointMetrics(m map[string]runlog.Metric) {
	if t.job.Checkpoint == 0 {
		return
	}
	var took, cut, bytes []float64
	for _, tr := range t.traces {
		switch tr.Kind {
		case coord.TraceComplete:
			took, bytes = append(took, float64(tr.Count)/1e6), append(bytes, float64(tr.Bytes))
		case coord.TraceSnapshot:
			cut = append(cut, float64(tr.Count)/1e6)
		}
	}
	m["checkpoints"] = runlog.Value(float64(len(took)), "checkpoints")
	m["checkpoint_ms"], m["checkpoint_bytes"] = runlog.Missing("ms", "no checkpoint was complete"), runlog.Missing("bytes", "no checkpoint was complete")
	m["checkpoint_sync_ms"] = runlog.Missing("ms", "no task took a snapshot")
	if len(took) > 0 {
		m["checkpoint_ms"], m["checkpoint_bytes"] = runlog.Value(median(took), "ms"), runlog.Value(median(bytes), "bytes")
	}
	if len(cut) > 0 {
		m["checkpoint_sync_ms"] = runlog.Value(slices.Max(cut), "ms")
	}
}
