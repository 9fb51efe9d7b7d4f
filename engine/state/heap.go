package state

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Heap is keyed state with values of a fixed size, by key group, in memory.
// The caller gives the group with the key (core.KeyGroup); the heap does not
// check that they belong together. One goroutine owns a Heap and its snapshots
// (see the package comment). A group number out of range is a bug and panics.
type Heap struct {
	store
}

// NewHeap returns an empty heap for groups key groups whose values have
// valueBytes bytes (at least 8). Values above 1 KiB are held one by one, so that a
// snapshot costs a copy of that value only.
func NewHeap(groups uint32, valueBytes int) *Heap {
	if valueBytes < 8 {
		panic(fmt.Sprintf("state: values of %d bytes, at least 8 needed", valueBytes))
	}
	requireLittleEndian()
	return &Heap{store: newStore(groups, valueBytes, true)}
}

// requireLittleEndian panics elsewhere: slabs are written to chunks as they are.
func requireLittleEndian() {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		panic("state: chunks are slabs in little-endian order, which this machine does not have")
	}
}

// ValueBytes returns the size of a value in bytes.
func (h *Heap) ValueBytes() int { return h.valueBytes }

// NumGroups returns the number of key groups that the heap was made for.
func (h *Heap) NumGroups() uint32 { return uint32(len(h.groups)) }

// Ref returns the writable value of key, zeroed if fresh. It stays valid until the
// next call on the heap; writes after that may reach a snapshot.
func (h *Heap) Ref(group uint32, key uint64) (val []byte, fresh bool) {
	g := &h.groups[group]
	t, pos, fresh := h.upsert(group, key)
	entry := t.words[pos*h.stride : (pos+1)*h.stride]
	if fresh {
		g.bytes += int64(8 + h.valueBytes)
	}
	if h.indirect {
		return h.refIndirect(g, entry, fresh), fresh
	}
	return bytesOf(entry[1:])[:h.valueBytes:h.valueBytes], fresh
}

// refIndirect returns the writable value of an entry whose slab is writable.
func (h *Heap) refIndirect(g *keyGroup, entry []uint64, fresh bool) []byte {
	if fresh {
		buf := h.buffer()
		clear(buf)
		entry[1] = uint64(h.newVal(buf))
		return buf
	}
	old := uint32(entry[1])
	if h.valStamp[old] <= g.maxLive {
		buf := h.buffer()
		copy(buf, h.vals[old])
		h.copiedBytes += len(buf)
		entry[1] = uint64(h.newVal(buf))
		h.retireVal(g, old)
		return buf
	}
	return h.vals[old]
}

// Word returns the first eight bytes of the value of key as a number, zero if
// fresh: the fast path of counters. It stays valid until the next call on the heap.
func (h *Heap) Word(group uint32, key uint64) *uint64 {
	hash := hashKey(key)
	t := h.roots[group]
	if t == nil {
		g := &h.groups[group]
		if len(g.dir) == 0 {
			return h.wordSlow(group, key)
		}
		t = g.dir[hash>>g.shift]
	}
	if t.stamp != h.epoch || h.stride != 2 || h.indirect {
		return h.wordSlow(group, key)
	}
	// table.find, by hand because the compiler does not inline it.
	posMask, words := t.posMask, t.words
	tag := uint16(hash>>32) &^ posMask
	index := t.index[:int(posMask)+1]
	for i := uint16(hash) & posMask; index[i] != 0; i = (i + 1) & posMask {
		if slot := index[i]; slot&^posMask == tag {
			pos := uint(slot&posMask) - 1
			if words[2*pos] == key {
				if h.tracking {
					t.blocks[pos>>(h.blockShift&63)] = h.epoch
				}
				return &words[2*pos+1]
			}
		}
	}
	return h.wordSlow(group, key)
}

func (h *Heap) wordSlow(group uint32, key uint64) *uint64 {
	val, _ := h.Ref(group, key)
	return (*uint64)(unsafe.Pointer(&val[0]))
}

// Get returns the value of key for reading, valid until the next call on the heap.
func (h *Heap) Get(group uint32, key uint64) ([]byte, bool) {
	return h.get(group, key)
}

// Delete removes key and reports whether it was there.
func (h *Heap) Delete(group uint32, key uint64) bool {
	return h.remove(group, key)
}

func (s *store) get(group uint32, key uint64) ([]byte, bool) {
	t, pos, _ := s.lookup(&s.groups[group], hashKey(key), key)
	if pos < 0 {
		return nil, false
	}
	return s.value(t.words[pos*s.stride:(pos+1)*s.stride], s.vals), true
}

// Len returns the number of keys in the group.
func (s *store) Len(group uint32) int { return s.groups[group].n }

// Bytes returns the size of the group's keys (8 bytes each) and values in bytes:
// what moving it has to carry, not the memory that it occupies.
func (s *store) Bytes(group uint32) int64 { return s.groups[group].bytes }

// Drop empties the group. Its slabs are reused, at once or when the snapshots that
// read them are released.
func (s *store) Drop(group uint32) { s.drop(group) }

// Range visits the group's entries, in an order that depends only on the operations
// made, until visit returns false. visit must not write to the store nor to val.
func (s *store) Range(group uint32, visit func(key uint64, val []byte) bool) {
	s.each(&s.groups[group], visit)
}

// Fingerprint returns a hash over the group's (key, value) pairs that does not
// depend on their order; 0 for an empty group.
func (s *store) Fingerprint(group uint32) uint64 {
	var sum uint64
	s.each(&s.groups[group], func(key uint64, val []byte) bool {
		sum += hashEntry(key, val)
		return true
	})
	return sum
}
