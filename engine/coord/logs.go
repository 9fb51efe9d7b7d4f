package coord

import (
	"errors"
	"fmt"

	"github.com/weir-bench/weir/engine/core"
)

// ErrLogBound says that a log which must reach back to a task's base does not fit into its bound.
var ErrLogBound = errors.New("a sender log stays at its bound")

// logWatch is what was seen of a task's sender logs.
type logWatch struct {
	bounds  uint64 // how often they have reached their bound
	full    bool   // one that waits is at its bound
	sinceNS int64  // since then, and since it moved
	moved   uint64
	spills  uint64 // how often one began to write to disk
	onDisk  bool
	lifted  bool  // the bound is, for a migration
	most    int64 // bytes on disk
}

// watchLogs counts when a task's logs reach their bound, and tells when they use the disk. One that waits for a checkpoint gets
// it early, and may pass its barriers on; when nothing helps, the job ends.
func (c *Coordinator) watchLogs(m core.Meters) {
	w := c.logs[m.Task]
	if w == nil {
		w = &logWatch{}
		c.logs[m.Task] = w
	}
	if m.LogBounds > w.bounds {
		w.bounds = m.LogBounds
		c.trace(TraceLogBound, Trace{Task: m.Task, Bytes: int64(m.LogBytes) + m.SpilledBytes, Count: m.LogBounds})
	}
	c.watchSpill(w, &m)
	now, pending := c.Clock(), c.checkpoints.pending
	c.checkpoints.watchLog(m.Task, m.FullestBytes, int64(c.job.LogBytes)+c.job.SpillBytes)
	if w.lifted && c.move == nil {
		w.lifted = false
		c.tellCopies(core.Msg{Type: core.MsgLower, Task: m.Task})
	}
	if m.Full && c.move != nil && !c.job.Bug("marker-behind-bound") {
		w.lifted = true
		c.tellCopies(core.Msg{Type: core.MsgLiftMove, Task: m.Task}) // again, in case a copy is new
	}
	if !m.AtBound || !c.Running() || c.move != nil { // behind a migration, bases move again
		w.full = false
		return
	}
	if pending != nil && c.checkpoints.bases() {
		c.tellCopies(core.Msg{Type: core.MsgLift, Task: m.Task, ID: pending.id})
	}
	switch {
	case !w.full || w.moved != m.LogMoved:
		w.full, w.sinceNS, w.moved = true, now, m.LogMoved
	case now-w.sinceNS > int64(c.job.CheckpointTimeout):
		bound := fmt.Sprintf("the bound is %d", c.job.LogBytes)
		if c.job.SpillBytes > 0 {
			bound = fmt.Sprintf("%d of them on disk; the bounds are %d in memory and %d on disk", m.SpilledBytes, c.job.LogBytes, c.job.SpillBytes)
		}
		c.e.Fatal = fmt.Errorf("%w: %s holds %d bytes for a reader that may have to replay them, %s; want a larger bound, or bases more often (checkpoints, or shorter windows)",
			ErrLogBound, c.graph.TaskName(m.Task), m.FullestBytes, bound)
	}
}

// watchSpill tells when a task's sender logs begin to use the disk, and when nothing is there any more.
func (c *Coordinator) watchSpill(w *logWatch, m *core.Meters) {
	if m.Spills < w.spills { // of a new copy of the task
		w.spills = 0
		c.spillEnded(w, m.Task)
	}
	if m.Spills > w.spills && !w.onDisk {
		w.onDisk = true
		c.trace(TraceSpill, Trace{Task: m.Task, Bytes: m.SpilledBytes, Count: m.Spills})
	}
	w.spills, w.most = m.Spills, max(w.most, m.SpilledBytes)
	if m.SpilledBytes == 0 {
		c.spillEnded(w, m.Task)
	}
}

func (c *Coordinator) spillEnded(w *logWatch, task int) {
	if w.onDisk {
		c.trace(TraceSpillEnd, Trace{Task: task, Bytes: w.most})
	}
	w.onDisk, w.most = false, 0
}

// tellCopies tells a task and its standby.
func (c *Coordinator) tellCopies(m core.Msg) {
	p := c.places[m.Task]
	for _, node := range []int{p.Node, p.Standby} {
		if node >= 0 {
			c.tell(node, m)
		}
	}
}
