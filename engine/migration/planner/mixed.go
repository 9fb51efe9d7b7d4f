package planner

import (
	"cmp"
	"slices"
)

// mixed is Mixed of Fang et al. (arXiv 1610.05121): as MinMig, but first sends n
// entries of the routing table, those with the least state, back to their
// default owner. n starts at 0 and grows by what the table exceeds its limit,
// until it keeps the limit or all entries went back.
func mixed(p *problem) []int32 {
	var entries []int32
	for g, d := range p.route {
		if d != p.home[g] && !p.fixed[g] && p.allowed(int32(g), int(p.home[g])) {
			entries = append(entries, int32(g))
		}
	}
	slices.SortFunc(entries, func(a, b int32) int {
		if c := cmp.Compare(p.bytes[a], p.bytes[b]); c != 0 {
			return c
		}
		return int(a - b)
	})
	for n := 0; ; {
		f := newFang(p)
		for _, g := range entries[:n] {
			f.load[f.owner[g]] -= f.problem.load[g]
			f.put(g, int(p.home[g]))
		}
		f.prepare()
		f.deal()
		over := f.tableSize() - p.limit
		if over <= 0 || n == len(entries) {
			return f.owner
		}
		n = min(n+over, len(entries))
	}
}
