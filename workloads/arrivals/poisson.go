package arrivals

import (
	"math"
	"slices"
	"sort"

	"github.com/weir-bench/weir/workloads/rng"
)

// perSlot is the mean number of records of one slot of operational time.
const perSlot = 1024

// Poisson spaces records as a Poisson process whose rate follows the shape.
//
// Operational time (the integral of the rate) is cut into slots. The number of
// records of a slot is a Poisson variable, and their places are those of as
// many uniform points in order. So a record is found by summing the numbers of
// the slots before it, without drawing the records before it.
func Poisson(s Shape, seed uint64) Process {
	return &poisson{
		line: newTimeline(s), counts: rng.Derive(seed, 1), places: rng.Derive(seed, 2),
		starts: []uint64{0}, filled: slotCache{slot: -1}, searched: slotCache{slot: -1},
	}
}

type poisson struct {
	line           *timeline
	counts, places uint64   // seeds
	starts         []uint64 // starts[k]: records before slot k
	// Filling runs behind searching, so that each has its own slot in memory.
	filled, searched slotCache
}

type slotCache struct {
	slot   int
	points []float64 // places in the slot, in records from its start
}

func (p *poisson) Clone() Process {
	c := *p
	c.line, c.starts = p.line.clone(), slices.Clone(p.starts)
	c.filled, c.searched = slotCache{slot: -1}, slotCache{slot: -1}
	return &c
}

// extend makes starts[slot+1] known.
func (p *poisson) extend(slot int) {
	for k := len(p.starts) - 1; k <= slot; k++ {
		n := rng.Poisson(rng.At(p.counts, uint64(k)), perSlot)
		p.starts = append(p.starts, p.starts[k]+n)
	}
}

// load makes c hold the points of slot: sums of exponential gaps, scaled so
// that the last gap ends with the slot (Devroye: "Non-uniform random variate
// generation", 1986, chapter V.3).
func (p *poisson) load(c *slotCache, slot int) {
	if c.slot == slot {
		return
	}
	p.extend(slot)
	n := p.starts[slot+1] - p.starts[slot]
	seed := rng.At(p.places, uint64(slot))
	c.slot, c.points = slot, slices.Grow(c.points[:0], int(n))[:n]
	sum := 0.0
	for j := range c.points {
		sum += rng.Exp(rng.At(seed, uint64(j)))
		c.points[j] = sum
	}
	scale := perSlot / (sum + rng.Exp(rng.At(seed, n)))
	for j := range c.points {
		c.points[j] *= scale
	}
}

// slotOf returns the slot of a record.
func (p *poisson) slotOf(record uint64) int {
	if k := p.filled.slot; k >= 0 && p.starts[k] <= record && record < p.starts[k+1] {
		return k
	}
	for p.starts[len(p.starts)-1] <= record {
		p.extend(len(p.starts) - 1)
	}
	return sort.Search(len(p.starts), func(k int) bool { return p.starts[k] > record }) - 1
}

// timeAt turns a place in a slot into an intended time.
func (p *poisson) timeAt(slot int, point float64) int64 {
	floor := math.Floor(point)
	whole := uint64(slot)*perSlot + uint64(floor)
	frac := (point - floor) * float64(perRecord)
	s := p.line.forPoint(whole, frac)
	if s.rate == 0 {
		return Never
	}
	units := float64(whole-s.whole)*float64(perRecord) + (frac - float64(s.frac))
	off := units / float64(s.rate)
	if off >= float64(s.end-s.start) {
		return s.end - 1 // rounding, or the end of time
	}
	return s.start + int64(max(0, off))
}

func (p *poisson) Fill(times []int64, first, stride uint64) {
	for j := range times {
		slot := p.slotOf(first)
		p.load(&p.filled, slot)
		times[j] = p.timeAt(slot, p.filled.points[first-p.starts[slot]])
		first += stride
	}
}

func (p *poisson) Before(t int64) uint64 {
	if t <= 0 {
		return 0
	}
	whole, _ := p.line.integral(t)
	slot := int(whole / perSlot)
	n := p.beforeIn(slot, t)
	// Rounding may put a point of a neighbouring slot on the other side of t.
	if n == 0 && slot > 0 {
		slot--
		n = p.beforeIn(slot, t)
	} else if n == len(p.searched.points) {
		if m := p.beforeIn(slot+1, t); m > 0 {
			slot, n = slot+1, m
		}
	}
	return p.starts[slot] + uint64(n)
}

// beforeIn returns how many records of slot are due before t.
func (p *poisson) beforeIn(slot int, t int64) int {
	p.load(&p.searched, slot)
	points := p.searched.points
	return sort.Search(len(points), func(j int) bool { return p.timeAt(slot, points[j]) >= t })
}
