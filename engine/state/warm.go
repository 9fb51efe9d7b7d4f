package state

import "github.com/weir-bench/weir/engine/core"

const (
	// WarmKeys is how many keys Warm looks up at a time.
	WarmKeys = 64
	// warmBytes is from which size on a heap is larger than the cache of a core.
	warmBytes = 8 << 20
)

// Warm touches what Word will read for keys, at most WarmKeys of them: the first entry of the index that each key's hash
// leads to, and the entry that it points to. One after the other, each look-up waits for memory three to five times; here
// the look-ups of all keys wait at the same time. A small heap, which is in the cache anyway, is left alone.
func (h *Heap) Warm(keys []uint64) {
	if h.made < warmBytes || h.stride != 2 || h.indirect {
		return
	}
	var tabs [WarmKeys]*table
	var hashes [WarmKeys]uint64
	groups, sum := uint32(len(h.groups)), uint64(0)
	for i, key := range keys {
		g := &h.groups[core.KeyGroup(key, groups)]
		if hashes[i] = hashKey(key); len(g.dir) > 0 {
			tabs[i] = g.dir[hashes[i]>>g.shift]
		}
	}
	for i, t := range tabs[:len(keys)] {
		if t != nil {
			hashes[i] = uint64(t.index[hashes[i]&uint64(t.posMask)] & t.posMask)
		}
	}
	for i, t := range tabs[:len(keys)] {
		if t != nil && hashes[i] > 0 {
			sum += t.words[2*hashes[i]-2]
		}
	}
	h.touched = sum // or the compiler would leave it out
}
