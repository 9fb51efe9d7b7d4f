package task

import (
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
)

// Flow is what a task keeps besides its operator's state: without it a replay would number outputs differently. Lists by
// input are in the order of the task's inputs.
type Flow struct {
	// Watermarks are those of the inputs, Watermark the task's own and Due whether it was not passed on yet.
	Watermarks []int64
	Watermark  int64
	Due        bool
	// Source is where a source's watermarks stand; nil when it makes none.
	Source *operator.WatermarkState `json:",omitempty"`
	// Ended and Barriers tell the inputs that have ended and whose barrier of checkpoint Checkpoint has come; Blocked those
	// that wait for the others'.
	Ended, Barriers, Blocked []bool
	Checkpoint               uint64
	Aligned, Ending, Paused  bool
	// Done is what was said of the last finished round of a migration.
	Done *core.Msg `json:",omitempty"`
	// Owned are the key groups that the task owns, and Routes the tables of its links to other operators (nil for
	// a link without one).
	Owned  []uint32
	Routes []*core.Routes
}

// meta describes where the task stands. Everything that it emitted must be sealed.
func (t *Task) meta() Meta {
	m := Meta{Task: t.info.ID, Consumed: t.consumed, Position: t.position(), Flow: t.flow()}
	for _, in := range t.ins {
		if in.Channel.Kind == core.ChanFeed {
			m.FeedNext = in.consumed + 1
		}
	}
	return m
}

func (t *Task) position() core.Position {
	p := core.Position{Order: t.order.To(), In: make([]uint64, len(t.ins)), Out: make([]uint64, len(t.outs))}
	for i, in := range t.ins {
		p.In[i] = in.consumed + 1
	}
	for i, o := range t.outs {
		p.Out[i] = o.next
	}
	return p
}

func (t *Task) flow() Flow {
	f := Flow{Watermarks: append([]int64(nil), t.marks.ins...), Watermark: t.marks.now, Due: t.marks.due,
		Checkpoint: t.checkpoint, Aligned: t.aligned, Ending: t.ending, Paused: t.paused, Done: t.moves.lastDone}
	if t.marks.source != nil {
		s := t.marks.source.State()
		f.Source = &s
	}
	for _, in := range t.ins {
		f.Ended, f.Barriers, f.Blocked = append(f.Ended, in.ended), append(f.Barriers, in.barrier), append(f.Blocked, in.blocked)
	}
	if t.moves.active {
		f.Owned = t.moves.owned()
	}
	for _, e := range t.edges {
		var r *core.Routes
		if e.routes != nil {
			r = e.routes.Clone()
		}
		f.Routes = append(f.Routes, r)
	}
	return f
}

// quiet says that nothing is under way in the task but what meta tells, or its state.
func (t *Task) quiet() bool {
	m := &t.moves
	if t.ext != nil || len(t.inFlight) > 0 || t.muteTo > 0 || len(t.marks.giving) > 0 {
		return false
	}
	if len(m.rounds)+m.holding+len(m.ready)+len(m.sending)+len(m.copies)+m.mirroring+m.heldBytes > 0 {
		return false
	}
	for _, live := range m.live {
		if live {
			return false
		}
	}
	return true
}

// stand puts a task that does not run where m says. Its state must be that of m.
func (t *Task) stand(m *Meta) {
	t.order.Reset(m.Position.Order)
	t.follow.Trim(m.Position.Order) // a standby may have more already
	t.consumed = m.Consumed
	for i, in := range t.ins {
		in.seek(m.Position.In[i])
	}
	for i, o := range t.outs {
		o.seek(m.Position.Out[i])
	}
	f := &m.Flow
	if t.w.graph.Job.Bug("base-without-flow") {
		return
	}
	copy(t.marks.ins, f.Watermarks)
	t.marks.now, t.marks.due = f.Watermark, f.Due
	if f.Source != nil {
		t.marks.source.SetState(*f.Source)
	}
	t.checkpoint, t.aligned, t.ending, t.paused, t.moves.lastDone = f.Checkpoint, f.Aligned, f.Ending, f.Paused, f.Done
	for i, in := range t.ins {
		in.ended, in.barrier, in.blocked = f.Ended[i], f.Barriers[i], f.Blocked[i] && t.checkpoint > t.gone
	}
	if t.moves.active {
		clear(t.moves.owns)
		t.moves.own(f.Owned)
	}
	for i, r := range f.Routes {
		if r != nil {
			t.edges[i].routes = r.Clone()
		}
	}
}
