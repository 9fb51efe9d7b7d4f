package state

import "github.com/weir-bench/weir/engine/core"

// fillKeys is how many keys are sorted by key group at a time: 128 MiB of them.
const fillKeys = 32 << 20

// Fill enters the keys 0 to n−1 (n at most 2^32) with values of zeros into the groups of an empty heap for which want is true,
// each key into the group that core.KeyGroup gives it. Tables get the size that they need at once, so that nothing is split.
// It works at the owner's cost; whoever calls it on another goroutine owns the heap meanwhile.
func (h *Heap) Fill(n uint64, want []bool) {
	var groups []uint32
	for g, w := range want {
		if w {
			groups = append(groups, uint32(g))
		}
	}
	expect := n / uint64(len(want)) // keys a group
	at := max(1, int(fillKeys/max(expect, 1)))
	keys := make([][]uint32, len(want))
	for len(groups) > 0 && n > 0 {
		now := groups[:min(at, len(groups))]
		groups = groups[len(now):]
		for _, g := range now {
			keys[g] = make([]uint32, 0, expect+expect/8+16)
		}
		sortKeys(n, keys, now[0], now[len(now)-1])
		for _, g := range now {
			h.fill(g, keys[g])
			keys[g] = nil
		}
	}
}

// sortKeys appends each key below n to those of its group, where the group is one from first to last and has a slice.
func sortKeys(n uint64, keys [][]uint32, first, last uint32) {
	groups := uint64(len(keys))
	for key := range n {
		// core.KeyGroup, with as few operations as possible: nearly all keys belong to another pass.
		g := uint32((core.Mix64(key) >> 32) * groups >> 32)
		if g-first > last-first {
			continue
		}
		if k := keys[g]; k != nil {
			keys[g] = append(k, uint32(key))
		}
	}
}

// fill enters keys, each once, that are not in the group yet.
func (h *Heap) fill(group uint32, keys []uint32) {
	g := &h.groups[group]
	if g.n > 0 || len(keys) < minTableEntries || h.indirect {
		for _, key := range keys {
			h.Ref(group, uint64(key))
		}
		return
	}
	h.drop(group)
	depth := uint(0)
	for h.maxEntries<<depth < 2*len(keys) {
		depth++
	}
	counts := make([]int, 1<<depth)
	for _, key := range keys {
		counts[hashKey(uint64(key))>>(64-depth)]++
	}
	h.shape(group, depth, counts)
	for _, key := range keys { // a table has room for all of its keys, and the key is new to it
		hash := hashKey(uint64(key))
		t := g.dir[hash>>g.shift]
		n := int(t.n)
		entry := t.words[n*h.stride : (n+1)*h.stride]
		clear(entry)
		entry[0] = uint64(key)
		t.link(t.vacant(hash), hash, n)
		t.n++
	}
	g.n = len(keys)
	g.bytes = int64(len(keys)) * int64(8+h.valueBytes)
}
