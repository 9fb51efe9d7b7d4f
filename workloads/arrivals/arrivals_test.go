package arrivals

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weir-bench/weir/workloads/measure"
	"github.com/weir-bench/weir/workloads/rng"
)

const second = int64(time.Second)

func processes() map[string]Process {
	return map[string]Process{
		"constant":   Even(Constant(1000)),
		"third":      Even(Constant(1000.0 / 3)),
		"fast":       Even(Constant(123_456_789.123456)),
		"square":     Even(Square(3000, 0, 700*time.Millisecond, 300*time.Millisecond)),
		"sine":       Even(Sine(100, 5000, 10*time.Second, 10)),
		"ramp":       Even(Ramp(10, 2000, time.Second, 7*time.Second)),
		"flash":      Even(Flash(1000, 5000, 3*time.Second, 2*time.Second, 0)),
		"mmpp":       Poisson(MMPP(100, 9000, time.Second, 200*time.Millisecond, 4), 5),
		"poisson":    Poisson(Constant(1000), 1),
		"poisson sq": Poisson(Square(3000, 0, 700*time.Millisecond, 300*time.Millisecond), 1),
		"replayed":   Replayed([]int64{0, 5, 5, 1_000_000, 7_000_000}, 1.7, true),
		"once":       Replayed([]int64{0, 5, 5, 1_000_000, 7_000_000}, 0.3, false),
		"pareto":     Renewal(measure.Pareto{Scale: 1e6, Shape: 0.2}, 3),
		"similar":    Poisson(SelfSimilar(1000, 0.8, 3), 4),
		"nothing":    Even(Constant(0)),
	}
}

// TestBeforeAgreesWithFill checks the two views of one process against each
// other, at random records and at the exact times around them.
func TestBeforeAgreesWithFill(t *testing.T) {
	for name, p := range processes() {
		for k := range uint64(300) {
			i := rng.At(1, k) % 60_000
			var at [2]int64
			p.Fill(at[:], i, 1)
			if at[0] > at[1] {
				t.Fatalf("%s: record %d due at %d, the next at %d", name, i, at[0], at[1])
			}
			if at[0] == Never {
				continue
			}
			if got := p.Before(at[0]); got > i {
				t.Fatalf("%s: Before(%d) = %d, but record %d is due then", name, at[0], got, i)
			}
			if got := p.Before(at[0] + 1); got <= i {
				t.Fatalf("%s: Before(%d) = %d, but record %d is due before", name, at[0]+1, got, i)
			}
			if at[1] > at[0] {
				if got := p.Before(at[0] + 1); got != i+1 {
					t.Fatalf("%s: Before(%d) = %d, want %d", name, at[0]+1, got, i+1)
				}
			}
		}
	}
}

// TestFillIsAFunctionOfTheRecordNumber reads with other starts, strides and
// orders, on a fresh clone each time.
func TestFillIsAFunctionOfTheRecordNumber(t *testing.T) {
	for name, p := range processes() {
		all := make([]int64, 9000)
		p.Clone().Fill(all, 0, 1)
		for _, stride := range []int{1, 2, 7, 1000} {
			for _, first := range []int{0, 1, 1023, 4500} {
				c := p.Clone()
				part := make([]int64, (len(all)-first+stride-1)/stride)
				c.Fill(part, uint64(first), uint64(stride))
				for j, at := range part {
					if want := all[first+j*stride]; at != want {
						t.Fatalf("%s: record %d with stride %d at %d, in order at %d", name, first+j*stride, stride, at, want)
					}
				}
			}
		}
	}
}

func TestScheduledCountsAreExact(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Process
		t    time.Duration
		want uint64
	}{
		{"10,000/s for 10 s", Even(Constant(10_000)), 10 * time.Second, 100_000},
		{"burst of 5x for 2 s at 30 s", Even(Flash(1000, 5000, 30*time.Second, 2*time.Second, 0)), 60 * time.Second, 68_000},
		{"rate 0", Even(Constant(0)), 10 * time.Second, 0},
		{"0.5/s for 10 s", Even(Constant(0.5)), 10 * time.Second, 5},
		{"0.1/s for 1 s", Even(Constant(0.1)), time.Second, 1},
		{"a week at 1/3 per s", Even(Constant(1.0 / 3)), 168 * time.Hour, 201_600},
		{"10 periods of a sine", Even(Sine(0, 2000, time.Second, 10)), 10 * time.Second, 10_000},
		{"ramp", Even(Ramp(0, 1000, 0, 10*time.Second)), 20 * time.Second, 15_000},
		{"square", Even(Square(1500, 500, time.Second, time.Second)), 60 * time.Second, 60_000},
		{"repeated flash", Even(Flash(100, 1000, time.Second, time.Second, 10*time.Second)), 100 * time.Second, 19_000},
		{"one pass", Replayed([]int64{0, second, second}, 2, false), time.Hour, 3},
		{"looped: 3 records each 1.5 s, twice as fast", Replayed([]int64{0, second, second}, 2, true), 75 * time.Second, 300},
		{"before the start", Even(Constant(5)), -time.Second, 0},
		{"nothing for ever", Even(Constant(0)), math.MaxInt64, 0},
	} {
		got := c.p.Before(int64(c.t))
		slack := int64(0)
		if c.name == "10 periods of a sine" {
			slack = 1 // the rates of its steps are rounded to micro-records/s
		}
		if diff := int64(got) - int64(c.want); diff < -slack || diff > slack {
			t.Errorf("%s: %d scheduled, want %d", c.name, got, c.want)
		}
	}
}

