package task

import (
	"math"

	"github.com/weir-bench/weir/engine/core"
)

// A log that waits for a checkpoint is freed by barriers that come through the channels of full tasks, so the bound must let
// them through. A source takes what the coordinator sends although its log is at the bound. A task behind it cannot, as the
// barrier is behind records: when it reports that it is at the bound while a checkpoint is under way, the coordinator lifts the
// bound until the task has passed the barriers on. What it consumes until then is no more than the windows of its inputs, since
// the sources take nothing more of the feed.
//
// The same holds for a migration: while it is under way no base moves, so a log that is at its bound stays there, and the
// markers that would end the migration are behind the records. It goes on with the bound lifted, and the feed waits.

// logBound returns the bound of the task's sender logs in memory.
func (t *Task) logBound() int {
	if t.lifted > max(t.passed, t.gone) && !t.w.graph.Job.Bug("barrier-behind-bound") {
		return math.MaxInt
	}
	if t.liftedMove && !t.kind.Source {
		return math.MaxInt
	}
	return t.w.graph.Job.LogBytes
}

// controlAtBound says that the task is a source with a log at its bound whose next input comes from the coordinator.
func (t *Task) controlAtBound() bool {
	if !t.kind.Source || t.w.graph.Job.Bug("barrier-behind-bound") {
		return false
	}
	over := false
	for _, o := range t.outs {
		over = over || o.logBytes > t.logBound()
	}
	if !over {
		return false
	}
	if t.Role == core.RoleStandby && len(t.replay) == 0 {
		t.nextFollow()
	}
	if len(t.replay) > 0 {
		in := t.ins[t.replay[0].In]
		return in.Channel.Kind == core.ChanControl && in.queued > 0
	}
	if t.Role == core.RoleStandby {
		return false
	}
	for _, in := range t.ins {
		if in.Channel.Kind == core.ChanControl && in.queued > 0 {
			return true
		}
	}
	return false
}

// meter adds what is to be reported of a sender log.
func (o *Out) meter(m *core.Meters, logBound int) {
	var onDisk int64
	if s := o.spill; s != nil {
		onDisk = s.onDisk
		m.SpilledBytes += onDisk
		m.Spilled += s.total
		m.Spills += s.began
		m.LogMoved += s.total
	}
	over := o.logBytes > logBound
	m.Full = m.Full || over
	if o.holds() == holdConsumed {
		return
	}
	m.FullestBytes = max(m.FullestBytes, int64(o.logBytes)+onDisk)
	m.AtBound = m.AtBound || over
	m.LogMoved += o.safe
	for i := range o.receivers {
		m.LogMoved += o.receivers[i].consumed
	}
}
