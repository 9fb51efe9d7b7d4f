package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// Spread is the middle and the extremes of a few values.
type Spread struct {
	N                int
	Median, Min, Max float64
}

// SpreadOf returns the spread of the finite values, and false when there is none. values is not changed.
func SpreadOf(values []float64) (Spread, bool) {
	v := make([]float64, 0, len(values))
	for _, x := range values {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return Spread{}, false
	}
	sort.Float64s(v)
	return Spread{N: len(v), Median: median(v), Min: v[0], Max: v[len(v)-1]}, true
}

func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}

// Ratio compares two cells.
type Ratio struct {
	// Ratio is median(b) ÷ median(a).
	Ratio float64
	// Low and High bound 95 % of the ratios of resampled medians (percentile bootstrap, Efron 1979).
	Low, High float64
	// P is the two-sided probability of the Mann–Whitney U test that the values come from one distribution.
	P float64
	// Differs is false when the repetitions cannot tell the cells apart; reports then print "~".
	Differs bool
	// Reason says why they cannot, or why there is no ratio.
	Reason string
	// OK is false when there is no ratio at all.
	OK bool
}

// CompareOptions sets the test level and the seed of the resampling.
type CompareOptions struct {
	Alpha float64 // 0 means 0.05
	Seed  uint64
}

// Compare gives the ratio b ÷ a of two samples of a positive quantity. With few repetitions the U test cannot reach the
// level at all (three against three gives at best p = 0.1); then complete separation of the two samples together with a
// bootstrap interval that leaves out 1 counts as a difference, and Reason says so.
func Compare(a, b []float64, o CompareOptions) Ratio {
	if o.Alpha == 0 {
		o.Alpha = 0.05
	}
	sa, okA := SpreadOf(a)
	sb, okB := SpreadOf(b)
	switch {
	case !okA || !okB:
		return Ratio{Reason: "no value on one side"}
	case sa.N != len(a) || sb.N != len(b):
		return Ratio{Reason: "a value is not a finite number"}
	case sa.Min < 0 || sb.Min < 0:
		return Ratio{Reason: "a negative value has no ratio"}
	case sa.Median == 0:
		return Ratio{Reason: "the value compared with is 0"}
	}
	r := Ratio{Ratio: sb.Median / sa.Median, OK: true, P: mannWhitney(a, b)}
	r.Low, r.High = bootstrapRatio(a, b, o.Seed)
	apart := sa.Max < sb.Min || sb.Max < sa.Min
	switch {
	case sa.N == 1 || sb.N == 1:
		r.Reason = "one repetition cannot tell"
	case r.P <= o.Alpha:
		r.Differs = true
	case apart && smallestP(sa.N, sb.N) > o.Alpha && (r.Low > 1 || r.High < 1):
		r.Differs, r.Reason = true, "every repetition of one is above every repetition of the other"
	default:
		r.Reason = "the repetitions overlap"
	}
	return r
}

func bootstrapRatio(a, b []float64, seed uint64) (low, high float64) {
	const rounds = 2000
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	resample := func(v, into []float64) float64 {
		for i := range into {
			into[i] = v[rng.IntN(len(v))]
		}
		sort.Float64s(into)
		return median(into)
	}
	bufA, bufB := make([]float64, len(a)), make([]float64, len(b))
	ratios := make([]float64, 0, rounds)
	for range rounds {
		ma, mb := resample(a, bufA), resample(b, bufB)
		if ma > 0 {
			ratios = append(ratios, mb/ma)
		}
	}
	if len(ratios) == 0 {
		return 0, math.MaxFloat64
	}
	sort.Float64s(ratios)
	return ratios[len(ratios)*25/1000], ratios[(len(ratios)-1)*975/1000]
}

// smallestP is the least two-sided p that samples of these sizes can give: 2 / C(n+m, n).
func smallestP(n, m int) float64 {
	c := 1.0
	for i := 1; i <= n; i++ {
		c *= float64(m+i) / float64(i)
	}
	return min(1, 2/c)
}

// mannWhitney returns the two-sided p of the U test (Mann and Whitney 1947): exact by counting for small samples
// without ties, else the normal approximation with tie and continuity correction.
func mannWhitney(a, b []float64) float64 {
	n, m := len(a), len(b)
	u, ties := 0.0, false
	for _, x := range a {
		for _, y := range b {
			switch {
			case x > y:
				u++
			case x == y:
				u += 0.5
				ties = true
			}
		}
	}
	u = min(u, float64(n*m)-u)
	if !ties && n <= 20 && m <= 20 {
		return exactP(n, m, int(u))
	}
	return normalP(a, b, u)
}

// exactP counts orderings by the recurrence f(n,m,u) = f(n−1,m,u−m) + f(n,m−1,u).
func exactP(n, m, u int) float64 {
	table := make([][][]float64, n+1)
	for i := range table {
		table[i] = make([][]float64, m+1)
		for j := range table[i] {
			row := make([]float64, i*j+1)
			for k := range row {
				switch {
				case i == 0 || j == 0:
					row[k] = 1
				default:
					if k-j >= 0 && k-j < len(table[i-1][j]) {
						row[k] += table[i-1][j][k-j]
					}
					if k < len(table[i][j-1]) {
						row[k] += table[i][j-1][k]
					}
				}
			}
			table[i][j] = row
		}
	}
	below, all := 0.0, 0.0
	for k, c := range table[n][m] {
		all += c
		if k <= u {
			below += c
		}
	}
	return min(1, 2*below/all)
}

func normalP(a, b []float64, u float64) float64 {
	n, m := float64(len(a)), float64(len(b))
	all := slices.Concat(a, b)
	sort.Float64s(all)
	tie := 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		t := float64(j - i)
		tie += t*t*t - t
		i = j
	}
	total := n + m
	variance := n * m / 12 * (total + 1 - tie/(total*(total-1)))
	if variance <= 0 {
		return 1
	}
	z := max(0, math.Abs(u-n*m/2)-0.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}
