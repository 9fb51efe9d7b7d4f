package keys

import (
	"math"
	"testing"
	"time"
)

// draw counts n draws a rank.
func draw(d Dist, n int) []int {
	counts := make([]int, d.Keys())
	ranks, times := make([]uint64, 1000), make([]int64, 1000)
	for at := 0; at < n; at += len(ranks) {
		d.Fill(ranks, times, uint64(at), 1)
		for _, r := range ranks {
			counts[r]++
		}
	}
	return counts
}

func topShare(counts []int, top, n int) float64 {
	sum := 0
	for _, c := range counts[:min(top, len(counts))] {
		sum += c
	}
	return 100 * float64(sum) / float64(n)
}

// TestZipfHasPublishedShares checks shares computed elsewhere, in per cent.
func TestZipfHasPublishedShares(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		s        float64
		keys     uint64
		hot, ten float64 // 0: not given
	}{
		{0, 10, 10.00, 100}, {0.5, 10, 19.92, 100}, {0.99, 1000, 12.94, 38.25},
		{1.0, 100, 19.28, 56.46}, {1.2, 1000, 23.06, 56.92},
	} {
		d := Zipf(1, c.keys, c.s)
		counts := draw(d, n)
		if got := topShare(counts, 1, n); math.Abs(got-c.hot) > 0.5 {
			t.Errorf("s=%g keys=%d: hottest %.2f %%, want %.2f ± 0.5", c.s, c.keys, got, c.hot)
		}
		if got := topShare(counts, 10, n); math.Abs(got-c.ten) > 1 {
			t.Errorf("s=%g keys=%d: top ten %.2f %%, want %.2f ± 1", c.s, c.keys, got, c.ten)
		}
		if got := 100 * d.Share(0, 0); math.Abs(got-c.hot) > 0.006 {
			t.Errorf("s=%g keys=%d: exact share %.4f %%, want %.2f", c.s, c.keys, got, c.hot)
		}
	}
}

// TestZipfMatchesTheoryForExponents0To2_5 goes through the cells beyond the
// head too, and checks the sum of all shares against a plain sum.
func TestZipfMatchesTheoryForExponents0To2_5(t *testing.T) {
	const n, keys = 200_000, 100_000
	for s := 0.0; s <= 2.5; s += 0.25 {
		norm, ten := 0.0, 0.0
		for k := keys; k >= 1; k-- {
			norm += math.Pow(float64(k), -s)
			if k <= 10 {
				ten += math.Pow(float64(k), -s)
			}
		}
		d := Zipf(9, keys, s)
		counts := draw(d, n)
		if got, want := topShare(counts, 1, n), 100/norm; math.Abs(got-want) > 0.5 {
			t.Errorf("s=%g: hottest %.3f %%, want %.3f", s, got, want)
		}
		if got, want := topShare(counts, 10, n), 100*ten/norm; math.Abs(got-want) > 1 {
			t.Errorf("s=%g: top ten %.3f %%, want %.3f", s, got, want)
		}
		for _, r := range []uint64{0, 5, zipfHead, keys - 1} {
			if got, want := d.Share(r, 0), math.Pow(float64(r+1), -s)/norm; math.Abs(got/want-1) > 1e-9 {
				t.Errorf("s=%g: Share(%d) = %g, want %g", s, r, got, want)
			}
		}
		upper := 0 // draws in the colder half, all of it beyond the head
		want := 0.0
		for k := keys / 2; k < keys; k++ {
			upper += counts[k]
			want += math.Pow(float64(k+1), -s) / norm
		}
		if got := float64(upper) / n; math.Abs(got-want) > 5*math.Sqrt(want/n)+1e-9 {
			t.Errorf("s=%g: colder half has share %g, want %g", s, got, want)
		}
	}
}

// TestZipfIsRightWithinACell compares neighbouring ranks far down the tail,
// where rejection separates weights within a cell.
func TestZipfIsRightWithinACell(t *testing.T) {
	const keys, s, n = 20_000, 3.0, 4_000_000
	cellWide := Zipf(5, keys, s).(*table).cells
	x := cellWide[zipfHead]
	if x.size < 30 {
		t.Fatalf("first wide cell has %d ranks, want at least 30", x.size)
	}
	d := newTable(5, []cell{x}, func(r uint64) float64 { return math.Pow(float64(r+1), -s) })
	first, last := 0, 0
	ranks := make([]uint64, n/10)
	for i := range 10 {
		d.Fill(ranks, nil, uint64(i*len(ranks)), 1)
		for _, r := range ranks {
			if r < x.start || r >= x.start+x.size {
				t.Fatalf("rank %d outside its cell [%d, %d)", r, x.start, x.start+x.size)
			}
			if r < x.start+x.size/2 {
				first++
			} else {
				last++
			}
		}
	}
	a, m, b := float64(x.start)+0.5, float64(x.start+x.size/2)+0.5, float64(x.start+x.size)+0.5
	want := (math.Pow(a, 1-s) - math.Pow(m, 1-s)) / (math.Pow(a, 1-s) - math.Pow(b, 1-s))
	if got := float64(first) / n; math.Abs(got-want) > 5*0.5/math.Sqrt(n) {
		t.Errorf("first half of the cell has share %.5f, want %.5f", got, want)
	}
}

