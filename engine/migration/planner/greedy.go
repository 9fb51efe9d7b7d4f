package planner

import (
	"math"
	"slices"
)

// greedy is the default planner. It sheds from each overloaded task the
// cheapest set of groups that covers its excess, packs those into the other
// tasks by falling load, makes room by evicting smaller groups where one does
// not fit, and then exchanges moved groups for cheaper ones. Where a group does
// not fit, it tries the alternatives of that group as far as their bounds
// promise fewer bytes.
func greedy(p *problem) []int32 {
	if s := p.search(); s.route != nil {
		return s.route
	}
	// The cap is out of reach for this planner, so look for the lowest one that
	// is not. At the present maximum nothing has to move.
	best := p.route
	low, high := p.cap, p.maxLoad(p.route)
	for range 12 {
		q := *p
		q.cap = (low + high) / 2
		if r, ok := q.cheapest(0); ok {
			if route, _ := q.packed(r); route != nil {
				best, high = route, q.cap
				continue
			}
		}
		low = q.cap
	}
	return best
}

// packed completes a relaxation to a plan by the better of two ways of
// packing, or returns nil when both fail. stuck is the first group that the
// last way tried found no room for, or −1.
func (p *problem) packed(r relaxation) (route []int32, stuck int32) {
	best := int64(math.MaxInt64)
	for _, tight := range [...]bool{false, true} {
		k := newPacking(p, r, tight)
		if k.pack() {
			k.improve()
			if b := p.movedBytes(k.owner); b < best {
				route, best = k.owner, b
			}
		}
		if stuck = k.stuck; stuck < 0 {
			break
		}
	}
	return route, stuck
}

// packing is a plan in the making.
type packing struct {
	*problem
	owner  []int32
	load   []float64
	closed []bool  // tasks that belong to one oversize group
	queue  []int32 // groups without an owner, by rising load
	stuck  int32   // the first group that found no room, or −1
	tight  bool    // prefer the fullest task that still fits to the emptiest
}

func newPacking(p *problem, r relaxation, tight bool) *packing {
	k := &packing{problem: p, owner: slices.Clone(p.start), closed: make([]bool, p.tasks), stuck: -1, tight: tight}
	for d, groups := range r.evict {
		k.queue = append(k.queue, groups...)
		if g := r.seat[d]; g >= 0 {
			k.owner[g] = int32(d)
			k.closed[d] = p.load[g] > p.cap
		}
	}
	k.load = k.loads(k.owner)
	for _, g := range k.queue {
		k.load[p.start[g]] -= p.load[g]
	}
	k.byLoad(k.queue)
	slices.Reverse(k.queue)
	for _, g := range k.queue {
		k.owner[g] = -1
	}
	return k
}

// problem.load is by group and packing.load by task.
func (k *packing) weight(g int32) float64 { return k.problem.load[g] }

// pack finds an owner for all queued groups and is false when it cannot.
func (k *packing) pack() bool {
	for budget := 4*len(k.owner) + len(k.queue); len(k.queue) > 0; budget-- {
		if budget == 0 {
			return false
		}
		g := k.queue[len(k.queue)-1]
		k.queue = k.queue[:len(k.queue)-1]
		if d := k.roomFor(g); d >= 0 {
			k.put(g, d)
			continue
		}
		if k.stuck < 0 {
			k.stuck = g
		}
		if !k.makeRoom(g) {
			return false
		}
	}
	return true
}

func (k *packing) put(g int32, d int) {
	k.owner[g] = int32(d)
	k.load[d] += k.weight(g)
}

// roomFor returns the task that should take the group as it is, or −1.
func (k *packing) roomFor(g int32) int {
	best := -1
	for d := range k.tasks {
		if k.closed[d] || !k.allowed(g, d) || k.load[d]+k.weight(g) > k.capOf(d) {
			continue
		}
		if best < 0 || k.tight && k.load[d] > k.load[best] || !k.tight && k.load[d] < k.load[best] {
			best = d
		}
	}
	return best
}

