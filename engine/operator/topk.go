package operator

import (
	"encoding/binary"
	"slices"

	"github.com/weir-bench/weir/engine/core"
)

// topK keeps, of each key and window, the records that have fewer than k others strictly before them in the order: all of
// them on a tie at the last place (RANK in SQL), or with ties "first" only as many as k, the further order being that of
// value and payload. They come out when the window is over, by window end, key and order, with `end i64@0` put before
// their payload.
type topK struct {
	assigner
	k       int
	order   []func(*env) int64
	exact   bool
	env     env
	payload []byte
}

func parseTopK(spec *core.OperatorSpec) (*topK, error) {
	p := readParams(spec, "k", "order", "ties", "time", "size", "slide", "end", "lateness")
	o := &topK{}
	o.parse(p)
	p.require("order")
	if !o.windowed() {
		p.require("size")
	}
	o.k, o.order, o.exact = p.integer("k", 1), p.order("order"), p.one("ties", "all", "first") == "first"
	return o, p.err
}

func (o *topK) Process(c *Context, in *core.Columns) {
	e := &o.env
	keepRows(c, in, e, func(_ uint64, rs *rows, h *header) (changed bool) {
		rec := &e.rec[0]
		r := row{order: evalAll(o.order, e), due: rec.due, val: rec.val, payload: rec.payload}
		o.eachOpen(e, h, func(end int64) {
			r.at = end
			changed = o.insert(rs, r) || changed
		})
		return changed
	})
}

// insert puts r into its place, if it has one, and drops what it drives out.
func (o *topK) insert(rs *rows, r row) bool {
	k, _ := slices.BinarySearchFunc(rs.list, r, func(x, r row) int { return compareRows(&x, &r) })
	begin, end := k, k
	for begin > 0 && rs.list[begin-1].at == r.at {
		begin--
	}
	for end < len(rs.list) && rs.list[end].at == r.at {
		end++
	}
	if k-begin >= o.k && (o.exact || !o.tied(rs.list[begin:k], r)) {
		return false
	}
	rs.list = slices.Insert(rs.list, k, r)
	end++
	keep := begin
	for keep < end && (keep-begin < o.k || !o.exact && o.tied(rs.list[begin:keep], rs.list[keep])) {
		keep++
	}
	rs.list = slices.Delete(rs.list, keep, end)
	return true
}

// tied says whether r, which comes after the sorted rows before, has fewer than k of them strictly before it.
func (o *topK) tied(before []row, r row) bool {
	n := len(before)
	for n > 0 && slices.Equal(before[n-1].order, r.order) {
		n--
	}
	return n < o.k
}

func (o *topK) Watermark(c *Context, group uint32, wm int64) {
	var all []keyRow
	takeDue(c, group, wm, &o.assigner, func(key uint64, due []row, _ *rows) {
		for _, r := range due {
			all = append(all, keyRow{key, r})
		}
	})
	sortKeyRows(all)
	for _, kr := range all {
		o.payload = binary.LittleEndian.AppendUint64(o.payload[:0], uint64(kr.row.at))
		o.payload = append(o.payload, kr.row.payload...)
		emitRow(c, kr.key, kr.row.due, kr.row.val, o.payload)
	}
}

// over aggregates, at each record, the last n records of its key in the order of event time (AVG(…) OVER (PARTITION BY
// key ORDER BY end ROWS n-1 PRECEDING) in SQL). A record is worked on once the watermark has reached its `end`; those with
// the same end in the order given. It comes out with its payload and the aggregate as value.
type over struct {
	assigner
	n     int
	fn    function
	order []func(*env) int64
	env   env
}

func parseOver(spec *core.OperatorSpec) (*over, error) {
	p := readParams(spec, "n", "function", "order", "end", "lateness")
	o := &over{}
	o.parse(p)
	p.require("n")
	p.require("end")
	o.n, o.order = p.integer("n", 1), p.order("order")
	o.fn = function(p.one("function", string(fnAvg), string(fnSum), string(fnMax), string(fnMin), string(fnCount)))
	return o, p.err
}

func (o *over) Process(c *Context, in *core.Columns) {
	e := &o.env
	keepRows(c, in, e, func(_ uint64, rs *rows, h *header) (changed bool) {
		rec := &e.rec[0]
		o.eachOpen(e, h, func(end int64) {
			rs.list = append(rs.list, row{at: end, order: evalAll(o.order, e), due: rec.due, val: rec.val, payload: rec.payload})
			changed = true
		})
		return changed
	})
}

func (o *over) Watermark(c *Context, group uint32, wm int64) {
	var all []keyRow
	takeDue(c, group, wm, &o.assigner, func(key uint64, due []row, rest *rows) {
		for _, r := range due {
			rest.past = append(rest.past, r.val)
			rest.past = rest.past[max(0, len(rest.past)-o.n):]
			var p part
			for _, v := range rest.past {
				p = o.fn.merge(p, o.fn.of(v, r.due))
			}
			all = append(all, keyRow{key, row{at: r.at, order: r.order, due: r.due, val: o.fn.result(p), payload: r.payload}})
		}
	})
	sortKeyRows(all)
	for _, kr := range all {
		emitRow(c, kr.key, kr.row.due, kr.row.val, kr.row.payload)
	}
}
