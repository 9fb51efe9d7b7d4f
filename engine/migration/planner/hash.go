package planner

import "slices"

// hashed puts every group where hashing alone would: the control without a
// routing table and without adjustment to load. Where the present route is the
// default one, it moves nothing.
func hashed(p *problem) []int32 {
	owner := slices.Clone(p.route)
	for g, d := range p.home {
		if p.allowed(int32(g), int(d)) {
			owner[g] = d
		}
	}
	return owner
}
