package planner

// minMig is MinMig of Fang et al. (arXiv 1610.05121): it leaves the routing
// table alone, takes groups off overloaded tasks by migration priority and
// deals them again, to move little state at any size of the table.
func minMig(p *problem) []int32 {
	f := newFang(p)
	f.prepare()
	f.deal()
	return f.owner
}
