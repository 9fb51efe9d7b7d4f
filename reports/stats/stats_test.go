package stats

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

var seed = flag.Uint64("seed", 1, "seed of the randomised tests")

const ms = time.Millisecond

// near reports whether got is within the precision of the buckets (3 digits, 512 ns at least) of want.
func near(got, want time.Duration) bool {
	return math.Abs(float64(got-want)) <= max(512, float64(want)/1000)
}

func wantPercentile(t *testing.T, h *Histogram, percent float64, want time.Duration) {
	t.Helper()
	if got, is := h.Percentile(percent); is != Measured || !near(got, want) {
		t.Errorf("p%v = %v (standing %d), want %v", percent, got, is, want)
	}
}

func TestPercentileScaleAndConsistency(t *testing.T) {
	h := NewHistogram()
	for i := 1; i <= 1000; i++ {
		h.Record(time.Duration(i)*ms, 1)
	}
	for percent, want := range map[float64]time.Duration{10: 100 * ms, 50: 500 * ms, 99: 990 * ms, 100: 1000 * ms} {
		wantPercentile(t, h, percent, want)
	}

	h = NewHistogram()
	for _, d := range []time.Duration{137, 200, 252, 389} {
		h.Record(d*ms, 1)
	}
	mean, _ := h.Mean()
	lo, _ := h.Min()
	hi, _ := h.Max()
	if h.Samples() != 4 || mean != 244500*time.Microsecond || lo != 137*ms || hi != 389*ms {
		t.Errorf("count %d mean %v min %v max %v", h.Samples(), mean, lo, hi)
	}

	h = NewHistogram()
	h.Record(2*ms, 14_999)
	h.Record(5*time.Second, 1)
	wantPercentile(t, h, 50, 2*ms)
	wantPercentile(t, h, 99, 2*ms)
	if hi, _ := h.Max(); hi != 5*time.Second {
		t.Errorf("max %v, want exactly 5s", hi)
	}
	if mean, _ := h.Mean(); mean.Round(time.Microsecond) != 2333*time.Microsecond {
		t.Errorf("mean %v, want 2.333 ms", mean)
	}
}

func TestPercentileRefusesWrongScale(t *testing.T) {
	for _, p := range []float64{-1, 100.5, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Percentile(%v) did not panic", p)
				}
			}()
			NewHistogram().Percentile(p)
		}()
	}
}

func TestEmptyHasNoFigures(t *testing.T) {
	h := NewHistogram()
	for _, p := range []float64{0, 50, 99, 100} {
		if _, is := h.Percentile(p); is != NoSamples {
			t.Errorf("p%v of nothing has standing %d", p, is)
		}
	}
	_, okMin := h.Min()
	_, okMax := h.Max()
	_, okMean := h.Mean()
	if okMin || okMax || okMean {
		t.Errorf("an empty histogram has min %v max %v mean %v", okMin, okMax, okMean)
	}
	r := NewRecorder(RecorderOptions{})
	if s := r.Series(); len(s.Points) != 0 || r.Total().Samples() != 0 {
		t.Errorf("an empty recorder has %d points", len(s.Points))
	}
}

// TestConsistencyRandomised checks what must hold for every non-negative sample: min ≤ p ≤ max, percentiles rise, and
// mean ≥ (1−q)·pq within the bucket precision.
func TestConsistencyRandomised(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 1))
	for round := range 15 {
		r := NewRecorder(RecorderOptions{})
		want := NewHistogram()
		for range 1 + rng.IntN(300) {
			due := time.Duration(rng.Int64N(int64(3 * time.Second)))
			d := time.Duration(math.Exp(rng.Float64() * math.Log(4*3.6e12)))
			r.Record(due, due+d)
			want.Record(d, 1)
		}
		got := r.Total()
		lo, _ := got.Min()
		hi, _ := got.Max()
		last := time.Duration(0)
		for _, q := range []float64{0, 1, 25, 50, 75, 90, 99, 99.9, 100} {
			v, is := got.Percentile(q)
			w, wIs := want.Percentile(q)
			if v != w || is != wIs {
				t.Errorf("-seed=%d round %d: p%v recorder %v, histogram %v", *seed, round, q, v, w)
			}
			if v < lo || v > hi || v < last {
				t.Errorf("-seed=%d round %d: p%v = %v not in [%v, %v] or below %v", *seed, round, q, v, lo, hi, last)
			}
			if mean, ok := got.Mean(); ok && float64(mean) < (1-q/100)*float64(v)*0.999-512 {
				t.Errorf("-seed=%d round %d: mean %v < (1−%v%%)·%v", *seed, round, mean, q, v)
			}
			last = v
		}
	}
}

