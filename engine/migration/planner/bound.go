package planner

import (
	"math"
	"slices"
)

// relaxation is the cheapest way for every task to shed what it has to, as if
// all that is shed found room somewhere, except for big groups, of which no two
// share a task: those get their seats.
type relaxation struct {
	evict [][]int32 // by task, groups other than big ones that have to leave it
	seat  []int32   // by task, the big group it is to hold, or −1
	bytes int64     // proven minimum of the bytes moved
}

// seating is the assignment of big groups, those above half the cap, to tasks.
// The cost of a cell is what the task sheds for the group beyond what it sheds
// without any.
type seating struct {
	*problem
	big    []int32
	normal [][]int32      // by task, its groups that are not big
	small  []float64      // by task, load of those
	shed   []*coverSearch // by task, over those of them that covers may use
	plain  []cover        // by task, what it sheds without a big group
	cost   [][]float64    // by big group and task
	seated [][]*cover     // solved cells
}

// cheapest solves the relaxation. Groups above largest (0 for none) are left
// out of covers where the rest suffices; its bytes then are no bound. It is
// false when the big groups cannot each have a task of their own.
func (p *problem) cheapest(largest float64) (relaxation, bool) {
	return p.newSeating(largest).relax()
}

func (s *seating) relax() (relaxation, bool) {
	p := s.problem
	r := relaxation{evict: make([][]int32, p.tasks), seat: make([]int32, p.tasks)}
	for d, c := range s.plain {
		r.seat[d] = -1
		r.evict[d] = c.groups
		r.bytes += c.bound
	}
	if len(s.big) == 0 {
		return r, true
	}
	seats, ok := s.solve()
	if !ok {
		return r, false
	}
	for i, d := range seats {
		r.seat[d] = s.big[i]
		r.evict[d] = s.seated[i][d].groups
		r.bytes += s.seated[i][d].bound - s.plain[d].bound
		if int(p.route[s.big[i]]) != d {
			r.bytes += p.bytes[s.big[i]]
		}
	}
	return r, true
}

func (p *problem) newSeating(largest float64) *seating {
	s := &seating{
		problem: p, normal: make([][]int32, p.tasks), small: make([]float64, p.tasks),
		shed: make([]*coverSearch, p.tasks), plain: make([]cover, p.tasks),
	}
	for d, list := range p.movable(p.start) {
		var normal []int32
		for _, g := range list {
			if p.load[g] > p.cap/2 {
				s.big = append(s.big, g)
			} else {
				normal = append(normal, g)
			}
		}
		s.supply(d, normal, largest)
	}
	s.cost, s.seated = make([][]float64, len(s.big)), make([][]*cover, len(s.big))
	for i := range s.big {
		s.cost[i], s.seated[i] = make([]float64, p.tasks), make([]*cover, p.tasks)
	}
	for d := range p.tasks {
		s.price(d)
	}
	return s
}

// supply sets the groups, none of them big, that a task may shed.
func (s *seating) supply(d int, normal []int32, largest float64) {
	var limited []int32
	limitedLoad := 0.0
	s.normal[d], s.small[d] = normal, 0
	for _, g := range normal {
		s.small[d] += s.load[g]
		if s.load[g] <= largest {
			limited = append(limited, g)
			limitedLoad += s.load[g]
		}
	}
	if limitedLoad >= s.pinned[d]+s.small[d]-s.capOf(d) && len(limited) > 0 {
		normal = limited
	}
	s.shed[d] = newCoverSearch(s.problem, normal, func(g int32) int64 { return s.bytes[g] }, coverNodes)
}

// price sets what a task sheds without a big group, and its column of costs to
// linear relaxations.
func (s *seating) price(d int) {
	s.plain[d] = s.shed[d].solve(s.pinned[d] + s.small[d] - s.capOf(d))
	for i, g := range s.big {
		s.seated[i][d] = nil
		need := s.need(g, d)
		switch n := len(s.shed[d].groups); {
		case math.IsInf(need, 1):
			s.cost[i][d] = need
		case s.load[g] > s.cap:
			s.cost[i][d] = s.cell(i, d, float64(s.whole(d).bytes))
		default:
			s.cost[i][d] = s.cell(i, d, s.shed[d].relaxed(0, min(need, s.shed[d].load[n])))
		}
	}
}

