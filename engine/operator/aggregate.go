package operator

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

// function is an aggregate function: what is kept is a count and a number, so that parts can be merged.
type function string

const (
	fnCount function = "count"
	fnSum   function = "sum"
	fnMax   function = "max"
	fnMin   function = "min"
	fnAvg   function = "avg"
)

// part is the aggregate of some records with the highest intended time among them.
type part struct {
	n, acc, due int64
}

func (f function) of(val, due int64) part {
	if f == fnCount {
		val = 0
	}
	return part{1, val, due}
}

func (f function) merge(a, b part) part {
	if a.n == 0 {
		return b
	}
	acc := a.acc + b.acc
	switch f {
	case fnMax:
		acc = max(a.acc, b.acc)
	case fnMin:
		acc = min(a.acc, b.acc)
	}
	return part{a.n + b.n, acc, max(a.due, b.due)}
}

func (f function) result(p part) int64 {
	switch f {
	case fnCount:
		return p.n
	case fnAvg:
		return p.acc / p.n
	}
	return p.acc
}

// result is an aggregate that is due: of a key in the window [begin, end).
type result struct {
	begin, end int64
	key        uint64
	part       part
}

// emitResults appends results by window end, then key. Their payload is `end i64@0, begin i64@8`, their value the
// aggregate, and their intended time the highest of the records in it: the delay of a result is counted from the record
// that completed it (event-time latency as in Karimov et al., "Benchmarking distributed stream data processing systems",
// ICDE 2018).
func emitResults(c *Context, f function, rs []result) {
	slices.SortFunc(rs, func(a, b result) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.key, b.key)) })
	out := &c.Out
	for _, r := range rs {
		out.Keys = append(out.Keys, r.key)
		out.Times = append(out.Times, r.part.due)
		out.Vals = append(out.Vals, f.result(r.part))
		if len(out.Off) == 0 {
			out.Off = append(out.Off, 0)
		}
		out.Ext = binary.LittleEndian.AppendUint64(out.Ext, uint64(r.end))
		out.Ext = binary.LittleEndian.AppendUint64(out.Ext, uint64(r.begin))
		out.Off = append(out.Off, uint32(len(out.Ext)))
	}
}

// span is a part of a key's records: a pane [begin, end) of windows, or a session whose records lie in [begin, end].
type span struct {
	begin, end int64
	part
}

const spanBytes = 5 * 8

func decodeSpans(v []byte) []span {
	spans := make([]span, len(v)/spanBytes)
	for i := range spans {
		n := func(k int) int64 { return int64(binary.LittleEndian.Uint64(v[i*spanBytes+8*k:])) }
		spans[i] = span{n(0), n(1), part{n(2), n(3), n(4)}}
	}
	return spans
}

func encodeSpans(spans []span) []byte {
	v := make([]byte, 0, len(spans)*spanBytes)
	for _, s := range spans {
		for _, n := range [...]int64{s.begin, s.end, s.n, s.acc, s.due} {
			v = binary.LittleEndian.AppendUint64(v, uint64(n))
		}
	}
	return v
}

// aggregate is what window aggregates share: the input side.
type aggregate struct {
	time, value func(*env) int64
	fn          function
	lateness    int64
	env         env
}

func (a *aggregate) parse(p *params) {
	n := p.layout.names()
	a.time, a.value = p.num("time", n), p.num("value", n)
	if a.time == nil {
		a.time = func(e *env) int64 { return e.rec[0].due }
	}
	if a.value == nil {
		a.value = func(e *env) int64 { return e.rec[0].val }
	}
	a.fn = function(p.one("function", string(fnCount), string(fnSum), string(fnMax), string(fnMin), string(fnAvg)))
	a.lateness = p.duration("lateness", 0, 0)
}

// panes aggregates by windows of a size that begin at the multiples of a slide. Each record goes into one pane as long as
// the slide, and a window is put together from its panes (Li et al., "No pane, no gain", SIGMOD Record 2005).
type panes struct {
	aggregate
	size, slide int64
	whole       bool // one window, which ends with the stream
}