// freeze simulates a first-in-first-out worker of the given rate that stands still in [from, to) and returns the delays
// against the schedule.
func freeze(events int, gap, from, to, service time.Duration) *Recorder {
	r := NewRecorder(RecorderOptions{Expect: 12 * time.Second})
	free := time.Duration(0)
	for i := range events {
		due := time.Duration(i) * gap
		start := max(due, free)
		if start >= from && start < to {
			start = to
		}
		free = start + service
		r.Record(due, free)
	}
	return r
}

func TestFreezeUnderFixedSchedule(t *testing.T) {
	cases := []struct {
		drain float64
		want  map[float64]time.Duration
		mean  time.Duration
	}{
		{100_000, map[float64]time.Duration{50: 50 * ms, 75: 2525 * ms, 90: 4010 * ms, 99: 4900 * ms, 100: 5000 * ms}, 0},
		{10_000, map[float64]time.Duration{50: 500 * ms, 75: 2750 * ms, 90: 4100 * ms}, 1390 * ms},
		{2_000, map[float64]time.Duration{50: 2500 * ms}, 0},
	}
	for _, c := range cases {
		service := time.Duration(float64(time.Second) / c.drain)
		r := freeze(10_000, ms, 2500*ms, 7500*ms, service)
		h := r.Total()
		if h.Samples() != 10_000 {
			t.Fatalf("drain %v: %d samples, want 10000", c.drain, h.Samples())
		}
		for percent, want := range c.want {
			got, _ := h.Percentile(percent)
			if math.Abs(float64(got-want)) > 0.02*float64(want)+float64(2*ms) {
				t.Errorf("drain %v: p%v = %v, want about %v", c.drain, percent, got, want)
			}
		}
		if mean, _ := h.Mean(); c.mean > 0 && math.Abs(float64(mean-c.mean)) > 0.02*float64(c.mean) {
			t.Errorf("drain %v: mean %v, want about %v", c.drain, mean, c.mean)
		}
	}
}

func TestSpikeOfFreeze(t *testing.T) {
	drain := 10_000.0
	r := freeze(20_000, ms, 5*time.Second, 7*time.Second, time.Duration(float64(time.Second)/drain))
	sp := AnalyseSpike(r.Series(), 5*time.Second, SpikeOptions{})
	// The backlog is gone when the freeze ended plus 2000/(C−1000) s; only intervals wholly after it are in the band.
	gone := 2*time.Second + time.Duration(2000/(drain-1000)*float64(time.Second))
	if !sp.Settled || sp.Length < gone || sp.Length > gone+2*sp.Interval {
		t.Errorf("length %v (settled %v), want %v and at most two intervals more", sp.Length, sp.Settled, gone)
	}
	if math.Abs(float64(sp.Peak-2*time.Second)) > float64(10*ms) || sp.Max < sp.Peak || sp.PeakIs != Measured {
		t.Errorf("peak %v max %v, want about 2 s", sp.Peak, sp.Max)
	}
	// A triangle: 2 s high, gone long. The p99 of an interval is near its first record, half an interval above its middle.
	want := 2000 * gone.Seconds() / 2
	if math.Abs(sp.Area-want) > 0.06*want {
		t.Errorf("area %.1f ms·s, want about %.1f", sp.Area, want)
	}
}

func TestSpikeNotSettled(t *testing.T) {
	r := freeze(10_000, ms, 5*time.Second, 9*time.Second, time.Second/1250)
	sp := AnalyseSpike(r.Series(), 5*time.Second, SpikeOptions{})
	if sp.Settled || sp.Length != 0 || sp.Reason == "" || sp.AreaOK {
		t.Errorf("settled %v length %v reason %q area ok %v: the backlog was never gone", sp.Settled, sp.Length, sp.Reason, sp.AreaOK)
	}
	if sp.Observed != 5*time.Second {
		t.Errorf("observed %v, want 5 s", sp.Observed)
	}
}

