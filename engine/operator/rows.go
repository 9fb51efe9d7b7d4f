package operator

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/weir-bench/weir/engine/core"
)

var errMultiple = errors.New("it must be a multiple of the slide")

// row is a record that an operator keeps. Rows read from the state share its memory, which never changes.
type row struct {
	at       int64 // the watermark at which it is due: the window's end, or until when it is kept; without lateness
	side     byte
	order    []int64
	due, val int64
	payload  []byte
}

// rows is the value of a key: its rows and, for some operators, numbers beside them.
type rows struct {
	past []int64
	list []row
}

func decodeRows(v []byte) rows {
	var rs rows
	if len(v) == 0 {
		return rs
	}
	le := binary.LittleEndian
	count := func() int {
		n := int(le.Uint32(v))
		v = v[4:]
		return n
	}
	num := func() int64 {
		n := int64(le.Uint64(v))
		v = v[8:]
		return n
	}
	nums := func() []int64 {
		out := make([]int64, count())
		for i := range out {
			out[i] = num()
		}
		return out
	}
	rs.past = nums()
	rs.list = make([]row, count())
	for i := range rs.list {
		r := &rs.list[i]
		r.at, r.due, r.val = num(), num(), num()
		r.side = v[0]
		v = v[1:]
		r.order = nums()
		n := count()
		r.payload, v = v[:n:n], v[n:]
	}
	return rs
}

// encode returns the value, nil when nothing is in it.
func (rs *rows) encode() []byte {
	if len(rs.past)+len(rs.list) == 0 {
		return nil
	}
	var v []byte
	le := binary.LittleEndian
	nums := func(ns []int64) {
		v = le.AppendUint32(v, uint32(len(ns)))
		for _, n := range ns {
			v = le.AppendUint64(v, uint64(n))
		}
	}
	nums(rs.past)
	v = le.AppendUint32(v, uint32(len(rs.list)))
	for i := range rs.list {
		r := &rs.list[i]
		for _, n := range [...]int64{r.at, r.due, r.val} {
			v = le.AppendUint64(v, uint64(n))
		}
		v = append(v, r.side)
		nums(r.order)
		v = le.AppendUint32(v, uint32(len(r.payload)))
		v = append(v, r.payload...)
	}
	return v
}

func evalAll(xs []func(*env) int64, e *env) []int64 {
	out := make([]int64, len(xs))
	for i, x := range xs {
		out[i] = x(e)
	}
	return out
}

// compareRows orders rows by when they are due, by their order and then by their content, so that the order in which
// they came does not show.
func compareRows(a, b *row) int {
	return cmp.Or(cmp.Compare(a.at, b.at), slices.Compare(a.order, b.order), cmp.Compare(a.val, b.val),
		bytes.Compare(a.payload, b.payload), cmp.Compare(a.due, b.due), cmp.Compare(a.side, b.side))
}

// keyRow is a row that is due.
type keyRow struct {
	key uint64
	row row
}

func sortKeyRows(due []keyRow) {
	slices.SortStableFunc(due, func(a, b keyRow) int {
		return cmp.Or(cmp.Compare(a.row.at, b.row.at), cmp.Compare(a.key, b.key), compareRows(&a.row, &b.row))
	})
}

// assigner says which windows a record belongs to: by size and slide, or the one window whose end the record names.
type assigner struct {
	time, end   func(*env) int64
	size, slide int64
	lateness    int64
}

// parse reads the parameters time, size, slide, end and lateness.
func (a *assigner) parse(p *params) {
	n := p.layout.names()
	a.time, a.end = p.num("time", n), p.num("end", n)
	if a.time == nil {
		a.time = func(e *env) int64 { return e.rec[0].due }
	}
	a.size = p.duration("size", 0, 1)
	a.slide = p.duration("slide", a.size, 1)
	a.lateness = p.duration("lateness", 0, 0)
	if a.slide > 0 && a.size%a.slide != 0 {
		p.fail("size", errMultiple)
	}
	if a.end != nil && p.has("size") {
		p.fail("end", errors.New("windows have either a size or a named end"))
	}
}

// windowed says whether there are windows at all.
func (a *assigner) windowed() bool { return a.end != nil || a.size > 0 }

// ends returns the ends of the record's first and last window and the step between them.
func (a *assigner) ends(e *env) (first, last, step int64) {
	if a.end != nil {
		end := a.end(e)
		return end, end, 1
	}
	first = floor(a.time(e), a.slide) + a.slide
	return first, first + a.size - a.slide, a.slide
}

// due is the watermark at which what ends at end is over.
func (a *assigner) due(end int64) int64 { return later(end, a.lateness) }

// eachOpen calls use for the windows of a record that are open and counts the others as missed.
func (a *assigner) eachOpen(e *env, h *header, use func(end int64)) {
	first, last, step := a.ends(e)
	for end := first; ; end += step {
		if h.closed(a.due(end)) {
			h.late++
		} else {
			h.next = min(h.next, a.due(end))
			use(end)
		}
		if end >= last {
			return
		}
	}
}

// keepRows takes records in: use is given each record with its key's rows and the group's header, and says whether it
// changed the rows.
func keepRows(c *Context, in *core.Columns, e *env, use func(key uint64, rs *rows, h *header) bool) {
	for i, key := range in.Keys {
		e.rec[0] = recordAt(in, i)
		g := core.KeyGroup(key, c.Groups)
		c.Loads[g]++
		h := readHeader(c.Blob, g)
		before := h
		rs := decodeRows(getValue(c.Blob, g, key))
		if use(key, &rs, &h) {
			putValue(c.Blob, g, key, rs.encode())
		}
		if h != before {
			writeHeader(c.Blob, g, h)
		}
	}
}

// takeDue removes the rows that are due at wm from a group: take is given each key that has some, with the rows that are
// due and its other rows, and may change the latter's numbers.
func takeDue(c *Context, group uint32, wm int64, a *assigner, take func(key uint64, due []row, rest *rows)) {
	advance(c.Blob, group, wm, func(int64) int64 {
		var changed []keyValue
		next := int64(EndOfTime)
		eachValue(c.Blob, group, func(key uint64, v []byte) {
			rs := decodeRows(v)
			var due, rest []row
			for _, r := range rs.list {
				if at := a.due(r.at); at <= wm {
					due = append(due, r)
				} else {
					rest, next = append(rest, r), min(next, at)
				}
			}
			if len(due) == 0 {
				return
			}
			slices.SortFunc(due, func(a, b row) int { return compareRows(&a, &b) })
			rs.list = rest
			take(key, due, &rs)
			changed = append(changed, keyValue{key, rs.encode()})
		})
		putAll(c.Blob, group, changed)
		return next
	})
}

// emitRow appends a record.
func emitRow(c *Context, key uint64, due, val int64, payload []byte) {
	out := &c.Out
	out.Keys = append(out.Keys, key)
	out.Times = append(out.Times, due)
	out.Vals = append(out.Vals, val)
	out.AppendPayload(payload)
}
