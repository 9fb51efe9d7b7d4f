package trace

import (
	"math"
	"slices"
	"time"

	"github.com/weir-bench/weir/workloads/replay"
)

// Description is what was measured of a trace. Parts that the trace has no
// column or too few rows for are zero, with the reason in Missing.
type Description struct {
	Rows    int
	Skipped int           // bad rows that were left out
	Span    time.Duration // from the first row to the last
	Rate    float64       // records/s over the span
	Skew    *Skew         // nil without keys
	Bursts  *Bursts       // nil without times, or with a span too short
	Sizes   *Sizes        // nil without sizes
	Missing []string      // what could not be measured, and why
}

// Skew describes how records are spread over keys.
type Skew struct {
	Keys       int
	Hottest    float64 // share of the records that the hottest key has
	TopTen     float64
	TopHundred float64
	Once       float64 // share of the keys that occur once
	Fit        Fit
	// Overlap[k] is the share of the ten hottest keys of the first tenth of the
	// rows that are among the ten hottest of tenth k too. 1 throughout means
	// that the hot set stands still.
	Overlap []float64
}

// Bursts describes how records are spread over time.
type Bursts struct {
	Dispersion []Dispersion
	// Window is the width of the counts from which what follows is measured.
	Window time.Duration
	// HurstVariance and HurstRS are the Hurst exponent by the slope of the
	// variance of aggregated counts, and by rescaled range (Taqqu, Teverovsky,
	// Willinger: "Estimators for long-range dependence", 1995); NaN with fewer
	// than 100 windows.
	HurstVariance, HurstRS float64
	// Windows with more records than the mean are high, the others low.
	High, Low                float64       // records/s in each
	HighFor, LowFor          time.Duration // mean length of a run of each
	HighWindows, HighRecords float64       // shares that are high
}

// Dispersion is the index of dispersion of counts: variance over mean, 1 for a
// Poisson process.
type Dispersion struct {
	Window time.Duration
	Index  float64
}

// Sizes describes the payload sizes in bytes.
type Sizes struct {
	Mean, P50, P99 float64
	// Sigma is the standard deviation of the logarithms of sizes above 0.
	Sigma float64
}

// Describe measures a trace, which it does not change.
func Describe(t *replay.Trace) *Description {
	d := &Description{Rows: t.Rows, Skipped: t.Skipped}
	if t.Ranks != nil {
		d.Skew = describeSkew(t)
	} else {
		d.missing("skew", "the trace has no key column")
	}
	switch {
	case t.Times == nil:
		d.missing("burstiness", "the trace has no time column")
	case t.Times[t.Rows-1] == 0:
		d.missing("burstiness", "all rows have the same time")
	default:
		d.Span = time.Duration(t.Times[t.Rows-1])
		d.Rate = float64(t.Rows) / d.Span.Seconds()
		d.Bursts = describeBursts(t.Times)
	}
	if t.Sizes != nil {
		d.Sizes = describeSizes(t.Sizes)
	} else {
		d.missing("sizes", "the trace has no size column")
	}
	return d
}

func (d *Description) missing(what, why string) { d.Missing = append(d.Missing, what+": "+why) }

func describeSkew(t *replay.Trace) *Skew {
	counts := make([]int, len(t.Keys)) // by rank, so they do not increase
	for _, r := range t.Ranks {
		counts[r]++
	}
	top := func(n int) float64 {
		sum := 0
		for _, c := range counts[:min(n, len(counts))] {
			sum += c
		}
		return float64(sum) / float64(t.Rows)
	}
	once := 0
	for _, c := range counts {
		if c == 1 {
			once++
		}
	}
	return &Skew{
		Keys: len(counts), Hottest: top(1), TopTen: top(10), TopHundred: top(100),
		Once: float64(once) / float64(len(counts)), Fit: fitZipf(counts), Overlap: overlap(t.Ranks, len(counts)),
	}
}

const (
	overlapParts = 10
	overlapTop   = 10
)

// overlap compares the hottest keys of each tenth with those of the first.
func overlap(ranks []uint32, keys int) []float64 {
	if len(ranks) < overlapParts {
		return nil
	}
	hottest := func(part []uint32) []uint32 {
		counts := make([]int, keys)
		for _, r := range part {
			counts[r]++
		}
		order := slices.Compact(slices.Sorted(slices.Values(part)))
		slices.SortStableFunc(order, func(a, b uint32) int { return counts[b] - counts[a] })
		return order[:min(len(order), overlapTop)]
	}
	var first []uint32
	var out []float64
	for k := range overlapParts {
		hot := hottest(ranks[len(ranks)*k/overlapParts : len(ranks)*(k+1)/overlapParts])
		if k == 0 {
			first = hot
		}
		same := 0
		for _, r := range hot {
			if slices.Contains(first, r) {
				same++
			}
		}
		out = append(out, float64(same)/float64(len(first)))
	}
	return out
}

// windowCounts returns the number of records in each whole window.
func windowCounts(times []int64, window time.Duration) []float64 {
	counts := make([]float64, times[len(times)-1]/int64(window)+1)
	for _, at := range times {
		counts[at/int64(window)]++
	}
	if len(counts) > 1 {
		counts = counts[:len(counts)-1] // the last one is not whole
	}
	return counts
}

func meanVariance(v []float64) (mean, variance float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean) / float64(max(1, len(v)-1))
	}
	return mean, variance
}

func describeBursts(times []int64) *Bursts {
	span := time.Duration(times[len(times)-1])
	b := &Bursts{Window: time.Second}
	for _, w := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute} {
		if counts := span / w; counts < 20 || counts > 1e7 {
			continue
		}
		mean, variance := meanVariance(windowCounts(times, w))
		b.Dispersion = append(b.Dispersion, Dispersion{w, variance / mean})
	}
	if span < 200*time.Second {
		b.Window = max(span/1000, 1)
	}
	counts := windowCounts(times, b.Window)
	b.HurstVariance, b.HurstRS = hurstVariance(counts), hurstRS(counts)
	b.phases(counts)
	return b
}

// phases fits two states by a threshold at the mean.
func (b *Bursts) phases(counts []float64) {
	mean, _ := meanVariance(counts)
	var windows, records, runs [2]float64 // low, high
	last := -1
	for _, c := range counts {
		state := 0
		if c > mean {
			state = 1
		}
		windows[state]++
		records[state] += c
		if state != last {
			runs[state]++
		}
		last = state
	}
	per := func(x, n float64) float64 { return x / max(n, 1) }
	b.Low, b.High = per(records[0], windows[0])/b.Window.Seconds(), per(records[1], windows[1])/b.Window.Seconds()
	b.LowFor = time.Duration(per(windows[0], runs[0]) * float64(b.Window))
	b.HighFor = time.Duration(per(windows[1], runs[1]) * float64(b.Window))
	b.HighWindows = windows[1] / float64(len(counts))
	b.HighRecords = records[1] / max(1, records[0]+records[1])
}

func describeSizes(sizes []uint32) *Sizes {
	s := &Sizes{}
	sorted := slices.Sorted(slices.Values(sizes))
	at := func(q float64) float64 { return float64(sorted[int(math.Ceil(q*float64(len(sorted))))-1]) }
	s.P50, s.P99 = at(0.5), at(0.99)
	var logs []float64
	for _, v := range sizes {
		s.Mean += float64(v) / float64(len(sizes))
		if v > 0 {
			logs = append(logs, math.Log(float64(v)))
		}
	}
	if len(logs) > 0 {
		_, variance := meanVariance(logs)
		s.Sigma = math.Sqrt(variance)
	}
	return s
}
