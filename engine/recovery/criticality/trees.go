package criticality

import (
	"math"
	"slices"
)

// trees protects whole source-to-sink trees, the densest in value first, and
// spends what is left on single tasks. A tree is a set of tasks that produces
// output alone: a path, with every input operator of each join on it complete
// back to a source. Where filling by single tasks from the start does better,
// as it does when failures are independent, that is the plan.
//
// Source: minimal complete trees of Su and Zhou, ICDE 2016.
func trees(v *valuer) ([]bool, error) {
	protected := make([]bool, len(v.Tasks))
	for {
		now := v.worth(protected)
		set, gain := v.densest(protected, now, v.candidates(protected))
		if set == nil || gain <= 1e-12 {
			break
		}
		for _, t := range set {
			protected[t] = true
		}
	}
	v.fill(protected)
	singles := make([]bool, len(v.Tasks))
	v.fill(singles)
	if v.worth(singles).better(v.worth(protected)) {
		return singles, nil
	}
	return protected, nil
}

// candidates grows trees through each task that is not protected, preferring
// low cost or high traffic, and adds the tasks alone. The sets hold only tasks
// that still have to be protected.
func (v *valuer) candidates(protected []bool) [][]int {
	var sets [][]int
	for _, byTraffic := range [...]bool{false, true} {
		g := newGrower(v, protected, byTraffic)
		for t, yes := range protected {
			if !yes {
				sets = append(sets, g.through(t))
			}
		}
	}
	for t, yes := range protected {
		if !yes {
			sets = append(sets, []int{t})
		}
	}
	return sets
}

// grower completes trees. up is the effort to complete a task back to sources,
// down the effort to bring its output to a sink; both count shared tasks twice,
// which only makes the choice of branches worse, not the trees wrong.
type grower struct {
	*valuer
	protected []bool
	up, down  []float64
	choice    [][]int // by task, the input chosen in each group
	next      []int   // by task, the output chosen, or −1
	byTraffic bool
}

func newGrower(v *valuer, protected []bool, byTraffic bool) *grower {
	n := len(v.Tasks)
	g := &grower{
		valuer: v, protected: protected, up: make([]float64, n), down: make([]float64, n),
		choice: make([][]int, n), next: make([]int, n), byTraffic: byTraffic,
	}
	for _, t := range v.sequence {
		g.up[t] = g.own(t)
		for _, group := range v.groups[t] {
			at, effort := g.cheapest(group, v.inRate[t], func(l link) float64 { return g.up[l.task] })
			g.choice[t] = append(g.choice[t], group[at].task)
			g.up[t] += effort
		}
	}
	for _, t := range slices.Backward(v.sequence) {
		g.next[t] = -1
		if len(v.out[t]) > 0 {
			at, effort := g.cheapest(v.out[t], v.outRate[t], func(l link) float64 { return g.side(l.task, t) + g.down[l.task] })
			g.next[t], g.down[t] = v.out[t][at].task, effort
		}
	}
	return g
}

func (g *grower) own(t int) float64 {
	if g.protected[t] {
		return 0
	}
	return g.Tasks[t].Cost
}

// cheapest picks a link by effort, and, when traffic decides, by its share of
// the rate first.
func (g *grower) cheapest(links []link, rate float64, effort func(link) float64) (at int, least float64) {
	bestKey := math.Inf(1)
	for i, l := range links {
		e := effort(l)
		key := e
		if g.byTraffic && rate > 0 {
			// Log shares add up along a path as products of traffic do; effort
			// only breaks ties.
			key = -math.Log(max(l.rate/rate, 1e-12)) + 1e-9*e
		}
		if key < bestKey {
			bestKey, at, least = key, i, e
		}
	}
	return at, least
}

// side is the effort to make a task work when one of its inputs is given: its
// own and that of the other operators of a join.
func (g *grower) side(t, given int) float64 {
	sum := g.own(t)
	for i, group := range g.groups[t] {
		if !contains(group, given) {
			sum += g.up[g.choice[t][i]]
		}
	}
	return sum
}

func contains(group []link, task int) bool {
	return slices.ContainsFunc(group, func(l link) bool { return l.task == task })
}

// through returns the unprotected tasks of a tree through t.
func (g *grower) through(t int) []int {
	in := make([]bool, len(g.Tasks))
	var back func(u int)
	back = func(u int) {
		if in[u] {
			return
		}
		in[u] = true
		for _, c := range g.choice[u] {
			back(c)
		}
	}
	back(t)
	for u := t; g.next[u] >= 0; u = g.next[u] {
		n := g.next[u]
		in[n] = true
		for i, group := range g.groups[n] {
			if !contains(group, u) {
				back(g.choice[n][i])
			}
		}
	}
	var set []int
	for u, yes := range in {
		if yes && !g.protected[u] {
			set = append(set, u)
		}
	}
	return set
}
