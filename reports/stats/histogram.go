package stats

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range and precision of every delay histogram. One geometry for all makes every merge exact.
const (
	LowestDelay  = time.Microsecond
	HighestDelay = time.Hour
	Digits       = 3
)

// Histogram is a distribution of delays. Beside the buckets it keeps the exact minimum, maximum and sum, as a bucket
// only knows its own bounds. Not safe for concurrent use.
type Histogram struct {
	buckets  *hdrhistogram.Histogram
	min, max time.Duration // of samples and of those above the range
	sum      float64       // of samples, ns
	// AboveRange counts delays over HighestDelay: they rank above every sample.
	AboveRange int64
	// Negative counts delays below 0, which only a clock that jumped or a wrong due time gives: in no percentile.
	Negative int64
	// OffAxis counts records whose due time lies outside the recorder's axis: in no percentile.
	OffAxis int64
	// Unanswered counts records that never arrived: infinitely late, they rank above everything.
	Unanswered int64
}

// NewHistogram returns an empty histogram; it holds about 200 kB.
func NewHistogram() *Histogram {
	return &Histogram{buckets: hdrhistogram.New(int64(LowestDelay), int64(HighestDelay), Digits)}
}

// FromHDR wraps buckets read from a log. exactMax is the log's Interval_Max, used when it falls into the highest bucket
// (another tool may have meant another unit); minimum and sum are as good as the buckets. Samples that do not fit the
// range are counted in AboveRange.
func FromHDR(from *hdrhistogram.Histogram, exactMax time.Duration) *Histogram {
	h := NewHistogram()
	h.AboveRange = h.buckets.Merge(from)
	if from.TotalCount() == 0 {
		return h
	}
	h.min, h.max = time.Duration(from.Min()), time.Duration(from.Max())
	if from.ValuesAreEquivalent(int64(exactMax), int64(h.max)) {
		h.max = exactMax
	}
	h.min = min(h.min, h.max)
	h.sum = h.buckets.Mean() * float64(h.buckets.TotalCount())
	return h
}

// Record adds n samples of delay d.
func (h *Histogram) Record(d time.Duration, n int64) {
	switch {
	case n <= 0:
		return
	case d < 0:
		h.Negative += n
		return
	}
	first := h.buckets.TotalCount()+h.AboveRange == 0
	if d > HighestDelay || h.buckets.RecordValues(int64(d), n) != nil {
		h.AboveRange += n
	} else {
		h.sum += float64(d) * float64(n)
	}
	if first || d < h.min {
		h.min = d
	}
	if first || d > h.max {
		h.max = d
	}
}

// Merge adds everything in o to h. Nothing can be dropped, as all Histograms have one geometry.
func (h *Histogram) Merge(o *Histogram) {
	if o.delivered() > 0 {
		if h.delivered() == 0 {
			h.min, h.max = o.min, o.max
		}
		h.min, h.max = min(h.min, o.min), max(h.max, o.max)
	}
	if dropped := h.buckets.Merge(o.buckets); dropped != 0 {
		panic(fmt.Sprintf("stats: %d samples dropped between histograms of one geometry", dropped))
	}
	h.sum += o.sum
	h.AboveRange += o.AboveRange
	h.Negative += o.Negative
	h.OffAxis += o.OffAxis
	h.Unanswered += o.Unanswered
}

// Reset empties h.
func (h *Histogram) Reset() {
	buckets := h.buckets
	buckets.Reset()
	*h = Histogram{buckets: buckets}
}

// HDR returns the buckets for encoding; they stay owned by h.
func (h *Histogram) HDR() *hdrhistogram.Histogram { return h.buckets }

// Samples is the number of delays in the buckets.
func (h *Histogram) Samples() int64 { return h.buckets.TotalCount() }

func (h *Histogram) delivered() int64 { return h.buckets.TotalCount() + h.AboveRange }

// Delivered counts every record that arrived, whether or not a bucket holds its delay.
func (h *Histogram) Delivered() int64 { return h.delivered() + h.Negative + h.OffAxis }

// Min returns the exact least delay, and false when there is no sample.
func (h *Histogram) Min() (time.Duration, bool) { return h.min, h.delivered() > 0 }

// Max returns the exact greatest delay that arrived, and false when there is no sample.
func (h *Histogram) Max() (time.Duration, bool) { return h.max, h.delivered() > 0 }

// Mean returns the mean of the samples in range, and false when there are none or when some delay has no finite value in
// the buckets, since a mean of the others would flatter.
func (h *Histogram) Mean() (time.Duration, bool) {
	n := h.buckets.TotalCount()
	if n == 0 || h.AboveRange > 0 || h.Unanswered > 0 {
		return 0, false
	}
	return time.Duration(math.Round(h.sum / float64(n))), true
}

// Standing says what a percentile is.
type Standing int

// The standings of a percentile.
const (
	NoSamples   Standing = iota // nothing was measured: no figure
	Measured                    // the delay is a measured one
	BeyondRange                 // it is above HighestDelay: "> 1h"
	NeverCame                   // it falls on records that never arrived: infinite
)

// Percentile returns the delay at or below which percent (0..100, so 99 for the 99th) of the records lie, counting
// records that never arrived as infinitely late. The delay is within Digits digits, and never outside [Min, Max]. It is
// meaningful when Standing is Measured, and a lower bound when it is BeyondRange or NeverCame. percent outside 0..100
// panics.
func (h *Histogram) Percentile(percent float64) (time.Duration, Standing) {
	if !(percent >= 0 && percent <= 100) {
		panic(fmt.Sprintf("stats: percentile %v is not in 0..100", percent))
	}
	n := h.buckets.TotalCount()
	total := n + h.AboveRange + h.Unanswered
	if total == 0 {
		return 0, NoSamples
	}
	// The small step down keeps 99 % of 1000 at rank 990 in spite of rounding in the product.
	rank := max(1, int64(math.Ceil(percent/100*float64(total)*(1-1e-12))))
	switch {
	case rank > n+h.AboveRange:
		return h.max, NeverCame
	case rank > n:
		return HighestDelay, BeyondRange
	}
	// The library rounds percent·n to the nearest rank, so this names exactly ours.
	v := time.Duration(h.buckets.ValueAtPercentile(float64(rank) / float64(n) * 100))
	return min(max(v, h.min), h.max), Measured
}

// MeasuredPercentile is Percentile for callers that only take a measured value.
func (h *Histogram) MeasuredPercentile(percent float64) (time.Duration, bool) {
	d, s := h.Percentile(percent)
	return d, s == Measured
}