func TestOneKeyIsAlwaysThatKey(t *testing.T) {
	for _, d := range []Dist{Zipf(1, 1, 1.3), Uniform(1, 1), HotSet(1, 1, 1, 1), Cycle(1), Shares(1, 1, []float64{1})} {
		if c := draw(d, 1000); len(c) != 1 || c[0] != 1000 {
			t.Errorf("%T: counts %v, want [1000]", d, c)
		}
	}
}

func TestTenMillionKeysAreReadyWithinTwoSeconds(t *testing.T) {
	for _, s := range []float64{1e-6, 0.5, 1, 2.5} {
		start := time.Now()
		d := Zipf(1, 10_000_000, s)
		if d.Keys() != 10_000_000 {
			t.Errorf("s=%g: Keys() = %d", s, d.Keys())
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("s=%g: set-up took %v, want below 2s", s, took)
		}
	}
}

func TestHotSetAndSharesHaveTheirShares(t *testing.T) {
	const n = 200_000
	counts := draw(HotSet(2, 1000, 200, 0.8), n)
	if got := topShare(counts, 200, n); math.Abs(got-80) > 0.5 {
		t.Errorf("hot set has %.2f %%, want 80", got)
	}
	counts = draw(Shares(2, 100, []float64{0.3, 0.1}), n)
	if got := topShare(counts, 1, n); math.Abs(got-30) > 0.5 {
		t.Errorf("first share %.2f %%, want 30", got)
	}
	if got := float64(counts[50]) / n; math.Abs(got-0.6/98) > 0.001 {
		t.Errorf("a key of the rest has share %g, want %g", got, 0.6/98)
	}
}

// TestFillIsAFunctionOfTheRecordNumber reads the same records in other orders
// and strides.
func TestFillIsAFunctionOfTheRecordNumber(t *testing.T) {
	for name, d := range map[string]Dist{
		"zipf": Zipf(1, 50_000, 0.9), "uniform": Uniform(1, 77), "hot": HotSet(1, 99, 3, 0.5), "cycle": Cycle(12),
		"sequence": Sequence([]uint32{3, 1, 2, 0, 1}),
	} {
		all, times := make([]uint64, 600), make([]int64, 600)
		d.Fill(all, times, 1000, 1)
		part := make([]uint64, 200)
		for off := range uint64(3) {
			d.Fill(part, times, 1000+off, 3)
			for j, r := range part {
				if want := all[uint64(j)*3+off]; r != want {
					t.Fatalf("%s: record %d read with stride 3 is %d, in order %d", name, 1000+uint64(j)*3+off, r, want)
				}
			}
		}
	}
}

func TestIDsAreOneToOne(t *testing.T) {
	for name, ids := range map[string]IDs{"dense": Dense{}, "scrambled": Scrambled{Seed: 5}, "listed": Listed([]uint64{9, 4, 7})} {
		ranks := []uint64{0, 1, 2}
		ids.Map(ranks)
		for want, key := range ranks {
			if got, ok := ids.Rank(key); !ok || got != uint64(want) {
				t.Errorf("%s: Rank(%d) = %d, %t, want %d", name, key, got, ok, want)
			}
		}
	}
	if _, ok := Listed([]uint64{9}).Rank(8); ok {
		t.Error("a key that is not listed has a rank")
	}
}

func benchmarkFill(b *testing.B, d Dist) {
	ranks, times := make([]uint64, 1024), make([]int64, 1024)
	at := uint64(0)
	for b.Loop() {
		d.Fill(ranks, times, at, 1)
		at += 1024
	}
	b.ReportMetric(float64(b.N)*1024/b.Elapsed().Seconds()/1e6, "Mrecords/s")
}

func BenchmarkUniform(b *testing.B)     { benchmarkFill(b, Uniform(1, 100_000)) }
func BenchmarkZipf1k(b *testing.B)      { benchmarkFill(b, Zipf(1, 1000, 0.99)) }
func BenchmarkZipf10M(b *testing.B)     { benchmarkFill(b, Zipf(1, 10_000_000, 0.99)) }
func BenchmarkZipf10MHalf(b *testing.B) { benchmarkFill(b, Zipf(1, 10_000_000, 0.5)) }
