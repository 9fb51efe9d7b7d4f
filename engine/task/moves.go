package task

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

// moves is a keyed task's part in migrations: which key groups it owns, which it waits for, and which it is sending.
//
// A round is a route change. Its markers follow the last records routed by the old table. The giving task waits for the
// markers of all its inputs, cuts the groups and streams them to the peers; the getting task holds the records of a
// group from the first marker until the group's last chunk is installed, then works on them in their order.
type moves struct {
	active   bool     // the operator is keyed
	owns     []bool   // by group
	hold     []int32  // by group: index+1 in held, 0 when records need not wait
	held     []*held  // groups whose state is on its way
	holding  int      // groups in held
	ready    []*held  // installed, their records not yet worked on
	rounds   []*round // under way
	sending  []*transfer
	peers    map[int]*Out // by task index
	peerList []*Out       // the same, in the order of their channels
	// lastDone is what was or, by a standby, would have been said of the last finished round.
	lastDone *core.Msg
	copies   []copied
	replicas
	// heldBytes is about the size of what waits; beyond the job's LogBytes no data is consumed until state has come, see noRoom.
	heldBytes int
	blocked   blocked
	throttle  throttle
}

// copied is what was sent ahead to one new owner, up to a mark.
type copied struct {
	to     int
	groups []uint32
	mark   state.Mark
}

type held struct {
	group   uint32
	records core.Columns
	from    int // task index of the giver
	asked   bool
	round   *round // whose state it waited for, once that is here
	off     int
	marks   []heldMark
	readyNS int64
}

type round struct {
	version uint64
	change  *core.RouteChange
	seen    map[int]bool // by input index
	left    int          // groups that this task still waits for
	early   map[uint32]bool
	bytes   int64
	waited  uint64
	clock   roundClock
}

type transfer struct {
	version uint64
	copy    bool
	limit   uint64 // bytes a second; 0: none
	bytes   int64
	to      *Out
	snap    state.Snapshot
	// yours are groups of which the new owner needs no state but the word, when snap is nil.
	yours  []uint32
	behind []gate
}

// gate is an output that must have been consumed up to a number before state goes out: else the new owner's first answer
// for a key could overtake the old owner's last at a task that reads both.
type gate struct {
	out  *Out
	upto uint64
}

// passed says whether the reader has said to have consumed what it must. That outputs have arrived is not enough: they wait
// there, and the new owner's would be taken first.
func (g gate) passed() bool {
	return len(g.out.receivers) == 0 || g.out.receivers[0].done >= g.upto
}

func (m *moves) init(t *Task) {
	m.active = t.keyed != nil
	if !m.active {
		return
	}
	m.owns = make([]bool, t.spec.Groups)
	m.hold = make([]int32, t.spec.Groups)
	m.replicas.init(t.spec.Groups)
	m.peers = map[int]*Out{}
	for _, o := range t.outs {
		if o.Channel.Kind == core.ChanPeer {
			m.peers[t.w.graph.Tasks[o.Channel.To].Index] = o
			m.peerList = append(m.peerList, o)
		}
	}
}

// own sets the groups the task starts with.
func (m *moves) own(groups []uint32) {
	for _, g := range groups {
		m.owns[g] = true
	}
}

// owned returns the groups the task owns, in ascending order.
func (m *moves) owned() []uint32 {
	var gs []uint32
	for g, o := range m.owns {
		if o {
			gs = append(gs, uint32(g))
		}
	}
	return gs
}

func (m *moves) round(version uint64, change *core.RouteChange) *round {
	for _, r := range m.rounds {
		if r.version == version {
			return r
		}
	}
	r := &round{version: version, change: change, seen: map[int]bool{}, early: map[uint32]bool{}, left: -1}
	m.rounds = append(m.rounds, r)
	return r
}

