package verify

import (
	"github.com/weir-bench/weir/workloads"
)

// A strategy that promises no more than a gap loses state: the counts of the keys concerned begin again from 1, and the
// records that were under way are never answered. That must stay within the outage (Hwang et al. 2005, "gap recovery"),
// so the oracle follows a key over its incarnations and compares what is missing with what was due in the outage.

// lives is what is known of a key whose state was lost.
type lives struct {
	// first is how many answers in a row came before the state was lost for the first time, later how many came in the lives
	// that are over.
	first, over uint64
	// generation is the loss that has been seen in the key's answers.
	generation int
	// missing is how many answers never came; known at the end.
	missing uint64
}

// StateLost says that from now on the counts of the keys may begin again from 1, once.
func (o *Oracle) StateLost(keys func(key uint64) bool) {
	o.losses = append(o.losses, keys)
	if o.lives == nil {
		o.lives = map[uint64]*lives{}
	}
}

// reborn says whether answer v of a key is the first of a new life, and begins it.
func (o *Oracle) reborn(s *slot, v uint64) bool {
	l := o.lives[s.key]
	seen := 0
	if l != nil {
		seen = l.generation
	}
	lost := false
	for _, keys := range o.losses[seen:] {
		lost = lost || keys(s.key)
	}
	if !lost || v >= uint64(s.next) {
		return false
	}
	row, ahead := uint64(s.next)-1, uint64(0)
	if h := o.odd[s.key]; h != nil {
		ahead = uint64(len(h.ahead))
		delete(o.odd, s.key)
	}
	if l == nil {
		l = &lives{first: row}
		o.lives[s.key] = l
	}
	l.over += row + ahead
	l.generation = len(o.losses)
	s.next, s.stamp = 1, 0
	return true
}

// came returns how many different answers of a key came, in all its lives.
func (o *Oracle) came(key uint64) (n uint64) {
	if l := o.lives[key]; l != nil {
		n = l.over
	}
	if s := o.lookup(key); s != nil {
		n += uint64(s.next) - 1
	}
	if h := o.odd[key]; h != nil {
		n += uint64(len(h.ahead))
	}
	return n
}

// Unconfined returns how many answers are missing beyond those of the records that were due in the outage, key by key:
// outage counts these. It is 0 when the loss is confined to the outage and the lost state.
func (o *Oracle) Unconfined(golden, outage *workloads.Tally, times uint64) (n uint64) {
	for key, due := range golden.All() {
		due *= times
		if missing := due - min(o.came(key), due); missing > outage.Count(key)*times {
			n += missing - outage.Count(key)*times
		}
	}
	return n
}