func TestSpikeLateAndNone(t *testing.T) {
	steady := func(at func(i int) time.Duration) Series {
		r := NewRecorder(RecorderOptions{})
		for i := range 15_000 {
			due := time.Duration(i) * ms
			r.Record(due, due+at(i))
		}
		return r.Series()
	}
	// A lease of 1.5 s passes before the delay shows.
	sp := AnalyseSpike(steady(func(i int) time.Duration {
		if i >= 6500 && i < 8000 {
			return 300 * ms
		}
		return ms
	}), 5*time.Second, SpikeOptions{})
	if !sp.Settled || sp.Length != 3*time.Second || !near(sp.Peak, 300*ms) {
		t.Errorf("late spike: settled %v length %v peak %v, want 3 s and 300 ms", sp.Settled, sp.Length, sp.Peak)
	}
	sp = AnalyseSpike(steady(func(int) time.Duration { return ms }), 5*time.Second, SpikeOptions{})
	if !sp.Settled || sp.Length != 0 || sp.Area != 0 {
		t.Errorf("no spike: settled %v length %v area %v", sp.Settled, sp.Length, sp.Area)
	}
	sp = AnalyseSpike(steady(func(int) time.Duration { return ms }), 0, SpikeOptions{})
	if sp.HasBaseline || sp.Settled || sp.Reason == "" {
		t.Errorf("an event at the start has a baseline (%v) or no reason (%q)", sp.HasBaseline, sp.Reason)
	}
}

func TestRefusedValuesAreCounted(t *testing.T) {
	r := NewRecorder(RecorderOptions{Horizon: time.Minute})
	const delivered = 99 + 1 + 1 + 10 + 1
	for range 99 {
		r.Record(time.Second, time.Second+ms)
	}
	r.Record(time.Second, 121*time.Second)
	r.Record(time.Second, time.Second+2*time.Hour)
	r.RecordN(2*time.Second, 2*time.Second-100*ms, 10)
	r.Record(2*time.Minute, 2*time.Minute+ms)
	h := r.Total()
	if h.Samples() != 100 || h.AboveRange != 1 || h.Negative != 10 || h.OffAxis != 1 || h.Delivered() != delivered {
		t.Errorf("samples %d above %d negative %d off axis %d delivered %d", h.Samples(), h.AboveRange, h.Negative, h.OffAxis, h.Delivered())
	}
	if hi, _ := h.Max(); hi != 2*time.Hour {
		t.Errorf("max %v, want the refused 2 h", hi)
	}
	if lo, _ := h.Min(); lo != ms {
		t.Errorf("min %v: a negative delay became a small one", lo)
	}
	if d, is := h.Percentile(100); is != BeyondRange || d != HighestDelay {
		t.Errorf("p100 = %v standing %d, want > 1 h", d, is)
	}
	if _, ok := h.Mean(); ok {
		t.Error("a mean was given although one delay has no value")
	}
	small := hdrhistogram.New(1, int64(200*time.Hour), 3)
	if err := small.RecordValues(int64(100*time.Hour), 3); err != nil {
		t.Fatal(err)
	}
	if f := FromHDR(small, 0); f.AboveRange != 3 || f.Delivered() != 3 {
		t.Errorf("merge from a wider range: above %d delivered %d, want 3 and 3", f.AboveRange, f.Delivered())
	}
}

func TestUnansweredIsInfinitelyLate(t *testing.T) {
	r := NewRecorder(RecorderOptions{})
	r.RecordN(0, ms, 90)
	r.Unanswered(0, 10)
	h := r.Total()
	wantPercentile(t, h, 90, ms)
	if _, is := h.Percentile(91); is != NeverCame {
		t.Errorf("p91 standing %d, want never came", is)
	}
	if p := r.Series().Points[0]; p.P99Is != NeverCame || p.Unanswered != 10 {
		t.Errorf("interval p99 standing %d, unanswered %d", p.P99Is, p.Unanswered)
	}
}

func TestBucketsAgreeWithLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 2))
	values := []int64{0, 1, 511, 512, 1 << 20, 1<<20 - 1, int64(HighestDelay), int64(HighestDelay) - 1}
	for range 2000 {
		values = append(values, int64(math.Exp(rng.Float64()*math.Log(float64(HighestDelay)))))
	}
	lib := hdrhistogram.New(int64(LowestDelay), int64(HighestDelay), Digits)
	if n := len(lib.Export().Counts); n != counters {
		t.Fatalf("library has %d counters, the recorder %d", n, counters)
	}
	for _, v := range values {
		i := bucketIndex(v)
		if i < 0 || i >= counters || !lib.ValuesAreEquivalent(v, bucketValue(i)) || bucketIndex(bucketValue(i)) != i {
			t.Errorf("-seed=%d value %d: bucket %d stands for %d", *seed, v, i, bucketValue(i))
		}
	}
}

func TestMergeOfRecordersIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 3))
	all := NewRecorder(RecorderOptions{})
	parts := []*Recorder{NewRecorder(RecorderOptions{}), NewRecorder(RecorderOptions{})}
	for i := range 5000 {
		due := time.Duration(rng.Int64N(int64(4 * time.Second)))
		d := time.Duration(rng.Int64N(int64(time.Second))) - 10*ms
		for _, r := range []*Recorder{all, parts[i%2]} {
			r.Record(due, due+d)
			r.Unanswered(due, int64(i%7/6))
		}
	}
	parts[0].Merge(parts[1])
	if a, b := all.Series(), parts[0].Series(); len(a.Points) != len(b.Points) {
		t.Fatalf("%d and %d intervals", len(a.Points), len(b.Points))
	} else {
		for i := range a.Points {
			if a.Points[i] != b.Points[i] {
				t.Errorf("-seed=%d interval %d: %+v, merged %+v", *seed, i, a.Points[i], b.Points[i])
			}
		}
	}
	if a, b := all.Total(), parts[0].Total(); a.Delivered() != b.Delivered() || a.Negative != b.Negative || a.min != b.min || a.max != b.max {
		t.Errorf("totals differ: %d/%d, %v/%v", a.Delivered(), b.Delivered(), a.max, b.max)
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	r := NewRecorder(RecorderOptions{Expect: time.Minute})
	due := time.Duration(0)
	if n := testing.AllocsPerRun(5000, func() {
		r.RecordN(due, due+ms+due%(50*ms), 3)
		due += 7 * ms
	}); n != 0 {
		t.Errorf("%v allocations a record, want 0", n)
	}
}

func TestCompare(t *testing.T) {
	r := Compare([]float64{10, 11, 12}, []float64{100, 110, 120}, CompareOptions{})
	if !r.OK || !r.Differs || r.Ratio != 10 || r.Low > 10 || r.High < 10 {
		t.Errorf("ten times apart: %+v", r)
	}
	if r := Compare([]float64{10, 11, 12}, []float64{10.5, 11.5, 11}, CompareOptions{}); !r.OK || r.Differs || r.Reason == "" {
		t.Errorf("overlapping: %+v", r)
	}
	for _, bad := range [][2][]float64{{nil, {1}}, {{0, 0, 0}, {1, 2, 3}}, {{math.NaN()}, {1}}, {{1}, {math.Inf(1)}}, {{-1}, {1}}} {
		if r := Compare(bad[0], bad[1], CompareOptions{}); r.OK || r.Differs || r.Reason == "" {
			t.Errorf("Compare(%v, %v) = %+v, want no ratio and a reason", bad[0], bad[1], r)
		}
	}
	if r := Compare([]float64{1}, []float64{9}, CompareOptions{}); r.Differs {
		t.Errorf("one repetition told: %+v", r)
	}
	if r := Compare([]float64{3, 3, 3, 3, 3}, []float64{3, 3, 3, 3, 3}, CompareOptions{}); r.Differs || r.P != 1 {
		t.Errorf("equal constants: %+v", r)
	}
}

// The exact two-sided values are from the table of Mann and Whitney (1947): for n = m = 5, P(U ≤ 2) = 0.016.
func TestMannWhitneyPublished(t *testing.T) {
	if p := exactP(5, 5, 2); math.Abs(p-2*0.0159) > 0.0005 {
		t.Errorf("exact p for U = 2, n = m = 5 is %v, want 0.0317", p)
	}
	if p := exactP(3, 3, 0); math.Abs(p-0.1) > 1e-12 {
		t.Errorf("exact p for U = 0, n = m = 3 is %v, want 0.1", p)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := NewRecorder(RecorderOptions{Expect: 10 * time.Minute})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		due := time.Duration(i) * time.Microsecond % (10 * time.Minute)
		r.Record(due, due+ms+time.Duration(i*7919%3_000_000))
		i++
	}
}

func BenchmarkRecordN(b *testing.B) {
	r := NewRecorder(RecorderOptions{Expect: 10 * time.Minute})
	i := 0
	for b.Loop() {
		due := time.Duration(i) * time.Microsecond % (10 * time.Minute)
		r.RecordN(due, due+ms, 64)
		i++
	}
}
