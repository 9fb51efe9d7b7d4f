package operator

import (
	"math"

	"github.com/weir-bench/weir/engine/core"
)

// NoWatermark is the watermark before the first one: nothing is known of the event times to come. EndOfTime is the
// watermark of a stream that has ended.
const (
	NoWatermark = math.MinInt64
	EndOfTime   = math.MaxInt64
)

// Timed is an operator that works by event time.
type Timed interface {
	Operator
	// Watermark says of one key group that the event times still to come are expected at wm (ns) or later. The operator
	// appends what it can finish by that to c.Out, by time and then key. A group's watermark is part of its state, so that
	// it neither falls back after a restore nor differs between a group's owners: a wm at or below it changes nothing.
	Watermark(c *Context, group uint32, wm int64)
}

// Watermarks makes a source's watermarks: the highest event time so far less a bound, rounded down to a multiple of a
// step. They are a function of the records alone, whichever batches these come in. Afterwards a source starts anew:
// key groups remember theirs.
type Watermarks struct {
	time        func(*env) int64
	bound, step int64
	highest     int64
	last        int64
	env         env
}

func parseWatermarks(spec *core.OperatorSpec) (*Watermarks, error) {
	p := readParams(spec, "time", "bound", "step")
	w := &Watermarks{time: p.num("time", p.layout.names()), bound: p.duration("bound", 0, 0), highest: NoWatermark, last: NoWatermark}
	w.step = p.duration("step", max(w.bound/10, 1), 1)
	if w.time == nil && (p.has("bound") || p.has("step")) {
		p.require("time")
	}
	return w, p.err
}

// NewWatermarks returns the watermarks of a source; nil when its parameters name no event time.
func NewWatermarks(spec *core.OperatorSpec) *Watermarks {
	w, err := parseWatermarks(spec)
	if err != nil {
		panic("operator: unchecked " + err.Error())
	}
	if w.time == nil {
		return nil
	}
	return w
}

// Next takes records from on and returns how far it went: up to and with the record after which the watermark is wm, or
// to the end without one.
func (w *Watermarks) Next(c *core.Columns, from int) (to int, wm int64, advanced bool) {
	for i := from; i < c.Len(); i++ {
		w.env.rec[0] = recordAt(c, i)
		at := w.time(&w.env)
		if at <= w.highest {
			continue
		}
		w.highest = at
		if wm := floor(at-w.bound, w.step); wm > w.last {
			w.last = wm
			return i + 1, wm, true
		}
	}
	return c.Len(), 0, false
}

// floor returns the greatest multiple of step that is not above t.
func floor(t, step int64) int64 {
	m := t % step
	if m < 0 {
		m += step
	}
	return t - m
}
