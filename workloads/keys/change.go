package keys

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/weir-bench/weir/workloads/rng"
)

// Forever is the end of a change that does not end.
const Forever int64 = math.MaxInt64

// Point is a change of a distribution: from Begin on it is going on, and it is
// complete (drift, grow) or over (flash) at End. Times are ns since the start.
type Point struct {
	Kind       string
	Begin, End int64
}

// changing is what distributions implement that change over time.
type changing interface {
	// points returns the changes that begin before until.
	points(until int64) []Point
}

// uneven is what distributions implement whose ranks are not always in order
// of load.
type uneven interface {
	// hot returns ranks among which are the n most loaded ones at a time.
	hot(n int, at int64) []uint64
}

// Points returns the changes of d that begin before until (ns), in order.
func Points(d Dist, until int64) []Point {
	c, ok := d.(changing)
	if !ok {
		return nil
	}
	points := c.points(until)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Begin, b.Begin) })
	return points
}

// Hot returns the n most loaded ranks of d for records with intended time at
// (ns), most loaded first, ties by ascending rank.
func Hot(d Dist, n int, at int64) []uint64 {
	ranks := candidates(d, n, at)
	slices.SortFunc(ranks, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(d.Share(b, at), d.Share(a, at)), cmp.Compare(a, b))
	})
	ranks = slices.Compact(ranks)
	return ranks[:min(n, len(ranks))]
}

// candidates returns ranks among which are the n most loaded ones at a time.
func candidates(d Dist, n int, at int64) []uint64 {
	if u, ok := d.(uneven); ok {
		return u.hot(n, at)
	}
	ranks := make([]uint64, min(uint64(n), d.Keys()))
	for k := range ranks {
		ranks[k] = uint64(k)
	}
	return ranks
}

// stages is one distribution after another.
type stages struct {
	dists []Dist
	ends  []int64 // ends[k]: when dists[k] gives way to the next one
	kind  string
	keys  uint64
}

// Step is before until time at (ns), and after from then on.
func Step(before, after Dist, at int64) Dist {
	return &stages{[]Dist{before, after}, []int64{at}, "step", max(before.Keys(), after.Keys())}
}

// growSteps is the number of equal steps in which a key space grows.
const growSteps = 64

// Grow has a key space that grows from one size to another between times at and
// at+over (ns), in 64 steps. make returns the distribution over n ranks.
func Grow(from, to uint64, at, over int64, make func(n uint64) Dist) Dist {
	g := &stages{kind: "grow", keys: max(from, to)}
	for k := range growSteps + 1 {
		share := float64(k) / growSteps
		n := uint64(math.Round(float64(from) + share*(float64(to)-float64(from))))
		g.dists = append(g.dists, make(n))
		if k < growSteps {
			g.ends = append(g.ends, at+int64(share*float64(over)))
		}
	}
	return g
}

func (s *stages) Keys() uint64 { return s.keys }

func (s *stages) Fill(ranks []uint64, times []int64, first, stride uint64) {
	for k, end := range s.ends {
		if len(ranks) == 0 {
			return
		}
		if times[0] >= end {
			continue
		}
		n := len(ranks)
		if times[n-1] >= end {
			n = sort.Search(n, func(j int) bool { return times[j] >= end })
		}
		s.dists[k].Fill(ranks[:n], times[:n], first, stride)
		ranks, times, first = ranks[n:], times[n:], first+uint64(n)*stride
	}
	if len(ranks) > 0 {
		s.dists[len(s.ends)].Fill(ranks, times, first, stride)
	}
}

func (s *stages) current(at int64) Dist {
	return s.dists[sort.Search(len(s.ends), func(k int) bool { return at < s.ends[k] })]
}

func (s *stages) Share(rank uint64, at int64) float64 { return s.current(at).Share(rank, at) }

func (s *stages) hot(n int, at int64) []uint64 { return candidates(s.current(at), n, at) }

func (s *stages) points(until int64) []Point {
	var points []Point
	for _, d := range s.dists {
		points = append(points, Points(d, until)...)
	}
	if begin := s.ends[0]; begin < until {
		points = append(points, Point{s.kind, begin, s.ends[len(s.ends)-1]})
	}
	return points
}

// drift mixes two distributions in a proportion that changes over time.
type drift struct {
	before, after Dist
	at, over      int64
	seed          uint64
}

// Drift goes from one distribution to another between times at and at+over
// (ns): in between, a record is drawn from after with a probability that rises
// linearly from 0 to 1, so shares are a weighted mean of the two.
func Drift(before, after Dist, at, over int64, seed uint64) Dist {
	return &drift{before, after, at, over, seed}
}

func (d *drift) Keys() uint64 { return max(d.before.Keys(), d.after.Keys()) }

// progress is the probability of after at a time.
func (d *drift) progress(at int64) float64 {
	return min(1, max(0, float64(at-d.at)/float64(d.over)))
}

func (d *drift) Fill(ranks []uint64, times []int64, first, stride uint64) {
	if len(ranks) == 0 {
		return
	}
	if d.progress(times[0]) >= 1 {
		d.after.Fill(ranks, times, first, stride)
		return
	}
	d.before.Fill(ranks, times, first, stride)
	if d.progress(times[len(ranks)-1]) <= 0 {
		return
	}
	for j := range ranks {
		i := first + uint64(j)*stride
		if rng.Float(rng.At(d.seed, i)) < d.progress(times[j]) {
			d.after.Fill(ranks[j:j+1], times[j:j+1], i, 1)
		}
	}
}

