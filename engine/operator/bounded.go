package operator

import (
	"fmt"
	"math"

	"github.com/weir-bench/weir/engine/core"
)

// Bounded is an operator whose state is made of windows that close: what came before the oldest open one left no trace in
// it. A fresh copy that is fed all records from there on, and told what has closed, is in the same state.
type Bounded interface {
	Timed
	Windows
	// Resume tells an empty key group its watermark and how often a record came too late so far. Also called later, it sets
	// the latter anew.
	Resume(c *Context, group uint32, wm int64, late uint64)
}

// Windows tells which records the open windows depend on.
type Windows interface {
	// EventTime returns the event time of record i.
	EventTime(in *core.Columns, i int) int64
	// OpenFrom returns the beginning of the oldest window that a watermark leaves open: a record with a lower event time
	// belongs to closed windows only.
	OpenFrom(wm int64) int64
	// Newest returns an event time that no record in a key group's open windows lies behind; NoWatermark when there is none.
	Newest(c *Context, group uint32) int64
}

// Horizon says why the state of an operator's tasks cannot be made again from a bounded part of its input; nil when it can,
// as it can trivially without state.
func Horizon(spec *core.OperatorSpec) error {
	k, ok := Lookup(spec.Kind)
	if !ok {
		return fmt.Errorf("operator %s: unknown kind %q", spec.Name, spec.Kind)
	}
	if !k.Keyed {
		return nil
	}
	if o, ok := k.New(spec).(Bounded); ok && o.OpenFrom(0) != NoWatermark {
		return nil
	}
	return fmt.Errorf("a %s keeps something of every record for ever, so that no part of its input is enough to make its state again", spec.Kind)
}

// EventTime implements Windows.
func (o *panes) EventTime(in *core.Columns, i int) int64 {
	o.env.rec[0] = recordAt(in, i)
	return o.time(&o.env)
}

// OpenFrom implements Windows.
func (o *panes) OpenFrom(wm int64) int64 {
	switch {
	case wm == EndOfTime:
		return EndOfTime
	case wm == NoWatermark || o.whole || wm < math.MinInt64+o.lateness+o.size+o.slide:
		return NoWatermark
	}
	return floor(wm-o.lateness, o.slide) + o.slide - o.size
}

// Newest implements Windows.
func (o *panes) Newest(c *Context, group uint32) int64 {
	newest := int64(NoWatermark)
	eachValue(c.Blob, group, func(_ uint64, v []byte) {
		for _, s := range decodeSpans(v) {
			newest = max(newest, s.end-1)
		}
	})
	return newest
}

// Resume implements Bounded.
func (o *panes) Resume(c *Context, group uint32, wm int64, late uint64) {
	h := readHeader(c.Blob, group)
	h.wm, h.late = max(h.wm, wm), late
	writeHeader(c.Blob, group, h)
}