func parsePanes(spec *core.OperatorSpec) (*panes, error) {
	p := readParams(spec, "time", "value", "function", "lateness", "size", "slide")
	o := &panes{}
	o.parse(p)
	switch spec.Kind {
	case "tumbling":
		p.require("size")
		o.size = p.duration("size", 1, 1)
		o.slide = o.size
	case "sliding":
		p.require("size")
		p.require("slide")
		o.size, o.slide = p.duration("size", 1, 1), p.duration("slide", 1, 1)
		if p.err == nil && (o.slide > o.size || o.size%o.slide != 0) {
			p.fail("size", errMultiple)
		}
	default:
		o.whole, o.size, o.slide = true, 1, 1
	}
	return o, p.err
}

// pane returns the pane of an event time.
func (o *panes) pane(at int64) (begin, end int64) {
	if o.whole {
		return NoWatermark, EndOfTime
	}
	begin = floor(at, o.slide)
	return begin, begin + o.slide
}

// last returns the end of the last window that a pane belongs to.
func (o *panes) last(pane int64) int64 { return pane + o.size - o.slide }

func (o *panes) Process(c *Context, in *core.Columns) {
	e := &o.env
	for i, key := range in.Keys {
		e.rec[0] = recordAt(in, i)
		g := core.KeyGroup(key, c.Groups)
		c.Loads[g]++
		h := readHeader(c.Blob, g)
		before := h
		begin, end := o.pane(o.time(e))
		first := end
		for first <= o.last(end) && h.closed(later(first, o.lateness)) {
			h.late++ // once for each window that it misses
			if first == o.last(end) {
				break
			}
			first += o.slide
		}
		if !h.closed(later(first, o.lateness)) {
			h.next = min(h.next, later(first, o.lateness))
			p := o.fn.of(o.value(e), in.Times[i])
			putValue(c.Blob, g, key, o.add(getValue(c.Blob, g, key), span{begin, end, p}))
		}
		if h != before {
			writeHeader(c.Blob, g, h)
		}
	}
}

// add merges s into the pane that ends where it does.
func (o *panes) add(v []byte, s span) []byte {
	le := binary.LittleEndian
	for i := len(v) - spanBytes; i >= 0 && int64(le.Uint64(v[i+8:])) >= s.end; i -= spanBytes {
		if int64(le.Uint64(v[i+8:])) > s.end {
			continue
		}
		v = slices.Clone(v) // the store's values never change
		old := part{int64(le.Uint64(v[i+16:])), int64(le.Uint64(v[i+24:])), int64(le.Uint64(v[i+32:]))}
		p := o.fn.merge(old, s.part)
		le.PutUint64(v[i+16:], uint64(p.n))
		le.PutUint64(v[i+24:], uint64(p.acc))
		le.PutUint64(v[i+32:], uint64(p.due))
		return v
	}
	spans := decodeSpans(v)
	k, _ := slices.BinarySearchFunc(spans, s.end, func(x span, end int64) int { return cmp.Compare(x.end, end) })
	return encodeSpans(slices.Insert(spans, k, s))
}

func (o *panes) Watermark(c *Context, group uint32, wm int64) {
	advance(c.Blob, group, wm, func(before int64) int64 {
		var due []result
		var changed []keyValue
		next := int64(EndOfTime)
		eachValue(c.Blob, group, func(key uint64, v []byte) {
			spans := decodeSpans(v)
			due = o.windows(due, key, spans, before, wm)
			keep := 0
			for keep < len(spans) && later(o.last(spans[keep].end), o.lateness) <= wm {
				keep++
			}
			if keep < len(spans) {
				next = min(next, later(o.unfired(spans[keep].end, wm), o.lateness))
			}
			if keep > 0 {
				changed = append(changed, keyValue{key, encodeSpans(spans[keep:])})
			}
		})
		putAll(c.Blob, group, changed)
		emitResults(c, o.fn, due)
		return next
	})
}

