package arrivals

import (
	"math"
	"time"

	"github.com/weir-bench/weir/workloads/rng"
)

const (
	// sources is the number of on/off sources that are added up.
	sources = 32
	// shortest is the shortest on or off time; counts are self-similar at
	// scales above it.
	shortest = float64(50 * time.Millisecond)
)

// SelfSimilar is the sum of 32 on/off sources whose on and off times are Pareto
// distributed with index α = 3 − 2·hurst; counts over windows well above 50 ms
// have about the given Hurst exponent, in (0.5, 1) (Willinger, Taqqu, Sherman,
// Wilson: "Self-similarity through high-variability", SIGCOMM 1995, theorem 1).
// rate is the mean over a long time; as that is how such traffic is, the mean of
// minutes may be far from it.
func SelfSimilar(rate, hurst float64, seed uint64) Shape {
	s := &selfSimilar{rate: rate * 2 / sources, alpha: 3 - 2*hurst, seed: seed}
	for k := range s.next {
		// Start in a random state, some way into its first time.
		word := rng.At(seed, uint64(k))
		s.on[k] = word&1 == 1
		s.next[k] = int64(float64(s.length(k)) * rng.Open(rng.Mix(word)))
	}
	return s
}

type selfSimilar struct {
	rate, alpha float64 // of one source while on
	seed        uint64
	now         int64
	on          [sources]bool
	next        [sources]int64  // when the source changes
	drawn       [sources]uint64 // times drawn so far
}

// length draws the next on or off time of a source.
func (s *selfSimilar) length(k int) int64 {
	s.drawn[k]++
	u := rng.Open(rng.At(rng.Derive(s.seed, uint64(k)), s.drawn[k]))
	return int64(min(shortest*math.Pow(u, -1/s.alpha), float64(Never/4)))
}

func (s *selfSimilar) Next() (float64, int64) {
	for {
		active, first := 0, 0
		for k, at := range s.next {
			if s.on[k] {
				active++
			}
			if at < s.next[first] {
				first = k
			}
		}
		length := s.next[first] - s.now
		s.now = s.next[first]
		s.on[first] = !s.on[first]
		if grow := s.length(first); grow < Never-s.now {
			s.next[first] += grow
		} else {
			s.next[first] = Never
		}
		if length > 0 {
			return float64(active) * s.rate, length
		}
	}
}

func (s *selfSimilar) Clone() Shape {
	c := *s
	return &c
}
