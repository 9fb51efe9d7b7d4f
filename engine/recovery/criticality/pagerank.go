package criticality

import (
	"fmt"
	"math"
)

// SinkRule tells where the rank of a vertex without outgoing edges goes. The
// measures of this package use SinksRestart.
type SinkRule uint8

const (
	// SinksRestart: it follows the restart vector, as if the walk ended.
	SinksRestart SinkRule = iota
	// SinksUniform: it goes to all vertices equally.
	SinksUniform
)

// WeightedEdge is an edge for PageRank; parallel ones add up and self-loops
// keep their share of rank.
type WeightedEdge struct {
	From, To int
	Weight   float64
}

// PageRank is the stationary distribution of a walk over n vertices that
// follows an edge by weight with probability damping, and restarts by the
// restart vector otherwise. A nil restart vector is uniform; a given one is
// scaled to sum 1. Vertices whose edges all weigh 0 count as sinks. The ranks
// sum to 1, and iteration goes on until they change by less than 1e-14 in all.
// Errors wrap ErrGraph.
//
// Source: Page et al. (1999); personalised by Haveliwala (2002). Sinks as in
// Langville and Meyer, Deeper Inside PageRank (2004), sec. 3.1.
func PageRank(n int, edges []WeightedEdge, restart []float64, damping float64, rule SinkRule) ([]float64, error) {
	v, err := restartVector(n, restart)
	if err != nil {
		return nil, err
	}
	if !(damping >= 0 && damping < 1) {
		return nil, fmt.Errorf("damping %v: want 0 ≤ damping < 1: %w", damping, ErrGraph)
	}
	outgoing := make([]float64, n)
	for i, e := range edges {
		if e.From < 0 || e.From >= n || e.To < 0 || e.To >= n || !(e.Weight >= 0) || math.IsInf(e.Weight, 1) {
			return nil, fmt.Errorf("edge %d from %d to %d of weight %v: want vertices 0 … %d and a finite weight of at least 0: %w", i, e.From, e.To, e.Weight, n-1, ErrGraph)
		}
		outgoing[e.From] += e.Weight
	}
	rank, next := append([]float64(nil), v...), make([]float64, n)
	for {
		sunk := 0.0
		for u, r := range rank {
			if outgoing[u] == 0 {
				sunk += r
			}
		}
		for u := range next {
			next[u] = (1 - damping) * v[u]
			if rule == SinksUniform {
				next[u] += damping * sunk / float64(n)
			} else {
				next[u] += damping * sunk * v[u]
			}
		}
		for _, e := range edges {
			if e.Weight > 0 {
				next[e.To] += damping * rank[e.From] * e.Weight / outgoing[e.From]
			}
		}
		change, sum := 0.0, 0.0
		for u := range next {
			change += math.Abs(next[u] - rank[u])
			sum += next[u]
		}
		for u := range next {
			next[u] /= sum
		}
		rank, next = next, rank
		// The change shrinks by the damping in each round, down to rounding.
		if change < 1e-14*float64(n+1) {
			return rank, nil
		}
	}
}

func restartVector(n int, restart []float64) ([]float64, error) {
	if n < 1 || restart != nil && len(restart) != n {
		return nil, fmt.Errorf("%d vertices with %d restart weights: want at least 1 vertex and a weight for each: %w", n, len(restart), ErrGraph)
	}
	v := make([]float64, n)
	sum := 0.0
	for u := range v {
		v[u] = 1
		if restart != nil {
			v[u] = restart[u]
		}
		if !(v[u] >= 0) {
			return nil, fmt.Errorf("restart weight of vertex %d = %v: want 0 or more: %w", u, v[u], ErrGraph)
		}
		sum += v[u]
	}
	if !(sum > 0) || math.IsInf(sum, 1) {
		return nil, fmt.Errorf("restart weights sum to %v: want finite and above 0: %w", sum, ErrGraph)
	}
	for u := range v {
		v[u] /= sum
	}
	return v, nil
}
