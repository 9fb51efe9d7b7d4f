package keys

import (
	"math/bits"

	"github.com/weir-bench/weir/workloads/rng"
)

// cell is a run of neighbouring ranks drawn together. Within a cell all ranks
// weigh the same, or their weights fall monotonically and are told apart by
// rejection (see table.reject).
type cell struct {
	start, size uint64  // ranks [start, start+size)
	weight      float64 // sum of the weights of its ranks
	squeeze     float64 // lightest rank's weight over the heaviest's; 1 if equal
}

// slot is one column of the alias table: with a 64-bit fraction below
// threshold the column's own cell is drawn, else the alias.
type slot struct {
	threshold uint64
	alias     uint32
}

// table draws ranks by Walker's alias method over cells, in constant time
// (Vose: "A linear algorithm for generating random numbers with a given
// distribution", 1991). Cells keep it small enough for the cache at any number
// of keys.
type table struct {
	seed  uint64
	keys  uint64
	total float64
	cells []cell
	slots []slot
	flat  bool // every cell holds one rank, and cell c holds rank c
	falls bool // ranks are in order of load
	// weight gives a rank's relative weight; nil if all cells have squeeze 1.
	weight func(rank uint64) float64
}

func newTable(seed uint64, cells []cell, weight func(uint64) float64) *table {
	t := &table{seed: seed, cells: cells, weight: weight, flat: true, falls: true, slots: make([]slot, len(cells))}
	for c, x := range cells {
		t.keys += x.size
		t.total += x.weight
		t.flat = t.flat && x.size == 1 && x.start == uint64(c)
		if c > 0 {
			p := cells[c-1]
			t.falls = t.falls && p.weight*p.squeeze*float64(x.size) >= x.weight*float64(p.size)*(1-1e-9)
		}
	}
	t.alias()
	return t
}

// alias builds the slots by pairing light cells with heavy ones.
func (t *table) alias() {
	n := len(t.cells)
	scaled := make([]float64, n)
	small, large := make([]uint32, 0, n), make([]uint32, 0, n)
	for c, x := range t.cells {
		scaled[c] = x.weight / t.total * float64(n)
		if scaled[c] < 1 {
			small = append(small, uint32(c))
		} else {
			large = append(large, uint32(c))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		t.slots[s] = slot{uint64(scaled[s] * 0x1p64), l}
		scaled[l] -= 1 - scaled[s]
		if scaled[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	// What is left has weight 1 up to rounding: it never goes to its alias.
	for _, c := range append(small, large...) {
		t.slots[c] = slot{^uint64(0), c}
	}
}

func (t *table) Keys() uint64 { return t.keys }

func (t *table) Fill(ranks []uint64, _ []int64, first, stride uint64) {
	slots, n := t.slots, uint64(len(t.slots))
	if t.flat {
		for j := range ranks {
			c, frac := bits.Mul64(rng.At(t.seed, first), n)
			s := slots[c]
			if frac >= s.threshold {
				c = uint64(s.alias)
			}
			ranks[j] = c
			first += stride
		}
		return
	}
	for j := range ranks {
		r := rng.At(t.seed, first)
		c, frac := bits.Mul64(r, n)
		s := slots[c]
		if frac >= s.threshold {
			c = uint64(s.alias)
		}
		x := &t.cells[c]
		if x.size > 1 {
			ranks[j] = t.within(x, r)
		} else {
			ranks[j] = x.start
		}
		first += stride
	}
}

// within draws a rank of cell x; r is the record's random word, from which a
// second, independent sequence is derived.
func (t *table) within(x *cell, r uint64) uint64 {
	seed := rng.Mix(r ^ t.seed)
	for try := uint64(0); ; try++ {
		pos, frac := bits.Mul64(rng.At(seed, try), x.size)
		rank := x.start + pos
		if x.squeeze == 1 {
			return rank
		}
		// Accept with probability weight(rank)/weight(start). The squeeze
		// accepts nearly always without computing a power.
		u := rng.Float(frac)
		if u < x.squeeze || u*t.weight(x.start) < t.weight(rank) {
			return rank
		}
	}
}

func (t *table) Share(rank uint64, _ int64) float64 {
	if rank >= t.keys {
		return 0
	}
	lo, hi := 0, len(t.cells)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; t.cells[mid].start <= rank {
			lo = mid
		} else {
			hi = mid
		}
	}
	x := t.cells[lo]
	if x.squeeze == 1 {
		return x.weight / t.total / float64(x.size)
	}
	return t.weight(rank) / t.total
}

func (t *table) hot(n int, _ int64) []uint64 {
	var ranks []uint64
	for _, x := range t.cells {
		for k := range min(uint64(n), x.size) {
			ranks = append(ranks, x.start+k)
		}
		if t.falls && len(ranks) >= n {
			break
		}
	}
	return ranks
}
