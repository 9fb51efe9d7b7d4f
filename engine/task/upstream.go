package task

import (
	"encoding/json"
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
)

// upstream finds the base of a task of strategy upstream (upstream backup: Hwang et al., ICDE 2005): a position from which
// a task with empty state, fed what came since, is in the state it has now.
//
// The task remembers candidates, positions with the highest event time of any record before, and levels, positions right
// behind a watermark. When all that was emitted up to a level is in safe hands, everything before the newest candidate
// whose records all belong to windows closed at the level is needed no more. The base is that candidate with that level: a
// replay begins at the candidate with the level's watermark and emits nothing until it is behind the level, as that was
// emitted before. Without windows there is nothing open, and a candidate is its own level.
type upstream struct {
	op         operator.Bounded // nil: the operator keeps nothing
	greatest   int64
	candidates []candidate
	levels     []level
	levelNS    int64
	id, kept   uint64
	told       core.Position // of the base that was told last
}

type candidate struct {
	meta     Meta
	greatest int64
}

type level struct {
	watermark int64
	order     uint64
	out       []uint64
	late      uint64
}

// upstreamBase is a base as the coordinator keeps it.
type upstreamBase struct {
	Meta     Meta
	Greatest int64
	// Watermark is the level's, MuteTo its order position, Out where outputs go on behind it and Late how many records had
	// come too late.
	Watermark int64
	MuteTo    uint64
	Out       []uint64
	Late      uint64
}

const (
	candidateNS   = 50e6 // between two candidates, and two bases
	levelNS       = 10e6
	maxCandidates = 128
)

func newUpstream(t *Task) *upstream {
	u := &upstream{greatest: operator.NoWatermark}
	u.op, _ = t.op.(operator.Bounded)
	return u
}

// saw is called with the records that the task works on.
func (u *upstream) saw(cols *core.Columns) {
	for i := range cols.Keys {
		u.greatest = max(u.greatest, u.op.EventTime(cols, i))
	}
}

// loaded is called when the task's state came from a checkpoint: what is in it lies before every candidate.
func (u *upstream) loaded(t *Task) {
	if u.op == nil {
		return
	}
	for g, owned := range t.moves.owns {
		if owned {
			u.greatest = max(u.greatest, u.op.Newest(&t.ctx, uint32(g)))
		}
	}
}

// level remembers a position right behind a watermark.
func (u *upstream) level(t *Task) {
	now := t.w.Clock()
	if u.op == nil || t.Role != core.RolePrimary || !t.quiet() || now-u.levelNS < levelNS && t.marks.now != operator.EndOfTime {
		return
	}
	u.levelNS = now
	t.flush()
	l := level{watermark: t.marks.now, order: t.order.To(), late: t.late()}
	for _, o := range t.outs {
		l.out = append(l.out, o.next)
	}
	u.levels = thin(append(u.levels, l))
}

// thin drops every second element of a list that has become too long, but not the last.
func thin[T any](s []T) []T {
	if len(s) < maxCandidates {
		return s
	}
	n := 0
	for i := 1; i < len(s); i += 2 {
		s[n] = s[i]
		n++
	}
	clear(s[n:])
	return s[:n]
}

// tick remembers a candidate and tells the coordinator of a base that is newer than the last one.
func (u *upstream) tick(t *Task, nowNS int64) {
	if !t.quiet() {
		return
	}
	u.candidates = thin(append(u.candidates, candidate{t.meta(), u.greatest}))
	if u.id > u.kept {
		return // one at a time
	}
	b, ok := u.base(t)
	if !ok {
		return
	}
	body, err := json.Marshal(b)
	if err != nil {
		panic(err) // plain numbers
	}
	u.id++
	u.told = b.Meta.Position
	t.w.orderTo(Harness) // ahead of the base on the same connection: who has the base can replay up to its level
	t.w.say(core.Msg{Type: core.MsgBase, Task: t.info.ID, Epoch: t.Epoch, ID: u.id, Base: body})
}

