package operator

import (
	"errors"

	"github.com/weir-bench/weir/engine/core"
)

// The sides of a join.
const (
	leftSide  = 0
	rightSide = 1
)

// join joins two streams by key. Which side a record is of is said by the record itself (`left`), not by the channel that
// it came through: so it is still known of records that had to wait for their state, and one channel may carry both.
//
// With windows (size and slide, or end) the records of a key and window are joined when the window is over: `inner` gives
// all pairs for which `on` holds, `semi` each left record that has such a partner, once. Without windows a pair comes out
// as soon as both are there, and a record is kept until the watermark reaches `until-left` or `until-right` (for ever,
// where it is not given); one that comes later than that is dropped and counted. `unique: left` says that a key has one
// left record at most: a right record needs not be kept once that is there.
//
// Pairs have the later of both intended times, and the value and payload that `value` and `row` make of `l.` and `r.`.
type join struct {
	assigner
	left, on, value func(*env) int64
	row             []expr
	until           [2]func(*env) int64
	semi, unique    bool
	env, pair       env
	payload         []byte
}

func parseJoin(spec *core.OperatorSpec) (*join, error) {
	p := readParams(spec, "left", "on", "value", "row", "mode", "unique", "until-left", "until-right", "time", "size", "slide", "end", "lateness")
	n, sides := p.layout.names(), p.layout.sides()
	o := &join{left: p.num("left", n), on: p.num("on", sides), value: p.num("value", sides), row: p.list("row", sides)}
	o.parse(p)
	o.until = [2]func(*env) int64{p.num("until-left", n), p.num("until-right", n)}
	o.semi, o.unique = p.one("mode", "inner", "semi") == "semi", p.one("unique", "none", "left") == "left"
	p.require("left")
	p.require("row")
	switch {
	case o.windowed() && (p.has("until-left") || p.has("until-right") || o.unique):
		p.fail("left", errors.New("until-left, until-right and unique belong to joins without windows"))
	case !o.windowed() && o.semi:
		p.fail("mode", errors.New("a semi join needs windows"))
	}
	return o, p.err
}

func (o *join) Process(c *Context, in *core.Columns) {
	e := &o.env
	keepRows(c, in, e, func(key uint64, rs *rows, h *header) (changed bool) {
		rec := &e.rec[0]
		r := row{side: rightSide, due: rec.due, val: rec.val, payload: rec.payload}
		if o.left(e) != 0 {
			r.side = leftSide
		}
		if !o.windowed() {
			return o.meet(c, key, rs, h, r)
		}
		o.eachOpen(e, h, func(end int64) {
			r.at = end
			changed = o.keep(rs, r) || changed
		})
		return changed
	})
}

// keep stores a record of a window. Of a semi join without a condition one right record stands for all.
func (o *join) keep(rs *rows, r row) bool {
	if o.semi && o.on == nil && r.side == rightSide {
		for i := range rs.list {
			if x := &rs.list[i]; x.side == rightSide && x.at == r.at {
				changed := r.due > x.due
				x.due, x.val, x.payload = max(x.due, r.due), 0, nil
				return changed
			}
		}
		r.val, r.payload = 0, nil
	}
	rs.list = append(rs.list, r)
	return true
}

// meet joins a record with those that are there, and keeps it for those to come.
func (o *join) meet(c *Context, key uint64, rs *rows, h *header, r row) bool {
	r.at = EndOfTime
	if until := o.until[r.side]; until != nil {
		r.at = until(&o.env)
	}
	if h.closed(o.due(r.at)) {
		h.late++
		return false
	}
	lefts := 0
	for i := range rs.list {
		x := &rs.list[i]
		if x.side == leftSide {
			lefts++
		}
		if x.side != r.side && o.matches(key, &r, x) {
			o.emit(c, key, max(r.due, x.due))
		}
	}
	changed := false
	if o.unique && r.side == leftSide { // who waited has met it
		rs.list, changed = rs.list[:0], true
	}
	if o.unique && r.side == rightSide && lefts > 0 {
		return changed
	}
	h.next = min(h.next, o.due(r.at))
	rs.list = append(rs.list, r)
	return true
}

// matches sets up the pair of a row and one of the other side.
func (o *join) matches(key uint64, a, b *row) bool {
	for _, x := range [...]*row{a, b} {
		o.pair.rec[x.side] = record{key: key, val: x.val, due: x.due, payload: x.payload}
	}
	return o.on == nil || o.on(&o.pair) != 0
}

// emit appends the pair that is set up.
func (o *join) emit(c *Context, key uint64, due int64) {
	val := o.pair.rec[leftSide].val
	if o.value != nil {
		val = o.value(&o.pair)
	}
	o.payload = appendRow(o.payload[:0], o.row, &o.pair)
	emitRow(c, key, due, val, o.payload)
}

func (o *join) Watermark(c *Context, group uint32, wm int64) {
	var all []keyRow
	takeDue(c, group, wm, &o.assigner, func(key uint64, due []row, _ *rows) {
		if o.windowed() {
			for _, r := range due {
				all = append(all, keyRow{key, r})
			}
		}
	})
	sortKeyRows(all)
	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && all[end].key == all[i].key && all[end].row.at == all[i].row.at {
			end++
		}
		o.window(c, all[i:end])
		i = end
	}
}

// window joins the records of one key and window.
func (o *join) window(c *Context, rs []keyRow) {
	for i := range rs {
		l := &rs[i].row
		if l.side != leftSide {
			continue
		}
		due, met := l.due, false
		for k := range rs {
			r := &rs[k].row
			if r.side != rightSide || !o.matches(rs[i].key, l, r) {
				continue
			}
			if !o.semi {
				o.emit(c, rs[i].key, max(l.due, r.due))
				continue
			}
			if !met || r.due < due {
				due = r.due
			}
			met = true
		}
		if met {
			o.matches(rs[i].key, l, &row{side: rightSide})
			o.emit(c, rs[i].key, max(l.due, due))
		}
	}
}
