package measure

import (
	"math"
	"testing"
)

func TestDistributionsHaveTheirMeans(t *testing.T) {
	const n = 400_000
	for name, c := range map[string]struct {
		d    Dist
		mean float64
	}{
		"constant":    {Constant(7), 7},
		"uniform":     {Uniform{2, 6}, 4},
		"exponential": {Exponential{3}, 3},
		"log-normal":  {LogNormal{10, 0.8}, 10},
		// Means: location + scale/(1-shape); location + scale·(Γ(1-shape)-1)/shape.
		"fb-etc value bytes": {Pareto{0, 214.476, 0.348238}, 214.476 / (1 - 0.348238)},
		"fb-etc key bytes":   {GEV{30.7984, 8.20449, 0.078688}, 30.7984 + 8.20449*(math.Gamma(1-0.078688)-1)/0.078688},
		"gumbel":             {GEV{5, 1, 0}, 5 + 0.5772156649},
		"sum":                {Sum{Constant(1), Exponential{3}}, 4},
		"clamped":            {Clamped{Uniform{0, 10}, 5, 5}, 5},
	} {
		sum := 0.0
		for i := range uint64(n) {
			sum += Draw(c.d, 11, i)
		}
		if got := sum / n; math.Abs(got/c.mean-1) > 0.01 {
			t.Errorf("%s: mean %g, want %g", name, got, c.mean)
		}
	}
}

func TestQuantilesDoNotDecrease(t *testing.T) {
	for _, d := range []Dist{Constant(1), Uniform{0, 1}, Exponential{1}, LogNormal{1, 1}, Pareto{0, 1, 0}, Pareto{0, 1, 0.4}, GEV{3, 1, 0.1}} {
		last := -1.0
		for u := 0.001; u < 1; u += 0.001 {
			if q := d.Quantile(u); q < last || math.IsNaN(q) {
				t.Fatalf("%#v: quantile %g at %g after %g", d, q, u, last)
			} else {
				last = q
			}
		}
	}
}
