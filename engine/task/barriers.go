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

// onBarrier aligns: a channel whose barrier has come is not consumed from until the barriers of all others have come,
// so that the snapshot holds the effects of exactly the inputs before the barriers (Chandy and Lamport 1985, as done
// in-band by Carbone et al., "Lightweight asynchronous snapshots", 2015).
func (t *Task) onBarrier(i int, c core.Control, e *Effects) {
	if c.ID < t.checkpoint {
		return // of an aborted checkpoint
	}
	if c.ID > t.checkpoint {
		t.unblock()
		t.checkpoint, t.aligned = c.ID, false
	}
	in := t.ins[i]
	in.barrier = true
	if t.w.graph.Job.Bug("skip-alignment") {
		if !t.aligned {
			t.aligned = true
			t.cut(c.ID, e)
		}
		return
	}
	in.blocked = true
	for _, k := range t.barrierIns {
		if !t.ins[k].barrier {
			return
		}
	}
	t.unblock()
	t.cut(c.ID, e)
}

func (t *Task) cut(id uint64, e *Effects) {
	t.broadcast(core.Control{Type: core.CtlBarrier, ID: id})
	if t.Role == core.RolePrimary {
		t.snapshot(id, e)
	}
}

func (t *Task) unblock() {
	for _, in := range t.ins {
		in.blocked, in.barrier = false, false
	}
}

func (t *Task) snapshot(id uint64, e *Effects) {
	started := t.w.Clock()
	m := t.meta()
	meta, err := json.Marshal(m)
	if err != nil {
		panic(err) // plain numbers
	}
	req := SnapshotRequest{Task: t.info.ID, Epoch: t.Epoch, Checkpoint: id, Meta: meta}
	if t.keyed != nil {
		req.State = t.keyed.Cut(t.moves.owned())
	}
	req.CutNS = t.w.Clock() - started
	t.w.snapshots = append(t.w.snapshots, pendingSnapshot{t.info.ID, id, t.Epoch, req.State, req.CutNS, m.FeedNext, m.Position})
	e.Snapshots = append(e.Snapshots, req)
}
