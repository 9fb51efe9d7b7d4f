package workloads

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestTruthSaysWhenAndHowSkewBegins(t *testing.T) {
	for _, scramble := range []bool{false, true} {
		w := mustOpen(t, Spec{Keys: 1000, Rate: 1000, Scramble: scramble, Changes: []Change{
			{Kind: ChangeStep, At: 3 * time.Second, Exponent: 1.2},
			{Kind: ChangeFlash, At: 5 * time.Second, For: time.Second, Key: 77, Share: 0.5},
		}})
		truth := w.Truth(time.Minute)
		if len(truth) != 3 {
			t.Fatalf("truth %+v, want start, step and flash", truth)
		}
		if s := truth[0]; s.Kind != "start" || math.Abs(s.After-0.001) > 1e-12 {
			t.Errorf("start %+v, want a share of 1/1000", s)
		}
		if s := truth[1]; s.Kind != "step" || s.Begin != 3*time.Second || math.Abs(s.Before-0.001) > 1e-12 || math.Abs(s.After-0.2306) > 1e-4 {
			t.Errorf("step %+v, want 0.001 before and 0.2306 after 3 s", s)
		}
		flash := truth[2]
		if flash.Begin != 5*time.Second || flash.End != 6*time.Second || math.Abs(flash.After-0.5) > 0.01 {
			t.Errorf("flash %+v, want half of the load from 5 s to 6 s", flash)
		}
		// The records bear the truth out.
		during := Counts(w, w.Scheduled(6*time.Second)).Count(flash.Hot[0]) - Counts(w, w.Scheduled(5*time.Second)).Count(flash.Hot[0])
		if during < 450 || during > 560 {
			t.Errorf("the flash key has %d of 1,000 records during the flash, want about 500", during)
		}
		before := Counts(w, w.Scheduled(3*time.Second)).Count(truth[1].Hot[0])
		after := Counts(w, w.Scheduled(5*time.Second)).Count(truth[1].Hot[0]) - before
		if before > 20 || after < 400 {
			t.Errorf("the step's hottest key has %d records in 3 s before and %d in 2 s after", before, after)
		}
	}
}

func TestPerKeyMeasuresGoWithLoadAsAsked(t *testing.T) {
	state := func(by string) (sizes []float64) {
		w := mustOpen(t, Spec{
			Kind: KindZipf, Keys: 2000, Exponent: 1, Rate: 1, Scramble: true,
			State: Measure{Kind: "exponential", Mean: 1000, By: by},
		})
		for _, key := range w.keysOf(ranksTo(2000)) {
			sizes = append(sizes, float64(w.StateBytes(key)))
		}
		return sizes
	}
	falling := func(v []float64) bool {
		return slices.IsSortedFunc(v, func(a, b float64) int { return int(b - a) })
	}
	for by, inOrder := range map[string]int{"load": 1, "inverse": -1, "independent": 0, "": 0} {
		sizes := state(by)
		sum := 0.0
		for _, s := range sizes {
			sum += s
		}
		if mean := sum / 2000; math.Abs(mean-1000) > 80 {
			t.Errorf("by %q: mean %g, want 1000", by, mean)
		}
		rising := slices.IsSorted(sizes)
		if falling(sizes) != (inOrder == 1) || rising != (inOrder == -1) {
			t.Errorf("by %q: falling with rank %t, rising %t", by, falling(sizes), rising)
		}
	}
	w := mustOpen(t, Spec{Keys: 5, Rate: 1, Service: Measure{Kind: "constant", Mean: 20_000}})
	if w.ServiceTime(3) != 20*time.Microsecond || w.StateBytes(3) != 0 {
		t.Errorf("service time %v, state %d bytes; want 20µs and 0", w.ServiceTime(3), w.StateBytes(3))
	}
}

func ranksTo(n uint64) []uint64 {
	ranks := make([]uint64, n)
	for k := range ranks {
		ranks[k] = uint64(k)
	}
	return ranks
}
