package state

import (
	"encoding/binary"
	"math/bits"
)

// HashEntry hashes a key and its value; a fingerprint is the sum of its entries' hashes.
func HashEntry(key uint64, val []byte) uint64 { return hashEntry(key, val) }

// hashEntry hashes a key and its value, eight bytes at a time by folded
// multiplication, then mixes the result so that sums of hashes keep their quality.
func hashEntry(key uint64, val []byte) uint64 {
	h := key ^ uint64(len(val))*0x9e3779b97f4a7c15
	for len(val) >= 8 {
		h = fold(h^binary.LittleEndian.Uint64(val), 0xe7037ed1a0b428db)
		val = val[8:]
	}
	if len(val) > 0 {
		var tail [8]byte
		copy(tail[:], val)
		h = fold(h^binary.LittleEndian.Uint64(tail[:]), 0x8ebc6af09c88c6e3)
	}
	return finish(h ^ key*0xa0761d6478bd642f)
}

// fold keeps the operand in the result, so that a zero product does not erase
// what was hashed before.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo ^ bits.RotateLeft64(a, 29)
}

// finish is a bijection of 64 bits (two rounds of xor-shift and multiply).
func finish(h uint64) uint64 {
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}