func (m *moves) onMarker(t *Task, in int, c core.Control) {
	ch, err := core.DecodeRouteChange(c.Body)
	if err != nil || !m.active || ch.Operator != t.info.Operator {
		t.fail(fmt.Errorf("marker of route version %d is not for this task (%v)", c.ID, err))
		return
	}
	r := m.round(c.ID, ch)
	r.change = ch
	if len(r.seen) == 0 {
		m.begin(t, r)
		r.clock.mark(t.w.Clock())
	}
	r.seen[in] = true
	if ch.Mode == core.MovePause {
		t.ins[in].paused = true
		m.blocked.set(m.blocked.waiting, true, t.w.Clock())
	}
	if len(r.seen) == len(t.barrierIns) || t.w.graph.Job.Bug("give-at-first-marker") && len(r.seen) == 1 {
		m.give(t, r)
		m.finish(t, r)
	}
}

// begin holds the records of the groups that the task gets and whose state has not come yet.
func (m *moves) begin(t *Task, r *round) {
	r.left = 0
	for _, mv := range r.change.Moves {
		if mv.To != t.info.Index || mv.From == t.info.Index || r.early[mv.Group] {
			continue
		}
		r.left++
		m.held = append(m.held, &held{group: mv.Group, from: mv.From})
		m.hold[mv.Group] = int32(len(m.held))
		m.holding++
	}
}

// give cuts the groups that the task gives away and queues them for their new owners.
func (m *moves) give(t *Task, r *round) {
	byTask := map[int][]uint32{}
	for _, mv := range r.change.Moves {
		if mv.From == t.info.Index && mv.To != t.info.Index {
			byTask[mv.To] = append(byTask[mv.To], mv.Group)
			if t.ctx.Blob != nil && t.w.graph.Job.Bug("timers-stay") {
				t.ctx.Blob.Delete(mv.Group, ^uint64(0))
			}
		}
	}
	behind := t.answered(len(byTask) > 0)
	for to := 0; to < t.spec.Parallelism; to++ {
		groups := byTask[to]
		if len(groups) == 0 {
			continue
		}
		if r.change.Mode == core.MoveReplica {
			m.handOver(t, r, to, groups, behind)
			continue
		}
		if r.change.Mode == core.MoveDemand {
			sort.SliceStable(groups, func(i, j int) bool { return t.ctx.Loads[groups[i]] > t.ctx.Loads[groups[j]] })
		}
		if t.ext != nil {
			t.ext.give(r.version, m.peers[to], groups, behind)
		} else {
			m.sending = append(m.sending, &transfer{version: r.version, to: m.peers[to], snap: m.cutFor(t, r, to, groups), behind: behind, limit: r.change.BandwidthBytes})
		}
		for _, g := range groups {
			if !m.owns[g] {
				t.fail(fmt.Errorf("route version %d takes key group %d, which the task does not own", r.version, g))
				return
			}
			m.owns[g] = t.w.graph.Job.Bug("giver-keeps-groups")
			if !t.w.graph.Job.Bug("giver-keeps-state") {
				t.keyed.Drop(g)
			}
		}
	}
	if t.ext != nil {
		t.ext.gave(t)
	}
}

// stream emits the next chunk of the state being given away; it returns 1 if there was one and room for it.
func (m *moves) stream(t *Task) int {
	if len(m.sending) == 0 || m.full() {
		return 0
	}
	tr := m.sending[0]
	for len(tr.behind) > 0 {
		if g := tr.behind[0]; g.out.Held {
			tr.to.sendBehind(g) // a standby need not wait, but when it takes over, its chunks must
		} else if !g.passed() {
			return 0
		}
		tr.behind = tr.behind[1:]
	}
	if tr.snap == nil {
		m.streamWord(t, tr)
		return 1
	}
	now := t.w.Clock()
	if tr.limit > 0 && !m.throttle.ready(now, t.w.e) {
		return 0
	}
	chunk, group, last, done := tr.snap.Next(t.w.chunk[:0], t.w.graph.Job.ChunkBytes)
	t.w.chunk = chunk
	if !done || len(chunk) > 0 {
		t.w.body = core.AppendStateChunk(t.w.body[:0], &core.StateChunk{Group: group, Last: last || t.w.graph.Job.Bug("last-too-early"), Copy: tr.copy, Data: chunk})
		m.gone(t, tr, len(chunk), now)
		t.sendControl(tr.to, core.Control{Type: core.CtlState, ID: tr.version, Body: t.w.body})
	}
	if done {
		if err := unread(tr.snap); err != nil {
			t.fail(fmt.Errorf("give key groups away: %w", err))
			return 0
		}
		tr.snap.Release()
		m.sent(t, tr)
	}
	return 1
}

