package stats

import (
	"math"
	"math/bits"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The bucket layout of an HdrHistogram with LowestDelay, HighestDelay and Digits. Recording needs the index of a bucket
// without a dense histogram per interval; a test compares it with the library's.
const (
	unitMagnitude  = 9  // floor(log2(1000 ns))
	halfMagnitude  = 10 // log2(2048 sub-buckets) − 1
	subBucketMask  = (1<<(halfMagnitude+1) - 1) << unitMagnitude
	pageMagnitude  = 8
	pageCounters   = 1 << pageMagnitude
	buckets        = 23 // doublings of 2048·512 ns until 1 h is covered, and the first
	counters       = (buckets + 1) << halfMagnitude
	pagesPerRow    = counters / pageCounters
	slabPages      = 256
	defaultHorizon = 2 * time.Hour
)

type page [pageCounters]uint32

// interval is what is known of one interval beside its counters.
type interval struct {
	samples, above, unanswered int64
	arrived                    int64 // by arrival time
	sum                        float64
	min, max                   int64
}

// RecorderOptions configures a Recorder.
type RecorderOptions struct {
	// Interval is the width of an interval; 0 means 100 ms.
	Interval time.Duration
	// Expect is how long the trial will take; space for it is made in advance, so that nothing is allocated while the
	// trial lasts no longer and its delays spread no wider than usual. 0 means one minute.
	Expect time.Duration
	// Horizon bounds the axis; records due later are counted in OffAxis. 0 means two hours.
	Horizon time.Duration
}

// Recorder records delays into one histogram per interval. Its counters are in pages that exist only where a delay fell,
// as a dense histogram per 100 ms would take 200 kB. One goroutine at a time; merge several recorders afterwards.
//
// A record belongs to the interval in which it was due (intended time). By arrival, all records that a pause held back
// would fall into the one interval in which the pause ended: the interval series would show a healthy system, a hole,
// and one bad interval, whatever the length of the pause. By due time each interval says what a user who asked at that
// moment had to wait. Arrivals are only counted, for the rate of results.
type Recorder struct {
	width    int64
	horizon  int64
	rows     []interval
	table    []int32 // row·pagesPerRow + page number → index into pages, 0 for none
	pages    []*page // pages[0] is unused
	free     []page
	negative int64
	offAxis  int64
}

// NewRecorder returns an empty recorder.
func NewRecorder(o RecorderOptions) *Recorder {
	if o.Interval <= 0 {
		o.Interval = 100 * time.Millisecond
	}
	if o.Expect <= 0 {
		o.Expect = time.Minute
	}
	if o.Horizon <= 0 {
		o.Horizon = defaultHorizon
	}
	o.Expect = min(o.Expect, o.Horizon)
	r := &Recorder{width: int64(o.Interval), horizon: int64(o.Horizon)}
	rows := int(o.Expect/o.Interval) + 2
	r.rows = make([]interval, 0, rows)
	r.table = make([]int32, 0, rows*pagesPerRow)
	r.pages = make([]*page, 1, rows*8)
	r.free = make([]page, min(rows*8, 64*slabPages))
	return r
}

// Record records one delay: due and arrival count from the start of the trial.
func (r *Recorder) Record(due, arrival time.Duration) { r.RecordN(due, arrival, 1) }

// RecordN records n records with the same due and arrival time. n ≤ 0 is ignored.
func (r *Recorder) RecordN(due, arrival time.Duration, n int) {
	if n <= 0 {
		return
	}
	row, arrived := r.row(int64(due)), r.row(int64(arrival))
	if row < 0 {
		r.offAxis += int64(n)
		return
	}
	if arrived >= 0 {
		r.rows[arrived].arrived += int64(n)
	}
	d := int64(arrival - due)
	if d < 0 {
		r.negative += int64(n)
		return
	}
	iv := &r.rows[row]
	if iv.samples+iv.above == 0 {
		iv.min, iv.max = d, d
	}
	iv.min, iv.max = min(iv.min, d), max(iv.max, d)
	if d > int64(HighestDelay) {
		iv.above += int64(n)
		return
	}
	index := bucketIndex(d)
	c := r.counter(row, index)
	if uint64(*c)+uint64(n) > math.MaxUint32 {
		panic("stats: more than 4 billion equal delays in one interval")
	}
	*c += uint32(n)
	iv.samples += int64(n)
	iv.sum += float64(d) * float64(n)
}

// Unanswered counts n records due at due that never arrived.
func (r *Recorder) Unanswered(due time.Duration, n int64) {
	if n <= 0 {
		return
	}
	row := r.row(int64(due))
	if row < 0 {
		r.offAxis += n
		return
	}
	r.rows[row].unanswered += n
}

// row returns the row of a time, growing the axis up to it, or −1 when it is off the axis.
func (r *Recorder) row(t int64) int {
	if t < 0 || t >= r.horizon {
		return -1
	}
	row := int(uint64(t) / uint64(r.width))
	if row >= len(r.rows) {
		r.grow(row + 1)
	}
	return row
}

func (r *Recorder) grow(n int) {
	for len(r.rows) < n {
		r.rows = append(r.rows, interval{})
	}
	for len(r.table) < n*pagesPerRow {
		r.table = append(r.table, 0)
	}
}

func (r *Recorder) counter(row, index int) *uint32 {
	slot := &r.table[row*pagesPerRow+index>>pageMagnitude]
	if *slot == 0 {
		*slot = r.newPage()
	}
	return &r.pages[*slot][index&(pageCounters-1)]
}

func (r *Recorder) newPage() int32 {
	if len(r.free) == 0 {
		r.free = make([]page, slabPages)
	}
	r.pages = append(r.pages, &r.free[0])
	r.free = r.free[1:]
	return int32(len(r.pages) - 1)
}

// bucketIndex is countsIndexFor of HdrHistogram for the fixed geometry, for 0 ≤ d ≤ HighestDelay.
func bucketIndex(d int64) int {
	bucket := bits.Len64(uint64(d)|subBucketMask) - unitMagnitude - (halfMagnitude + 1)
	sub := int(d >> (bucket + unitMagnitude))
	return (bucket+1)<<halfMagnitude + sub - 1<<halfMagnitude
}

// bucketValue is a value that bucketIndex maps to index.
func bucketValue(index int) int64 {
	bucket, sub := index>>halfMagnitude-1, index&(1<<halfMagnitude-1)+1<<halfMagnitude
	if bucket < 0 {
		bucket, sub = 0, sub-1<<halfMagnitude
	}
	return int64(sub) << (bucket + unitMagnitude)
}

// Intervals is the number of intervals from the start of the trial to the last one touched.
func (r *Recorder) Intervals() int { return len(r.rows) }

// Interval is the width of an interval.
func (r *Recorder) Interval() time.Duration { return time.Duration(r.width) }

// Arrived is the number of records that arrived in interval i.
func (r *Recorder) Arrived(i int) int64 { return r.rows[i].arrived }

// AddTo merges the records that were due in interval i into h.
func (r *Recorder) AddTo(h *Histogram, i int) {
	iv := &r.rows[i]
	for p, slot := range r.table[i*pagesPerRow : (i+1)*pagesPerRow] {
		if slot == 0 {
			continue
		}
		for c, n := range r.pages[slot] {
			if n != 0 {
				record(h.buckets, bucketValue(p<<pageMagnitude+c), int64(n))
			}
		}
	}
	if iv.samples+iv.above > 0 {
		lo, hi := time.Duration(iv.min), time.Duration(iv.max)
		// h.buckets already has the samples, so emptiness before them is its total without ours.
		if h.buckets.TotalCount()-iv.samples+h.AboveRange == 0 {
			h.min, h.max = lo, hi
		}
		h.min, h.max = min(h.min, lo), max(h.max, hi)
	}
	h.sum += iv.sum
	h.AboveRange += iv.above
	h.Unanswered += iv.unanswered
}

func record(b *hdrhistogram.Histogram, v, n int64) {
	if err := b.RecordValues(v, n); err != nil {
		panic("stats: a recorder's bucket does not fit the histogram: " + err.Error())
	}
}

// Total merges all intervals, with the counts of what no interval holds.
func (r *Recorder) Total() *Histogram {
	h := NewHistogram()
	for i := range r.rows {
		r.AddTo(h, i)
	}
	h.Negative, h.OffAxis = r.negative, r.offAxis
	return h
}

// Between merges the intervals that begin in [from, to).
func (r *Recorder) Between(from, to time.Duration) *Histogram {
	h := NewHistogram()
	for i := range r.rows {
		if start := time.Duration(i) * r.Interval(); start >= from && start < to {
			r.AddTo(h, i)
		}
	}
	return h
}

// Merge adds everything o recorded to r. Both must have the same interval width, else it panics.
func (r *Recorder) Merge(o *Recorder) {
	if r.width != o.width {
		panic("stats: recorders with different intervals cannot be merged")
	}
	r.horizon = max(r.horizon, o.horizon)
	r.grow(len(o.rows))
	for i := range o.rows {
		from, to := &o.rows[i], &r.rows[i]
		for p, slot := range o.table[i*pagesPerRow : (i+1)*pagesPerRow] {
			if slot == 0 {
				continue
			}
			for c, n := range o.pages[slot] {
				if n != 0 {
					*r.counter(i, p<<pageMagnitude+c) += n
				}
			}
		}
		if from.samples+from.above > 0 {
			if to.samples+to.above == 0 {
				to.min, to.max = from.min, from.max
			}
			to.min, to.max = min(to.min, from.min), max(to.max, from.max)
		}
		to.samples += from.samples
		to.above += from.above
		to.unanswered += from.unanswered
		to.arrived += from.arrived
		to.sum += from.sum
	}
	r.negative += o.negative
	r.offAxis += o.offAxis
}

// Point is one interval of a series.
type Point struct {
	Start             time.Duration
	Count, Unanswered int64
	Arrived           int64
	// InRange are the records of Count within the range of the histogram, and Sum their delays together, in seconds.
	InRange int64
	Sum     float64
	// P50, P90, P99 and Max are meaningful only with their standing; Max is Measured when Count > 0.
	P50, P90, P99, Max             time.Duration
	P50Is, P90Is, P99Is, MaximumIs Standing
}

// Series is a trial as intervals.
type Series struct {
	Interval time.Duration
	Points   []Point
}

// Series returns the percentiles of each interval.
func (r *Recorder) Series() Series {
	s := Series{Interval: r.Interval(), Points: make([]Point, 0, len(r.rows))}
	h := NewHistogram()
	for i := range r.rows {
		h.Reset()
		r.AddTo(h, i)
		p := Point{Start: time.Duration(i) * r.Interval(), Count: h.Samples() + h.AboveRange, Unanswered: h.Unanswered, Arrived: r.rows[i].arrived,
			InRange: h.Samples(), Sum: h.sum / float64(time.Second)}
		p.P50, p.P50Is = h.Percentile(50)
		p.P90, p.P90Is = h.Percentile(90)
		p.P99, p.P99Is = h.Percentile(99)
		if top, ok := h.Max(); ok {
			p.Max, p.MaximumIs = top, Measured
		}
		s.Points = append(s.Points, p)
	}
	return s
}
