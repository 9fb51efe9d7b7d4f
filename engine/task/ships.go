package task

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

// A ship carries a task's base to its standby: where it stands and the state there, whole or what changed since the last
// ship. The standby takes the parts as they come and puts them to use only when the primary says commit. A ship may be
// committed when everything that the task emitted before its position is in safe hands, so that whoever reads the task
// never needs an output from before the base, even if it is lost together with the task. A standby that follows by itself
// from there on may begin at once: it counts as one when that is so.
//
// Until then those who send to the task keep what it needs from its last base on. A ship is due every so often, and early
// when what was consumed since the last one comes to half of a log's bounds: a sender whose log is full would stop. Such a
// ship hurries those of the readers that it has to wait for.
//
// What tasks of one operator send to each other does not matter to that. They do so in migrations only, and behind one,
// nothing is taken over before all bases have passed it.

// The parts of a ship, and the answers to them.
const (
	shipMeta    uint64 = 1 + iota // Ext: Meta as JSON
	shipWhole                     // as shipMeta, of a ship that starts from nothing
	shipState                     // Ext: a chunk of keyed state
	shipEnd                       // there are no more parts
	shipCommit                    // the standby is to stand there
	shipGot                       // answer: all parts up to this one have come
	shipApplied                   // answer: the standby stands there
	shipWanted                    // to a reader: a base is wanted that covers number First of channel OrderAfter
)

// shipWindowBytes bounds what is under way of a ship.
const shipWindowBytes = 1 << 20

// shipPatienceNS is after how long without progress a ship begins anew.
const shipPatienceNS = 2e9

type shipPhase uint8

const (
	shipIdle      shipPhase = iota
	shipStreaming           // parts are being sent
	shipThere               // the standby has all of it
	shipCommitted           // and was told to use it
)

// ship is a primary's side.
type ship struct {
	to       int
	phase    shipPhase
	number   uint64
	position core.Position
	snap     state.Snapshot // what is left to send; nil: nothing
	ended    bool
	seq, got uint64 // last part that was sent, and that has come
	sizes    []int  // of the parts from got+1 on
	bytes    int    // their sum
	mark     *state.Mark
	next     *state.Mark // of this ship, when it is applied
	building bool        // the standby may not take over yet
	applied  bool        // it has a base
	once     bool        // it will follow by itself
	early    bool        // this ship was not due yet: a sender's log is filling
	asked    bool        // the readers that it waits for were asked to hurry
	dueNS    int64
	movedNS  int64 // when something last happened
}

// shipAtOnce begins to ship to a standby that has no base.
func (w *Worker) shipAtOnce(m *core.Msg) {
	t := w.task(m.Task, m.Epoch)
	if t == nil || t.Role != core.RolePrimary {
		return
	}
	if t.ship == nil {
		t.ship = &ship{to: -1}
	}
	t.ship.stop(t) // one that is under way may be of before
	t.ship.building, t.ship.applied = true, false
	t.ship.once = t.protection.Strategy == core.RecoveryActive
	t.tickShip(w.Clock())
}

// tickBase moves the base of a task on, if its strategy has one of its own.
func (t *Task) tickBase(nowNS int64) {
	if t.Role != core.RolePrimary || !t.running || t.failed {
		return
	}
	if t.upstream != nil {
		t.upstream.tick(t, nowNS)
	}
	if t.protection.Strategy == core.RecoveryPassive && t.ship == nil {
		t.ship = &ship{to: -1}
	}
	if t.ship != nil {
		t.tickShip(nowNS)
	}
}

func (t *Task) tickShip(nowNS int64) {
	s := t.ship
	p, _ := t.w.place(t.info.ID)
	if p.Standby != s.to {
		s.stop(t)
		s.to = p.Standby
	}
	if s.to < 0 {
		return
	}
	if s.phase != shipIdle && nowNS-s.movedNS > shipPatienceNS && s.phase != shipThere {
		s.stop(t)
	}
	if s.phase == shipIdle && nowNS >= s.dueNS && t.quiet() && !(s.once && s.applied) && !(s.building && t.holdsMore()) {
		s.begin(t, nowNS)
	}
	s.commit(t)
	s.protected(t)
}

// holdsMore says that inputs wait here which their sender, that took over from another, may have forgotten because they had
// arrived. A new standby that began before them could not get them.
func (t *Task) holdsMore() bool {
	for _, in := range t.ins {
		if in.consumed+1 < in.held && !t.w.graph.Job.Bug("standby-misses-what-waits") {
			return true
		}
	}
	return false
}

// press begins a ship early when a sender must not wait until it is due.
func (s *ship) press(t *Task, nowNS int64) {
	if s.phase != shipIdle || s.to < 0 || s.once || t.Role != core.RolePrimary || !t.running || t.failed || !t.pressed() || !t.quiet() {
		return
	}
	s.begin(t, nowNS)
	s.early = true
}

