package storage

// joinBytes is from which size on joinCRC is faster than to go over the data once more.
const joinBytes = 64 << 10

// joinCRC returns the CRC32C of first's data followed by second's, whose length is given, from the checksums of the two:
// the first one moved on by so many zero bytes, which is its product with x^(8n) modulo the polynomial, plus the second one.
// (Mark Adler's crc32_combine of zlib; before and after inversion cancel each other.)
func joinCRC(first, second uint32, secondBytes int) uint32 {
	shift, square := uint32(1)<<31, uint32(1)<<23 // x^0 and x^8: the highest bit is the lowest power
	for n := secondBytes; n > 0; n >>= 1 {
		if n&1 == 1 {
			shift = multiplyCRC(shift, square)
		}
		square = multiplyCRC(square, square)
	}
	return multiplyCRC(shift, first) ^ second
}

// multiplyCRC multiplies polynomials modulo that of CRC32C.
func multiplyCRC(a, b uint32) (product uint32) {
	const castagnoliReversed = 0x82f63b78
	for bit := uint32(1) << 31; bit > 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		if b&1 == 1 {
			b = b>>1 ^ castagnoliReversed
		} else {
			b >>= 1
		}
	}
	return product
}
