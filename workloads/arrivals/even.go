package arrivals

import "math/bits"

// Even spaces records evenly along the shape: record i is due when the
// integral of the rate reaches i. A rate r for a time d schedules exactly
// ⌈r·d⌉ records.
func Even(s Shape) Process { return &even{newTimeline(s)} }

type even struct{ line *timeline }

func (e *even) Clone() Process { return &even{e.line.clone()} }

func (e *even) Before(t int64) uint64 {
	if t <= 0 {
		return 0
	}
	whole, frac := e.line.integral(t)
	if frac > 0 {
		whole++
	}
	return whole
}

func (e *even) Fill(times []int64, first, stride uint64) {
	for len(times) > 0 {
		s := e.line.forPoint(first, 0)
		n := fillSpan(times, s, first, stride)
		times = times[n:]
		first += uint64(n) * stride
	}
}

// fillSpan sets the times of those records that are due in s, of which there is
// at least one, and returns how many.
func fillSpan(times []int64, s *span, first, stride uint64) int {
	if s.rate == 0 {
		// Only the last span of a shape gets here: nothing arrives any more.
		for j := range times {
			times[j] = Never
		}
		return len(times)
	}
	index, lead := s.first()
	hi, lo := bits.Mul64(first-index, perRecord)
	lo, carry := bits.Add64(lo, lead, 0)
	if hi+carry >= s.rate {
		times[0] = Never // beyond the end of time
		return 1
	}
	q, r := bits.Div64(hi+carry, lo, s.rate)
	if q >= uint64(s.end-s.start) {
		times[0] = Never // the same, in a span that lasts for ever
		return 1
	}
	at := s.start + int64(q)
	times[0] = at
	hi, lo = bits.Mul64(stride, perRecord)
	if hi >= s.rate {
		return 1
	}
	qs, rs := bits.Div64(hi, lo, s.rate)
	if qs >= uint64(Never) {
		return 1
	}
	// From here on add the step: exact, without a division a record.
	step := int64(qs)
	for j := 1; j < len(times); j++ {
		if r += rs; r >= s.rate {
			r -= s.rate
			at++
		}
		if step >= s.end-at {
			return j
		}
		at += step
		times[j] = at
	}
	return len(times)
}
