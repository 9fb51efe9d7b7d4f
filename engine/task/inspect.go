package task

import (
	"github.com/weir-bench/weir/engine/core"
)

// View is what a task knows of key groups and of migrations between two steps, for worlds that check invariants. Its slices
// belong to the task: they are read, before the next step only.
type View struct {
	Task  int
	Epoch uint32
	Role  core.Role
	// Replaying says that the task repeats what an earlier primary did, so that it may be behind what others have seen.
	Replaying bool
	Consumed  uint64
	// Owns tells by key group what the task owns; nil when it has no keyed state.
	Owns []bool
	// Holding counts the key groups whose state is on its way, Following those that it works on alongside their owner.
	Holding, Following int
	// Rounds counts the rounds under way, Markers the markers that have come of them.
	Rounds, Markers int
	// Sending counts transfers and hand-overs under way; Copies what is remembered of state that was copied ahead.
	Sending, Copies, Mirroring int
	// PeerSent and PeerConsumed count the inputs to and from the other tasks of the operator.
	PeerSent, PeerConsumed uint64
	// Aligning is the checkpoint whose barriers came last, Barriers how many of the inputs wait for it.
	Aligning uint64
	Barriers int
	Paused   bool
	// Reads are the operators that read the task by key, Tables their route tables.
	Reads  []int
	Tables []*core.Routes

	task *Task
}

// Epoch returns the deployment that the worker is in, 0 before the first.
func (w *Worker) Epoch() uint32 { return w.epoch }

// Views calls visit with each task here, in the order of their ids. The view is overwritten for the next one.
func (w *Worker) Views(v *View, visit func(*View)) {
	for _, t := range w.local {
		v.fill(t)
		visit(v)
	}
}

func (v *View) fill(t *Task) {
	m := &t.moves
	*v = View{Task: t.info.ID, Epoch: t.Epoch, Role: t.Role, Replaying: len(t.replay) > 0, Consumed: t.consumed, Owns: m.owns,
		Holding: m.holding, Rounds: len(m.rounds), Sending: len(m.sending), Copies: len(m.copies), Mirroring: m.mirroring,
		Aligning: t.checkpoint, Paused: t.paused, Reads: v.Reads[:0], Tables: v.Tables[:0], task: t}
	if t.ext != nil {
		v.Sending += len(t.ext.handing)
	}
	for _, live := range m.live {
		if live {
			v.Following++
		}
	}
	for _, r := range m.rounds {
		v.Markers += len(r.seen)
	}
	for _, in := range t.ins {
		if in.Channel.Kind == core.ChanPeer {
			v.PeerConsumed += in.consumed
		}
		if in.barrier {
			v.Barriers++
		}
	}
	for _, o := range m.peerList {
		v.PeerSent += o.next - 1
	}
	for k := range t.edges {
		if e := &t.edges[k]; e.routes != nil {
			v.Reads, v.Tables = append(v.Reads, e.operator), append(v.Tables, e.routes)
		}
	}
}

// Bytes returns the size of a key group's state at the task.
func (v *View) Bytes(group uint32) int64 { return v.task.keyed.Bytes(group) }

// Fingerprint returns a hash of a key group's keys and values at the task, whatever their order.
func (v *View) Fingerprint(group uint32) uint64 {
	return v.task.keyed.(interface{ Fingerprint(uint32) uint64 }).Fingerprint(group)
}
