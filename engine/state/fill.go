package state

import "github.com/weir-bench/weir/engine/core"

// fillKeys is how many keys are sorted by key group at a time: 64 MiB of them.
const fillKeys = 8 << 20

// Fill enters the keys 0 to n−1 with values of zeros into the groups of an empty heap for which want is true, each key into
// the group that core.KeyGroup gives it. Tables get the size that they need at once, so that nothing is split. It works at
// the owner's cost; whoever calls it on another goroutine owns the heap meanwhile.
func (h *Heap) Fill(n uint64, want []bool) {
	var groups []uint32
	for g, w := range want {
		if w {
			groups = append(groups, uint32(g))
		}
	}
	if n == 0 || len(groups) == 0 {
		return
	}
	expect := n / uint64(len(want)) // keys a group
	at := max(1, int(fillKeys/max(expect, 1)))
	keys := make([][]uint64, len(want))
	for len(groups) > 0 {
		now := groups[:min(at, len(groups))]
		groups = groups[len(now):]
		for _, g := range now {
			keys[g] = make([]uint64, 0, expect+expect/8+16)
		}
		first, last := now[0], now[len(now)-1]
		for key := range n {
			if g := core.KeyGroup(key, uint32(len(want))); g >= first && g <= last && want[g] {
				keys[g] = append(keys[g], key)
			}
		}
		for _, g := range now {
			h.fill(g, keys[g])
			keys[g] = nil
		}
	}
}

// fill enters keys that are not in the group yet.
func (h *Heap) fill(group uint32, keys []uint64) {
	g := &h.groups[group]
	if g.n == 0 && len(keys) >= minTableEntries {
		h.drop(group)
		depth := uint(0)
		for h.maxEntries<<depth < 2*len(keys) {
			depth++
		}
		counts := make([]int, 1<<depth)
		for _, key := range keys {
			counts[hashKey(key)>>(64-depth)]++
		}
		h.shape(group, depth, counts)
	}
	for _, key := range keys {
		h.Ref(group, key)
	}
}
