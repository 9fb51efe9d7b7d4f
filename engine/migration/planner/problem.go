package planner

import (
	"math"
	"slices"
)

// slackShare keeps rounding errors of summed loads from breaking a cap that is
// met exactly.
const slackShare = 1e-9

// loadUnits is the resolution of loads, in units a mean task load. As multiples
// of 2^−44 the sums over up to 512 tasks are exact in a float64, so that equal
// loads stay equal in whatever order they were added.
const loadUnits = 1 << 44

// problem is a checked input with loads as multiples of the mean task load, so
// that scaling all loads changes nothing.
type problem struct {
	tasks     int
	load      []float64 // by group, in mean task loads
	bytes     []int64   // by group
	route     []int32   // present owner by group; never written
	home      []int32   // default owner by group
	start     []int32   // route, but for groups that a search has pinned elsewhere
	fixed     []bool    // by group, also true for pinned ones
	targets   []bool    // by task
	fixedLoad []float64 // by task, load that the input fixes there
	pinned    []float64 // by task, fixedLoad and what a search has pinned there
	theta     float64
	cap       float64 // 1+θ with slackShare
	limit     int     // of the routing table, for mixed
	found     *found  // the outcome of search, once it ran
}

func newProblem(in Input) (*problem, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	groups := len(in.Load)
	p := &problem{
		tasks: in.Tasks, load: make([]float64, groups), bytes: in.StateBytes, route: in.Route, home: in.Default,
		start: in.Route, fixed: in.Fixed, targets: in.Targets, fixedLoad: make([]float64, in.Tasks),
		theta: in.Theta, cap: (1 + in.Theta) * (1 + slackShare), limit: in.TableLimit,
	}
	if p.home == nil {
		p.home = HashRoute(groups, in.Tasks)
	}
	if p.fixed == nil {
		p.fixed = make([]bool, groups)
	}
	if p.targets == nil {
		p.targets = slices.Repeat([]bool{true}, in.Tasks)
	}
	if p.limit == 0 {
		p.limit = groups / 4
	}
	total := 0.0
	for _, l := range in.Load {
		total += l
	}
	for g, l := range in.Load {
		if total > 0 {
			p.load[g] = math.Round(l/total*float64(in.Tasks)*loadUnits) / loadUnits
		}
		if p.fixed[g] {
			p.fixedLoad[p.route[g]] += p.load[g]
		}
	}
	p.pinned = p.fixedLoad
	return p, nil
}

// pin returns the problem with a movable group placed for good.
func (p *problem) pin(group int32, task int) *problem {
	q := *p
	q.start, q.fixed, q.pinned = slices.Clone(p.start), slices.Clone(p.fixed), slices.Clone(p.pinned)
	q.start[group], q.fixed[group] = int32(task), true
	q.pinned[task] += p.load[group]
	return &q
}

// capOf is the cap of one task: a task whose fixed load exceeds the common cap
// can do no better than shed the rest.
func (p *problem) capOf(task int) float64 {
	return max(p.cap, p.fixedLoad[task]*(1+slackShare))
}

// allowed tells whether a group may be owned by a task.
func (p *problem) allowed(group int32, task int) bool {
	return int(p.route[group]) == task || p.targets[task] && !p.fixed[group]
}

// fits tells whether a load may be added to a task. An empty task takes
// anything: an oversize group has to live somewhere, and alone is best.
func (p *problem) fits(group int32, task int, taskLoad float64) bool {
	l := p.load[group]
	return l == 0 || taskLoad == 0 || taskLoad+l <= p.capOf(task)
}

func (p *problem) loads(route []int32) []float64 {
	loads := make([]float64, p.tasks)
	for g, d := range route {
		loads[d] += p.load[g]
	}
	return loads
}

func (p *problem) maxLoad(route []int32) float64 { return slices.Max(p.loads(route)) }

// movable lists the groups of each task that carry load and may leave, in
// ascending order.
func (p *problem) movable(route []int32) [][]int32 {
	lists := make([][]int32, p.tasks)
	for g, d := range route {
		if p.load[g] > 0 && !p.fixed[g] {
			lists[d] = append(lists[d], int32(g))
		}
	}
	return lists
}

func (p *problem) movedBytes(route []int32) int64 {
	var sum int64
	for g, d := range route {
		if d != p.route[g] {
			sum += p.bytes[g]
		}
	}
	return sum
}

// keepsRule tells whether each task is at or below its cap or holds a single
// group with load.
func (p *problem) keepsRule(route []int32) bool {
	loads, count := make([]float64, p.tasks), make([]int, p.tasks)
	for g, d := range route {
		if p.load[g] > 0 {
			loads[d] += p.load[g]
			count[d]++
		}
	}
	for d, l := range loads {
		if l > p.capOf(d) && count[d] > 1 {
			return false
		}
	}
	return true
}

// byLoad sorts groups by falling load, the lower index first among equals.
func (p *problem) byLoad(groups []int32) {
	slices.SortFunc(groups, func(a, b int32) int {
		switch {
		case p.load[a] > p.load[b]:
			return -1
		case p.load[a] < p.load[b]:
			return 1
		}
		return int(a - b)
	})
}

// reachable is a load that the busiest task of any plan has at least: the
// largest group, the two groups that must share a task when there are more
// groups than tasks, and what is fixed.
func (p *problem) reachable() float64 {
	sorted := slices.Clone(p.load)
	slices.Sort(sorted)
	n := len(sorted)
	least := max(1, sorted[n-1], slices.Max(p.fixedLoad))
	if n > p.tasks {
		least = max(least, sorted[n-p.tasks]+sorted[n-p.tasks-1])
	}
	return least
}

func (p *problem) finish(name string, route []int32) Plan {
	plan := Plan{Planner: name, Route: slices.Clone(route), MovedBytes: p.movedBytes(route)}
	total := 0.0
	for g, d := range route {
		total += p.load[g]
		if d != p.route[g] {
			plan.Moves = append(plan.Moves, Move{int32(g), p.route[g], d})
		}
		if d != p.home[g] {
			plan.TableSize++
		}
		if p.load[g] > p.cap {
			plan.Oversize = append(plan.Oversize, int32(g))
		}
	}
	if total > 0 {
		most := p.maxLoad(route)
		plan.Theta = max(0, most-1)
		plan.Balanced = most <= p.cap
		plan.ReachableTheta = p.reachable() - 1
	} else {
		plan.Balanced = true
	}
	s := p.search()
	if s.bounded {
		plan.LowerBoundBytes = s.bound
	}
	switch {
	case !s.bounded || !p.keepsRule(route):
	case plan.LowerBoundBytes > 0:
		plan.Gap = float64(plan.MovedBytes)/float64(plan.LowerBoundBytes) - 1
		plan.GapKnown = true
	default:
		plan.GapKnown = plan.MovedBytes == 0
	}
	return plan
}