// gone accounts for a chunk of n bytes that is about to go.
func (m *moves) gone(t *Task, tr *transfer, n int, nowNS int64) {
	tr.bytes += int64(n)
	if tr.limit > 0 {
		m.throttle.sent(n, tr.limit, nowNS)
	}
	for _, r := range m.rounds {
		if r.version == tr.version && !tr.copy {
			r.clock.chunk(nowNS, t.w.Clock())
			r.clock.sent += int64(n)
		}
	}
}

// streamWord tells the new owner that the next group is its own.
func (m *moves) streamWord(t *Task, tr *transfer) {
	t.w.body = core.AppendStateChunk(t.w.body[:0], &core.StateChunk{Group: tr.yours[0], Last: true})
	m.gone(t, tr, 0, t.w.Clock())
	t.sendControl(tr.to, core.Control{Type: core.CtlState, ID: tr.version, Body: t.w.body})
	if tr.yours = tr.yours[1:]; len(tr.yours) == 0 {
		m.sent(t, tr)
	}
}

// sent ends the transfer under way.
func (m *moves) sent(t *Task, tr *transfer) {
	m.sending = append(m.sending[:0], m.sending[1:]...)
	if tr.copy {
		m.copyDone(t, tr)
	}
	for _, r := range slices.Clone(m.rounds) {
		m.finish(t, r)
	}
}

// peerLogBytes bounds the chunks that wait for the new owner's acknowledgement.
const peerLogBytes = 1 << 20

// full says that the next chunk has no room. A standby's chunks leave its log only when the primary's arrive.
func (m *moves) full() bool {
	if len(m.sending) == 0 {
		return false
	}
	o := m.sending[0].to
	return !o.Held && o.logBytes > peerLogBytes
}

// onState installs a chunk. With the group's last chunk its waiting records become ready.
func (m *moves) onState(t *Task, c core.Control, nowNS int64) {
	if t.Role == core.RoleStandby && t.w.graph.Job.Bug("standby-skips-chunks") {
		return
	}
	began := t.w.Clock()
	chunk, err := core.DecodeStateChunk(c.Body)
	if err == nil && len(chunk.Data) > 0 {
		err = t.keyed.Install(chunk.Group, chunk.Data)
	}
	if err != nil {
		t.fail(fmt.Errorf("install key group %d of route version %d: %w", chunk.Group, c.ID, err))
		return
	}
	if chunk.Copy && !t.w.graph.Job.Bug("own-what-is-copied") {
		if chunk.Last {
			m.alive(t, chunk.Group)
		}
		return // its owner is still the giver
	}
	r := m.round(c.ID, nil)
	r.bytes += int64(len(chunk.Data))
	ended := t.w.Clock()
	r.clock.chunk(began, ended)
	r.clock.install += time.Duration(ended - began)
	if !chunk.Last {
		return
	}
	m.owns[chunk.Group], m.live[chunk.Group] = true, false
	k := m.hold[chunk.Group]
	if k == 0 { // the state was faster than the first marker
		r.early[chunk.Group] = true
		return
	}
	h := m.held[k-1]
	h.readyNS = nowNS
	m.hold[chunk.Group] = 0
	m.holding--
	if m.holding == 0 {
		m.held = m.held[:0]
	}
	r.left--
	r.waited += uint64(h.records.Len())
	m.heldBytes -= recordBytes * h.records.Len()
	if h.records.Len()+len(h.marks) > 0 && !t.w.graph.Job.Bug("drop-moving-buffer") {
		m.ready = append(m.ready, h)
		h.round = r
		r.clock.undrained++
	}
	t.end()
	m.finish(t, r)
}

