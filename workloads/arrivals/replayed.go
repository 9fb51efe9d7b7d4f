package arrivals

import (
	"math"
	"sort"
)

// Replayed repeats recorded times: times (ns, not decreasing, from 0) divided by
// speed (> 0). With loop the recording starts again after its end, one mean gap
// after its last record; else records beyond its end never arrive. It keeps
// times.
func Replayed(times []int64, speed float64, loop bool) Process {
	last := times[len(times)-1]
	gap := int64(1)
	if n := int64(len(times)); n > 1 {
		gap = max(1, last/(n-1))
	}
	return &replayed{times: times, speed: speed, loop: loop, length: last + gap}
}

type replayed struct {
	times  []int64
	speed  float64
	loop   bool
	length int64 // of a pass, ns of the recording
}

// Clone returns the process itself: it never changes.
func (r *replayed) Clone() Process { return r }

func (r *replayed) at(record uint64) int64 {
	n := uint64(len(r.times))
	pass := record / n
	if pass > 0 && !r.loop {
		return Never
	}
	recorded := float64(pass)*float64(r.length) + float64(r.times[record%n])
	if at := recorded / r.speed; at < math.MaxInt64 {
		return int64(at)
	}
	return Never
}

func (r *replayed) Fill(times []int64, first, stride uint64) {
	for j := range times {
		times[j] = r.at(first)
		first += stride
	}
}

func (r *replayed) Before(t int64) uint64 {
	if t <= 0 {
		return 0
	}
	n := uint64(len(r.times))
	pass := uint64(0)
	if r.loop {
		pass = uint64(float64(t) * r.speed / float64(r.length))
	}
	// Rounding may be off by a pass: look one back and one ahead.
	from := (max(pass, 1) - 1) * n
	span := 3 * n
	if !r.loop {
		span = n
	}
	return from + uint64(sort.Search(int(span), func(k int) bool { return r.at(from+uint64(k)) >= t }))
}