// outsSafe says whether all outputs before the given numbers are in safe hands.
func (t *Task) outsSafe(before []uint64) bool {
	for i, o := range t.outs {
		if o.safe+1 < before[i] && o.Channel.Kind != core.ChanPeer {
			return false
		}
	}
	return true
}

// base finds the newest base and forgets what lies before it.
func (u *upstream) base(t *Task) (b upstreamBase, ok bool) {
	if u.op == nil {
		k := -1
		for i := range u.candidates {
			if t.outsSafe(u.candidates[i].meta.Position.Out) || t.w.graph.Job.Bug("base-before-safe") {
				k = i
			}
		}
		if k < 0 {
			return b, false
		}
		c := u.candidates[k]
		u.candidates = append(u.candidates[:0], u.candidates[k+1:]...)
		return upstreamBase{Meta: c.meta, Greatest: c.greatest}, true
	}
	l := -1
	for i := range u.levels {
		if t.outsSafe(u.levels[i].out) || t.w.graph.Job.Bug("base-before-safe") {
			l = i
		}
	}
	if l < 0 {
		return b, false
	}
	lv := u.levels[l]
	open, k := u.op.OpenFrom(lv.watermark), -1
	for i := range u.candidates {
		c := &u.candidates[i]
		if c.meta.Position.Order <= lv.order && (c.greatest < open || t.w.graph.Job.Bug("forgets-open-window")) {
			k = i
		}
	}
	u.levels = append(u.levels[:0], u.levels[l:]...)
	if k < 0 {
		return b, false
	}
	c := u.candidates[k]
	u.candidates = append(u.candidates[:0], u.candidates[k+1:]...)
	return upstreamBase{Meta: c.meta, Greatest: c.greatest, Watermark: lv.watermark, MuteTo: lv.order, Out: lv.out, Late: lv.late}, true
}

// baseKept says that the coordinator has a base: what lies before it may be forgotten by everybody.
func (w *Worker) baseKept(m *core.Msg) {
	t := w.task(m.Task, m.Epoch)
	if t == nil || t.upstream == nil || m.ID != t.upstream.id {
		return
	}
	u := t.upstream
	u.kept = m.ID
	t.hasOrder = max(t.hasOrder, u.told.Order)
	for i, in := range t.ins {
		in.kept = max(in.kept, u.told.In[i]-1)
		w.askAgainSafely(in)
	}
}

// askAgainSafely tells the sender what is safe without asking for anything.
func (w *Worker) askAgainSafely(in *In) { w.sendAck(in, w.Clock(), false, true) }

// resume puts a fresh task at a base.
func (u *upstream) resume(t *Task, body []byte) error {
	var b upstreamBase
	if err := json.Unmarshal(body, &b); err != nil {
		return fmt.Errorf("base of task %d: %w", t.info.ID, err)
	}
	meta, err := json.Marshal(b.Meta)
	if err != nil {
		return err
	}
	if err := t.standAt(meta); err != nil {
		return err
	}
	u.greatest = b.Greatest
	if u.op == nil {
		return nil
	}
	for g, owned := range t.moves.owns {
		if owned {
			u.op.Resume(&t.ctx, uint32(g), b.Watermark, 0)
		}
	}
	if b.MuteTo == b.Meta.Position.Order {
		t.setLate(b.Late)
		return nil
	}
	t.muteTo = b.MuteTo
	u.levels = append(u.levels[:0], level{late: b.Late})
	for i, o := range t.outs {
		o.seek(b.Out[i])
		o.muted = true
	}
	return nil
}

// unmute is called when a replay has come to the level of its base: what comes now was perhaps not emitted before.
func (t *Task) unmute() {
	t.flush()
	for _, o := range t.outs {
		o.muted = false
	}
	t.muteTo = 0
	u := t.upstream
	t.setLate(u.levels[0].late)
	u.levels = u.levels[:0]
}

// setLate says how many records came too late for the key groups that the task owns, all in all.
func (t *Task) setLate(n uint64) {
	for g, owned := range t.moves.owns {
		if owned {
			t.upstream.op.Resume(&t.ctx, uint32(g), operator.NoWatermark, n)
			n = 0
		}
	}
}