// finish reports a round in which the task has nothing left to do.
func (m *moves) finish(t *Task, r *round) {
	if len(r.seen) < len(t.barrierIns) || r.left > 0 {
		return
	}
	for _, tr := range m.sending {
		if tr.version == r.version && !tr.copy {
			return
		}
	}
	if t.ext != nil && t.ext.handsOver(r.version) {
		return
	}
	for i, x := range m.rounds {
		if x == r {
			m.rounds = append(m.rounds[:i], m.rounds[i+1:]...)
			for _, in := range t.ins {
				in.paused = false
			}
			m.blocked.set(m.blocked.waiting, false, t.w.Clock())
			t.heldRecords += r.waited
			if t.Role == core.RoleStandby && t.w.graph.Job.Bug("word-dies-with-primary") {
				return
			}
			m.lastDone = &core.Msg{Type: core.MsgMoved, Task: t.info.ID, ID: r.version, Bytes: r.bytes, Records: r.waited}
			if t.Role == core.RolePrimary {
				t.w.sayDone(m.lastDone)
			}
			r.clock.finished = true
			m.report(t, r)
			return
		}
	}
}

// split works on the records of cols that need not wait and keeps the others with their groups.
func (m *moves) split(t *Task, cols *core.Columns) {
	pass := &t.w.pass
	pass.Reset()
	for i, key := range cols.Keys {
		if k := m.hold[core.KeyGroup(key, t.spec.Groups)]; k > 0 && !t.w.graph.Job.Bug("skip-hold") {
			m.wait(t, m.held[k-1], cols, i)
			continue
		}
		pass.Append(cols, i)
	}
	if pass.Len() > 0 {
		t.apply(pass)
	}
}

func (m *moves) hasReady() bool { return len(m.ready) > 0 }

// drain works on records that had to wait; it comes before any further input, so that the order within a key holds.
func (m *moves) drain(t *Task, nowNS int64, e *Effects) int {
	if t.w.graph.Job.Bug("input-overtakes-held") {
		if i, limit := t.pick(); i >= 0 {
			return t.consume(i, limit, nowNS, e)
		}
	}
	h := m.ready[0]
	n := h.untilMark(min(h.records.Len()-h.off, core.MaxBatch))
	if n > 0 {
		cols := h.records.Slice(h.off, h.off+n)
		if t.ext != nil && !t.ext.ready(t, &cols) {
			return 0
		}
		if n = t.serve(&cols, uint64(h.off), false, h.readyNS, nowNS, e); n == 0 {
			return 0
		}
		cols = h.records.Slice(h.off, h.off+n)
		t.apply(&cols)
		h.off += n
		m.blocked.set(m.blocked.waiting-n, m.blocked.paused, t.w.Clock())
	}
	h.passMarks(t)
	if h.off == h.records.Len() && len(h.marks) == 0 {
		m.ready = append(m.ready[:0], m.ready[1:]...)
		h.round.clock.undrained--
		m.report(t, h.round)
		t.end()
	}
	return max(n, 1)
}

// cutFor cuts groups for their new owner: whole, or what changed since they were copied ahead.
func (m *moves) cutFor(t *Task, r *round, to int, groups []uint32) state.Snapshot {
	if r.change.Mode == core.MoveDelta {
		if t.w.graph.Job.Bug("skip-last-delta") {
			return t.keyed.Cut(nil)
		}
		return m.cutSinceCopy(t, to, groups)
	}
	if k, ok := t.keyed.(state.Taker); ok && !t.w.graph.Job.Bug("giver-keeps-state") {
		return k.Take(groups)
	}
	return t.keyed.Cut(groups)
}

// cutSinceCopy cuts what changed of groups since they were copied ahead to a task, or all where they were not.
func (m *moves) cutSinceCopy(t *Task, to int, groups []uint32) state.Snapshot {
	for i, c := range m.copies {
		if c.to == to && slices.Equal(c.groups, groups) {
			snap := t.keyed.CutSince(groups, c.mark)
			t.keyed.Forget(c.mark)
			m.copies = append(m.copies[:i], m.copies[i+1:]...)
			return snap
		}
	}
	return t.keyed.Cut(groups)
}

