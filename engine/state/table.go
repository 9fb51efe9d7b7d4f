package state

import (
	"math/bits"
	"unsafe"
)

const (
	// maxTableEntries keeps positions within 12 bits at an index load of 1/2, which
	// leaves at least four bits of a 16-bit index slot to the hash tag.
	maxTableEntries = 2048
	maxSlabBytes    = 64 << 10
	minTableEntries = 8
	// maxDirectoryDepth bounds a group's directory at 2^28 pointers; only keys
	// chosen to collide could need more.
	maxDirectoryDepth = 28
)

// hashKey spreads a key over 64 bits by a folded 64×64→128 bit multiplication.
// It is independent of the routing hash on purpose: all keys of a group share
// bits of that one.
func hashKey(key uint64) uint64 {
	hi, lo := bits.Mul64(key^0x9ae16a3b2f90404f, 0xd6e8feb86659fd93)
	return hi ^ lo
}

// table is a dense slab of entries and the index over it. What Word reads comes
// first and fills one cache line; the padding makes tables start on one.
type table struct {
	// words holds n entries of stride words each (key first); its length is
	// the capacity. Private to the owner if stamp is the current epoch.
	words []uint64
	// index is a linear-probing table of slots: 0 is empty, otherwise the low
	// posBits bits are position+1 and the bits above them are a hash tag.
	index   []uint16
	stamp   uint32 // epoch of the last write
	n       int32
	posMask uint16 // len(index)-1
	depth   uint8  // number of leading hash bits that all entries share
	// blocks holds for each block of entries the epoch of its last tracked write.
	blocks []uint32
	_      [40]byte
}

// find returns the position of key, or -1 and the index slot that link is to fill
// for it.
func (t *table) find(hash, key uint64, stride int) (pos int, slot uint64) {
	posMask := t.posMask
	index := t.index[:int(posMask)+1]
	tag := uint16(hash>>32) &^ posMask
	for i := hash & uint64(posMask); ; i = (i + 1) & uint64(posMask) {
		v := index[i]
		if v == 0 {
			return -1, i
		}
		if v&^posMask == tag {
			if pos := int(v&posMask) - 1; t.words[pos*stride] == key {
				return pos, i
			}
		}
	}
}

// linkRun counts in and links the entries behind the last one, whose words are given, up to the first whose hash does not
// begin with prefix or whose key is there already. It returns how many.
func (t *table) linkRun(words []uint64, stride int, prefix uint64) int {
	posMask, first := t.posMask, int(t.n)
	index := t.index[:int(posMask)+1]
	past := 64 - uint(t.depth)
	pos := first
	for w := 0; w < len(words); w += stride {
		key := words[w]
		hash := hashKey(key)
		if hash>>past != prefix {
			break
		}
		tag := uint16(hash>>32) &^ posMask
		i := hash & uint64(posMask)
		for v := index[i]; v != 0; v = index[i] {
			if v&^posMask == tag && t.words[(int(v&posMask)-1)*stride] == key {
				t.n = int32(pos)
				return pos - first
			}
			i = (i + 1) & uint64(posMask)
		}
		pos++
		index[i] = tag | uint16(pos)
	}
	t.n = int32(pos)
	return pos - first
}

// link makes index slot i, which must be empty and the one for hash, point to pos.
func (t *table) link(i, hash uint64, pos int) {
	t.index[i] = uint16(hash>>32)&^t.posMask | uint16(pos+1)
}

// vacant returns the empty index slot for a key that is not in the table.
func (t *table) vacant(hash uint64) uint64 {
	mask := uint64(t.posMask)
	i := hash & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	return i
}

// slotOf returns the index slot that points to pos, whose hash is given.
func (t *table) slotOf(hash uint64, pos int) uint64 {
	mask := uint64(t.posMask)
	i := hash & mask
	for t.index[i]&t.posMask != uint16(pos+1) {
		i = (i + 1) & mask
	}
	return i
}

// unlink empties slot i and moves later entries of its run back, so that no
// tombstones are needed.
func (t *table) unlink(i uint64, stride int) {
	mask := uint64(t.posMask)
	j := i
	for {
		j = (j + 1) & mask
		slot := t.index[j]
		if slot == 0 {
			break
		}
		home := hashKey(t.words[(int(slot&t.posMask)-1)*stride]) & mask
		if (j-home)&mask >= (j-i)&mask {
			t.index[i] = slot
			i = j
		}
	}
	t.index[i] = 0
}

// remove deletes the entry at pos by moving the last one into its place. The
// slab must be writable.
func (t *table) remove(hash uint64, pos, stride int) {
	t.unlink(t.slotOf(hash, pos), stride)
	last := int(t.n) - 1
	if pos != last {
		moved := t.words[last*stride : (last+1)*stride]
		h := hashKey(moved[0])
		slot := t.slotOf(h, last)
		copy(t.words[pos*stride:], moved)
		t.index[slot] = t.index[slot]&^t.posMask | uint16(pos+1)
	}
	t.n = int32(last)
}

// reindex replaces the index by one that has room for entries, and fills it.
func (t *table) reindex(entries, stride int) {
	size := indexSize(entries)
	if size == len(t.index) {
		clear(t.index)
	} else {
		t.index = newIndex(size)
	}
	t.posMask = uint16(size - 1)
	for pos, w := 0, 0; pos < int(t.n); pos, w = pos+1, w+stride {
		h := hashKey(t.words[w])
		t.link(t.vacant(h), h, pos)
	}
}

// newIndex returns an empty index whose memory has been written to. Linking reads a slot before it writes it: of new memory
// that costs two page faults, as the kernel maps a page of zeros first, and the second one interrupts the other cores.
func newIndex(size int) []uint16 {
	const page = 4096 / 2
	index := make([]uint16, size)
	for i := 0; i < size; i += page {
		index[i] = 0
	}
	return index
}

// indexSize returns the number of slots for entries at a load of at most 1/2.
func indexSize(entries int) int {
	size := 2 * minTableEntries
	for size < 2*entries {
		size *= 2
	}
	return size
}

// nextCapacity returns the next slab size in entries: steps of 3/2 and 4/3 in turn,
// so that at most a third of a slab is unused.
func nextCapacity(entries, limit int) int {
	next := minTableEntries
	for next <= entries {
		if next&(next-1) == 0 {
			next += next / 2
		} else {
			next += next / 3
		}
	}
	return min(next, limit)
}

// bytesOf views words as bytes. Stores run on little-endian machines only (see
// NewHeap), so the view is the chunk encoding.
func bytesOf(words []uint64) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
}
