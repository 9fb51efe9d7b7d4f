package planner

import (
	"math"
	"slices"
)

// readj is Readj of Gedik (VLDB Journal 2014) on key groups: it looks at heavy
// groups only, first sends them back to their default owner where that does not
// overload it, and then repeats the move or swap between the busiest task and
// another that levels the two most, until the cap is kept. Groups count as
// heavy above σ mean loads; σ is halved from ¼ when no step helps, down to
// 1/4,096 as a limit of its effort.
func readj(p *problem) []int32 {
	owner := slices.Clone(p.route)
	loads := p.loads(owner)
	shift := func(g int32, to int) {
		loads[owner[g]] -= p.load[g]
		loads[to] += p.load[g]
		owner[g] = int32(to)
	}
	for sigma := 0.25; sigma >= 1.0/4096; sigma /= 2 {
		for g := range owner {
			home, heavy := int(p.home[g]), p.load[g] >= sigma && !p.fixed[g]
			if heavy && int(owner[g]) != home && loads[owner[g]] > p.capOf(int(owner[g])) &&
				p.allowed(int32(g), home) && loads[home]+p.load[g] <= p.capOf(home) {
				shift(int32(g), home)
			}
		}
		// Each step lowers the higher of two loads; the limit only guards against
		// steps too small to matter.
		for range len(owner) * 2 {
			busiest := slices.Index(loads, slices.Max(loads))
			if loads[busiest] <= p.cap {
				return owner
			}
			out, in, to := p.levelling(owner, loads, busiest, sigma)
			if to < 0 {
				break
			}
			shift(out, to)
			if in >= 0 {
				shift(in, busiest)
			}
		}
	}
	return owner
}

// levelling finds the heavy group out of the busiest task and the group in from
// another one (or −1) whose exchange leaves the lowest maximum of the two. It
// returns to = −1 when none lowers it by more than rounding.
func (p *problem) levelling(owner []int32, loads []float64, busiest int, sigma float64) (out, in int32, to int) {
	lists := make([][]int32, p.tasks)
	for g, d := range owner {
		if p.load[g] >= sigma && !p.fixed[g] {
			lists[d] = append(lists[d], int32(g))
		}
	}
	for _, list := range lists {
		p.byLoad(list)
	}
	best := loads[busiest] * (1 - 1e-6)
	to = -1
	try := func(g, x int32, d int, delta float64) {
		if delta <= 0 || !p.allowed(g, d) || x >= 0 && !p.allowed(x, busiest) {
			return
		}
		if most := math.Max(loads[busiest]-delta, loads[d]+delta); most < best {
			best, out, in, to = most, g, x, d
		}
	}
	for d := range p.tasks {
		if d == busiest {
			continue
		}
		want := (loads[busiest] - loads[d]) / 2
		for _, g := range lists[busiest] {
			try(g, -1, d, p.load[g])
			// The best partner is next to the load that makes the exchange want.
			at, _ := slices.BinarySearchFunc(lists[d], p.load[g]-want, func(x int32, l float64) int {
				if p.load[x] > l {
					return -1
				}
				return 1
			})
			for i := max(at-1, 0); i <= at && i < len(lists[d]); i++ {
				try(g, lists[d][i], d, p.load[g]-p.load[lists[d][i]])
			}
		}
	}
	return out, in, to
}
