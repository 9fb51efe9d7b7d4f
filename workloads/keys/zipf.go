package keys

import (
	"math"
	"math/bits"

	"github.com/weir-bench/weir/workloads/rng"
)

// zipfHead is the number of hottest ranks that get a cell each. Beyond it,
// ranks of nearly equal weight share a cell.
const zipfHead = 8192

// zipfSpread bounds how much weights may differ within one cell, and so the
// share of draws that a cell rejects (at most about half of it).
const zipfSpread = 1.0 / 64

// Uniform gives every one of n ranks the same share.
func Uniform(seed, n uint64) Dist { return uniform{seed, n} }

type uniform struct{ seed, keys uint64 }

func (u uniform) Keys() uint64 { return u.keys }

func (u uniform) Fill(ranks []uint64, _ []int64, first, stride uint64) {
	for j := range ranks {
		ranks[j], _ = bits.Mul64(rng.At(u.seed, first), u.keys)
		first += stride
	}
}

func (u uniform) Share(rank uint64, _ int64) float64 {
	if rank >= u.keys {
		return 0
	}
	return 1 / float64(u.keys)
}

// Zipf gives rank k (from 0) of n a share proportional to (k+1)^-s, for any
// finite s >= 0; s = 0 is Uniform. Shares are exact to double precision, and
// set-up takes milliseconds for any n.
func Zipf(seed, n uint64, s float64) Dist {
	if s == 0 {
		return Uniform(seed, n)
	}
	head := min(n, zipfHead)
	cells := make([]cell, 0, head)
	for k := range head {
		cells = append(cells, cell{start: k, size: 1, weight: math.Pow(float64(k+1), -s), squeeze: 1})
	}
	if n <= head {
		return newTable(seed, cells, nil)
	}
	weight := func(rank uint64) float64 { return math.Pow(float64(rank+1), -s) }
	// Weights in [a, a·ratio] differ by at most zipfSpread. Tiny exponents
	// would make that ratio infinite, which the end of the key space cuts off.
	ratio := math.Pow(1-zipfSpread, -1/s)
	for a := head + 1; a <= n; { // a is rank+1
		b := n
		if end := float64(a) * ratio; end < float64(n) {
			b = max(a, uint64(end))
		}
		cells = append(cells, cell{
			start: a - 1, size: b - a + 1, weight: powerSum(a, b, s),
			squeeze: math.Pow(float64(b)/float64(a), -s),
		})
		a = b + 1
	}
	return newTable(seed, cells, weight)
}

// powerSum returns the sum of k^-s for k in [a, b], a > zipfHead, by the
// Euler-Maclaurin formula in its midpoint form:
// Σ f(k) ≈ ∫ f over [a-½, b+½] − (f'(b+½) − f'(a-½))/24, with an error below
// 1e-15 of the sum for such a.
func powerSum(a, b uint64, s float64) float64 {
	lo, hi := float64(a)-0.5, float64(b)+0.5
	logRatio := math.Log1p((hi - lo) / lo)
	integral := logRatio
	if e := 1 - s; e != 0 {
		integral = math.Pow(lo, e) * math.Expm1(e*logRatio) / e
	}
	slope := func(x float64) float64 { return -s * math.Pow(x, -s-1) }
	return integral - (slope(hi)-slope(lo))/24
}

// HotSet gives the first hot of n ranks together the share load, spread evenly
// among them, and the others the rest. 1 <= hot <= n, 0 <= load <= 1.
func HotSet(seed, n, hot uint64, load float64) Dist {
	cells := []cell{{start: 0, size: hot, weight: load, squeeze: 1}}
	if hot < n {
		cells = append(cells, cell{start: hot, size: n - hot, weight: 1 - load, squeeze: 1})
	}
	return newTable(seed, cells, nil)
}

// Shares gives rank k the share shares[k] for the first ranks, and spreads what
// is left of 1 evenly over the other n - len(shares) ranks. With none left the
// shares are taken relative to their sum.
func Shares(seed, n uint64, shares []float64) Dist {
	cells := make([]cell, 0, len(shares)+1)
	var sum float64
	for k, w := range shares {
		cells = append(cells, cell{start: uint64(k), size: 1, weight: w, squeeze: 1})
		sum += w
	}
	if rest := n - uint64(len(shares)); rest > 0 {
		cells = append(cells, cell{start: uint64(len(shares)), size: rest, weight: max(0, 1-sum), squeeze: 1})
	}
	return newTable(seed, cells, nil)
}

// Cycle deals the n ranks in turn: record i has rank i mod n. It models sensors
// that each report at a fixed interval.
func Cycle(n uint64) Dist { return cycle{n} }

type cycle struct{ keys uint64 }

func (c cycle) Keys() uint64 { return c.keys }

func (c cycle) Fill(ranks []uint64, _ []int64, first, stride uint64) {
	at, step := first%c.keys, stride%c.keys
	for j := range ranks {
		ranks[j] = at
		if at += step; at >= c.keys {
			at -= c.keys
		}
	}
}

func (c cycle) Share(rank uint64, at int64) float64 { return uniform{keys: c.keys}.Share(rank, at) }

// Sequence replays a recorded sequence of ranks in a loop: record i has rank
// seq[i mod len(seq)]. Ranks are in order of falling frequency. It keeps seq,
// which must not change any more.
func Sequence(seq []uint32) Dist {
	d := &sequence{seq: seq}
	for _, r := range seq {
		for uint64(r) >= uint64(len(d.counts)) {
			d.counts = append(d.counts, 0)
		}
		d.counts[r]++
	}
	return d
}

type sequence struct {
	seq    []uint32
	counts []uint64 // occurrences a rank in one pass
}

func (d *sequence) Keys() uint64 { return uint64(len(d.counts)) }

func (d *sequence) Fill(ranks []uint64, _ []int64, first, stride uint64) {
	n := uint64(len(d.seq))
	at, step := first%n, stride%n
	for j := range ranks {
		ranks[j] = uint64(d.seq[at])
		if at += step; at >= n {
			at -= n
		}
	}
}

func (d *sequence) Share(rank uint64, _ int64) float64 {
	if rank >= uint64(len(d.counts)) {
		return 0
	}
	return float64(d.counts[rank]) / float64(len(d.seq))
}
