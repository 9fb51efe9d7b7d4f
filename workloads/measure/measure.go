package measure

import (
	"math"

	"github.com/weir-bench/weir/workloads/rng"
)

// Dist is a distribution of non-negative numbers. It is immutable and safe for
// concurrent use.
type Dist interface {
	// Quantile returns the value below which a share u of the values lie,
	// 0 < u < 1.
	Quantile(u float64) float64
}

// Constant always has the value c.
type Constant float64

// Quantile returns the constant.
func (c Constant) Quantile(float64) float64 { return float64(c) }

// Uniform has every value of [Min, Max) equally often.
type Uniform struct{ Min, Max float64 }

// Quantile is linear in u.
func (d Uniform) Quantile(u float64) float64 { return d.Min + u*(d.Max-d.Min) }

// Exponential has the given mean.
type Exponential struct{ Mean float64 }

// Quantile is −mean·ln(1−u).
func (d Exponential) Quantile(u float64) float64 { return -d.Mean * math.Log1p(-u) }

// LogNormal has the given mean; the logarithm of a value has standard deviation
// Sigma.
type LogNormal struct{ Mean, Sigma float64 }

// Quantile is exp(m + σ·Φ⁻¹(u)) with m = ln(mean) − σ²/2.
func (d LogNormal) Quantile(u float64) float64 {
	return d.Mean * math.Exp(d.Sigma*math.Sqrt2*math.Erfinv(2*u-1)-d.Sigma*d.Sigma/2)
}

// Pareto is the generalised Pareto distribution (Pickands 1975).
type Pareto struct{ Location, Scale, Shape float64 }

// Quantile is location + scale·((1−u)^−shape − 1)/shape; for shape 0 that of an
// exponential distribution.
func (d Pareto) Quantile(u float64) float64 {
	if d.Shape == 0 {
		return d.Location - d.Scale*math.Log1p(-u)
	}
	return d.Location + d.Scale*math.Expm1(-d.Shape*math.Log1p(-u))/d.Shape
}

// GEV is the generalised extreme value distribution (Jenkinson 1955).
type GEV struct{ Location, Scale, Shape float64 }

// Quantile is location + scale·((−ln u)^−shape − 1)/shape; for shape 0 that of a
// Gumbel distribution. It is cut at 0.
func (d GEV) Quantile(u float64) float64 {
	y := -math.Log(u)
	if d.Shape == 0 {
		return max(0, d.Location-d.Scale*math.Log(y))
	}
	return max(0, d.Location+d.Scale*math.Expm1(-d.Shape*math.Log(y))/d.Shape)
}

// Sum adds one value of each part. Draw draws the parts independently.
type Sum []Dist

// Quantile adds the parts' quantiles: what the sum is if the parts rise and fall
// together.
func (d Sum) Quantile(u float64) float64 {
	sum := 0.0
	for _, part := range d {
		sum += part.Quantile(u)
	}
	return sum
}

// Clamped keeps the values of Of in [Min, Max].
type Clamped struct {
	Of       Dist
	Min, Max float64
}

// Quantile is that of Of, clamped.
func (d Clamped) Quantile(u float64) float64 { return min(d.Max, max(d.Min, d.Of.Quantile(u))) }

// Draw returns the value of index i in the sequence of d named by seed.
func Draw(d Dist, seed, i uint64) float64 {
	if parts, ok := d.(Sum); ok {
		sum := 0.0
		for k, part := range parts {
			sum += Draw(part, rng.Derive(seed, uint64(k)), i)
		}
		return sum
	}
	return d.Quantile(rng.Open(rng.At(seed, i)))
}
