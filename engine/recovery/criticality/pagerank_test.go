package criticality

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func edges(pairs ...[2]int) []WeightedEdge {
	var list []WeightedEdge
	for _, p := range pairs {
		list = append(list, WeightedEdge{p[0], p[1], 1})
	}
	return list
}

func TestPageRankPublished(t *testing.T) {
	for _, c := range []struct {
		name    string
		n       int
		edges   []WeightedEdge
		restart []float64
		rule    SinkRule
		want    []float64
	}{
		{"chain", 3, edges([2]int{0, 1}, [2]int{1, 2}), nil, SinksRestart, []float64{0.18442, 0.34117, 0.47441}},
		{"with a loop", 4, edges([2]int{0, 1}, [2]int{0, 2}, [2]int{1, 2}, [2]int{1, 3}, [2]int{3, 1}), nil, SinksRestart, []float64{0.09986, 0.35566, 0.29346, 0.25102}},
		{"restart at the sink, sinks restart", 2, edges([2]int{0, 1}), []float64{0, 1}, SinksRestart, []float64{0, 1}},
		{"restart at the sink, sinks uniform", 2, edges([2]int{0, 1}), []float64{0, 1}, SinksUniform, []float64{0.29825, 0.70175}},
		{"alone", 1, nil, nil, SinksRestart, []float64{1}},
		{"alone with a self-loop", 1, edges([2]int{0, 0}), nil, SinksRestart, []float64{1}},
		{"two chains", 4, edges([2]int{0, 1}, [2]int{2, 3}), nil, SinksRestart, []float64{0.17544, 0.32456, 0.17544, 0.32456}},
		{"edge twice", 3, edges([2]int{0, 1}, [2]int{1, 2}, [2]int{1, 2}), nil, SinksRestart, []float64{0.18442, 0.34117, 0.47441}},
	} {
		got, err := PageRank(c.n, c.edges, c.restart, 0.85, c.rule)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		sum := 0.0
		for v := range got {
			sum += got[v]
			if math.Abs(got[v]-c.want[v]) > 5.1e-6 {
				t.Errorf("%s: rank of %d is %.6f, want %.5f", c.name, v, got[v], c.want[v])
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("%s: ranks sum to %v", c.name, sum)
		}
	}
}

// The rank solves its own equation, and a parallel edge is one of double weight.
func TestPageRankIsStationary(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 21))
		n := 2 + rng.IntN(30)
		var list []WeightedEdge
		for range rng.IntN(3 * n) {
			list = append(list, WeightedEdge{rng.IntN(n), rng.IntN(n), 1 + float64(rng.IntN(3))})
		}
		restart := make([]float64, n)
		restart[rng.IntN(n)], restart[0] = 2, 1
		rank, err := PageRank(n, list, restart, 0.85, SinksRestart)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := restartVector(n, restart)
		out, want := make([]float64, n), make([]float64, n)
		for _, e := range list {
			out[e.From] += e.Weight
		}
		for u := range n {
			want[u] += 0.15 * v[u]
			if out[u] == 0 {
				for x := range n {
					want[x] += 0.85 * rank[u] * v[x]
				}
			}
		}
		for _, e := range list {
			want[e.To] += 0.85 * rank[e.From] * e.Weight / out[e.From]
		}
		for u := range n {
			if math.Abs(rank[u]-want[u]) > 1e-12 {
				t.Fatalf("seed %d: rank %d is %v, its equation gives %v", seed, u, rank[u], want[u])
			}
		}
	}
}

func TestPageRankRefuses(t *testing.T) {
	for name, call := range map[string]func() ([]float64, error){
		"nothing":     func() ([]float64, error) { return PageRank(0, nil, nil, 0.85, SinksRestart) },
		"far edge":    func() ([]float64, error) { return PageRank(1, edges([2]int{0, 1}), nil, 0.85, SinksRestart) },
		"damping 1":   func() ([]float64, error) { return PageRank(1, nil, nil, 1, SinksRestart) },
		"restart 0":   func() ([]float64, error) { return PageRank(2, nil, []float64{0, 0}, 0.85, SinksRestart) },
		"restart NaN": func() ([]float64, error) { return PageRank(1, nil, []float64{math.NaN()}, 0.85, SinksRestart) },
		"weight":      func() ([]float64, error) { return PageRank(1, []WeightedEdge{{0, 0, -1}}, nil, 0.85, SinksRestart) },
	} {
		if got, err := call(); !errors.Is(err, ErrGraph) {
			t.Errorf("%s: %v, %v, want ErrGraph", name, got, err)
		}
	}
}