// windows appends the windows of a key's panes that are due after the watermark before and up to wm.
func (o *panes) windows(due []result, key uint64, spans []span, before, wm int64) []result {
	if len(spans) == 0 {
		return due
	}
	last := o.last(spans[len(spans)-1].end)
	for end := o.unfired(spans[0].end, before); end <= last && later(end, o.lateness) <= wm; end += o.slide {
		r := result{begin: end - o.size, end: end, key: key}
		for _, s := range spans {
			if s.end > end-o.size && s.end <= end {
				r.part = o.fn.merge(r.part, s.part)
			}
		}
		if r.part.n > 0 {
			due = append(due, r)
		} else if k := slices.IndexFunc(spans, func(s span) bool { return s.end > end }); k >= 0 {
			end = spans[k].end - o.slide // no pane until there
		}
		if end == last {
			break // the end of time has nothing behind it
		}
	}
	return due
}

// unfired returns the first window end from pane on that is not due at the watermark.
func (o *panes) unfired(pane, wm int64) int64 {
	if wm == NoWatermark || o.whole || later(pane, o.lateness) > wm {
		return pane
	}
	return floor(wm-o.lateness, o.slide) + o.slide
}

// session aggregates by sessions: records of a key that follow each other by less than a gap. Sessions that only touch
// stay apart. A record comes too late when a session of it alone would be closed.
type session struct {
	aggregate
	gap int64
}

func parseSession(spec *core.OperatorSpec) (*session, error) {
	p := readParams(spec, "time", "value", "function", "lateness", "gap")
	p.require("gap")
	o := &session{gap: p.duration("gap", 1, 1)}
	o.parse(p)
	return o, p.err
}

func (o *session) Process(c *Context, in *core.Columns) {
	e := &o.env
	for i, key := range in.Keys {
		e.rec[0] = recordAt(in, i)
		g := core.KeyGroup(key, c.Groups)
		c.Loads[g]++
		h := readHeader(c.Blob, g)
		before := h
		at := o.time(e)
		if end := later(at, o.gap+o.lateness); h.closed(end) {
			h.late++
		} else {
			h.next = min(h.next, end)
			p := o.fn.of(o.value(e), in.Times[i])
			putValue(c.Blob, g, key, o.add(getValue(c.Blob, g, key), span{at, at, p}))
		}
		if h != before {
			writeHeader(c.Blob, g, h)
		}
	}
}

// add merges s with the sessions that it belongs to.
func (o *session) add(v []byte, s span) []byte {
	spans := decodeSpans(v)
	kept := spans[:0]
	for _, x := range spans {
		if s.begin < later(x.end, o.gap) && x.begin < later(s.end, o.gap) {
			s = span{min(s.begin, x.begin), max(s.end, x.end), o.fn.merge(s.part, x.part)}
		} else {
			kept = append(kept, x)
		}
	}
	kept = append(kept, s)
	slices.SortFunc(kept, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	return encodeSpans(kept)
}

func (o *session) Watermark(c *Context, group uint32, wm int64) {
	advance(c.Blob, group, wm, func(int64) int64 {
		var due []result
		var changed []keyValue
		next := int64(EndOfTime)
		eachValue(c.Blob, group, func(key uint64, v []byte) {
			var open []span
			spans := decodeSpans(v)
			for _, s := range spans {
				if at := later(s.end, o.gap+o.lateness); at <= wm {
					due = append(due, result{s.begin, later(s.end, o.gap), key, s.part})
				} else {
					open, next = append(open, s), min(next, at)
				}
			}
			if len(open) < len(spans) {
				changed = append(changed, keyValue{key, encodeSpans(open)})
			}
		})
		putAll(c.Blob, group, changed)
		emitResults(c, o.fn, due)
		return next
	})
}

// keyValue is a value to be put when a walk over the group is over.
type keyValue struct {
	key uint64
	val []byte
}

func putAll(b *state.Blob, group uint32, kvs []keyValue) {
	for _, kv := range kvs {
		putValue(b, group, kv.key, kv.val)
	}
}
