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
	if !m.AtBound || !c.Running() {
		w.full = false
		return
	}
	if pending != nil && c.checkpoints.bases() {
		c.lift(m.Task, pending.id)
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

// lift lets a task and its standby exceed the bound of their logs until they have passed on the barriers of a checkpoint.
func (c *Coordinator) lift(task int, checkpoint uint64) {
	p := c.places[task]
	for _, node := range []int{p.Node, p.Standby} {
		if node >= 0 {
			c.tell(node, core.Msg{Type: core.MsgLift, Task: task, ID: checkpoint})
		}
	}
}