func (d *drift) Share(rank uint64, at int64) float64 {
	p := d.progress(at)
	return (1-p)*d.before.Share(rank, at) + p*d.after.Share(rank, at)
}

func (d *drift) hot(n int, at int64) []uint64 {
	return append(candidates(d.before, n, at), candidates(d.after, n, at)...)
}

func (d *drift) points(until int64) []Point {
	points := append(Points(d.before, until), Points(d.after, until)...)
	if d.at < until {
		points = append(points, Point{"drift", d.at, d.at + d.over})
	}
	return points
}

// swap moves the load on to other ranks every so often.
type swap struct {
	of        Dist
	at, every int64
	by        uint64
}

// Swap moves all load on by ranks at time at and again every period (ns): the
// load of rank r goes to rank r+by (modulo the number of ranks). With by at
// least the size of the hot set another set is hot each time; with by = 1 the
// hot set drifts.
func Swap(of Dist, by uint64, at, every int64) Dist { return &swap{of, at, every, by} }

func (s *swap) Keys() uint64 { return s.of.Keys() }

// moved returns by how many ranks the load has moved at a time, below Keys(),
// and until when.
func (s *swap) moved(at int64) (by uint64, until int64) {
	if at < s.at {
		return 0, s.at
	}
	times := uint64((at-s.at)/s.every) + 1
	until = s.at + int64(times)*s.every
	if until < at {
		until = Forever // the sum overflowed
	}
	return times % s.Keys() * (s.by % s.Keys()) % s.Keys(), until
}

func (s *swap) Fill(ranks []uint64, times []int64, first, stride uint64) {
	s.of.Fill(ranks, times, first, stride)
	keys := s.Keys()
	by, until := uint64(0), int64(math.MinInt64)
	for j := range ranks {
		if times[j] >= until {
			by, until = s.moved(times[j])
		}
		if ranks[j] += by; ranks[j] >= keys {
			ranks[j] -= keys
		}
	}
}

func (s *swap) Share(rank uint64, at int64) float64 {
	by, _ := s.moved(at)
	return s.of.Share((rank+s.Keys()-by)%s.Keys(), at)
}

func (s *swap) hot(n int, at int64) []uint64 {
	by, _ := s.moved(at)
	ranks := candidates(s.of, n, at)
	for k := range ranks {
		ranks[k] = (ranks[k] + by) % s.Keys()
	}
	return ranks
}

func (s *swap) points(until int64) []Point {
	points := Points(s.of, until)
	for at := s.at; at < until; at += s.every {
		points = append(points, Point{"swap", at, at})
		if at > until-s.every {
			break
		}
	}
	return points
}

// flash sends a share of the load to one rank for a while.
type flash struct {
	of       Dist
	rank     uint64
	share    float64
	at, ends int64
	seed     uint64
}

// Flash sends a share of all records to one rank between times at and ends
// (ns), on top of what it has anyhow.
func Flash(of Dist, rank uint64, share float64, at, ends int64, seed uint64) Dist {
	return &flash{of, rank, share, at, ends, seed}
}

func (f *flash) Keys() uint64 { return f.of.Keys() }

func (f *flash) Fill(ranks []uint64, times []int64, first, stride uint64) {
	f.of.Fill(ranks, times, first, stride)
	if len(ranks) == 0 || times[len(ranks)-1] < f.at || times[0] >= f.ends {
		return
	}
	for j := range ranks {
		if times[j] >= f.at && times[j] < f.ends && rng.Float(rng.At(f.seed, first+uint64(j)*stride)) < f.share {
			ranks[j] = f.rank
		}
	}
}

func (f *flash) Share(rank uint64, at int64) float64 {
	share := f.of.Share(rank, at)
	if at < f.at || at >= f.ends {
		return share
	}
	share *= 1 - f.share
	if rank == f.rank {
		share += f.share
	}
	return share
}

func (f *flash) hot(n int, at int64) []uint64 { return append(candidates(f.of, n, at), f.rank) }

func (f *flash) points(until int64) []Point {
	points := Points(f.of, until)
	if f.at < until {
		points = append(points, Point{"flash", f.at, f.ends})
	}
	return points
}

// fan splits each rank into several.
type fan struct {
	of   Dist
	k    uint64
	seed uint64
}

// Fan makes each rank of a distribution into k ranks that share its records
// evenly: rank r becomes ranks r·k … r·k+k−1.
func Fan(of Dist, k, seed uint64) Dist { return &fan{of, k, seed} }

func (f *fan) Keys() uint64 { return f.of.Keys() * f.k }

func (f *fan) Fill(ranks []uint64, times []int64, first, stride uint64) {
	f.of.Fill(ranks, times, first, stride)
	for j := range ranks {
		part, _ := bits.Mul64(rng.At(f.seed, first+uint64(j)*stride), f.k)
		ranks[j] = ranks[j]*f.k + part
	}
}

func (f *fan) Share(rank uint64, at int64) float64 { return f.of.Share(rank/f.k, at) / float64(f.k) }
