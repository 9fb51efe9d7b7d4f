package planner

import "slices"

// rebalance deals all groups anew by longest processing time first: the
// heaviest group goes to the least loaded task. It balances best and moves
// nearly everything. Groups without load stay.
//
// Source: Graham, Bounds on Multiprocessing Timing Anomalies (1969).
func rebalance(p *problem) []int32 {
	owner := slices.Clone(p.route)
	loads := slices.Clone(p.fixedLoad)
	var groups []int32
	for g, l := range p.load {
		if l > 0 && !p.fixed[g] {
			groups = append(groups, int32(g))
		}
	}
	p.byLoad(groups)
	for _, g := range groups {
		to := int(p.route[g])
		for d := range p.tasks {
			if p.allowed(g, d) && loads[d] < loads[to] {
				to = d
			}
		}
		owner[g] = int32(to)
		loads[to] += p.load[g]
	}
	return owner
}
