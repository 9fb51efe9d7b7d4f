package task

import (
	"slices"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
)

// watermarks is a task's part in event time. A source makes watermarks from the records that it has consumed; another
// task's watermark is the lowest of its data inputs, of which one that has ended counts no more. It is passed on behind
// all that it lets out.
//
// Watermarks are control inputs, numbered among the records: what is late, and what is let out, is the same in a standby
// and in a replay. The watermark that counts for a record is the one of its key group. While the group's state is on its
// way, watermarks wait behind the records that wait, and none is passed on.
type watermarks struct {
	source *operator.Watermarks // nil: the task makes none
	timed  operator.Timed       // nil: the operator does not go by event time
	ins    []int64              // by input
	now    int64
	due    bool // now was not passed on yet
	giving []*giving
}

// giving is a route change that takes key groups from the task and whose markers have not all come. From the first marker
// on, the groups' watermark stands still, since some of their records go to the new owner already and must not find
// their windows closed. When all markers have come, it becomes the lowest of the inputs' watermarks at their markers: all
// records before the markers are in the groups then, and the others wait at the new owner.
type giving struct {
	version uint64
	seen    map[int]bool // by input
	low     int64
	groups  []uint32
}

func (m *watermarks) init(t *Task) {
	m.now = operator.NoWatermark
	m.ins = make([]int64, len(t.ins))
	for i := range m.ins {
		m.ins[i] = operator.NoWatermark
	}
	m.timed, _ = t.op.(operator.Timed)
	if t.kind.Source {
		m.source = operator.NewWatermarks(t.spec)
	}
}

// applyTimed passes a source's records on with watermarks at the records that they follow from, so that they do not
// depend on where batches are cut.
func (t *Task) applyTimed(cols *core.Columns) {
	for from := 0; from < cols.Len(); {
		to, wm, advanced := t.marks.source.Next(cols, from)
		part := cols.Slice(from, to)
		t.apply(&part)
		if from = to; advanced {
			t.marks.now, t.marks.due = wm, true
			t.passWatermark()
		}
	}
}

func (t *Task) onWatermark(in int, c core.Control) {
	t.marks.ins[in] = max(t.marks.ins[in], int64(c.ID))
	t.advanceWatermark()
}

// advanceWatermark is called when an input's watermark rose or the input ended.
func (t *Task) advanceWatermark() {
	low := int64(operator.EndOfTime)
	for i, in := range t.ins {
		if in.Channel.Kind == core.ChanData && !in.ended {
			low = min(low, t.marks.ins[i])
		}
	}
	if low <= t.marks.now {
		return
	}
	t.marks.now, t.marks.due = low, true
	if t.marks.timed != nil {
		t.ctx.Out.Reset()
		for g, owned := range t.moves.owns {
			if k := t.moves.hold[g]; k > 0 && t.w.graph.Job.Bug("skip-held-watermarks") {
				continue
			} else if k > 0 {
				h := t.moves.held[k-1]
				h.marks = append(h.marks, heldMark{h.records.Len(), low})
			} else if owned && (!t.marks.given(uint32(g)) || t.w.graph.Job.Bug("close-moving-windows")) {
				t.letOut(uint32(g), low)
			}
		}
		t.routeOut()
	}
	t.passWatermark()
	if t.upstream != nil {
		t.upstream.level(t)
	}
}

// letOut appends to the context what the watermark lets out of a key group.
func (t *Task) letOut(group uint32, wm int64) {
	t.watermark(group, wm)
	if t.ctx.Out.Len() >= core.MaxBatch {
		t.routeOut()
	}
}

// routeOut routes what the operator has emitted.
func (t *Task) routeOut() {
	for k := range t.edges {
		t.route(&t.edges[k], &t.ctx.Out)
	}
	t.ctx.Out.Reset()
}

// passWatermark tells the readers, unless records wait whose results may be older. The end of the stream is told by the
// end itself.
func (t *Task) passWatermark() {
	waits := len(t.marks.giving) > 0 || t.moves.holding > 0 || t.moves.hasReady()
	if !t.marks.due || waits && !t.w.graph.Job.Bug("watermark-overtakes") {
		return
	}
	t.marks.due = false
	if t.marks.now == operator.EndOfTime {
		return
	}
	for _, o := range t.outs {
		if o.Channel.Kind == core.ChanData {
			t.sendControl(o, core.Control{Type: core.CtlWatermark, ID: uint64(t.marks.now)})
		}
	}
}

// onMarker keeps the watermarks of moving key groups right around what the marker does.
func (t *Task) onMarker(in int, c core.Control) {
	ch, err := core.DecodeRouteChange(c.Body)
	if err != nil || t.marks.timed == nil {
		t.moves.onMarker(t, in, c)
		return
	}
	g := t.marks.giver(t.info.Index, ch)
	g.seen[in] = true
	if !t.ins[in].ended {
		g.low = min(g.low, t.marks.ins[in])
	}
	if len(g.seen) == len(t.barrierIns) {
		t.marks.giving = slices.DeleteFunc(t.marks.giving, func(x *giving) bool { return x == g })
		t.ctx.Out.Reset()
		for _, group := range g.groups {
			if t.moves.owns[group] {
				t.letOut(group, g.low)
			}
		}
		t.routeOut()
	}
	t.moves.onMarker(t, in, c)
	t.end()
}

// giver returns what is known of a route change's markers.
func (m *watermarks) giver(index int, ch *core.RouteChange) *giving {
	for _, g := range m.giving {
		if g.version == ch.Version {
			return g
		}
	}
	g := &giving{version: ch.Version, seen: map[int]bool{}, low: operator.EndOfTime}
	for _, mv := range ch.Moves {
		if mv.From == index && mv.To != index {
			g.groups = append(g.groups, mv.Group)
		}
	}
	m.giving = append(m.giving, g)
	return g
}

func (m *watermarks) given(group uint32) bool {
	return slices.ContainsFunc(m.giving, func(g *giving) bool { return slices.Contains(g.groups, group) })
}

// heldMark is a watermark that waits behind the first `at` records of a key group whose state is on its way.
type heldMark struct {
	at int
	wm int64
}

// untilMark returns how many of the n records from h.off on come before the next watermark.
func (h *held) untilMark(n int) int {
	if len(h.marks) > 0 {
		n = min(n, h.marks[0].at-h.off)
	}
	return n
}

// passMarks applies the watermarks that come next.
func (h *held) passMarks(t *Task) {
	t.ctx.Out.Reset()
	for len(h.marks) > 0 && h.marks[0].at == h.off {
		t.letOut(h.group, h.marks[0].wm)
		h.marks = h.marks[1:]
	}
	t.routeOut()
}

// late returns how many records came too late for the key groups that the task owns.
func (t *Task) late() (n uint64) {
	if t.marks.timed == nil {
		return 0
	}
	for g, owned := range t.moves.owns {
		if owned {
			n += t.ctx.Late(uint32(g))
		}
	}
	return n
}