// dispersion returns the variance of counts over windows divided by their mean.
func dispersion(p Process, windows int, width int64) (mean, index float64) {
	var counts []float64
	last := uint64(0)
	for k := 1; k <= windows; k++ {
		n := p.Before(int64(k) * width)
		counts = append(counts, float64(n-last))
		last = n
	}
	for _, c := range counts {
		mean += c / float64(windows)
	}
	for _, c := range counts {
		index += (c - mean) * (c - mean) / float64(windows-1) / mean
	}
	return mean, index
}

func TestBurstinessIsAsNamed(t *testing.T) {
	mean, index := dispersion(Poisson(Constant(1000), 3), 2000, second/10)
	if math.Abs(mean-100) > 1.5 || math.Abs(index-1) > 0.2 {
		t.Errorf("Poisson: mean %g, dispersion %g; want 100 and 1", mean, index)
	}
	mean, index = dispersion(Even(Constant(1000)), 2000, second/10)
	if math.Abs(mean-100) > 1e-6 || index > 1e-9 {
		t.Errorf("even: mean %g, dispersion %g; want 100 and 0", mean, index)
	}
	// Means 1 s and 0.25 s weigh 100 and 5,000 as (100·1 + 5000·0.25)/1.25.
	mean, index = dispersion(Poisson(MMPP(100, 5000, time.Second, time.Second/4, 1), 1), 5000, second)
	if math.Abs(mean/1080-1) > 0.1 || index < 100 {
		t.Errorf("MMPP: mean %g, dispersion %g; want about 1080 and over 100", mean, index)
	}
}

// TestSelfSimilarHasItsHurstExponent fits the variance of counts about the true
// mean over windows of 0.5 s to 64 s: it goes as their length to the power 2H.
func TestSelfSimilarHasItsHurstExponent(t *testing.T) {
	for _, hurst := range []float64{0.6, 0.75, 0.85} {
		const widths, runs, windows = 8, 5, 2048 // of 0.5 s
		var variance [widths]float64
		for seed := range uint64(runs) {
			p := Even(SelfSimilar(1000, hurst, seed))
			total := make([]float64, windows+1) // deviation from the mean so far
			for k := range total {
				total[k] = float64(p.Before(int64(k)*second/2)) - 500*float64(k)
			}
			for w := range widths {
				for k := 1 << w; k <= windows; k += 1 << w {
					diff := total[k] - total[k-1<<w]
					variance[w] += diff * diff * float64(int(1)<<w)
				}
			}
		}
		var logs []float64
		for _, v := range variance {
			logs = append(logs, math.Log2(v))
		}
		slope := (logs[len(logs)-1] - logs[0]) / float64(len(logs)-1)
		if got := slope / 2; math.Abs(got-hurst) > 0.12 {
			t.Errorf("hurst %g: variances grow with exponent 2·%.3f (%v)", hurst, got, logs)
		}
	}
}

func TestPoissonGapsAreExponential(t *testing.T) {
	const n = 100_000
	times := make([]int64, n+1)
	Poisson(Constant(1e6), 8).Fill(times, 0, 1)
	over := [3]int{}
	for j := range n {
		for k := range over {
			if times[j+1]-times[j] >= int64(k+1)*1000 {
				over[k]++
			}
		}
	}
	for k, got := range over {
		want := math.Exp(-float64(k + 1))
		if p := float64(got) / n; math.Abs(p-want) > 0.006 {
			t.Errorf("gaps of %d means or more: %.4f of all, want %.4f", k+1, p, want)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for _, c := range []struct {
		name string
		p    Process
	}{
		{"constant", Even(Constant(1e6))}, {"third", Even(Constant(1e6 / 3))},
		{"sine", Even(Sine(1e5, 1e6, time.Second, 100))}, {"poisson", Poisson(Constant(1e6), 1)},
	} {
		b.Run(fmt.Sprint(c.name), func(b *testing.B) {
			times := make([]int64, 1024)
			at := uint64(0)
			for b.Loop() {
				c.p.Fill(times, at, 1)
				at += 1024
			}
			b.ReportMetric(float64(b.N)*1024/b.Elapsed().Seconds()/1e6, "Mrecords/s")
		})
	}
}
