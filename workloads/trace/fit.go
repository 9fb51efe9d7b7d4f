package trace

import "math"

// Fit is a Zipf exponent with how well it fits.
type Fit struct {
	// Slope is minus the slope of log frequency over log rank, by least squares
	// over ranks spaced evenly in the logarithm whose keys occur at least five
	// times; R2 is its coefficient of determination. NaN with fewer than five
	// such ranks.
	Slope, R2 float64
	// Likeliest is the exponent of the Zipf distribution over as many keys under
	// which the trace is likeliest, and Distance the largest difference between
	// its cumulated shares and the trace's (Kolmogorov and Smirnov).
	Likeliest, Distance float64
}

// fitZipf fits counts by rank, which do not increase.
func fitZipf(counts []int) Fit {
	var f Fit
	f.Slope, f.R2 = zipfSlope(counts)
	f.Likeliest = zipfLikeliest(counts)
	f.Distance = zipfDistance(counts, f.Likeliest)
	return f
}

// line fits y = a + b·x by least squares.
func line(x, y []float64) (b, r2 float64) {
	mx, vx := meanVariance(x)
	my, vy := meanVariance(y)
	cov := 0.0
	for i := range x {
		cov += (x[i] - mx) * (y[i] - my) / float64(max(1, len(x)-1))
	}
	if vx == 0 {
		return math.NaN(), math.NaN()
	}
	if vy == 0 {
		return 0, 1
	}
	return cov / vx, cov * cov / (vx * vy)
}

func zipfSlope(counts []int) (slope, r2 float64) {
	const often = 5
	var x, y []float64
	for r := 1.0; int(r) <= len(counts) && counts[int(r)-1] >= often; r = math.Max(r+1, r*1.1) {
		x = append(x, math.Log(math.Floor(r)))
		y = append(y, math.Log(float64(counts[int(r)-1])))
	}
	if len(x) < 5 {
		return math.NaN(), math.NaN()
	}
	b, r2 := line(x, y)
	return -b, r2
}

// rankBins cuts [1, n] into runs over which k^-s hardly changes.
func rankBins(n int) (from []int) {
	for k := 1; k <= n; k = max(k+1, int(float64(k)*1.005)) {
		from = append(from, k)
	}
	return append(from, n+1)
}

// zipfLikeliest solves Σ n_k·ln k / N = Σ k^-s·ln k / Σ k^-s for s by bisection
// (Clauset, Shalizi, Newman: "Power-law distributions in empirical data", 2009,
// with a finite number of keys).
func zipfLikeliest(counts []int) float64 {
	total, logs := 0.0, 0.0
	for k, c := range counts {
		total += float64(c)
		logs += float64(c) * math.Log(float64(k+1))
	}
	bins := rankBins(len(counts))
	meanLog := func(s float64) float64 {
		num, den := 0.0, 0.0
		for i := range len(bins) - 1 {
			size := float64(bins[i+1] - bins[i])
			l := math.Log(float64(bins[i]) + (size-1)/2)
			w := size * math.Exp(-s*l)
			num += w * l
			den += w
		}
		return num / den
	}
	lo, hi := 0.0, 10.0
	for range 60 {
		if mid := (lo + hi) / 2; meanLog(mid) > logs/total {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

func zipfDistance(counts []int, s float64) float64 {
	total, norm := 0.0, 0.0
	for k, c := range counts {
		total += float64(c)
		norm += math.Pow(float64(k+1), -s)
	}
	seen, theory, distance := 0.0, 0.0, 0.0
	for k, c := range counts {
		seen += float64(c) / total
		theory += math.Pow(float64(k+1), -s) / norm
		distance = math.Max(distance, math.Abs(seen-theory))
	}
	return distance
}

// minWindows is the least number of counts for a Hurst exponent.
const minWindows = 100

// hurstVariance is 1 + slope/2 of log variance over log size of blocks of
// counts.
func hurstVariance(counts []float64) float64 {
	if len(counts) < minWindows {
		return math.NaN()
	}
	var x, y []float64
	for m := 1.0; int(m) <= len(counts)/10; m = math.Max(m+1, m*1.3) {
		size := int(m)
		blocks := make([]float64, len(counts)/size)
		for k := range blocks {
			blocks[k], _ = meanVariance(counts[k*size : (k+1)*size])
		}
		if _, v := meanVariance(blocks); v > 0 {
			x = append(x, math.Log(float64(size)))
			y = append(y, math.Log(v))
		}
	}
	if len(x) < 3 {
		return math.NaN()
	}
	slope, _ := line(x, y)
	return 1 + slope/2
}

// hurstRS is the slope of log mean rescaled range over log size of blocks.
func hurstRS(counts []float64) float64 {
	if len(counts) < minWindows {
		return math.NaN()
	}
	var x, y []float64
	for m := 10.0; int(m) <= len(counts)/4; m *= 1.3 {
		size, sum, used := int(m), 0.0, 0.0
		for at := 0; at+size <= len(counts); at += size {
			if rs := rescaledRange(counts[at : at+size]); rs > 0 {
				sum += rs
				used++
			}
		}
		if used > 0 {
			x = append(x, math.Log(float64(size)))
			y = append(y, math.Log(sum/used))
		}
	}
	if len(x) < 3 {
		return math.NaN()
	}
	slope, _ := line(x, y)
	return slope
}

// rescaledRange is the range of the cumulated deviations over their standard
// deviation, 0 for a constant block.
func rescaledRange(block []float64) float64 {
	mean, variance := meanVariance(block)
	if variance == 0 {
		return 0
	}
	sum, lo, hi := 0.0, 0.0, 0.0
	for _, c := range block {
		sum += c - mean
		lo, hi = math.Min(lo, sum), math.Max(hi, sum)
	}
	return (hi - lo) / math.Sqrt(variance)
}
