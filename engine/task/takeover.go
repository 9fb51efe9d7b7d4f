package task

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
)

// topology learns where tasks are now.
func (w *Worker) topology(places []core.Place) {
	if w.graph == nil {
		return
	}
	for _, p := range places {
		p.Epoch = max(p.Epoch, w.places[p.Task].Epoch)
		w.places[p.Task] = p
		for _, id := range w.graph.Tasks[p.Task].Ins {
			if o := w.outs[id]; o != nil {
				o.SetReceivers(w.nodes(p.Task))
			}
		}
		for _, id := range w.graph.Tasks[p.Task].Outs {
			if in := w.ins[id]; in != nil {
				in.Senders = w.nodes(p.Task)
				if !w.graph.Job.Bug("fence-ignored") {
					in.Epoch = max(in.Epoch, p.Epoch)
				}
			}
		}
	}
}

// fence refuses what older deployments of the named tasks send, and says of each what arrived of it and in which order it
// was made.
func (w *Worker) fence(m *core.Msg) {
	for _, p := range m.Places {
		reply := core.Msg{Type: core.MsgFenced, Task: p.Task, Epoch: m.Epoch, Received: map[int]uint64{}}
		if w.graph != nil && p.Task < len(w.tasks) {
			w.fenceTask(&reply)
		}
		w.say(reply)
	}
}

func (w *Worker) fenceTask(reply *core.Msg) {
	task, epoch := reply.Task, reply.Epoch
	w.places[task].Epoch = max(w.places[task].Epoch, epoch) // what the next one sends of its order is held
	for _, id := range w.graph.Tasks[task].Outs {
		in := w.ins[id]
		if in == nil {
			continue
		}
		if !w.graph.Job.Bug("fence-ignored") {
			in.Epoch = max(in.Epoch, epoch)
		}
		in.asked, in.held = 0, in.next
		if !in.silent {
			reply.Received[id] = in.next
		}
	}
	if held := w.holds[task]; held != nil {
		reply.OrderAfter, reply.Order = held.From(), held.AppendSince(nil, held.From())
	}
	if t := w.tasks[task]; t != nil {
		t.shipment.refused = true // its primary is not heard any more
	}
}

// promote makes a copy the primary: a standby, or one that was deployed for it. It replays the known rest of the order from
// its base on and is then free.
func (w *Worker) promote(m *core.Msg) {
	if m.Task >= len(w.tasks) || w.tasks[m.Task] == nil {
		return
	}
	t := w.tasks[m.Task]
	if t.Role != core.RoleStandby {
		return
	}
	if t.protection.Standby() && t.cold {
		t.fail(fmt.Errorf("promote: the standby has no base yet"))
		return
	}
	if err := t.follow.Merge(m.OrderAfter, m.Order); err != nil {
		t.fail(fmt.Errorf("promote: %w", err))
		return
	}
	if len(t.replay) == 0 {
		t.nextFollow()
	} else { // what is being replayed ends where follow begins
		t.replay = append(t.replay, t.follow.Runs()...)
		t.follow.Reset(t.follow.To())
	}
	t.Role, t.Epoch, t.replayed = core.RolePrimary, m.Epoch, true
	if last := t.moves.lastDone; last != nil {
		w.say(*last) // the old primary may have died before it said so
	}
	t.toOrder, t.hasOrder = nil, t.order.To()
	for _, o := range t.outs {
		o.Held, o.Epoch = false, m.Epoch
		if next := m.Received[o.Channel.ID]; t.protection.Strategy == core.RecoveryNone && next > 0 {
			o.seek(next) // what comes is new to its reader
		}
		o.takeOver(m.Received[o.Channel.ID])
		w.dirty(o)
		if len(o.behind) > 0 {
			w.gated = append(w.gated, o)
		}
	}
	if !t.running {
		t.arise()
	}
}

// arise lets a promoted copy consume that has not so far.
func (t *Task) arise() {
	t.running, t.cold = true, false
	for _, in := range t.ins {
		in.silent, in.closed = false, false
		in.open = t.protection.Strategy == core.RecoveryNone
		in.gap = in.Channel.From >= 0 // the sender may not be there yet
		t.w.askAgain(in)
	}
}

// tellAgain repeats on a channel what a reader without a past must know and is not going to be told otherwise.
func (t *Task) tellAgain(o *Out) {
	if o.Channel.Kind != core.ChanData {
		return
	}
	if now := t.marks.now; now != operator.NoWatermark && now != operator.EndOfTime && !t.marks.due {
		t.sendControl(o, core.Control{Type: core.CtlWatermark, ID: uint64(now)})
	}
	if o.ended {
		t.sendControl(o, core.Control{Type: core.CtlEnd})
	}
}

// covered trims what a complete checkpoint covers: sent inputs that its tasks have consumed, and their order.
func (w *Worker) covered(cuts map[int]*core.Position) {
	for _, o := range w.outs {
		if o != nil {
			cover(w.graph, o, cuts)
		}
	}
	for _, t := range w.local {
		if p := cuts[t.info.ID]; p != nil && t.protection.Scope == core.ScopeTask {
			t.hasOrder = max(t.hasOrder, p.Order)
		}
	}
}

func cover(g *core.Graph, o *Out, cuts map[int]*core.Position) {
	p := cuts[o.Channel.To]
	if p == nil {
		return
	}
	for i, id := range g.Tasks[o.Channel.To].Ins {
		if id == o.Channel.ID {
			o.cover(p.In[i] - 1)
		}
	}
}

// cutsTaken tells the coordinator of snapshots that were taken.
func (w *Worker) cutsTaken() {
	for i := range w.snapshots {
		if s := &w.snapshots[i]; !s.told {
			s.told = true
			w.say(core.Msg{Type: core.MsgCut, Task: s.task, ID: s.id, Epoch: s.epoch})
		}
	}
}