// onCopy sends state ahead while the task goes on with it: whole the first time, then what changed since the last copy.
// Each copy is asked for by a control input, so that a standby cuts at the same place.
func (m *moves) onCopy(t *Task, c core.Control) {
	ch, err := core.DecodeRouteChange(c.Body)
	if err != nil || !m.active {
		t.fail(fmt.Errorf("copy %d is not for this task (%v)", c.ID, err))
		return
	}
	for to := 0; to < t.spec.Parallelism; to++ {
		var groups []uint32
		for _, mv := range ch.Moves {
			if mv.From == t.info.Index && mv.To == to && to != t.info.Index {
				groups = append(groups, mv.Group)
			}
		}
		if len(groups) == 0 {
			continue
		}
		snap := m.cutSinceCopy(t, to, groups)
		if ch.Mode == core.MoveReplica {
			m.mirrorTo(to, groups)
		} else {
			m.copies = append(m.copies, copied{to, groups, t.keyed.Keep(snap)})
		}
		m.sending = append(m.sending, &transfer{version: c.ID, copy: true, to: m.peers[to], snap: snap, limit: ch.BandwidthBytes})
	}
}

// copyDone tells the coordinator that a copy has been sent whole.
func (m *moves) copyDone(t *Task, tr *transfer) {
	for _, other := range m.sending {
		if other.copy && other.version == tr.version {
			other.bytes += tr.bytes
			return
		}
	}
	m.lastDone = &core.Msg{Type: core.MsgCopied, Task: t.info.ID, ID: tr.version, Bytes: tr.bytes}
	if t.Role == core.RolePrimary {
		t.w.sayDone(m.lastDone)
	}
}

// noRoom says that nothing may be taken from a data input, as too much waits. An input whose marker of a round has not come
// is not closed: the state may be waiting for that marker, or for its sender, which has no room for it.
func (m *moves) noRoom(t *Task, in int) bool {
	if m.heldBytes <= t.w.graph.Job.LogBytes {
		return false
	}
	for _, r := range m.rounds {
		if r.change != nil && !r.seen[in] && !t.w.graph.Job.Bug("full-before-marker") {
			return false
		}
	}
	return true
}

// wait keeps a record until its group's state is there; in mode MoveDemand the giver is asked for it, once.
func (m *moves) wait(t *Task, h *held, cols *core.Columns, i int) {
	h.records.Append(cols, i)
	m.heldBytes += recordBytes
	if m.blocked.waiting == 0 {
		m.blocked.set(1, m.blocked.paused, t.w.Clock())
	} else {
		m.blocked.waiting++
	}
	if h.asked {
		return
	}
	h.asked = true
	for _, r := range m.rounds {
		if r.change == nil || r.change.Mode != core.MoveDemand {
			continue
		}
		for _, mv := range r.change.Moves {
			if mv.Group == h.group {
				body := binary.LittleEndian.AppendUint32(nil, h.group)
				t.sendControl(m.peers[h.from], core.Control{Type: core.CtlFetch, ID: r.version, Body: body})
				return
			}
		}
	}
}

// onFetch puts a key group before those that nobody has asked for.
func (m *moves) onFetch(t *Task, c core.Control) {
	if len(c.Body) != 4 {
		t.fail(fmt.Errorf("fetch of route version %d has a body of %d bytes", c.ID, len(c.Body)))
		return
	}
	group := binary.LittleEndian.Uint32(c.Body)
	for _, tr := range m.sending {
		if tr.version == c.ID && !tr.copy && tr.snap.Prefer(group) {
			return
		}
	}
}

// answered asks the readers of the task's outputs to acknowledge all that was emitted, and returns what to wait for.
func (t *Task) answered(ask bool) []gate {
	if !ask || t.w.graph.Job.Bug("state-overtakes-answers") {
		return nil
	}
	var gates []gate
	for _, o := range t.outs {
		if o.Channel.Kind == core.ChanData || o.Channel.Kind == core.ChanOut {
			t.sendControl(o, core.Control{Type: core.CtlTick})
			gates = append(gates, gate{o, o.next - 1})
		}
	}
	return gates
}
