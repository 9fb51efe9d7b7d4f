package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	// ExactGroups is the largest number of groups with load that the exact
	// planner takes.
	ExactGroups = 48
	// exactNodes limits its search; beyond it the plan is not Proven.
	exactNodes = 2_000_000
)

// planExact finds the plan with the fewest bytes that keeps the rule of
// Plan.LowerBoundBytes, by branch and bound over groups of falling load. It
// starts from the greedy plan. Plan.Proven tells whether the search ended.
func planExact(in Input) (Plan, error) {
	p, err := newProblem(in)
	if err != nil {
		return Plan{}, err
	}
	var groups []int32
	for g, l := range p.load {
		if l > 0 && !p.fixed[g] {
			groups = append(groups, int32(g))
		}
	}
	if len(groups) > ExactGroups {
		return Plan{}, fmt.Errorf("%d key groups with load, want at most %d: %w", len(groups), ExactGroups, ErrTooLarge)
	}
	p.byLoad(groups)
	e := newExactSearch(p, groups)
	e.dive(0, 0)
	plan := p.finish("exact", e.best)
	plan.Proven = e.nodes < exactNodes && e.bestBytes < math.MaxInt64
	if plan.Proven {
		plan.LowerBoundBytes = plan.MovedBytes
		plan.Gap, plan.GapKnown = 0, true
	}
	return plan, nil
}

type exactSearch struct {
	*problem
	groups    []int32   // by falling load
	owner     []int32   // the partial plan
	load      []float64 // by task, of what is decided
	waiting   []float64 // by task, load of its groups that are undecided
	byRatio   [][]int32 // by task, its groups by falling load per byte
	rank      []int     // by group, its place in groups
	used      []bool    // tasks that hold something in the present or partial plan
	best      []int32
	bestBytes int64
	nodes     int
}

func newExactSearch(p *problem, groups []int32) *exactSearch {
	e := &exactSearch{
		problem: p, groups: groups, owner: slices.Clone(p.route), load: slices.Clone(p.fixedLoad),
		waiting: make([]float64, p.tasks), byRatio: p.movable(p.route), rank: make([]int, len(p.load)), used: make([]bool, p.tasks),
		best: greedy(p), bestBytes: math.MaxInt64,
	}
	for _, d := range p.route {
		e.used[d] = true
	}
	for i, g := range groups {
		e.rank[g] = i
		e.waiting[p.route[g]] += p.load[g]
	}
	for _, list := range e.byRatio {
		slices.SortFunc(list, func(a, b int32) int {
			return cmp.Compare(p.load[b]*float64(p.bytes[a]), p.load[a]*float64(p.bytes[b]))
		})
	}
	if p.keepsRule(e.best) {
		e.bestBytes = p.movedBytes(e.best)
	}
	return e
}

// dive decides the groups from place i on, with the given bytes moved so far.
func (e *exactSearch) dive(i int, moved int64) {
	if e.nodes >= exactNodes || float64(moved)+e.remaining(i) > float64(e.bestBytes)-0.5 {
		return
	}
	e.nodes++
	if i == len(e.groups) {
		e.best, e.bestBytes = slices.Clone(e.owner), moved
		return
	}
	g := e.groups[i]
	l, home := e.problem.load[g], int(e.route[g])
	e.waiting[home] -= l
	place := func(d int, cost int64) {
		if !e.fits(g, d, e.load[d]) {
			return
		}
		before, used := e.load[d], e.used[d]
		e.load[d], e.used[d], e.owner[g] = before+l, true, int32(d)
		e.dive(i+1, moved+cost)
		e.load[d], e.used[d], e.owner[g] = before, used, int32(home)
	}
	place(home, 0)
	idle := false
	for d := range e.tasks {
		if d == home || !e.allowed(g, d) {
			continue
		}
		if !e.used[d] {
			// Tasks that hold nothing are alike, so one of them is enough.
			if idle {
				continue
			}
			idle = true
		}
		place(d, e.bytes[g])
	}
	e.waiting[home] += l
}

// remaining is a lower bound of the bytes that the undecided groups still have
// to move: each task sheds its excess by whole and split groups of its own.
func (e *exactSearch) remaining(i int) float64 {
	sum := 0.0
	for d := range e.tasks {
		if e.waiting[d] == 0 {
			continue
		}
		room := e.capOf(d) - e.load[d]
		if room >= e.waiting[d] {
			continue
		}
		need := e.waiting[d] - room
		// One oversize group may stay alone in an otherwise empty task.
		if e.load[d] == 0 && e.waiting[d] > 0 {
			need = e.waiting[d] - max(room, e.largest(d, i))
		}
		for _, g := range e.byRatio[d] {
			if need <= 1e-12 {
				break
			}
			if e.rank[g] < i {
				continue
			}
			l := e.problem.load[g]
			sum += float64(e.bytes[g]) * min(1, need/l)
			need -= l
		}
	}
	return sum
}

// largest is the highest load among the undecided groups of a task.
func (e *exactSearch) largest(d, i int) float64 {
	most := 0.0
	for _, g := range e.byRatio[d] {
		if e.rank[g] >= i {
			most = max(most, e.problem.load[g])
		}
	}
	return most
}
