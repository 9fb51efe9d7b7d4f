package arrivals

import (
	"slices"
	"sort"

	"github.com/weir-bench/weir/workloads/measure"
)

// perBlock is the number of gaps that are summed into one entry of the index.
const perBlock = 1024

// Renewal has independent gaps between records, of a distribution in ns. Record
// 0 is due after the first gap.
//
// Unlike the other processes it has to draw all gaps before a record it has not
// come near yet: seeking far ahead costs about 30 ns a record, once.
func Renewal(gaps measure.Dist, seed uint64) Process {
	return &renewal{gaps: gaps, seed: seed, starts: []float64{0}, filled: block{at: -1}, searched: block{at: -1}}
}

type renewal struct {
	gaps             measure.Dist
	seed             uint64
	starts           []float64 // starts[k]: ns at which block k begins
	filled, searched block
}

// block is the times of the records of one block.
type block struct {
	at    int
	times []int64
}

func (r *renewal) Clone() Process {
	c := *r
	c.starts = slices.Clone(r.starts)
	c.filled, c.searched = block{at: -1}, block{at: -1}
	return &c
}

// load makes b hold block k, whose start must be known or follow from the last
// known one.
func (r *renewal) load(b *block, k int) {
	for n := len(r.starts) - 1; n < k; n++ {
		r.draw(b, n)
	}
	if b.at != k {
		r.draw(b, k)
	}
}

func (r *renewal) draw(b *block, k int) {
	if b.times == nil {
		b.times = make([]int64, perBlock)
	}
	b.at = k
	at := r.starts[k]
	for j := range b.times {
		at += measure.Draw(r.gaps, r.seed, uint64(k*perBlock+j))
		b.times[j] = int64(min(at, float64(Never-1)))
	}
	if k+1 == len(r.starts) {
		r.starts = append(r.starts, at)
	}
}

func (r *renewal) Fill(times []int64, first, stride uint64) {
	for j := range times {
		r.load(&r.filled, int(first/perBlock))
		times[j] = r.filled.times[first%perBlock]
		first += stride
	}
}

func (r *renewal) Before(t int64) uint64 {
	if t <= 0 {
		return 0
	}
	for r.starts[len(r.starts)-1] < float64(t) {
		r.draw(&r.searched, len(r.starts)-1)
	}
	k := max(0, sort.Search(len(r.starts), func(k int) bool { return r.starts[k] >= float64(t) })-1)
	r.load(&r.searched, k)
	n := sort.Search(perBlock, func(j int) bool { return r.searched.times[j] >= t })
	return uint64(k)*perBlock + uint64(n)
}