// pressed says that a sender has kept half a log for the task, or waits for a base that could be cut now.
func (t *Task) pressed() bool {
	for _, in := range t.ins {
		if in.Channel.Kind == core.ChanData && (2*int64(in.bytes) > int64(t.w.graph.Job.LogBytes)+t.w.graph.Job.SpillBytes || in.wanted > 0 && in.consumed >= in.wanted) {
			return true
		}
	}
	return false
}

// hurry asks the readers that the ship waits for, once.
func (s *ship) hurry(t *Task) {
	s.asked = true
	for i, o := range t.outs {
		n := s.position.Out[i] - 1
		if o.Channel.Kind != core.ChanData || o.safe >= n || t.w.graph.Protection(o.Channel.To).Strategy != core.RecoveryPassive {
			continue
		}
		b := t.w.pool.Get()
		p, _ := t.w.place(o.Channel.To)
		b.Kind, b.Channel, b.Epoch, b.First = core.KindShip, t.w.graph.Tasks[o.Channel.To].Ins[0], p.Epoch, n
		b.OrderAfter, b.Control.ID = uint64(o.Channel.ID), shipWanted
		if p.Node == t.w.Node {
			t.w.shipFrame(b)
			b.Release()
		} else {
			t.w.e.Sends = append(t.w.e.Sends, Send{p.Node, b})
		}
	}
}

// want takes a sender's wish for a base that covers number n of a channel.
func (t *Task) want(channel, n uint64) {
	for _, in := range t.ins {
		if uint64(in.Channel.ID) == channel {
			in.wanted = max(in.wanted, n)
		}
	}
}

// stop gives up the ship under way; the next one begins from nothing, since it is not known what the standby has.
func (s *ship) stop(t *Task) {
	if s.snap != nil {
		s.snap.Release()
	}
	for _, m := range []*state.Mark{s.mark, s.next} {
		if m != nil {
			t.keyed.Forget(*m)
		}
	}
	s.snap, s.mark, s.next, s.phase, s.sizes, s.bytes, s.dueNS = nil, nil, nil, shipIdle, s.sizes[:0], 0, 0
}

// shipBroken says that what was sent to node may be lost.
func (t *Task) shipBroken(node int) {
	if t.ship != nil && t.ship.to == node {
		t.ship.stop(t)
	}
}

func (s *ship) begin(t *Task, nowNS int64) {
	m := t.meta()
	s.number++
	s.position, s.seq, s.got, s.ended, s.phase = m.Position, 0, 0, false, shipStreaming
	s.early, s.asked = false, false
	for _, in := range t.ins {
		in.bytes = 0
		if in.wanted <= in.consumed {
			in.wanted = 0
		}
	}
	s.dueNS, s.movedNS = nowNS+int64(t.w.graph.Job.Ship), nowNS
	kind := shipWhole
	if t.keyed != nil {
		owned := t.moves.owned()
		if s.mark != nil {
			s.snap, kind = t.keyed.CutSince(owned, *s.mark), shipMeta
		} else {
			s.snap = t.keyed.Cut(owned)
		}
		next := t.keyed.Keep(s.snap)
		s.next = &next
	}
	s.part(t, kind, m.encode())
	s.stream(t)
}

// part sends one part.
func (s *ship) part(t *Task, kind uint64, body []byte) {
	s.seq++
	s.sizes = append(s.sizes, len(body))
	s.bytes += len(body)
	t.sendShip(s.to, s.number, s.seq, kind, body)
}

func (t *Task) sendShip(node int, number, seq, kind uint64, body []byte) {
	b := t.w.pool.Get()
	b.Kind, b.Channel, b.Epoch, b.First, b.OrderAfter, b.Control.ID = core.KindShip, t.info.Ins[0], t.Epoch, number, seq, kind
	b.Ext = append(b.Ext[:0], body...)
	t.w.e.Sends = append(t.w.e.Sends, Send{node, b})
}

// stream sends parts as long as there is room.
func (s *ship) stream(t *Task) {
	for !s.ended && s.bytes < shipWindowBytes {
		if s.snap != nil {
			chunk, _, _, done := s.snap.Next(t.w.chunk[:0], t.w.graph.Job.ChunkBytes)
			t.w.chunk = chunk
			if !done || len(chunk) > 0 {
				s.part(t, shipState, chunk)
			}
			if !done {
				continue
			}
			s.snap.Release()
			s.snap = nil
		}
		s.ended = true
		s.part(t, shipEnd, nil)
	}
}

// commit commits a ship that has come whole, once it may be.
func (s *ship) commit(t *Task) {
	if s.phase != shipThere || t.Role != core.RolePrimary {
		return
	}
	if !s.once && !t.outsSafe(s.position.Out) && !t.w.graph.Job.Bug("ship-committed-early") {
		if !s.asked && (s.early || t.pressed()) {
			s.hurry(t)
		}
		return
	}
	s.phase, s.movedNS = shipCommitted, t.w.Clock()
	t.sendShip(s.to, s.number, s.seq, shipCommit, nil)
}

