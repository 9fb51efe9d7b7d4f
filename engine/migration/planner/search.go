package planner

import (
	"container/heap"
	"math"
)

const (
	// searchNodes limits the relaxations of one search, about 15 ms at 1,024
	// groups.
	searchNodes = 150
	// searchTolerance is a share of the bytes that the meters cannot tell.
	searchTolerance = 5e-4
)

// found is the outcome of a search.
type found struct {
	route   []int32 // the best plan that keeps the rule, or nil
	bytes   int64
	bound   int64 // proven minimum of the bytes of any such plan
	bounded bool
}

// branch is a part of all plans, those that agree with its pins.
type branch struct {
	*seating
	relaxation
	spent int64 // bytes of groups pinned away from home
	bound int64
	order int // ties go to the branch made first
}

// branches is a heap by rising bound.
type branches []*branch

func (b branches) Len() int      { return len(b) }
func (b branches) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b branches) Less(i, j int) bool {
	if b[i].bound != b[j].bound {
		return b[i].bound < b[j].bound
	}
	return b[i].order < b[j].order
}
func (b *branches) Push(x any) { *b = append(*b, x.(*branch)) }
func (b *branches) Pop() any {
	old := *b
	last := old[len(old)-1]
	*b = old[:len(old)-1]
	return last
}

// search looks for the plan with the fewest bytes, best bound first. A branch
// is relaxed and packed; a group that does not fit is then pinned to each task
// that could hold it, and those are the next branches. Its result is computed
// once a problem.
func (p *problem) search() *found {
	if p.found != nil {
		return p.found
	}
	p.found = &found{bytes: math.MaxInt64}
	root := &branch{seating: p.newSeating(0)}
	if !root.evaluate() {
		return p.found
	}
	p.found.seed(p)
	open := &branches{root}
	closed := int64(math.MaxInt64) // the least bound of branches given up unsolved
	for nodes := 1; open.Len() > 0; {
		b := heap.Pop(open).(*branch)
		if nodes >= searchNodes || p.found.good(b.bound) {
			closed = min(closed, b.bound)
			break
		}
		route, stuck := b.problem.packed(b.relaxation)
		p.found.offer(p, route)
		if stuck < 0 || p.load[stuck] > p.cap/2 {
			// Solved as far as its covers were, or seated and thus not ours to pin.
			closed = min(closed, b.bound)
			continue
		}
		for d := range p.tasks {
			if !p.allowed(stuck, d) || b.pinned[d]+p.load[stuck] > p.capOf(d) {
				continue
			}
			nodes++
			child := &branch{seating: b.seating.pin(stuck, d), spent: b.spent, order: nodes}
			if int(p.route[stuck]) != d {
				child.spent += p.bytes[stuck]
			}
			if child.evaluate() && !p.found.good(child.bound) {
				heap.Push(open, child)
			} else if child.bound > 0 {
				closed = min(closed, child.bound)
			}
		}
	}
	p.found.bound = min(closed, p.found.bytes)
	// Without a plan and without an open branch there is nothing to bound.
	p.found.bounded = p.found.bound < math.MaxInt64
	return p.found
}

// evaluate relaxes the branch and is false when it holds no plan.
func (b *branch) evaluate() bool {
	r, ok := b.seating.relax()
	if !ok {
		return false
	}
	b.relaxation = r
	b.bound = b.spent + r.bytes
	return true
}

// seed offers plans whose covers avoid large groups, which are hard to pack.
func (f *found) seed(p *problem) {
	for _, part := range [...]float64{2, 4, 8, 16} {
		if r, ok := p.cheapest(p.cap / part); ok {
			route, _ := p.packed(r)
			f.offer(p, route)
		}
	}
}

func (f *found) offer(p *problem, route []int32) {
	if route == nil || !p.keepsRule(route) {
		return
	}
	if b := p.movedBytes(route); b < f.bytes {
		f.route, f.bytes = route, b
	}
}

// good tells whether the best plan is within tolerance of a bound.
func (f *found) good(bound int64) bool {
	return f.route != nil && float64(f.bytes)*(1-searchTolerance) <= float64(bound)
}
