package planner

import (
	"cmp"
	"math"
	"slices"
)

// coverNodes limits the search of one cover. Beyond it the bound falls back to
// the linear relaxation, which is off by less than one group.
const coverNodes = 2000

// cover is a set of groups that sheds a needed load.
type cover struct {
	groups []int32
	bytes  int64
	bound  int64 // proven minimum of the bytes of any such set
}

// coverSearch is a depth-first branch and bound for the minimum knapsack cover:
// least bytes with at least the needed load. Groups are taken in the order of
// load per byte, in which the linear relaxation is a prefix.
type coverSearch struct {
	groups    []int32
	load      []float64 // sums of the first i groups
	cost      []float64
	chosen    []int
	best      []int
	bestCost  float64
	tolerance float64 // share of the best cost not worth searching for
	nodes     int
	limit     int
}

// minCover finds the cheapest subset of groups with at least the needed load,
// at the given cost by group. With all groups together too light it returns
// them all. The order of groups does not matter.
func (p *problem) minCover(groups []int32, need float64, cost func(int32) int64, nodes int) cover {
	if need <= 0 {
		return cover{}
	}
	return newCoverSearch(p, groups, cost, nodes).solve(need)
}

// solve finds the cheapest cover of one need; the search may be used again.
func (s *coverSearch) solve(need float64) cover {
	if need <= 0 {
		return cover{}
	}
	n := len(s.groups)
	if s.load[n] <= need*(1+slackShare) {
		return cover{slices.Clone(s.groups), int64(s.cost[n]), int64(s.cost[n])}
	}
	s.best, s.bestCost, s.nodes, s.chosen = nil, math.Inf(1), 0, s.chosen[:0]
	root := s.relaxed(0, need)
	s.dive(0, need, 0)
	c := cover{bytes: int64(s.bestCost)}
	for _, i := range s.best {
		c.groups = append(c.groups, s.groups[i])
	}
	// Rounding of the relaxation must not lift the bound above the truth.
	c.bound = int64(math.Ceil(root*(1-1e-12) - 1e-6))
	if s.nodes < s.limit {
		c.bound = max(c.bound, int64(math.Ceil(s.bestCost*(1-s.tolerance))))
	}
	c.bound = min(c.bound, c.bytes)
	return c
}

func newCoverSearch(p *problem, groups []int32, cost func(int32) int64, nodes int) *coverSearch {
	s := &coverSearch{groups: slices.Clone(groups), limit: nodes}
	if len(groups) > 64 {
		s.tolerance = 1e-4
	}
	slices.SortFunc(s.groups, func(a, b int32) int {
		// load_a/cost_a > load_b/cost_b without dividing by a cost of 0.
		x, y := p.load[a]*float64(cost(b)), p.load[b]*float64(cost(a))
		if c := cmp.Compare(y, x); c != 0 {
			return c
		}
		if c := cmp.Compare(cost(a), cost(b)); c != 0 {
			return c
		}
		return int(a - b)
	})
	s.load, s.cost = make([]float64, len(groups)+1), make([]float64, len(groups)+1)
	for i, g := range s.groups {
		s.load[i+1] = s.load[i] + p.load[g]
		s.cost[i+1] = s.cost[i] + float64(cost(g))
	}
	return s
}

// relaxed is the cost of covering the need from groups i… when one of them may
// be split, or +Inf when they do not suffice.
func (s *coverSearch) relaxed(i int, need float64) float64 {
	if need <= 0 {
		return 0
	}
	n := len(s.groups)
	if s.load[n]-s.load[i] < need {
		return math.Inf(1)
	}
	k, _ := slices.BinarySearch(s.load[i+1:], s.load[i]+need)
	k = min(k+i, n-1)
	whole := s.cost[k] - s.cost[i]
	share := (need - (s.load[k] - s.load[i])) / (s.load[k+1] - s.load[k])
	return whole + share*(s.cost[k+1]-s.cost[k])
}

func (s *coverSearch) dive(i int, need, spent float64) {
	// What is left of a need after many subtractions is rounding.
	if need <= 1e-12 {
		if spent < s.bestCost {
			s.bestCost, s.best = spent, slices.Clone(s.chosen)
		}
		return
	}
	// The first dive always ends in a cover, so that a limit never leaves none.
	if s.best != nil {
		if s.nodes >= s.limit {
			return
		}
		if spent+s.relaxed(i, need) >= s.bestCost*(1-s.tolerance)-1e-9 {
			return
		}
	}
	s.nodes++
	if i == len(s.groups) {
		return
	}
	s.chosen = append(s.chosen, i)
	s.dive(i+1, need-(s.load[i+1]-s.load[i]), spent+(s.cost[i+1]-s.cost[i]))
	s.chosen = s.chosen[:len(s.chosen)-1]
	if s.load[len(s.groups)]-s.load[i+1] >= need*(1-1e-12) {
		s.dive(i+1, need, spent)
	}
}