// pin returns the seating with a group that is not big placed for good; only
// the two tasks concerned are worked out anew.
func (s *seating) pin(group int32, task int) *seating {
	home := int(s.start[group])
	n := &seating{
		problem: s.problem.pin(group, task), big: s.big, normal: slices.Clone(s.normal), small: slices.Clone(s.small),
		shed: slices.Clone(s.shed), plain: slices.Clone(s.plain), cost: make([][]float64, len(s.big)), seated: make([][]*cover, len(s.big)),
	}
	for i := range s.big {
		n.cost[i], n.seated[i] = slices.Clone(s.cost[i]), slices.Clone(s.seated[i])
	}
	rest := slices.DeleteFunc(slices.Clone(s.normal[home]), func(g int32) bool { return g == group })
	n.supply(home, rest, 0)
	n.price(home)
	if task != home {
		n.price(task)
	}
	return n
}

// need is the load that a task has to shed to hold the big group, or +Inf when
// it cannot hold it.
func (s *seating) need(g int32, d int) float64 {
	load, fixed := s.load[g], s.pinned[d]
	switch {
	case !s.allowed(g, d):
		return math.Inf(1)
	case fixed+load <= s.capOf(d):
		need := fixed + load + s.small[d] - s.capOf(d)
		if need > s.shed[d].load[len(s.shed[d].groups)]*(1+slackShare) {
			return math.Inf(1)
		}
		return need
	case fixed > 0:
		return math.Inf(1)
	}
	return s.small[d] // an oversize group is to be alone
}

// solve assigns all big groups. Cells begin with their linear relaxation, and
// those that an assignment uses are replaced by their whole covers until it
// uses no others.
func (s *seating) solve() (seats []int, ok bool) {
	if len(s.big) > s.tasks {
		return nil, false
	}
	for {
		seats, total := assign(s.cost)
		if math.IsInf(total, 1) {
			return nil, false
		}
		fresh := false
		for i, d := range seats {
			if s.seated[i][d] == nil {
				c := s.whole(d)
				if s.load[s.big[i]] <= s.cap {
					c = s.shed[d].solve(s.need(s.big[i], d))
				}
				s.seated[i][d] = &c
				s.cost[i][d] = s.cell(i, d, float64(c.bound))
				fresh = true
			}
		}
		if !fresh {
			return seats, true
		}
	}
}

// whole is the cover that empties a task of all but big groups.
func (s *seating) whole(d int) cover {
	c := cover{groups: s.normal[d]}
	for _, g := range c.groups {
		c.bytes += s.bytes[g]
	}
	c.bound = c.bytes
	return c
}

func (s *seating) cell(i, d int, shed float64) float64 {
	if int(s.route[s.big[i]]) != d {
		shed += float64(s.bytes[s.big[i]])
	}
	return shed - float64(s.plain[d].bound)
}

// assign finds for each row a column of its own at the least total cost
// (Hungarian algorithm with potentials, O(rows²·columns)). There have to be at
// least as many columns as rows. Without a finite assignment the total is +Inf.
func assign(cost [][]float64) (column []int, total float64) {
	// A finite stand-in for forbidden cells keeps the potentials finite.
	forbidden := 1.0
	for _, row := range cost {
		for _, c := range row {
			if !math.IsInf(c, 1) {
				forbidden += math.Abs(c)
			}
		}
	}
	at := func(i, j int) float64 { return min(cost[i][j], forbidden) }
	rows, columns := len(cost), len(cost[0])
	u, v := make([]float64, rows+1), make([]float64, columns+1)
	match, way := make([]int, columns+1), make([]int, columns+1) // 1-based; 0 is none
	for i := 1; i <= rows; i++ {
		match[0] = i
		j0 := 0
		least, used := make([]float64, columns+1), make([]bool, columns+1)
		for j := range least {
			least[j] = math.Inf(1)
		}
		for {
			used[j0] = true
			i0, j1, delta := match[j0], 0, math.Inf(1)
			for j := 1; j <= columns; j++ {
				if used[j] {
					continue
				}
				if reduced := at(i0-1, j-1) - u[i0] - v[j]; reduced < least[j] {
					least[j], way[j] = reduced, j0
				}
				if least[j] < delta {
					delta, j1 = least[j], j
				}
			}
			for j := range used {
				if used[j] {
					u[match[j]] += delta
					v[j] -= delta
				} else {
					least[j] -= delta
				}
			}
			if j0 = j1; match[j0] == 0 {
				break
			}
		}
		for j0 != 0 {
			match[j0] = match[way[j0]]
			j0 = way[j0]
		}
	}
	column = make([]int, rows)
	for j := 1; j <= columns; j++ {
		if match[j] > 0 {
			column[match[j]-1] = j - 1
			total += cost[match[j]-1][j-1]
		}
	}
	return column, total
}
