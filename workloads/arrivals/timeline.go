package arrivals

import (
	"math"
	"math/bits"
	"slices"
)

// perRecord is the number of units that make one record: a rate is a whole
// number of micro-records a second, so a nanosecond at that rate adds that many
// units of 1e-15 record. All sums are exact.
const perRecord uint64 = 1_000_000_000_000_000

// MaxRate is the highest rate in records/s that arithmetic allows.
const MaxRate = 1e9

// Shape is the rate of arrivals over time, as a sequence of spans of constant
// rate. A value serves one goroutine.
type Shape interface {
	// Next returns the next span: its rate in records/s (0 ≤ rate ≤ MaxRate)
	// and its length in ns (> 0). A length of Never means: for ever.
	Next() (rate float64, length int64)
	// Clone returns an independent copy that goes on from the same span.
	Clone() Shape
}

// span is a piece of the time axis with a constant rate.
type span struct {
	start, end int64  // ns, end exclusive
	rate       uint64 // micro-records a second
	whole      uint64 // records scheduled before start: whole + frac/perRecord
	frac       uint64
}

// first is the first record scheduled in the span, and lead how many units
// after the span's start it is due.
func (s *span) first() (index, lead uint64) {
	if s.frac == 0 {
		return s.whole, 0
	}
	return s.whole + 1, perRecord - s.frac
}

// timeline is the running integral of a shape, extended on demand.
type timeline struct {
	shape Shape
	spans []span
	at    int // the span used last: neighbours are looked at first
}

func newTimeline(s Shape) *timeline {
	t := &timeline{shape: s}
	t.extend()
	return t
}

func (t *timeline) clone() *timeline {
	return &timeline{shape: t.shape.Clone(), spans: slices.Clone(t.spans), at: t.at}
}

// extend appends the shape's next span.
func (t *timeline) extend() {
	var s span
	if n := len(t.spans); n > 0 {
		p := &t.spans[n-1]
		s.start = p.end
		hi, lo := bits.Mul64(p.rate, uint64(p.end-p.start))
		lo, carry := bits.Add64(lo, p.frac, 0)
		s.whole, s.frac = bits.Div64(hi+carry, lo, perRecord)
		s.whole += p.whole
	}
	rate, length := t.shape.Next()
	s.rate = uint64(math.Round(rate * 1e6))
	s.end = Never
	if length < Never-s.start {
		s.end = s.start + length
	}
	t.spans = append(t.spans, s)
}

// forTime returns the span that contains time at, 0 <= at < Never.
func (t *timeline) forTime(at int64) *span {
	for t.spans[len(t.spans)-1].end <= at {
		t.extend()
	}
	if s := &t.spans[t.at]; s.start <= at && at < s.end {
		return s
	}
	lo, _ := slices.BinarySearchFunc(t.spans, at, func(s span, at int64) int {
		if s.end <= at {
			return -1
		}
		return 1
	})
	t.at = lo
	return &t.spans[lo]
}

// forPoint returns the last span that starts at or before the given point of
// the integral, skipping spans in which nothing arrives.
func (t *timeline) forPoint(whole uint64, frac float64) *span {
	after := func(s *span) bool { // s starts after the point
		return s.whole > whole || (s.whole == whole && float64(s.frac) > frac)
	}
	for last := &t.spans[len(t.spans)-1]; last.end != Never && !after(last); last = &t.spans[len(t.spans)-1] {
		t.extend()
	}
	if !after(&t.spans[t.at]) && t.at+1 < len(t.spans) && after(&t.spans[t.at+1]) {
		return &t.spans[t.at]
	}
	lo, hi := 0, len(t.spans)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; after(&t.spans[mid]) {
			hi = mid
		} else {
			lo = mid
		}
	}
	t.at = lo
	return &t.spans[lo]
}

// integral returns the records scheduled before time at (>= 0), as whole + frac
// units.
func (t *timeline) integral(at int64) (whole, frac uint64) {
	at = min(at, Never-1)
	s := t.forTime(at)
	hi, lo := bits.Mul64(s.rate, uint64(at-s.start))
	lo, carry := bits.Add64(lo, s.frac, 0)
	whole, frac = bits.Div64(hi+carry, lo, perRecord)
	return whole + s.whole, frac
}
