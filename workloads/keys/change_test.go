package keys

import (
	"math"
	"slices"
	"testing"
)

func changingDists() map[string]Dist {
	zipf := func(s float64) Dist { return Zipf(3, 500, s) }
	return map[string]Dist{
		"step":      Step(Uniform(1, 500), zipf(1.2), 4000),
		"drift":     Drift(Uniform(1, 500), zipf(1.2), 2000, 5000, 9),
		"swap":      Swap(zipf(1), 50, 1000, 1500),
		"flash":     Flash(zipf(0.5), 400, 0.3, 3000, 6000, 4),
		"grow":      Grow(10, 500, 1000, 6000, func(n uint64) Dist { return Zipf(2, n, 0.9) }),
		"all":       Flash(Swap(Step(Uniform(1, 500), zipf(1.2), 4000), 3, 500, 500), 7, 0.2, 3000, 9000, 77),
		"fan":       Fan(Zipf(1, 100, 1.2), 4, 8),
		"unordered": Shares(1, 30, []float64{0.1, 0.4, 0.01}),
	}
}

// TestSharesHoldAtEveryMoment draws many records at one moment and compares
// them with the shares that the distribution states for it.
func TestSharesHoldAtEveryMoment(t *testing.T) {
	const n = 40_000
	for name, d := range changingDists() {
		for _, at := range []int64{0, 999, 1000, 2500, 3999, 4000, 5000, 6999, 7000, 20_000} {
			times := make([]int64, n)
			for j := range times {
				times[j] = at
			}
			ranks := make([]uint64, n)
			d.Fill(ranks, times, uint64(at)*n, 1)
			counts := make([]float64, d.Keys())
			for _, r := range ranks {
				counts[r]++
			}
			sum, hottest := 0.0, 0.0
			for r, c := range counts {
				want := d.Share(uint64(r), at)
				sum, hottest = sum+want, max(hottest, want)
				if tol := 6*math.Sqrt(want/n) + 3.0/n; math.Abs(c/n-want) > tol {
					t.Errorf("%s at %d: rank %d has share %.4f, states %.4f", name, at, r, c/n, want)
				}
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("%s at %d: shares add up to %g", name, at, sum)
			}
			if hot := Hot(d, 5, at); d.Share(hot[0], at) != hottest {
				t.Errorf("%s at %d: states rank %d with share %g as the hottest; another has %g", name, at, hot[0], d.Share(hot[0], at), hottest)
			}
		}
	}
}

// TestChangesDoNotDependOnBatches cuts the same records differently.
func TestChangesDoNotDependOnBatches(t *testing.T) {
	for name, d := range changingDists() {
		const n = 10_000
		times, all := make([]int64, n), make([]uint64, n)
		for j := range times {
			times[j] = int64(j)
		}
		d.Fill(all, times, 0, 1)
		for _, batch := range []int{1, 7, 1000} {
			part := make([]uint64, batch)
			for at := 0; at+batch <= n; at += batch {
				d.Fill(part, times[at:at+batch], uint64(at), 1)
				if !slices.Equal(part, all[at:at+batch]) {
					t.Fatalf("%s: records from %d in a batch of %d differ from those read at once", name, at, batch)
				}
			}
		}
		third, thirdTimes := make([]uint64, n/3), make([]int64, n/3)
		for j := range thirdTimes {
			thirdTimes[j] = times[3*j+1]
		}
		d.Fill(third, thirdTimes, 1, 3)
		for j, r := range third {
			if r != all[3*j+1] {
				t.Fatalf("%s: record %d read with stride 3 is %d, in order %d", name, 3*j+1, r, all[3*j+1])
			}
		}
	}
}

func TestPointsAreTheGroundTruth(t *testing.T) {
	for name, want := range map[string][]Point{
		"step":      {{"step", 4000, 4000}},
		"drift":     {{"drift", 2000, 7000}},
		"swap":      {{"swap", 1000, 1000}, {"swap", 2500, 2500}, {"swap", 4000, 4000}},
		"flash":     {{"flash", 3000, 6000}},
		"unordered": nil,
	} {
		if got := Points(changingDists()[name], 5500); !slices.Equal(got, want) {
			t.Errorf("%s: points %v, want %v", name, got, want)
		}
	}
	if got := Points(changingDists()["step"], 4000); len(got) != 0 {
		t.Errorf("points before the step: %v, want none", got)
	}
}
