package task

import (
	"encoding/json"

	"github.com/weir-bench/weir/engine/core"
)

// Meta is what a snapshot file holds besides state.
type Meta struct {
	Task int
	// FeedNext is, of a source task, the number of the feed's next input.
	FeedNext uint64
	Consumed uint64
	// Position and Flow let one task alone go on from here: it replays its inputs from the position on.
	Position core.Position
	Flow     Flow
}

// encode returns the meta as it is in files and ships.
func (m *Meta) encode() []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // plain numbers
	}
	return b
}

// onBarrier aligns: a channel whose barrier has come is not consumed from until the barriers of all others have come,
// so that the snapshot holds the effects of exactly the inputs before the barriers (Chandy and Lamport 1985, as done
// in-band by Carbone et al., "Lightweight asynchronous snapshots", 2015). A barrier that says so is not aligned: the first
// one cuts, no channel waits, and what comes between it and the others is recorded (see recording).
//
// What is emitted depends on the inputs alone, also when a checkpoint was given up meanwhile: a standby may not have
// heard of it.
func (t *Task) onBarrier(i int, c core.Control, e *Effects) {
	if c.ID < t.checkpoint {
		return // of an aborted checkpoint
	}
	if c.ID > t.checkpoint {
		t.unblock()
		t.stopRecording()
		t.checkpoint, t.aligned = c.ID, false
	}
	in := t.ins[i]
	in.barrier = true
	if core.Unaligned(&c) || t.w.graph.Job.Bug("skip-alignment") {
		if !t.aligned {
			t.aligned = true
			t.cut(&c, e)
		}
		if t.barriersCame() {
			t.unblock()
			t.endRecording(e)
		}
		return
	}
	in.blocked = c.ID > t.gone
	if t.barriersCame() {
		t.unblock()
		t.cut(&c, e)
	}
}

func (t *Task) barriersCame() bool {
	for _, k := range t.barrierIns {
		if !t.ins[k].barrier {
			return false
		}
	}
	return true
}

func (t *Task) cut(c *core.Control, e *Effects) {
	t.passed = max(t.passed, c.ID)
	t.broadcast(core.Control{Type: core.CtlBarrier, ID: c.ID, Body: c.Body})
	if t.Role == core.RolePrimary && c.ID > t.gone && len(t.replay) == 0 { // what is replayed was snapshot, or given up

		t.snapshot(c, e)
	}
	if t.Role == core.RoleStandby {
		t.w.say(core.Msg{Type: core.MsgCut, Task: t.info.ID, ID: c.ID, Epoch: t.Epoch})
	}
}

func (t *Task) unblock() {
	for _, in := range t.ins {
		in.blocked, in.barrier = false, false
	}
}

// checkpointGone says that a checkpoint was given up: its barriers are still passed on, but nothing waits for them.
func (t *Task) checkpointGone(id uint64) {
	t.gone = max(t.gone, id)
	if t.checkpoint > t.gone {
		return
	}
	t.stopRecording()
	for _, in := range t.ins {
		in.blocked = false
	}
}

func (t *Task) snapshot(c *core.Control, e *Effects) {
	started := t.w.Clock()
	m := t.meta()
	req := SnapshotRequest{Task: t.info.ID, Epoch: t.Epoch, Checkpoint: c.ID, Meta: m.encode}
	if t.keyed != nil {
		t.increments.cut(t, &req)
	}
	req.CutNS = t.w.Clock() - started
	t.w.snapshots = append(t.w.snapshots, pendingSnapshot{t.info.ID, c.ID, t.Epoch, req.State, req.CutNS, m.FeedNext, m.Position, false})
	if core.Unaligned(c) && !t.barriersCame() {
		t.recording = &recording{request: req}
		return
	}
	e.Snapshots = append(e.Snapshots, req)
}
