package rng

import (
	"math"
	"testing"
)

func TestUnmixIsTheInverseOfMix(t *testing.T) {
	for i := range uint64(10_000) {
		x := At(7, i)
		if got := Unmix(Mix(x)); got != x {
			t.Fatalf("Unmix(Mix(%#x)) = %#x", x, got)
		}
	}
}

// TestAtIsSplitMix64 uses the reference outputs of splitmix64.c for seed
// 1234567.
func TestAtIsSplitMix64(t *testing.T) {
	want := []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423}
	for i, w := range want {
		if got := At(1234567, uint64(i)); got != w {
			t.Errorf("At(1234567, %d) = %d, want %d", i, got, w)
		}
	}
}

func TestPoissonHasItsMeanAndVariance(t *testing.T) {
	for _, mean := range []float64{10, 100, 1024} {
		const n = 20_000
		var sum, sq float64
		for i := range uint64(n) {
			x := float64(Poisson(At(3, i), mean))
			sum += x
			sq += (x - mean) * (x - mean)
		}
		if got, tol := sum/n, 5*math.Sqrt(mean/n); math.Abs(got-mean) > tol {
			t.Errorf("mean %g: sample mean %g, tolerance %g", mean, got, tol)
		}
		if got := sq / n; math.Abs(got/mean-1) > 0.05 {
			t.Errorf("mean %g: sample variance %g", mean, got)
		}
	}
}

func TestExpHasMeanOne(t *testing.T) {
	const n = 100_000
	var sum float64
	for i := range uint64(n) {
		sum += Exp(At(1, i))
	}
	if m := sum / n; math.Abs(m-1) > 0.02 {
		t.Errorf("mean of Exp = %g, want 1", m)
	}
}
