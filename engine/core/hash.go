package core

// Mix64 is a bijective mixing hash of 64 bits (the finaliser of SplitMix64: Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014). It is the same in every process and on every machine, unlike
// hash/maphash, so it may decide routes.
func Mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// KeyGroup returns the key group of key among groups key groups, in [0, groups). The upper half of the hash is used, so
// that hash tables inside a group may use the lower half.
func KeyGroup(key uint64, groups uint32) uint32 {
	return uint32((Mix64(key) >> 32) * uint64(groups) >> 32)
}

// HashBytes maps a byte string to 64 bits (FNV-1a, then Mix64), the same in every process.
func HashBytes(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return Mix64(h)
}
