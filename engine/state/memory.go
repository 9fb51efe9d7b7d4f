package state

import (
	"maps"
	"slices"
)

// slab returns a slab for the given number of entries, from the free list if it
// has one. Its content is arbitrary: upsert clears each new entry.
func (s *store) slab(entries int) []uint64 {
	words := entries * s.stride
	free := s.slabFree[words]
	if last := len(free) - 1; last >= 0 {
		slab := free[last]
		free[last] = nil
		s.slabFree[words] = free[:last]
		s.freeBytes -= words * 8
		return slab
	}
	s.made += words * 8
	return make([]uint64, words)
}

// keepSlab puts a slab that no snapshot reads on the free list.
func (s *store) keepSlab(words []uint64) {
	if size := len(words) * 8; size >= recycleBytes && s.freeBytes+size <= s.spareBytes() {
		s.slabFree[len(words)] = append(s.slabFree[len(words)], words)
		s.freeBytes += size
	}
}

// spareBytes is how much memory is kept for reuse: what writes had to copy because of the last snapshot, as they will again
// because of the next one. Memory that is given away between snapshots has to be faulted in page by page, at a price that
// exceeds that of the copying.
func (s *store) spareBytes() int { return min(max(minFreeBytes, s.copyBytes), maxFreeBytes) }

// noteCopies is called when a snapshot ends. What it made writes copy counts, and half as much for the next one in case that
// one is small.
func (s *store) noteCopies() {
	s.copyBytes = max(s.copiedBytes, s.copyBytes/2)
	s.copiedBytes = 0
}

// trimFree gives what is kept beyond spareBytes to the collector.
func (s *store) trimFree() {
	spare := s.spareBytes()
	for last := len(s.bufFree) - 1; last >= 0 && s.freeBytes > spare; last-- {
		s.freeBytes -= len(s.bufFree[last])
		s.bufFree[last] = nil
		s.bufFree = s.bufFree[:last]
	}
	if s.freeBytes <= spare {
		return
	}
	for _, words := range slices.Sorted(maps.Keys(s.slabFree)) {
		free := s.slabFree[words]
		for last := len(free) - 1; last >= 0 && s.freeBytes > spare; last-- {
			s.freeBytes -= words * 8
			free[last] = nil
			free = free[:last]
		}
		s.slabFree[words] = free
	}
}

// retireSlab parts with the slab of a table of the group, which snapshots may still read.
func (s *store) retireSlab(g *keyGroup, t *table) {
	if t.stamp > g.maxLive {
		s.keepSlab(t.words)
	} else if len(t.words)*8 >= recycleBytes { // smaller ones are left to the collector
		s.slabPending = append(s.slabPending, pendingSlab{t.words, s.epoch})
	}
}

// newVal stores v under a free number.
func (s *store) newVal(v []byte) uint32 {
	if last := len(s.valFree) - 1; last >= 0 {
		i := s.valFree[last]
		s.valFree = s.valFree[:last]
		s.vals[i], s.valStamp[i] = v, s.epoch
		return i
	}
	s.vals = append(s.vals, v)
	s.valStamp = append(s.valStamp, s.epoch)
	return uint32(len(s.vals) - 1)
}

// freeVal takes a value out of the group.
func (s *store) freeVal(g *keyGroup, val uint32) {
	g.bytes -= int64(8 + len(s.vals[val]))
	s.retireVal(g, val)
}

// retireVal frees a value's number now, or when the snapshots that may refer to it
// are released.
func (s *store) retireVal(g *keyGroup, val uint32) {
	if s.valStamp[val] > g.maxLive {
		s.recycleVal(val)
		return
	}
	s.valPending = append(s.valPending, pendingVal{val, s.epoch})
}

func (s *store) recycleVal(val uint32) {
	if buf := s.vals[val]; s.fixed && len(buf) >= recycleBytes && s.freeBytes+len(buf) <= s.spareBytes() {
		s.bufFree = append(s.bufFree, buf)
		s.freeBytes += len(buf)
	}
	s.vals[val] = nil
	s.valFree = append(s.valFree, val)
}

// buffer returns memory for one indirect value of a fixed-size store, with
// arbitrary content.
func (s *store) buffer() []byte {
	if last := len(s.bufFree) - 1; last >= 0 {
		buf := s.bufFree[last]
		s.bufFree[last] = nil
		s.bufFree = s.bufFree[:last]
		s.freeBytes -= len(buf)
		return buf
	}
	return bytesOf(make([]uint64, (s.valueBytes+7)/8))[:s.valueBytes:s.valueBytes]
}

// reclaim recycles what no live snapshot can read any more: memory given up at
// epoch e is read only by snapshots cut before e.
func (s *store) reclaim() {
	oldest := s.epoch
	for _, snap := range s.live {
		oldest = min(oldest, snap.epoch)
	}
	i := 0
	for ; i < len(s.valPending) && s.valPending[i].epoch <= oldest; i++ {
		s.recycleVal(s.valPending[i].val)
	}
	s.valPending = s.valPending[:copy(s.valPending, s.valPending[i:])]
	i = 0
	for ; i < len(s.slabPending) && s.slabPending[i].epoch <= oldest; i++ {
		s.keepSlab(s.slabPending[i].words)
	}
	rest := copy(s.slabPending, s.slabPending[i:])
	clear(s.slabPending[rest:])
	s.slabPending = s.slabPending[:rest]
}