// answer takes the standby's word.
func (s *ship) answer(t *Task, b *core.Batch) {
	if b.First != s.number || s.phase == shipIdle {
		return
	}
	s.movedNS = t.w.Clock()
	switch b.Control.ID {
	case shipGot:
		for s.got < b.OrderAfter && len(s.sizes) > 0 {
			s.bytes -= s.sizes[0]
			s.sizes = s.sizes[1:]
			s.got++
		}
		s.stream(t)
		if s.ended && s.got == s.seq && s.phase == shipStreaming {
			s.phase = shipThere
			s.commit(t)
		}
	case shipApplied:
		if s.mark != nil {
			t.keyed.Forget(*s.mark)
		}
		s.mark, s.next, s.phase = s.next, nil, shipIdle
		s.applied = true
		s.protected(t)
		if s.once && s.mark != nil {
			t.keyed.Forget(*s.mark)
			s.mark = nil
		}
	}
}

// protected tells the coordinator that the standby which was being built may take over.
func (s *ship) protected(t *Task) {
	if s.building && s.applied && t.outsSafe(s.position.Out) {
		s.building = false
		t.w.say(core.Msg{Type: core.MsgProtected, Task: t.info.ID, Epoch: t.Epoch})
	}
}

// shipment is what a standby has of the ship under way.
type shipment struct {
	number, seq uint64
	whole       bool
	meta        []byte
	parts       [][]byte
	complete    bool
	refused     bool // the primary is fenced
}

// shipFrame takes a part of a ship at the standby, an answer at the primary.
func (w *Worker) shipFrame(b *core.Batch) {
	c := w.graph.Channels[b.Channel]
	if c.Kind != core.ChanControl {
		return
	}
	t := w.tasks[c.To]
	if t == nil || b.Epoch != t.Epoch {
		return
	}
	switch {
	case b.Control.ID == shipWanted:
		t.want(b.OrderAfter, b.First)
	case t.Role != core.RolePrimary:
		t.takeShip(b)
	case t.ship != nil:
		t.ship.answer(t, b)
	}
}

func (t *Task) takeShip(b *core.Batch) {
	s := &t.shipment
	kind := b.Control.ID
	if s.refused {
		return
	}
	if t.running { // it follows already; that word was lost
		if kind == shipWhole {
			p, _ := t.w.place(t.info.ID)
			t.sendShip(p.Node, b.First, 0, shipApplied, nil)
		}
		return
	}
	if b.First < s.number {
		return // of a connection that broke
	}
	if kind == shipMeta || kind == shipWhole {
		*s = shipment{number: b.First, whole: kind == shipWhole, meta: append([]byte(nil), b.Ext...)}
	} else if b.First != s.number || kind != shipCommit && b.OrderAfter != s.seq+1 {
		return // of a ship whose beginning was lost
	}
	switch kind {
	case shipState:
		s.parts = append(s.parts, append([]byte(nil), b.Ext...))
	case shipEnd:
		s.complete = true
	case shipCommit:
		if s.complete {
			t.adopt(s)
		}
		return
	}
	s.seq = b.OrderAfter
	p, _ := t.w.place(t.info.ID)
	t.sendShip(p.Node, s.number, s.seq, shipGot, nil)
}

// adopt puts a ship to use: the standby's base is there from now on.
func (t *Task) adopt(s *shipment) {
	var m Meta
	err := json.Unmarshal(s.meta, &m)
	if err == nil && t.keyed != nil {
		for g := range t.moves.owns {
			if s.whole {
				t.keyed.Drop(uint32(g))
			}
		}
		err = install(t.keyed, s.parts)
	}
	if err == nil {
		err = t.standAt(s.meta)
	}
	if err != nil {
		t.fail(fmt.Errorf("take over a ship of state: %w", err))
		return
	}
	if t.keyed != nil {
		for g, owned := range t.moves.owns {
			if !owned {
				t.keyed.Drop(uint32(g)) // it was given away since the last ship
			}
		}
	}
	t.dropInFlight()
	number := s.number
	*s = shipment{number: number}
	t.cold = false
	if t.onlyBase() {
		for _, in := range t.ins {
			in.silent, in.closed = false, true
			t.w.askAgain(in)
		}
	} else {
		t.arise()
	}
	t.w.sendOrderHave(t)
	p, _ := t.w.place(t.info.ID)
	t.sendShip(p.Node, number, 0, shipApplied, nil)
	if !slices.Contains(m.Flow.Barriers, true) { // it stands behind that checkpoint
		t.w.say(core.Msg{Type: core.MsgCut, Task: t.info.ID, ID: m.Flow.Checkpoint, Epoch: t.Epoch})
	}
}
