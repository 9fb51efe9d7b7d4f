package state

import "slices"

// Taker is a Keyed whose groups can be taken out of it.
type Taker interface {
	// Take empties groups and returns what they held, for its owner to read once: Next frees each group when it has given
	// the group's last chunk, and Release frees the rest. Unlike Cut and Drop it makes no later write copy or note
	// anything, and the state takes no memory twice. Keep does not take what it returns, and Rewind panics.
	Take(groups []uint32) Snapshot
}

// taken is a Snapshot of what nobody else has any more, except snapshots from before.
type taken struct {
	cut
	// maxLive is, by part, the newest snapshot that may share it.
	maxLive []uint32
}

// Take implements Taker.
func (s *store) Take(groups []uint32) Snapshot {
	s.checkGroups(groups)
	t := &taken{cut: cut{s: s, epoch: s.epoch, groups: slices.Clone(groups), vals: s.vals}}
	for _, group := range groups {
		g := &s.groups[group]
		t.parts = append(t.parts, part{dir: g.dir, bytes: g.bytes, replace: true})
		t.maxLive = append(t.maxLive, g.maxLive)
		s.roots[group] = nil
		*g = keyGroup{maxLive: g.maxLive, reset: g.reset}
		if s.tracking {
			g.reset = s.epoch
		}
	}
	return t
}

// Next is called by the owner, as it frees what it has given.
func (t *taken) Next(dst []byte, maxBytes int) (chunk []byte, group uint32, last, done bool) {
	chunk, group, last, done = t.cut.Next(dst, maxBytes)
	if last {
		t.free(t.part - 1)
	}
	return chunk, group, last, done
}

// Prefer moves what belongs to the group along with it.
func (t *taken) Prefer(group uint32) bool {
	next := t.part
	if t.begun {
		next++
	}
	i := slices.Index(t.groups[min(next, len(t.groups)):], group)
	if !t.cut.Prefer(group) {
		return false
	}
	m := t.maxLive[next+i]
	copy(t.maxLive[next+1:], t.maxLive[next:next+i])
	t.maxLive[next] = m
	return true
}

// free parts with the memory of a part; snapshots from before may still read it.
func (t *taken) free(i int) {
	s, g := t.s, keyGroup{maxLive: t.maxLive[i]}
	tables(t.parts[i].dir, func(tb *table) bool {
		if s.indirect {
			for pos := range int(tb.n) {
				s.giveVal(&g, uint32(tb.words[pos*s.stride+1]))
			}
		}
		if s.give != nil && tb.stamp > g.maxLive {
			s.give(bytesOf(tb.words))
		} else {
			s.retireSlab(&g, tb)
		}
		return true
	})
	t.parts[i].dir, t.parts[i].bytes = nil, 0
}

// giveVal is freeVal for a value that is gone for good. The values of a Blob may be in use by whoever has read them.
func (s *store) giveVal(g *keyGroup, val uint32) {
	if s.give == nil || !s.fixed || s.valStamp[val] <= g.maxLive {
		s.freeVal(g, val)
		return
	}
	s.give(s.vals[val])
	s.vals[val] = nil
	s.valFree = append(s.valFree, val)
}

// GiveTo sets who is given the memory of state that was taken, instead of its being kept for reuse: memory without pointers,
// which the collector still owns, but whose content nobody reads any more. nil: it is kept.
func (s *store) GiveTo(give func(mem []byte)) { s.give = give }

// Rewind panics: what was given is gone.
func (t *taken) Rewind() { panic("state: what was taken is read once") }

// Release frees what was not read.
func (t *taken) Release() {
	if t.released {
		panic("state: snapshot released twice")
	}
	t.released = true
	for i := range t.parts {
		t.free(i)
	}
	t.parts, t.vals = nil, nil
	t.s.reclaim()
}