// makeRoom puts a group where the smaller groups that have to leave for it are
// cheapest, and queues those. As each evicts only smaller ones, this ends.
func (k *packing) makeRoom(g int32) bool {
	// Groups that are under way already cost nothing more to send elsewhere,
	// but sending many about costs the search its end, so they are not free.
	cost := func(x int32) int64 {
		if k.owner[x] != k.route[x] {
			return k.bytes[x] / 16
		}
		return k.bytes[x]
	}
	var best cover
	bestTask := -1
	smaller := make([][]int32, k.tasks)
	for x, d := range k.owner {
		if d >= 0 && !k.fixed[x] && k.weight(int32(x)) > 0 && k.weight(int32(x)) < k.weight(g) {
			smaller[d] = append(smaller[d], int32(x))
		}
	}
	for d := range k.tasks {
		if k.closed[d] || !k.allowed(g, d) {
			continue
		}
		need := k.load[d] + k.weight(g) - k.capOf(d)
		c := k.minCover(smaller[d], need, cost, 200)
		shed := 0.0
		for _, x := range c.groups {
			shed += k.weight(x)
		}
		if shed < need*(1-slackShare) {
			continue
		}
		if int(k.route[g]) != d {
			c.bytes += k.bytes[g]
		}
		if bestTask < 0 || c.bytes < best.bytes {
			best, bestTask = c, d
		}
	}
	if bestTask < 0 {
		return false
	}
	for _, x := range best.groups {
		k.load[bestTask] -= k.weight(x)
		k.owner[x] = -1
		at, _ := slices.BinarySearchFunc(k.queue, x, func(a, b int32) int {
			if k.weight(a) < k.weight(b) {
				return -1
			}
			return 1
		})
		k.queue = slices.Insert(k.queue, at, x)
	}
	k.put(g, bestTask)
	return true
}

// improve sends moved groups home where that fits, or where it fits after a
// cheaper group has left in their place, until nothing changes.
func (k *packing) improve() {
	for changed := true; changed; {
		changed = false
		var moved []int32
		for g, d := range k.owner {
			if d != k.route[g] && k.weight(int32(g)) > 0 && !k.closed[k.route[g]] {
				moved = append(moved, int32(g))
			}
		}
		slices.SortFunc(moved, func(a, b int32) int {
			if k.bytes[a] != k.bytes[b] {
				if k.bytes[a] > k.bytes[b] {
					return -1
				}
				return 1
			}
			return int(a - b)
		})
		stay := k.movable(k.owner)
		for _, g := range moved {
			if !k.closed[k.owner[g]] && k.sendHome(g, stay) {
				changed = true
				stay = k.movable(k.owner)
			}
		}
	}
}

func (k *packing) sendHome(g int32, stay [][]int32) bool {
	home, away := int(k.route[g]), int(k.owner[g])
	need := k.load[home] + k.weight(g) - k.capOf(home)
	if need <= 0 {
		k.load[away] -= k.weight(g)
		k.put(g, home)
		return true
	}
	roomiest := -1
	for d := range k.tasks {
		if d != home && d != away && !k.closed[d] && k.targets[d] &&
			(roomiest < 0 || k.capOf(d)-k.load[d] > k.capOf(roomiest)-k.load[roomiest]) {
			roomiest = d
		}
	}
	best, to := int32(-1), -1
	for _, x := range stay[home] {
		if k.route[x] != int32(home) || k.weight(x) < need || k.bytes[x] >= k.bytes[g] ||
			best >= 0 && k.bytes[x] >= k.bytes[best] {
			continue
		}
		switch {
		case k.load[away]-k.weight(g)+k.weight(x) <= k.capOf(away) && k.allowed(x, away):
			best, to = x, away
		case roomiest >= 0 && k.load[roomiest]+k.weight(x) <= k.capOf(roomiest):
			best, to = x, roomiest
		}
	}
	if best < 0 {
		return false
	}
	k.load[away] -= k.weight(g)
	k.load[home] -= k.weight(best)
	k.put(g, home)
	k.put(best, to)
	return true
}
