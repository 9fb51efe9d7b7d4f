package rng

import (
	"math"

	"github.com/weir-bench/weir/engine/core"
)

// gamma is the odd constant of SplitMix64 (Steele, Lea, Flood: "Fast
// splittable pseudorandom number generators", OOPSLA 2014).
const gamma = 0x9E3779B97F4A7C15

// At returns 64 uniform bits for index i of the sequence named by seed. It is
// output i of SplitMix64 started at seed, computed directly.
func At(seed, i uint64) uint64 { return Mix(seed + (i+1)*gamma) }

// Mix is core.Mix64: a bijection on 64-bit words whose output bits each depend
// on all input bits.
func Mix(x uint64) uint64 { return core.Mix64(x) }

// Unmix is the inverse of Mix: Unmix(Mix(x)) == x.
func Unmix(x uint64) uint64 {
	x = (x ^ x>>31 ^ x>>62) * 0x319642B2D24D8EC3
	x = (x ^ x>>27 ^ x>>54) * 0x96DE1B173F119089
	return x ^ x>>30 ^ x>>60
}

// Derive returns the seed of the sub-sequence label of seed. Parts of one
// workload use different labels so that their draws are independent.
func Derive(seed, label uint64) uint64 { return Mix(Mix(seed^gamma) + label*gamma) }

// Float maps 64 random bits to [0, 1) with 53 bits of precision.
func Float(bits uint64) float64 { return float64(bits>>11) * 0x1p-53 }

// Open maps 64 random bits to (0, 1), for use under a logarithm.
func Open(bits uint64) float64 { return (float64(bits>>12) + 0.5) * 0x1p-52 }

// Exp maps 64 random bits to an exponential variable of mean 1.
func Exp(bits uint64) float64 { return -math.Log(Open(bits)) }

// Poisson draws a Poisson variable of the given mean (≥ 10) from the sequence
// named by seed, by transformed rejection (algorithm PTRS, Hörmann: "The
// transformed rejection method for generating Poisson random variables", 1993).
func Poisson(seed uint64, mean float64) uint64 {
	b := 0.931 + 2.53*math.Sqrt(mean)
	a := -0.059 + 0.02483*b
	invAlpha := 1.1239 + 1.1328/(b-3.4)
	vr := 0.9277 - 3.6224/(b-2)
	logMean := math.Log(mean)
	for i := uint64(0); ; i += 2 {
		u := Float(At(seed, i)) - 0.5
		v := Open(At(seed, i+1))
		us := 0.5 - math.Abs(u)
		if us <= 0 {
			continue
		}
		k := math.Floor((2*a/us+b)*u + mean + 0.43)
		if us >= 0.07 && v <= vr {
			return uint64(k)
		}
		if k < 0 || (us < 0.013 && v > us) {
			continue
		}
		lg, _ := math.Lgamma(k + 1)
		if math.Log(v)+math.Log(invAlpha)-math.Log(a/(us*us)+b) <= k*logMean-mean-lg {
			return uint64(k)
		}
	}
}
