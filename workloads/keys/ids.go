package keys

import "github.com/weir-bench/weir/workloads/rng"

// IDs maps ranks to the 64-bit keys the engine sees, one to one.
type IDs interface {
	// Map replaces each rank by its key.
	Map(ranks []uint64)
	// Rank is the inverse of Map for one key; ok is false for a key that no
	// rank has, where the scheme can tell.
	Rank(key uint64) (rank uint64, ok bool)
}

// Dense is the identity: key = rank.
type Dense struct{}

// Map leaves ranks as they are.
func (Dense) Map([]uint64) {}

// Rank returns key.
func (Dense) Rank(key uint64) (uint64, bool) { return key, true }

// Scrambled spreads ranks over all 64-bit words by a seeded bijection, so that
// hot keys scatter over key groups and no share changes.
type Scrambled struct{ Seed uint64 }

// Map replaces each rank by its scrambled key.
func (s Scrambled) Map(ranks []uint64) {
	for j, r := range ranks {
		ranks[j] = rng.Mix(r ^ s.Seed)
	}
}

// Rank returns the rank that scrambles to key.
func (s Scrambled) Rank(key uint64) (uint64, bool) { return rng.Unmix(key) ^ s.Seed, true }

// Listed gives rank k the key list[k]. It keeps list.
func Listed(list []uint64) IDs {
	l := &listed{list: list, ranks: make(map[uint64]uint64, len(list))}
	for r, key := range list {
		l.ranks[key] = uint64(r)
	}
	return l
}

type listed struct {
	list  []uint64
	ranks map[uint64]uint64
}

func (l *listed) Map(ranks []uint64) {
	for j, r := range ranks {
		ranks[j] = l.list[r]
	}
}

func (l *listed) Rank(key uint64) (uint64, bool) {
	r, ok := l.ranks[key]
	return r, ok
}
